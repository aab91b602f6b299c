import BenchmarkKit
import Datasets
import Storage
import Touchstone

/// The data that the workloads of the suite `sync` share: databases, and the revisions that are applied to
/// them.
final class SyncData: Sendable {
  /// The number of documents stored before a run.
  let documents: Int
  /// The number of revisions in a run with several per transaction, and in a run with one.
  let revisions: Int
  let singles: Int
  /// The number of revisions applied before each first query.
  let large: Int
  /// The number of documents that a run reads.
  let reads: Int

  private let context: SuiteContext
  private let made = Lock<[String: [SyncRevisions.Incoming]]>([:])
  /// Measurements that one run makes for several rows of queries, by engine, round and workload.
  let measured = Lock<[String: [Double]]>([:])

  init(_ context: SuiteContext) {
    self.context = context
    documents = max(20, context.settings.documents ?? 10_000)
    revisions = max(10, documents / 5 * 2)
    singles = max(5, revisions / 8)
    large = documents
    reads = max(200, documents * 2)
  }

  // MARK: Databases

  func open(_ engine: ProbedEngine, in directory: String) throws -> Database {
    try context.open("sync", engine, in: directory)
  }

  /// The indexes of a database that has four.
  static let indexes: [(name: String, expressions: [String])] = [
    ("city", ["city"]), ("typeName", ["type", "name"]), ("starsPrice", ["stars", "price"]),
    ("place", ["country", "city", "geo.lat"]),
  ]

  /// The directory of a database with all documents and the first `indexes` indexes.
  func filled(_ engine: ProbedEngine, indexes: Int) throws -> String {
    try context.filled("sync \(engine.type.name) \(indexes)", open: { try open(engine, in: $0) }) {
      database in
      for start in stride(from: 0, to: documents, by: 2_000) {
        let numbers = start..<min(start + 2_000, documents)
        try database.apply(numbers.map { SyncRevisions.new($0).revision })
      }
      for index in SyncData.indexes.prefix(indexes) {
        try database.createIndex(index.name, on: index.expressions)
      }
    }
  }

  // MARK: Incoming revisions

  /// The revisions of a workload. They are made once.
  func incoming(_ kind: SyncWorkload, batch: Int) -> [SyncRevisions.Incoming] {
    made.value(of: "\(kind.rawValue) \(batch == 1)") { make(kind, batch == 1 ? singles : revisions) }
  }

  private func make(_ kind: SyncWorkload, _ count: Int) -> [SyncRevisions.Incoming] {
    // Stored documents in random order, each once.
    let stored = order.prefix(count)
    switch kind {
    case .applyNew, .replicatePush, .replicatePull:
      return (0..<count).map { SyncRevisions.new(documents + $0) }
    case .applyUpdate: return stored.map { SyncRevisions.update($0) }
    case .applyKnown: return stored.map(SyncRevisions.known)
    case .applyConflicting:
      return stored.enumerated().map { SyncRevisions.conflicting($1, wins: $0 % 2 == 0) }
    case .applyDeep: return stored.map(SyncRevisions.deep)
    default:
      return stored.enumerated().map { place, number in
        switch place % 10 {
        case 0, 3, 5, 8: SyncRevisions.new(documents + place)
        case 1, 6: SyncRevisions.update(number)
        case 2, 7: SyncRevisions.known(number)
        case 4: SyncRevisions.conflicting(number, wins: place % 20 == 4)
        default: SyncRevisions.deep(number)
        }
      }
    }
  }

  /// The numbers of the stored documents, in random order.
  var order: [Int] {
    var random = SeededRandom(seed: context.settings.seed)
    var numbers = Array(0..<documents)
    for index in numbers.indices.reversed() { numbers.swapAt(index, random.below(index + 1)) }
    return numbers
  }

  // MARK: The expected result

  /// Throws if the database has the wrong content after all of `incoming` was applied to a copy of `filled`.
  func check(_ database: Database, _ incoming: [SyncRevisions.Incoming]) throws {
    let added = incoming.count { $0.outcome == .added }
    try RunMismatch.check("documents after the apply", try database.documentCount, documents + added)
    var conflicts = 0
    try database.enumerate(AllDocuments(.onlyConflicts)) { _ in
      conflicts += 1
      return true
    }
    try RunMismatch.check(
      "conflicted documents", conflicts, incoming.count { $0.outcome == .conflicted })
    for expected in incoming {
      let id = expected.revision.id
      try RunMismatch.check(
        "the current revision of \(id)", try database.document(id)?.revisionID.description, expected.winner)
    }
  }
}
