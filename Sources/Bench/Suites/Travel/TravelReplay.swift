import Datasets
import Documents
import Limits
import Storage
import StorageLMDB

/// The operations that the document layer makes on an engine for a workload, one step per document, in the
/// format of the bare loops.
final class TravelReplay: @unchecked Sendable {
  // Never changes after `init`.
  let steps: [limit_step]
  let operations: [limit_operation]
  /// Keys and values, one after another.
  private let bytes: UnsafeMutableRawPointer

  deinit { bytes.deallocate() }

  /// Operations identify a keyspace by its index in this list.
  static let keyspaces = ["docs", "deleted", "changes", "bodies", "conflicts", "meta"]

  private init(
    _ recorded: [[RecordingEngine.Operation]], places: [Int: UInt8], texts: [limit_bytes], digests: Bool
  ) {
    let total = recorded.joined().reduce(0) { $0 + $1.key.count + $1.value.count }
    let bytes = UnsafeMutableRawPointer.allocate(byteCount: max(total, 1), alignment: 16)
    var end = 0
    func keep(_ source: [UInt8]) -> limit_bytes {
      source.withUnsafeBytes { source in
        if let start = source.baseAddress { (bytes + end).copyMemory(from: start, byteCount: source.count) }
      }
      defer { end += source.count }
      return limit_bytes(bytes: UnsafeRawPointer(bytes + end), count: source.count)
    }
    var steps: [limit_step] = []
    var operations: [limit_operation] = []
    for (index, step) in recorded.enumerated() {
      let first = operations.count
      for operation in step {
        guard let place = places[operation.keyspace.number] else { continue }
        let kind =
          switch operation.kind {
          case .get: LIMIT_GET
          case .insert: LIMIT_INSERT
          case .update: LIMIT_UPDATE
          case .delete: LIMIT_DELETE
          }
        operations.append(
          limit_operation(
            kind: UInt8(kind), table: place,
            record: limit_record(key: keep(operation.key), value: keep(operation.value))))
      }
      steps.append(
        limit_step(text: texts[index], digests: digests, first: first, end: operations.count))
    }
    self.steps = steps
    self.operations = operations
    self.bytes = bytes
  }

  /// The replays of all workloads that write.
  struct All: Sendable {
    let insert, insertSingle, update, pull, delete: TravelReplay
  }

  /// Runs the workloads once on databases in `directory`, and records the operations.
  static func record(
    _ dataset: LoadedDataset, ids: [String], singles: [Int], pulled: [PulledRevision], in directory: String
  ) throws -> All {
    let all = Array(ids.indices)
    func text(_ number: Int) -> limit_bytes {
      let json = dataset.json(number)
      return limit_bytes(bytes: json.baseAddress, count: json.count)
    }
    func noText(_ number: Int) -> limit_bytes { limit_bytes() }

    let local = try Session(directory + "/local")
    let insert = try local.record(all, text) { try local.store.save(ids[$0], json: dataset.json($0)) }
    let update = try local.record(all, text) { try local.store.save(ids[$0], json: dataset.json($0)) }
    let delete = try local.record(all, noText) { try local.store.delete(ids[$0]) }
    try local.engine.close()
    let single = try Session(directory + "/single")
    let insertSingle = try single.record(singles, text) {
      try single.store.save(ids[$0], json: dataset.json($0))
    }
    try single.engine.close()
    let remote = try Session(directory + "/remote")
    let pull = try remote.record(all, text, digests: false) { try remote.store.apply(pulled[$0]) }
    try remote.engine.close()
    return All(insert: insert, insertSingle: insertSingle, update: update, pull: pull, delete: delete)
  }

  /// A database whose engine records operations.
  private struct Session {
    let engine: RecordingEngine
    let store: DocumentStore
    private let places: [Int: UInt8]

    init(_ path: String) throws {
      engine = RecordingEngine(try LMDBEngines.lmdb.open(path, EngineOptions(durability: .none)))
      store = try DocumentStore(engine: engine)
      let found = try engine.read { try $0.keyspaces() }
      var places: [Int: UInt8] = [:]
      for (place, name) in TravelReplay.keyspaces.enumerated() {
        if let keyspace = found[name] { places[keyspace.number] = UInt8(place) }
      }
      self.places = places
    }

    func record<Ignored>(
      _ numbers: [Int], _ text: (Int) -> limit_bytes, digests: Bool = true, _ body: (Int) throws -> Ignored
    ) throws -> TravelReplay {
      var recorded: [[RecordingEngine.Operation]] = []
      try store.inBatch {
        // Operations at the start of the transaction don't belong to a document.
        _ = engine.take()
        for number in numbers {
          _ = try body(number)
          recorded.append(engine.take())
        }
      }
      return TravelReplay(recorded, places: places, texts: numbers.map(text), digests: digests)
    }
  }
}
