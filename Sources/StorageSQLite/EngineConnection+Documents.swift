import CSQLite
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension EngineConnection {
  /// `get` in a keyspace of documents: by the row where the key was found the last time, or by the key.
  func getDocument(_ key: UnsafeRawBufferPointer, _ keyspace: Keyspace, _ slot: Slot) throws
    -> UnsafeRawBufferPointer?
  {
    let hash = KeyHash.of(key, keyspace.number)
    let row = places.row(of: hash)
    if row > 0, let found = try getDocument(key, at: row, slot) { return found }
    return try getDocument(key, hash, slot)
  }

  /// The value of a row, if the row has that key.
  @inline(__always)
  private func getDocument(_ key: UnsafeRawBufferPointer, at row: Int64, _ slot: Slot) throws
    -> UnsafeRawBufferPointer?
  {
    let functions = functions
    let statement = try statement(.row, slot)
    _ = csqlite_bind_int64(functions, statement, 1, row)
    let code = csqlite_step(functions, statement)
    guard code == SQLITE_ROW else {
      if code != SQLITE_DONE { throw failure(code, statement, slot) }
      _ = csqlite_reset(functions, statement)
      return nil
    }
    guard Self.areEqual(Self.column(functions, statement, 0), key) else {
      _ = csqlite_reset(functions, statement)
      return nil
    }
    state.pointee.openGet = statement
    return Self.column(functions, statement, 1)
  }

  /// The value at a key, whose row is remembered.
  func getDocument(_ key: UnsafeRawBufferPointer, _ hash: UInt64, _ slot: Slot) throws
    -> UnsafeRawBufferPointer?
  {
    let functions = functions
    let statement = try statement(.get, slot)
    _ = bind(key, to: statement, at: 1, .documents)
    let code = csqlite_step(functions, statement)
    if code == SQLITE_ROW {
      state.pointee.openGet = statement
      places.note(hash, csqlite_column_int64(functions, statement, 1))
      return Self.column(functions, statement, 0)
    }
    guard code == SQLITE_DONE else { throw failure(code, statement, slot) }
    _ = csqlite_reset(functions, statement)
    return nil
  }

  @inline(__always)
  static func areEqual(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
    guard left.count == right.count else { return false }
    guard let first = left.baseAddress, let second = right.baseAddress else { return true }
    return memcmp(first, second, left.count) == 0
  }
}
