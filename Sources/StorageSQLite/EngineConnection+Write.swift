import CSQLite
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// What the writer's connection does within the open transaction. Whoever calls has made sure there is one.
extension EngineConnection {
  /// Sets the value at a key, with one statement when the key is there, or isn't, as it was the last time.
  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    let slot = try beginWrite(key, value, keyspace)
    if keyspace.shape == .sequences { try count(before: slot) }
    if slot.pointee.lastPutReplaced {
      if try run(.update, slot, key, value) != 0 { return }
      slot.pointee.lastPutReplaced = false
      if try run(.insert, slot, key, value) != 0 { addRow(slot) }
    } else {
      if try run(.insert, slot, key, value) != 0 { return addRow(slot) }
      slot.pointee.lastPutReplaced = true
      _ = try run(.update, slot, key, value)
    }
  }

  func insert(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws
    -> Bool
  {
    let slot = try beginWrite(key, value, keyspace)
    if keyspace.shape == .sequences { try count(before: slot) }
    guard try run(.insert, slot, key, value) != 0 else { return false }
    addRow(slot)
    return true
  }

  func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    try beginWrite()
    let slot = try slot(of: keyspace)
    try check(key, keyspace)
    try check(value)
    if slot.pointee.lastKeyCount < 0 {
      touch(slot)
      try findLastKey(slot)
    }
    let last = UnsafeRawBufferPointer(start: slot.pointee.lastKey, count: slot.pointee.lastKeyCount)
    guard Self.isGreater(key, than: last) else {
      throw StorageError(.outOfOrder, "an appended key is not greater than all others", path: path)
    }
    if keyspace.shape == .sequences, last.count == 8, !Self.follows(key, last) { try count(before: slot) }
    slot.pointee.lastKeyCount = -1
    guard try run(.insert, slot, key, value) != 0 else {
      throw StorageError(.damaged, "an appended key is greater than all others, and there", path: path)
    }
    addRow(slot)
    if let start = key.baseAddress { slot.pointee.lastKey.copyMemory(from: start, byteCount: key.count) }
    slot.pointee.lastKeyCount = key.count
  }

  func delete(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> Bool {
    try beginWrite()
    let slot = try slot(of: keyspace)
    try check(key, keyspace)
    slot.pointee.lastKeyCount = -1
    try count(before: slot)
    let statement = try statement(.delete, slot)
    _ = bind(key, to: statement, at: 1, keyspace.shape)
    guard try finish(statement, slot) != 0 else { return false }
    addEntries(-1, slot)
    return true
  }

  func deleteRange(_ range: KeyRange, in keyspace: Keyspace) throws -> Int {
    try beginWrite()
    let slot = try slot(of: keyspace)
    guard let bounds = ScanBounds(range, keyspace.shape) else { return 0 }
    slot.pointee.lastKeyCount = -1
    try count(before: slot)
    let which: KeyspaceStatement =
      switch (bounds.hasLower, bounds.hasUpper) {
      case (false, false): .deleteAll
      case (true, false): .deleteFrom
      case (false, true): .deleteTo
      case (true, true): .deleteBetween
      }
    let statement = try statement(which, slot)
    // Old libraries don't say how many rows a whole table had.
    let whole = which == .deleteAll ? try count(of: keyspace) : nil
    let changed = try bounds.bound(to: statement, functions, lower: bounds.hasLower, upper: bounds.hasUpper) {
      try finish(statement, slot)
    }
    let count = whole ?? changed
    addEntries(-count, slot)
    return count
  }

  // MARK: Parts

  /// Throws while bytes are lent, and when the library has ended the transaction by itself: what came now
  /// would be committed alone.
  @inline(__always)
  func beginWrite() throws {
    if state.pointee.lent > 0 { throw lentBytes("a write") }
    state.pointee.writes &+= 1
    if state.pointee.isLost { throw lostTransaction() }
  }

  @inline(__always)
  private func beginWrite(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ keyspace: Keyspace
  ) throws -> Slot {
    try beginWrite()
    let slot = try slot(of: keyspace)
    try check(key, keyspace)
    try check(value)
    slot.pointee.lastKeyCount = -1
    return slot
  }

  /// Binds key and value, runs the statement, and says how many rows it changed.
  @inline(__always)
  private func run(
    _ which: KeyspaceStatement, _ slot: Slot, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) throws -> Int {
    let statement = try statement(which, slot)
    _ = bind(key, to: statement, at: 1, slot.pointee.keyspace.shape)
    // A null pointer would bind NULL; with no bytes any other does.
    _ = csqlite_bind_static_blob(
      functions, statement, 2, value.baseAddress ?? key.baseAddress, Int32(truncatingIfNeeded: value.count))
    return try finish(statement, slot)
  }

  @inline(__always)
  private func finish(_ statement: OpaquePointer, _ slot: Slot) throws -> Int {
    let functions = functions
    let code = csqlite_step(functions, statement)
    guard code == SQLITE_DONE else { throw failure(code, statement, slot) }
    _ = csqlite_reset(functions, statement)
    return Int(truncatingIfNeeded: csqlite_changes(functions, connection.handle))
  }

  @inline(__always)
  private func check(_ value: UnsafeRawBufferPointer) throws {
    guard value.count <= StorageLimits.maximumValueBytes else {
      throw StorageError(.valueTooLarge, "a value of \(value.count) bytes", path: path)
    }
  }

  /// What is thrown for a use that would end bytes which a closure holds.
  @inline(never)
  func lentBytes(_ tried: String) -> StorageError {
    StorageError(
      .bytesAreLent, "\(tried) inside a closure that bytes are lent to: do it when the closure has returned",
      path: path)
  }

  private func findLastKey(_ slot: Slot) throws {
    let statement = try statement(.last, slot)
    let code = csqlite_step(functions, statement)
    guard code == SQLITE_ROW || code == SQLITE_DONE else { throw failure(code, statement, slot) }
    defer { _ = csqlite_reset(functions, statement) }
    guard code == SQLITE_ROW else {
      slot.pointee.lastKeyCount = 0
      return
    }
    if slot.pointee.keyspace.shape == .sequences {
      let key = UInt64(bitPattern: csqlite_column_int64(functions, statement, 0)).bigEndian
      slot.pointee.lastKey.storeBytes(of: key, as: UInt64.self)
      slot.pointee.lastKeyCount = 8
      return
    }
    let key = Self.column(functions, statement, 0)
    guard key.count <= StorageLimits.maximumKeyBytes, let start = key.baseAddress else {
      throw StorageError(.damaged, "a key of \(key.count) bytes", path: path)
    }
    slot.pointee.lastKey.copyMemory(from: start, byteCount: key.count)
    slot.pointee.lastKeyCount = key.count
  }

  /// Whether one key of a sequence is the next one after the other.
  @inline(__always)
  private static func follows(_ key: UnsafeRawBufferPointer, _ last: UnsafeRawBufferPointer) -> Bool {
    SequenceKey.number(key) == SequenceKey.number(last) &+ 1
  }

  @inline(__always)
  private static func isGreater(_ key: UnsafeRawBufferPointer, than other: UnsafeRawBufferPointer) -> Bool {
    let count = min(key.count, other.count)
    if count > 0, let left = key.baseAddress, let right = other.baseAddress {
      let order = memcmp(left, right, count)
      if order != 0 { return order > 0 }
    }
    return key.count > other.count
  }
}
