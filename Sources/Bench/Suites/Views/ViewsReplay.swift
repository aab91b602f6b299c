import Documents
import Limits
import Storage
import StorageLMDB
import Views

/// The rows, sources and partial reductions that an update of a view writes, in the format of the bare loops. Each entry
/// is written once, in the order of keys.
final class ViewsReplay: @unchecked Sendable {
  // Never changes after `init`.
  let operations: [limit_operation]
  /// Keys and values, one after another.
  private let bytes: UnsafeMutableRawPointer

  deinit { bytes.deallocate() }

  /// The keyspaces of the first view of a database. Operations identify one by its index in this list.
  static let keyspaces = ["view.1", "view.1.sources", "view.1.reductions"]

  /// Records the build of a view, or the update after every `step`th document has changed.
  init(_ size: Int, _ variant: ViewsWorkload.Variant, step: Int?, in directory: String) throws {
    let engine = RecordingEngine(
      try LMDBEngines.lmdb.open(directory + "/recorded", EngineOptions(durability: .none)))
    defer { try? engine.close() }
    let store = try DocumentStore(engine: engine)
    let view = try View(ViewsData.viewName, ViewIndexes(store, workers: Workers()))
    try ViewsData.set(view, variant)
    func save(every step: Int = 1, version: Int = 1) throws {
      let numbers = Array(stride(from: 0, to: size, by: step))
      for start in Swift.stride(from: 0, to: numbers.count, by: 10_000) {
        try store.inBatch {
          for number in numbers[start..<min(start + 10_000, numbers.count)] {
            try ViewsData.json(number, version: version).withUnsafeBytes {
              _ = try store.save(HotelDocument.id(number), json: $0)
            }
          }
        }
        _ = engine.take()
      }
    }
    if let step {
      try save()
      try view.updateIndex()
      try save(every: step, version: 2)
    } else {
      // As the limit's database: the tables exist before.
      try view.updateIndex()
      try save()
    }
    _ = engine.take()
    try view.updateIndex()
    let found = try engine.read { try $0.keyspaces() }
    var places: [Int: UInt8] = [:]
    for (place, name) in ViewsReplay.keyspaces.enumerated() {
      if let keyspace = found[name] { places[keyspace.number] = UInt8(place) }
    }
    (operations, bytes) = ViewsReplay.copy(engine.take(), places)
  }

  /// Copies the last write of each key.
  private static func copy(
    _ recorded: [RecordingEngine.Operation], _ places: [Int: UInt8]
  ) -> ([limit_operation], UnsafeMutableRawPointer) {
    struct Write {
      var place: UInt8
      var kind: RecordingEngine.Operation.Kind
      var operation: Int
    }
    var writes: [Write] = []
    for (index, operation) in recorded.enumerated() where operation.kind != .get {
      guard let place = places[operation.keyspace.number] else { continue }
      writes.append(Write(place: place, kind: operation.kind, operation: index))
    }
    writes.sort { left, right in
      if left.place != right.place { return left.place < right.place }
      let (leftKey, rightKey) = (recorded[left.operation].key, recorded[right.operation].key)
      return leftKey == rightKey
        ? left.operation < right.operation : leftKey.lexicographicallyPrecedes(rightKey)
    }
    var kept: [Write] = []
    for write in writes {
      guard let last = kept.last, last.place == write.place,
        recorded[last.operation].key == recorded[write.operation].key
      else {
        kept.append(write)
        continue
      }
      switch (last.kind, write.kind) {
      case (.insert, .delete): kept.removeLast()
      case (.insert, _): kept[kept.count - 1].operation = write.operation
      case (.delete, .insert):
        kept[kept.count - 1] = Write(place: write.place, kind: .update, operation: write.operation)
      default: kept[kept.count - 1] = write
      }
    }
    let total = kept.reduce(0) { $0 + recorded[$1.operation].key.count + recorded[$1.operation].value.count }
    let bytes = UnsafeMutableRawPointer.allocate(byteCount: max(total, 1), alignment: 16)
    var end = 0
    func keep(_ source: [UInt8]) -> limit_bytes {
      source.withUnsafeBytes { source in
        if let start = source.baseAddress { (bytes + end).copyMemory(from: start, byteCount: source.count) }
      }
      defer { end += source.count }
      return limit_bytes(bytes: UnsafeRawPointer(bytes + end), count: source.count)
    }
    let operations = kept.map { write in
      let operation = recorded[write.operation]
      let kind =
        switch write.kind {
        case .get: LIMIT_GET
        case .insert: LIMIT_INSERT
        case .update: LIMIT_UPDATE
        case .delete: LIMIT_DELETE
        }
      return limit_operation(
        kind: UInt8(kind), table: write.place,
        record: limit_record(key: keep(operation.key), value: keep(operation.value)))
    }
    return (operations, bytes)
  }

  /// Writes all in one transaction. Returns the seconds.
  func run(_ database: LimitDatabase) throws -> Double {
    let steps = [limit_step(text: limit_bytes(), digests: false, first: 0, end: operations.count)]
    return try steps.withUnsafeBufferPointer { steps in
      try operations.withUnsafeBufferPointer { try database.replay(steps, $0, batch: 0).seconds }
    }
  }
}
