import Bytes
import CSQLite
import SQLiteLibrary
import Storage

// A value is lent in the library's own memory: in the current row of a statement that isn't stepped or reset
// until the closure has returned. Therefore each nested read has its own statement.

extension EngineConnection {
  typealias ValueBody = (_ value: RawSpan) throws -> Void

  /// Implements `ReadTransaction.read`.
  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: ValueBody) throws -> Bool {
    let slot = try slot(of: keyspace)
    return try key.withUnsafeBytes { key in
      try check(key, keyspace)
      countUse()
      if keyspace.shape == .documents {
        let hash = ByteHash.of(key, keyspace.number)
        let row = places.row(of: hash)
        if row > 0, try readDocument(key, at: row, slot, body) { return true }
        return try readDocument(key, hash, slot, body)
      }
      return try readRow(.get, slot, { bind(key, to: $0, at: 1, keyspace.shape) }) { statement in
        try body(Self.column(functions, statement, 0).bytes)
        return true
      }
    }
  }

  /// Lends the value of a row if the row has this key.
  @inline(__always)
  private func readDocument(_ key: UnsafeRawBufferPointer, at row: Int64, _ slot: Slot, _ body: ValueBody)
    throws
    -> Bool
  {
    try readRow(.row, slot, { csqlite_bind_int64(functions, $0, 1, row) }) { statement in
      guard equalBytes(Self.column(functions, statement, 0), key) else { return false }
      try body(Self.column(functions, statement, 1).bytes)
      return true
    }
  }

  /// Finds a key, stores its row number, and lends its value.
  func readDocument(_ key: UnsafeRawBufferPointer, _ hash: UInt64, _ slot: Slot, _ body: ValueBody) throws
    -> Bool
  {
    try readRow(.get, slot, { bind(key, to: $0, at: 1, .documents) }) { statement in
      places.note(hash, csqlite_column_int64(functions, statement, 1))
      try body(Self.column(functions, statement, 0).bytes)
      return true
    }
  }

  /// Runs a statement that is not in use, and calls `body` while it stands on its row. Returns false if there
  /// is no row.
  @inline(__always)
  private func readRow(
    _ which: KeyspaceStatement, _ slot: Slot, _ bind: (OpaquePointer) -> Int32,
    _ body: (OpaquePointer) throws -> Bool
  ) throws -> Bool {
    let statement = try take(which, slot)
    state.pointee.lent &+= 1
    defer {
      _ = csqlite_reset(functions, statement)
      give(statement, which, slot)
      endLending()
    }
    _ = bind(statement)
    let code = csqlite_step(functions, statement)
    if code == SQLITE_ROW { return try body(statement) }
    guard code == SQLITE_DONE else { throw failure(code, statement, slot) }
    return false
  }

  /// Takes a statement out of its slot, so that a nested read gets another one.
  @inline(__always)
  private func take(_ which: KeyspaceStatement, _ slot: Slot) throws -> OpaquePointer {
    if let statement = slot.pointee.takeRead(which) { return statement }
    return try prepare(which.sql(slot.pointee.keyspace), slot)
  }

  @inline(__always)
  private func give(_ statement: OpaquePointer, _ which: KeyspaceStatement, _ slot: Slot) {
    if !slot.pointee.giveRead(statement, which) { _ = csqlite_finalize(functions, statement) }
  }

  /// Notes that a closure with lent bytes has returned.
  @inline(__always)
  func endLending() {
    state.pointee.lent &-= 1
    if _slowPath(state.pointee.endsLate), state.pointee.lent == 0 { endLate() }
  }

  /// Runs `body` when no closure holds lent bytes any more. A snapshot may be ended inside such a closure.
  func whenReturned(_ body: @escaping () -> Void) {
    guard state.pointee.lent > 0 else { return body() }
    state.pointee.endsLate = true
    late = body
  }

  @inline(never)
  private func endLate() {
    state.pointee.endsLate = false
    let body = late
    late = nil
    body?()
  }
}
