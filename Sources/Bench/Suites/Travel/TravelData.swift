import BenchmarkKit
import Bytes
import Datasets
import Documents
import Limits
import Storage
import Touchstone

/// The data that the workloads of a travel run share. It is all made before the clock runs.
final class TravelData: Sendable {
  let dataset: LoadedDataset
  let ids: [String]
  /// The documents that single inserts save, evenly spread.
  let singles: [Int]
  /// The documents that are read, in order.
  let reads: [Int]
  /// Every document as sync receives it, with a revision ID and its parent's. They are as long as real ones.
  let pulled: [PulledRevision]
  let replays: TravelReplay.All
  /// The size of all IDs and of the documents' JSON, in bytes.
  let bytes: Int
  private let context: SuiteContext

  /// The engine-level layout of a database.
  struct Layout: Sendable {
    /// The engine with the data key.
    let engine: ProbedEngine
    /// The path of the engine's file in the database's directory.
    let file: String
    /// In the order of `TravelReplay.keyspaces`.
    let tables: [LimitDatabase.Table]
  }

  static let databaseName = "travel"
  /// The property to read. Every document of the travel data sets has it.
  static let property = "type"

  init(_ dataset: LoadedDataset, _ context: SuiteContext) throws {
    self.dataset = dataset
    self.context = context
    let ids = (0..<dataset.count).map { dataset.idText($0) }
    self.ids = ids
    bytes = ids.reduce(0) { $0 + $1.utf8.count } + ids.indices.reduce(0) { $0 + dataset.json($1).count }
    let count = min(2_000, dataset.count)
    singles = (0..<count).map { $0 * dataset.count / count }
    var random = SeededRandom(seed: context.settings.seed)
    reads = (0..<min(100_000, dataset.count * 50)).map { _ in random.below(dataset.count) }
    pulled = ids.indices.map { Self.pulled(ids[$0], $0, dataset.json($0)) }
    let recordings = try TrialDirectory(in: context.settings.workDirectory)
    defer { recordings.remove() }
    replays = try TravelReplay.record(
      dataset, ids: ids, singles: singles, pulled: pulled, in: recordings.path)
  }

  /// A document as sync receives it: its second revision, with a digest made from its number.
  static func pulled(_ id: String, _ number: Int, _ json: UnsafeRawBufferPointer) -> PulledRevision {
    let suffix = Hex.text(UInt64(number), digits: 39)
    return PulledRevision(
      id: id, history: ["2-a" + suffix, "1-b" + suffix], body: .json([UInt8](json)))
  }

  // MARK: Databases

  func options(_ engine: ProbedEngine) throws -> DatabaseOptions {
    try context.databaseOptions(engine, cacheBytes: engine.options.cacheBytes)
  }

  func open(_ engine: ProbedEngine, in directory: String) throws -> Database {
    try Database.open(TravelData.databaseName, in: directory, options: try options(engine))
  }

  /// The directory of the database with which a run starts.
  func directory(_ engine: ProbedEngine, _ start: TravelWorkload.Start, _ trial: TrialContext) throws
    -> String
  {
    let isUpdated = start == .updated
    let name = "travel \(engine.type.name) \(start == .empty ? "empty" : isUpdated ? "updated" : "loaded")"
    let fixture = try context.filled(name, open: { try open(engine, in: $0) }) { database in
      if start != .empty { try saveAll(database) }
      if isUpdated { try saveAll(database) }
    }
    if start == .shared { return fixture }
    try Fixtures.copy(fixture, to: trial.directory)
    return trial.directory
  }

  func saveAll(_ database: Database) throws {
    try database.inBatch {
      for number in ids.indices { try database.save(ids[number], json: dataset.json(number)) }
    }
  }

  /// Reads the layout of the database in a directory. Opens and closes it.
  func layout(_ engine: ProbedEngine, _ directory: String) throws -> Layout {
    let database = try open(engine, in: directory)
    defer { try? database.close() }
    let found = try database.engine.read { try $0.keyspaces() }
    let tables = try TravelReplay.keyspaces.map { name in
      guard let keyspace = found[name] else {
        throw StorageError(.noSuchKeyspace, "the database has no keyspace \(name)", path: database.path)
      }
      return LimitDatabase.Table(name: name, keyspace: keyspace)
    }
    let key = try engine.options.key.flatMap { key in
      try database.dataKey(try UserKey.raw(key))?.withUnsafeBytes { [UInt8]($0) }
    }
    return Layout(engine: engine.keyed(key), file: database.engineFile, tables: tables)
  }
}
