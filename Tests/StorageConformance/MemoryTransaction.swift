import Storage

/// A snapshot of a `MemoryEngine`.
///
/// Records never change, so lent bytes are valid while a closure holds the array that they come from.
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
    return try withExtendedLifetime(record) { try body(record.key.bytes, record.value.bytes) }
  }

  func keyspace(named name: String) throws -> Keyspace? {
    try checkOpen()
    guard let number = state.numbers[name], let table = state.tables[number] else { return nil }
    return Keyspace(number: number, shape: table.shape)
  }

  func keyspaces() throws -> [String: Keyspace] {
    try checkOpen()
    var result: [String: Keyspace] = [:]
    for (number, table) in state.tables { result[table.name] = Keyspace(number: number, shape: table.shape) }
    return result
  }

  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    guard let record = try key.withUnsafeBytes({ try record(at: $0, in: keyspace) }) else { return false }
    try lend(record) { try body($1) }
    return true
  }

  /// The record with a key, or nil.
  func record(at key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> MemoryRecord? {
    try checkKey(key, in: keyspace)
    let records = try records(of: keyspace)
    let (index, isThere) = find(key, in: records)
    return isThere ? records[index] : nil
  }

  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    let records = try records(of: keyspace)
    let places = placesOfRange(range, in: records)
    for step in 0..<places.count {
      let record = records[order == .descending ? places.upperBound - 1 - step : places.lowerBound + step]
      let goesOn = try lend(record) { key, value in
        try body(key, fetch == .keys ? value.extracting(0..<0) : value)
      }
      guard goesOn else { return }
    }
  }

  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    let records = try records(of: keyspace)
    return MemoryCursor(
      transaction: self, keyspace: keyspace, range: range, places: placesOfRange(range, in: records))
  }

  func entryCount(of keyspace: Keyspace) throws -> EntryCount { .exact(try records(of: keyspace).count) }

  func records(of keyspace: Keyspace) throws -> [MemoryRecord] {
    try checkOpen()
    guard let table = state.tables[keyspace.number] else {
      throw StorageError(.noSuchKeyspace, "there is no keyspace with number \(keyspace.number)")
    }
    return table.records
  }

  func checkKey(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    let isSound =
      keyspace.shape == .sequences
      ? key.count == 8 && key[0] < 0x80 : 1...StorageLimits.maximumKeyBytes ~= key.count
    guard isSound else {
      throw StorageError(
        .invalidKey, "a key of \(key.count) bytes is not one that a keyspace of \(keyspace.shape) takes")
    }
  }
}

/// The index of the first record whose key isn't before `key`.
func place(of key: UnsafeRawBufferPointer, in records: [MemoryRecord]) -> Int {
  var low = 0
  var high = records.count
  while low < high {
    let middle = (low + high) / 2
    if records[middle].key.compared(to: key) < 0 { low = middle + 1 } else { high = middle }
  }
  return low
}

/// The same index, and whether that record has the key.
func find(_ key: UnsafeRawBufferPointer, in records: [MemoryRecord]) -> (index: Int, isThere: Bool) {
  let index = place(of: key, in: records)
  return (index, index < records.count && records[index].key.compared(to: key) == 0)
}

/// The indexes of the records in a range.
func placesOfRange(_ range: KeyRange, in records: [MemoryRecord]) -> Range<Int> {
  func index(_ bound: [UInt8], isAfterEqual: Bool) -> Int {
    bound.withUnsafeBytes { bound in
      let (index, isThere) = find(bound, in: records)
      return isThere && isAfterEqual ? index + 1 : index
    }
  }
  let lower =
    switch range.lower {
    case .unbounded: 0
    case .inclusive(let bound): index(bound, isAfterEqual: false)
    case .exclusive(let bound): index(bound, isAfterEqual: true)
    }
  let upper =
    switch range.upper {
    case .unbounded: records.count
    case .inclusive(let bound): index(bound, isAfterEqual: true)
    case .exclusive(let bound): index(bound, isAfterEqual: false)
    }
  return lower..<max(lower, upper)
}

