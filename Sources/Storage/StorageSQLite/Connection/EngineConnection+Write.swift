import Bytes
import CSQLite
import SQLiteLibrary
import Storage

/// The writes of the writer's connection within the open transaction. The caller must have begun it.
extension EngineConnection {
  /// Sets the value at a key. The first statement tried is the one that worked the last time, insert or
  /// update, so one statement is usually enough.
  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    let slot = try beginWrite(key, value, keyspace)
    if keyspace.shape == .sequences { try count(before: slot) }
    if slot.pointee.lastPutReplaced {
      if keyspace.shape == .documents, try updateFound(key, value, slot) { return }
      if try run(.update, slot, key, value) != 0 { return }
      slot.pointee.lastPutReplaced = false
      if try run(.insert, slot, key, value) != 0 { addRows(1, slot) }
    } else {
      if try run(.insert, slot, key, value) != 0 { return addRows(1, slot) }
      slot.pointee.lastPutReplaced = true
      _ = try run(.update, slot, key, value)
    }
  }

  /// Sets the value of a row where a read has found the key. Returns false if no read has, or if the row now has
  /// another key, or is gone.
  private func updateFound(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ slot: Slot
  ) throws -> Bool {
    let row = places.row(of: ByteHash.of(key, slot.pointee.keyspace.number))
    guard row > 0 else { return false }
    let statement = try statement(.updateRow, slot)
    bind(key, value, to: statement, at: 1, slot)
    _ = csqlite_bind_int64(functions, statement, 3, row)
    return try finish(statement, slot) != 0
  }

  func insert(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws
    -> Bool
  {
    let slot = try beginWrite(key, value, keyspace)
    if keyspace.shape == .sequences { try count(before: slot) }
    guard try run(.insert, slot, key, value) != 0 else { return false }
    addRows(1, slot)
    return true
  }

  func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    try beginWrite()
    let slot = try slot(of: keyspace)
    if try leavesGap(key, value, slot) { try count(before: slot) }
    slot.pointee.lastKeyCount = -1
    try insertAppended(slot, key, value)
    noteLast(key, slot)
  }

  /// Appends entries in groups. One statement inserts several rows.
  func load(
    _ keyspace: Keyspace,
    _ body: (_ append: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws -> Void
  ) throws {
    try beginWrite()
    let slot = try slot(of: keyspace)
    let rows = LoadedRows()
    // Blocks all other writes during the load.
    state.pointee.lent &+= 1
    defer { endLending() }
    do {
      try body { key, value in
        try key.withUnsafeBytes { key in
          try value.withUnsafeBytes { value in
            guard state.pointee.lent == 1 else { throw lentBytes("a write") }
            try load(key, value, rows, slot)
          }
        }
      }
      try write(rows, slot)
      if !rows.wasUsed { try checkIsThere(keyspace) }
    } catch {
      slot.pointee.lastKeyCount = -1
      throw error
    }
  }

  private func load(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ rows: LoadedRows, _ slot: Slot
  ) throws {
    try rows.checkNotFailed()
    if try leavesGap(key, value, slot) {
      try write(rows, slot)
      try count(before: slot)
    }
    if !rows.add(key, value) {
      try write(rows, slot)
      if !rows.add(key, value) { try rows.writing { try insertAppended(slot, key, value) } }
    }
    noteLast(key, slot)
  }

  /// Writes the collected rows in as few statements as possible.
  private func write(_ rows: LoadedRows, _ slot: Slot) throws {
    try rows.writing { try writeAll(rows, slot) }
    rows.removeAll()
  }

  private func writeAll(_ rows: LoadedRows, _ slot: Slot) throws {
    if state.pointee.isLost { throw lostTransaction() }
    state.pointee.writes &+= 1
    var next = 0
    while next < rows.count {
      let which: KeyspaceStatement =
        switch rows.count - next {
        case KeyspaceStatement.insertMany.rows...: .insertMany
        case KeyspaceStatement.insertEight.rows...: .insertEight
        default: .insert
        }
      let statement = try statement(which, slot)
      for row in 0..<which.rows {
        let (key, value) = rows[next + row]
        bind(key, value, to: statement, at: Int32(truncatingIfNeeded: 2 * row + 1), slot)
      }
      try finishAppending(statement, slot, rows: which.rows)
      next += which.rows
    }
  }

  /// Checks that an entry can be appended. Returns whether it leaves a gap after the last sequence. The
  /// highest row then no longer gives the count.
  @inline(__always)
  private func leavesGap(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ slot: Slot
  ) throws -> Bool {
    let keyspace = slot.pointee.keyspace
    try check(key, keyspace)
    try check(value)
    if slot.pointee.lastKeyCount < 0 {
      touch(slot)
      try findLastKey(slot)
    }
    let last = UnsafeRawBufferPointer(start: slot.pointee.lastKey, count: slot.pointee.lastKeyCount)
    guard compareBytes(key, last) > 0 else {
      throw StorageError(.outOfOrder, "an appended key isn't greater than all others", path: path)
    }
    return keyspace.shape == .sequences && last.count == 8 && slot.pointee.countBefore < 0
      && !Self.follows(key, last)
  }

  @inline(__always)
  private func noteLast(_ key: UnsafeRawBufferPointer, _ slot: Slot) {
    if let start = key.baseAddress { slot.pointee.lastKey.copyMemory(from: start, byteCount: key.count) }
    slot.pointee.lastKeyCount = key.count
  }

  private func insertAppended(
    _ slot: Slot, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) throws {
    let statement = try statement(.insert, slot)
    bind(key, value, to: statement, at: 1, slot)
    try finishAppending(statement, slot, rows: 1)
  }

  @inline(__always)
  private func finishAppending(_ statement: OpaquePointer, _ slot: Slot, rows: Int) throws {
    guard try finish(statement, slot) == rows else {
      throw StorageError(
        .damaged, "an appended key is greater than all others, but exists already", path: path)
    }
    addRows(rows, slot)
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
    // Old libraries don't report the number of deleted rows for a whole table.
    let whole = which == .deleteAll ? try count(of: keyspace) : nil
    let changed = try bounds.bound(to: statement, functions, lower: bounds.hasLower, upper: bounds.hasUpper) {
      try finish(statement, slot)
    }
    let count = whole ?? changed
    addEntries(-count, slot)
    return count
  }

  // MARK: Parts

  /// Throws while bytes are lent. Also throws if the library has ended the transaction by itself, because
  /// further writes would be committed alone.
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

  /// Binds key and value, runs the statement, and returns the number of changed rows.
  @inline(__always)
  private func run(
    _ which: KeyspaceStatement, _ slot: Slot, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) throws -> Int {
    let statement = try statement(which, slot)
    bind(key, value, to: statement, at: 1, slot)
    return try finish(statement, slot)
  }

  /// Binds an entry. Its bytes must stay valid until the statement is reset.
  @inline(__always)
  private func bind(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, to statement: OpaquePointer,
    at index: Int32, _ slot: Slot
  ) {
    _ = bind(key, to: statement, at: index, slot.pointee.keyspace.shape)
    // A null pointer would bind NULL. Any other pointer binds an empty blob.
    _ = csqlite_bind_static_blob(
      functions, statement, index + 1, value.baseAddress ?? key.baseAddress,
      Int32(truncatingIfNeeded: value.count))
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
      throw StorageError(.valueTooLarge, "a value of \(value.count) bytes is too large", path: path)
    }
  }

  /// Makes the error for an operation that would invalidate lent bytes.
  @inline(never)
  func lentBytes(_ tried: String) -> StorageError {
    StorageError(
      .bytesAreLent,
      "\(tried) isn't possible inside a closure that bytes are lent to; do it after the closure has returned",
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
      throw StorageError(.damaged, "a stored key has the impossible length of \(key.count) bytes", path: path)
    }
    slot.pointee.lastKey.copyMemory(from: start, byteCount: key.count)
    slot.pointee.lastKeyCount = key.count
  }

  /// Returns whether a sequence's key is the successor of another.
  @inline(__always)
  private static func follows(_ key: UnsafeRawBufferPointer, _ last: UnsafeRawBufferPointer) -> Bool {
    SequenceKey.number(key) == SequenceKey.number(last) &+ 1
  }
}
