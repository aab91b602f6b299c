import Storage

/// A snapshot of a `MemoryEngine`.
///
/// Records never change. `lend` keeps the record while its bytes are lent.
class MemorySnapshot: ReadTransaction {
  fileprivate(set) var state: MemoryState
  /// The number of closures to which bytes of this transaction are currently lent.
  fileprivate(set) var lent = 0
  /// The number of writes. It tells a cursor that its position is invalid.
  fileprivate(set) var writes = 0
  fileprivate var isOpen = true
  private var ended: (() -> Void)?

  init(state: MemoryState, ended: (() -> Void)?) {
    self.state = state
    self.ended = ended
  }

  deinit { end() }

  func end() {
    isOpen = false
    ended?()
    ended = nil
  }

  func checkOpen() throws {
    if !isOpen { throw StorageError(.closed, "the transaction was used after its end") }
  }

  /// Lends a record.
  func lend<Result>(_ record: MemoryRecord, _ body: (RawSpan, RawSpan) throws -> Result) throws -> Result {
    lent += 1
    defer { lent -= 1 }
    return try record.withBytes(body)
  }

  func keyspace(named name: String) throws -> Keyspace? {
    try checkOpen()
    guard let number = state.numbers[name], let keyspace = state.keyspaces[number] else { return nil }
    return Keyspace(number: number, shape: keyspace.shape)
  }

  func keyspaces() throws -> [String: Keyspace] {
    try checkOpen()
    return Dictionary(
      uniqueKeysWithValues: state.keyspaces.map { number, keyspace in
        (keyspace.name, Keyspace(number: number, shape: keyspace.shape))
      })
  }

  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    try checkKey(key, in: keyspace)
    guard let record = try records(of: keyspace).record(at: key) else { return false }
    try lend(record) { try body($1) }
    return true
  }

  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    let records = try records(of: keyspace)
    var (lower, upper) = records.positions(in: range)
    while lower < upper {
      let record: MemoryRecord
      if order == .descending {
        guard let last = records.before(upper) else { return }
        upper = last
        record = records[upper]
      } else {
        record = records[lower]
        lower = records.after(lower)
      }
      let goesOn = try lend(record) { key, value in
        try body(key, fetch == .keys ? value.extracting(0..<0) : value)
      }
      guard goesOn else { return }
    }
  }

  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    MemoryCursor(self, keyspace, range, try records(of: keyspace))
  }

  func entryCount(of keyspace: Keyspace) throws -> EntryCount { .exact(try records(of: keyspace).count) }

  func records(of keyspace: Keyspace) throws -> SortedRecords {
    try checkOpen()
    guard let keyspace = state.keyspaces[keyspace.number] else {
      throw StorageError(.noSuchKeyspace, "there is no keyspace with number \(keyspace.number)")
    }
    return keyspace.records
  }

  func checkKey(_ key: RawSpan, in keyspace: Keyspace) throws {
    let isSound =
      keyspace.shape == .sequences
      ? key.byteCount == 8 && key.withUnsafeBytes { $0[0] < 0x80 }
      : 1...StorageLimits.maximumKeyBytes ~= key.byteCount
    guard isSound else {
      throw StorageError(
        .invalidKey, "a keyspace of \(keyspace.shape) can't have a key of \(key.byteCount) bytes")
    }
  }
}

/// The write transaction of a `MemoryEngine`.
final class MemoryWriter: MemorySnapshot, WriteTransaction {
  private let queue: GroupCommit

  init(state: MemoryState, _ queue: GroupCommit) {
    self.queue = queue
    super.init(state: state, ended: nil)
  }

  var lineage: UInt64? { queue.lineage }
  var turn: UInt64? { queue.turn }

  /// Does nothing. The engine ends the transaction.
  override func end() {}

  /// Called when the body has returned.
  func invalidate() { isOpen = false }

