import Storage

/// An engine that forwards every call to another one and records the operations. The bare loops repeat what
/// the document layer does.
final class RecordingEngine: StorageEngine, @unchecked Sendable {
  /// One operation on a keyspace.
  struct Operation {
    enum Kind { case get, insert, update, delete }
    let kind: Kind
    let keyspace: Keyspace
    let key: [UInt8]
    let value: [UInt8]
  }

  private let engine: any StorageEngine
  /// The operations since the last `take()`. The single writer writes them; they are taken between its calls.
  private var operations: [Operation] = []

  init(_ engine: any StorageEngine) { self.engine = engine }

  /// Returns the operations since the last call.
  func take() -> [Operation] {
    defer { operations = [] }
    return operations
  }

  fileprivate func record(_ kind: Operation.Kind, _ key: RawSpan, _ value: [UInt8], _ keyspace: Keyspace) {
    operations.append(Operation(kind: kind, keyspace: keyspace, key: [UInt8](copying: key), value: value))
  }

  var name: String { engine.name }
  var library: String { engine.library }
  var location: String { engine.location }
  var limits: EngineLimits { engine.limits }
  var durability: Durability { engine.durability }
  var isReadOnly: Bool { engine.isReadOnly }
  var settings: [(name: String, value: String)] { engine.settings }
  func beginRead() throws -> any ReadTransaction { try engine.beginRead() }
  func close() throws { try engine.close() }

  func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try engine.write { (transaction: any WriteTransaction) throws -> Void in
      try body(RecordingTransaction(transaction, self))
    }
  }
}

/// The write transaction of a `RecordingEngine`.
private final class RecordingTransaction: WriteTransaction {
  private let transaction: any WriteTransaction
  private let recorder: RecordingEngine

  init(_ transaction: any WriteTransaction, _ recorder: RecordingEngine) {
    self.transaction = transaction
    self.recorder = recorder
  }

  func keyspace(named name: String) throws -> Keyspace? { try transaction.keyspace(named: name) }
  func keyspaces() throws -> [String: Keyspace] { try transaction.keyspaces() }
  func entryCount(of keyspace: Keyspace) throws -> EntryCount { try transaction.entryCount(of: keyspace) }
  func end() {}
  var lineage: UInt64? { get throws { try transaction.lineage } }
  var turn: UInt64? { transaction.turn }
  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    try transaction.cursor(in: keyspace, range)
  }
  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    try transaction.scan(keyspace, range, order: order, fetch: fetch, body)
  }
  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    try transaction.createKeyspace(name, shape: shape)
  }
  func dropKeyspace(_ keyspace: Keyspace) throws { try transaction.dropKeyspace(keyspace) }
  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    try transaction.deleteRange(range, in: keyspace)
  }

  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    recorder.record(.get, key, [], keyspace)
    return try transaction.read(key, in: keyspace, body)
  }

  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    let isThere = try transaction.contains(key, in: keyspace)
    recorder.record(isThere ? .update : .insert, key, [UInt8](copying: value), keyspace)
    try transaction.put(key, value, in: keyspace)
  }

  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    let isNew = try transaction.insert(key, value, in: keyspace)
    if isNew { recorder.record(.insert, key, [UInt8](copying: value), keyspace) }
    return isNew
  }

  func append(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    recorder.record(.insert, key, [UInt8](copying: value), keyspace)
    try transaction.append(key, value, in: keyspace)
  }

  func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws {
    try transaction.load(keyspace) { append in
      try withoutActuallyEscaping(append) { append in
        try body { key, value in
          recorder.record(.insert, key, [UInt8](copying: value), keyspace)
          try append(key, value)
        }
      }
    }
  }

  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    recorder.record(.delete, key, [], keyspace)
    return try transaction.delete(key, in: keyspace)
  }
}
