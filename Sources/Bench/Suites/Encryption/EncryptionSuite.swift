import BenchmarkKit
import Datasets
import Storage
import Touchstone

extension Suite {
  /// The cost of encryption per operation, with a cache that holds all of the data and with a smaller one.
  public static let encryption = Suite(
    name: "encryption",
    summary:
      "The cost of encryption: SQLCipher compared with the same library without a key, and every other encrypting engine "
      + "with the plain engine of its kind, with caches that are larger and smaller than the data.",
    workloadNames: EncryptionWorkload.allCases.map(\.rawValue), usesDataset: false,
    standardEngines: { BenchEngines.encrypting(after: [.sqlcipherPlain, .sqlcipher, .lmdb]) },
    notes: EncryptionCosts.lines, pairs: EncryptionCosts.pairs
  ) { context in
    let data = EncryptionData(context)
    return EncryptionCache.allCases.flatMap { cache in
      EncryptionWorkload.allCases.map { data.workload($0, cache) }
    }
  }
}

/// The workloads of the suite `encryption`.
enum EncryptionWorkload: String, CaseIterable {
  case insert, update, read, scan

  var summary: String {
    switch self {
    case .insert: "new documents, 1,000 a transaction"
    case .update: "random documents saved anew, 100 a transaction"
    case .read: "random documents, a snapshot each"
    case .scan: "all documents in the order of their IDs, a property of each"
    }
  }
}

/// The size of the engine's page cache, in MiB: for all of the data, or for a small part of it. It doesn't
/// affect engines that use the system's cache.
enum EncryptionCache: Int, CaseIterable {
  case all = 64
  case part = 1

  var bytes: Int { rawValue << 20 }
  var text: String { "\(rawValue) MiB" }
}

/// The data that the runs of the suite share: sizes and databases.
final class EncryptionData: Sendable {
  static let name = "encryption"
  private let context: SuiteContext
  private let documents: Int
  private let random: Int

  init(_ context: SuiteContext) {
    self.context = context
    documents = context.settings.documents ?? 20_000
    random = max(100, documents / 2)
  }

  /// A body of about 1,000 bytes. The data of a default run is 20 times the small cache and a third of the
  /// large one.
  private static func body(_ number: Int, version: Int) -> DocumentBody {
    var random = SeededRandom(seed: UInt64(number) << 8 | UInt64(version & 0xFF))
    let text = (0..<90).map { _ in String(random.next(), radix: 36).prefix(9) }.joined(separator: " ")
    return [
      "number": .int(Int64(number)), "version": .int(Int64(version)), "name": .string("Person \(number)"),
      "text": .string(text),
    ]
  }

  private func open(_ engine: ProbedEngine, _ directory: String, _ cache: EncryptionCache) throws -> Database
  {
    try Database.open(
      Self.name, in: directory,
      options: try context.databaseOptions(engine, cacheBytes: cache.bytes))
  }

  private func insert(_ database: Database, _ numbers: some RandomAccessCollection<Int>) throws {
    try database.inBatches(of: 1_000, Array(numbers)) { number in
      try database.save(DocumentsData.id(number), Self.body(number, version: 1))
    }
  }

  private func filled(_ engine: ProbedEngine) throws -> String {
    try context.filled("encryption \(engine.type.name)", open: { try open(engine, $0, .all) }) { database in
      // Random order, as documents usually come, so that consecutive reads use different pages.
      var random = SeededRandom(seed: context.settings.seed)
      try insert(database, random.order(documents))
    }
  }

  func workload(_ kind: EncryptionWorkload, _ cache: EncryptionCache) -> Workload {
    Workload(
      suite: Self.name, name: kind.rawValue, summary: kind.summary,
      parameters: ["cache": .string(cache.text)],
      operations: kind == .update || kind == .read ? random : documents
    ) { [self] trial in
      let engine = try context.engine(trial.engine)
      var directory = trial.directory
      switch kind {
      case .insert: break
      case .update: try Fixtures.copy(try filled(engine), to: directory)
      case .read, .scan: directory = try filled(engine)
      }
      let database = try open(engine, directory, cache)
      return try database.closingOnFailure {
        var numbers = SeededRandom(seed: context.settings.seed &+ UInt64(trial.round))
        let order = (0..<random).map { _ in numbers.below(documents) }
        let work: () throws -> Void =
          switch kind {
          case .insert: { try self.insert(database, 0..<self.documents) }
          case .update: { try self.update(database, order) }
          case .read: { try self.read(database, order) }
          case .scan: { try self.scan(database) }
          }
        // Fills the cache before the timed run.
        if kind == .read || kind == .scan { try work() }
        return Trial(
          timing: { try work() }, fileBytes: { try TrialDirectory.fileBytes(in: directory) },
          finish: { try database.close() })
      }
    }
  }

  private func update(_ database: Database, _ order: [Int]) throws {
    for start in stride(from: 0, to: order.count, by: 100) {
      try database.inBatch {
        for number in order[start..<min(start + 100, order.count)] {
          try database.save(DocumentsData.id(number), Self.body(number, version: 2 + start))
        }
      }
    }
  }

  private func read(_ database: Database, _ order: [Int]) throws {
    let key = try database.key("name")
    var found = 0
    for number in order {
      if let document = try database.document(DocumentsData.id(number)), document[key].string != nil {
        found += 1
      }
    }
    guard found == order.count else { throw RunMismatch(seen: found, expected: order.count) }
  }

  private func scan(_ database: Database) throws {
    let key = try database.key("name")
    var found = 0
    try database.read { snapshot in
      try snapshot.enumerate { document in
        if document[key]?.string != nil { found += 1 }
        return true
      }
    }
    guard found == documents else { throw RunMismatch(seen: found, expected: documents) }
  }
}