  private func beginWrite() throws {
    try checkOpen()
    guard lent == 0 else {
      throw StorageError(.bytesAreLent, "a write inside a closure that bytes of its transaction are lent to")
    }
    writes += 1
  }

  func createKeyspace(_ name: String, shape: KeyspaceShape) throws -> Keyspace {
    try beginWrite()
    try KeyspaceName.check(name)
    if let keyspace = try keyspace(named: name) {
      guard keyspace.shape == shape else {
        throw StorageError(
          .shapeMismatch, "the keyspace \"\(name)\" has the shape \(keyspace.shape), not \(shape)")
      }
      return keyspace
    }
    guard state.keyspaces.count < StorageLimits.maximumKeyspaces else {
      throw StorageError(
        .tooManyKeyspaces, "there are \(state.keyspaces.count) keyspaces, which is the limit")
    }
    state.lastNumber += 1
    state.numbers[name] = state.lastNumber
    state.keyspaces[state.lastNumber] = MemoryKeyspace(name: name, shape: shape)
    return Keyspace(number: state.lastNumber, shape: shape)
  }

  func dropKeyspace(_ keyspace: Keyspace) throws {
    try beginWrite()
    _ = try records(of: keyspace)
    if let dropped = state.keyspaces.removeValue(forKey: keyspace.number) {
      state.numbers[dropped.name] = nil
    }
  }

  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    _ = try set(key, value, in: keyspace, replaces: true)
  }

  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try set(key, value, in: keyspace, replaces: false)
  }

  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try beginWrite()
    try checkKey(key, in: keyspace)
    _ = try records(of: keyspace)
    return state.keyspaces[keyspace.number]?.records.remove(key) ?? false
  }

  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    try beginWrite()
    _ = try records(of: keyspace)
    return state.keyspaces[keyspace.number]?.records.remove(in: range) ?? 0
  }

  func restore(_ state: MemoryState) { self.state = state }

  private func set(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace, replaces: Bool) throws -> Bool {
    try beginWrite()
    try checkKey(key, in: keyspace)
    guard value.byteCount <= StorageLimits.maximumValueBytes else {
      throw StorageError(.valueTooLarge, "a value of \(value.byteCount) bytes is over the limit")
    }
    _ = try records(of: keyspace)
    return state.keyspaces[keyspace.number]?.records.set(key, value, replaces: replaces) ?? false
  }
}

/// The write group with which the `GroupCommit` runs writes of a `MemoryEngine`.
final class MemoryWriteGroup: WriteGroup {
  private let store: MemoryStore
  private var writer: MemoryWriter
  private var beforeMember = MemoryState()
  private let engine: ObjectIdentifier?

  init(store: MemoryStore, engine: ObjectIdentifier? = nil) {
    self.store = store
    self.engine = engine
    writer = MemoryWriter(state: MemoryState(), store.queue)
  }

  func begin() throws -> any WriteTransaction {
    noteEngine()
    writer = MemoryWriter(state: store.state.withLock { $0 }, store.queue)
    return writer
  }

  /// Engines over one store share its queue. For each, the writes of the others are those of somebody else.
  private func noteEngine() {
    let last = store.lastEngine.withLock { last in
      defer { last = engine }
      return last
    }
    if last != engine { store.queue.breakLineage() }
  }

  func commit() throws {
    writer.invalidate()
    store.state.withLock { $0 = writer.state }
  }

  func abort() { writer.invalidate() }

  func beginMember() throws -> any WriteTransaction {
    noteEngine()
    beforeMember = writer.state
    // Each body has its own writer. A body that keeps its writer can't use it afterwards.
    writer.invalidate()
    writer = MemoryWriter(state: beforeMember, store.queue)
    return writer
  }

  func keepMember() throws {
    writer.invalidate()
    beforeMember = MemoryState()
  }

  func abortMember() {
    writer.invalidate()
    writer.restore(beforeMember)
    beforeMember = MemoryState()
  }
}