/// The write transaction of a `MemoryEngine`.
final class MemoryWriter: MemorySnapshot, WriteTransaction {
  init(state: MemoryState) { super.init(state: state, ended: nil) }

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
    let allowed = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    guard allowed, 1...StorageLimits.maximumKeyspaceNameBytes ~= name.utf8.count else {
      throw StorageError(.invalidArgument, "“\(name)” can't be the name of a keyspace")
    }
    if let keyspace = try keyspace(named: name) {
      guard keyspace.shape == shape else {
        throw StorageError(.shapeMismatch, "keyspace “\(name)” has the shape \(keyspace.shape), not \(shape)")
      }
      return keyspace
    }
    guard state.tables.count < StorageLimits.maximumKeyspaces else {
      throw StorageError(.tooManyKeyspaces, "there are \(state.tables.count) keyspaces, which is the limit")
    }
    state.lastNumber += 1
    state.numbers[name] = state.lastNumber
    state.tables[state.lastNumber] = MemoryTable(name: name, shape: shape)
    return Keyspace(number: state.lastNumber, shape: shape)
  }

  func dropKeyspace(_ keyspace: Keyspace) throws {
    try beginWrite()
    _ = try records(of: keyspace)
    if let table = state.tables.removeValue(forKey: keyspace.number) { state.numbers[table.name] = nil }
  }

  func put(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws {
    _ = try set(key, value, in: keyspace, evenIfThere: true)
  }

  func insert(_ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try set(key, value, in: keyspace, evenIfThere: false)
  }

  func delete(_ key: RawSpan, in keyspace: Keyspace) throws -> Bool {
    try beginWrite()
    return try key.withUnsafeBytes { key in
      try checkKey(key, in: keyspace)
      let (index, isThere) = find(key, in: try records(of: keyspace))
      if isThere { state.tables[keyspace.number]?.records.remove(at: index) }
      return isThere
    }
  }

  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    try beginWrite()
    let places = placesOfRange(range, in: try records(of: keyspace))
    state.tables[keyspace.number]?.records.removeSubrange(places)
    return places.count
  }

  func restore(_ state: MemoryState) { self.state = state }

  /// Sets the value. False if the key is there and that is not allowed.
  private func set(
    _ key: RawSpan, _ value: RawSpan, in keyspace: Keyspace, evenIfThere: Bool
  ) throws -> Bool {
    try beginWrite()
    return try key.withUnsafeBytes { key in
      try value.withUnsafeBytes { value in
        try checkKey(key, in: keyspace)
        guard value.count <= StorageLimits.maximumValueBytes else {
          throw StorageError(.valueTooLarge, "a value of \(value.count) bytes is over the limit")
        }
        let (index, isThere) = find(key, in: try records(of: keyspace))
        guard evenIfThere || !isThere else { return false }
        let record = MemoryRecord(key: key, value: value)
        if isThere {
          state.tables[keyspace.number]?.records[index] = record
        } else {
          state.tables[keyspace.number]?.records.insert(record, at: index)
        }
        return true
      }
    }
  }
}

/// The write group with which the `GroupCommit` runs writes of a `MemoryEngine`.
final class MemoryWriteGroup: WriteGroup {
  private let store: MemoryStore
  private var writer: MemoryWriter
  private var beforeMember = MemoryState()

  init(store: MemoryStore) {
    self.store = store
    writer = MemoryWriter(state: MemoryState())
  }

  func begin() throws -> any WriteTransaction {
    writer = MemoryWriter(state: store.state.withLock { $0 })
    return writer
  }

  func commit() throws {
    writer.invalidate()
    store.state.withLock { $0 = writer.state }
  }

  func abort() { writer.invalidate() }

  func beginMember() throws -> any WriteTransaction {
    beforeMember = writer.state
    // Each body has its own writer. A body that keeps its writer can't use it afterwards.
    writer.invalidate()
    writer = MemoryWriter(state: beforeMember)
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
