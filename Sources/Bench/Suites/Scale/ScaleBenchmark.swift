import BenchmarkKit
import Datasets
import Storage
import Touchstone

/// A benchmark of the suite `scale` at one size. It makes the runs on an engine.
struct ScaleBenchmark: Sendable {
  let kind: ScaleWorkload
  let size: Int
  let data: ScaleData
  let context: SuiteContext

  func workload() -> Workload {
    Workload(
      suite: "scale", name: kind.rawValue, summary: kind.summary, parameters: ["documents": .integer(size)],
      operations: operations
    ) { try prepare($0) }
  }

  private var operations: Int {
    switch kind {
    case .insert: data.inserts
    case .read: data.reads
    case .queryIndex: data.queries
    case .queryScan: ScaleData.scans(size: size)
    case .reopen: ScaleData.opens
    case .compact: 1
    }
  }

  private func prepare(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    var directory = try data.filled(engine, size: size)
    if kind == .insert || kind == .compact {
      try Fixtures.copy(directory, to: trial.directory)
      directory = trial.directory
    }
    let fileBytes = { [directory] in try TrialDirectory.fileBytes(in: directory) }
    if kind == .reopen {
      return Trial(
        timing: { [directory] in
          for _ in 0..<ScaleData.opens {
            let database = try data.open(engine, in: directory)
            defer { try? database.close() }
            try RunMismatch.check("stars of a document", try stars(database, 0), HotelDocument.stars(0))
          }
        }, fileBytes: fileBytes)
    }
    let database = try data.open(engine, in: directory)
    return try database.closingOnFailure {
      // Warms up the database, like one that is in use: the cost of mapping and caching at first use depends
      // on the size.
      if kind != .compact { try scan(database) }
      let work = try work(database, seed: context.settings.seed &+ UInt64(trial.round))
      let documents = size + (kind == .insert ? data.inserts : 0)
      return Trial(
        timing: { try work() }, fileBytes: fileBytes,
        finish: {
          defer { try? database.close() }
          try RunMismatch.check("documents after \(kind.rawValue)", try database.documentCount, documents)
        })
    }
  }

  /// Prepares a run, and returns the part that is timed.
  private func work(_ database: Database, seed: UInt64) throws -> () throws -> Void {
    var random = SeededRandom(seed: seed)
    switch kind {
    case .insert:
      let documents = (size..<size + data.inserts).map { (HotelDocument.id($0), HotelDocument.json($0)) }
      return {
        try database.inBatches(of: ScaleData.insertBatch, documents) { id, json in
          try json.withUnsafeBytes { _ = try database.save(id, json: $0) }
        }
      }
    case .read:
      let numbers = (0..<data.reads).map { _ in random.below(size) }
      let ids = numbers.map(HotelDocument.id)
      let expected = numbers.reduce(0) { $0 + HotelDocument.stars($1) }
      return {
        let key = try database.key("stars")
        var found = 0
        for id in ids {
          guard let document = try database.document(id) else { continue }
          found += Int(document[key].int ?? 0)
        }
        try RunMismatch.check("stars of all that was read", found, expected)
      }
    case .queryIndex:
      // Only whole cities. A database smaller than a city has a part of one.
      let cities = max(1, size / HotelDocument.perCity)
      let rows = min(HotelDocument.perCity, size)
      let query = try database.query("SELECT name, stars FROM _ WHERE city = $city")
      let names = (0..<data.queries).map { _ in
        HotelDocument.city(random.below(cities) * HotelDocument.perCity)
      }
      return {
        for name in names {
          try RunMismatch.check("rows of a city", try query.run(["city": .string(name)]).count, rows)
        }
      }
    case .queryScan:
      return { for _ in 0..<ScaleData.scans(size: size) { try scan(database) } }
    case .compact:
      try ScaleData.save(
        database, 0..<size, every: ScaleData.updateEvery, version: 2, batch: 1_000)
      return { try database.compact() }
    case .reopen: return {}
    }
  }

  /// Runs a query that reads every document.
  private func scan(_ database: Database) throws {
    let query = try database.query("SELECT COUNT(*) AS n FROM _ WHERE stars = 4 AND price < 1000")
    let found = try query.run().first?["n"].int.map(Int.init)
    try RunMismatch.check("documents of four stars", found ?? 0, (size + 1) / 5)
  }

  private func stars(_ database: Database, _ number: Int) throws -> Int {
    try database.document(HotelDocument.id(number))?["stars"].int.map(Int.init) ?? 0
  }
}
