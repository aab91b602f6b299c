import BenchmarkKit
import Datasets
import Storage
import Touchstone

/// A benchmark of the suite `sync` with its parameters. It makes the runs on an engine.
struct SyncBenchmark: Sendable {
  let kind: SyncWorkload
  let variant: SyncWorkload.Variant
  let data: SyncData
  let context: SuiteContext

  func workload() -> Workload {
    let operations =
      switch kind {
      case .readBesideApply: data.reads
      case .firstQuery, .secondQuery, .openedQuery: 1
      default: variant.batch == 1 ? data.singles : data.revisions
      }
    return Workload(
      suite: "sync", name: kind.rawValue, summary: kind.summary, parameters: variant.parameters,
      operations: operations, runsThreads: kind == .applyBesideReader || kind == .readBesideApply
    ) { try prepare($0) }
  }

  private func prepare(_ trial: TrialContext) throws -> Trial {
    let engine = try context.engine(trial.engine)
    if let place = SyncWorkload.queries.firstIndex(of: kind) { return queryTrial(engine, trial, place) }
    if kind == .replicatePush || kind == .replicatePull { return try replicationTrial(engine, trial) }
    try Fixtures.copy(try data.filled(engine, indexes: variant.indexes), to: trial.directory)
    let incoming = kind == .readBesideApply ? [] : data.incoming(kind, batch: variant.batch)
    let database = try data.open(engine, in: trial.directory)
    let beside = SyncThreads(
      database, data, batch: variant.batch, seed: context.settings.seed &+ UInt64(trial.round))
    return Trial(
      run: {
        switch kind {
        case .readBesideApply: return try beside.timeReads()
        case .applyBesideReader:
          return .seconds(try beside.timeApply { try apply(incoming, database) })
        default:
          try apply(incoming, database)
          return .whole
        }
      }, fileBytes: { try TrialDirectory.fileBytes(in: trial.directory) },
      finish: {
        defer { try? database.close() }
        if kind == .readBesideApply { try beside.check() } else { try data.check(database, incoming) }
      })
  }

  /// Applies all revisions in transactions. Throws if the number of new revisions is wrong.
  private func apply(_ incoming: [SyncRevisions.Incoming], _ database: Database) throws {
    var stored = 0
    for start in stride(from: 0, to: incoming.count, by: variant.batch) {
      let part = incoming[start..<min(start + variant.batch, incoming.count)]
      stored += try database.apply(part.lazy.map(\.revision))
    }
    try RunMismatch.check("revisions stored", stored, incoming.count { $0.outcome != .known })
  }

  // MARK: Queries

  /// A run of the queries after a large apply. One run gives the samples of all three rows.
  private func queryTrial(_ engine: ProbedEngine, _ trial: TrialContext, _ place: Int) -> Trial {
    Trial(run: {
      let seconds = try data.measured.value(of: "\(engine.type.name) \(trial.round) \(variant.isIndexed)") {
        try queries(engine, trial)
      }
      return .seconds(seconds[place])
    })
  }

  /// Returns the seconds of the first query after a large apply, of the second one, and of the first one
  /// after the database was reopened. Each is the median of three. All start with cold processor caches. The
  /// same query runs before the apply too, as in an application.
  private func queries(_ engine: ProbedEngine, _ trial: TrialContext) throws -> [Double] {
    try Fixtures.copy(try data.filled(engine, indexes: variant.indexes), to: trial.directory)
    var seconds: [[Double]] = [[], [], []]
    var documents = data.documents
    for _ in 0..<3 {
      let before = documents
      documents += data.large
      do {
        let database = try data.open(engine, in: trial.directory)
        defer { try? database.close() }
        _ = try ask(database, HotelDocument.city(before / 4), among: before)
        for start in stride(from: before, to: documents, by: variant.batch) {
          let numbers = start..<min(start + variant.batch, documents)
          try database.apply(numbers.map { SyncRevisions.new($0).revision })
        }
        // Cities in the middle of the documents just applied.
        for place in 0..<2 {
          let city = HotelDocument.city(before + data.large * (place + 1) / 4)
          seconds[place].append(try ask(database, city, among: documents))
        }
      }
      let database = try data.open(engine, in: trial.directory)
      defer { try? database.close() }
      seconds[2].append(try ask(database, HotelDocument.city(before + data.large * 3 / 4), among: documents))
    }
    return seconds.map(SampleStatistics.median)
  }

  /// Returns the seconds of a query for a city, from its text to its rows.
  private func ask(_ database: Database, _ city: String, among documents: Int) throws -> Double {
    if context.settings.evictsCaches { CacheEviction.run() }
    let begin = Clock.nanoseconds()
    let rows = try database.query("SELECT name, stars FROM _ WHERE city = $city")
      .run(["city": .string(city)]).count
    let seconds = Double(Clock.nanoseconds() - begin) / 1e9
    try RunMismatch.check(
      "rows of \(city)", rows, (0..<documents).count { HotelDocument.city($0) == city })
    return seconds
  }
}
