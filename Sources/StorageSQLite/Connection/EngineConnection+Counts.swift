import CSQLite
import SQLiteLibrary
import Storage

/// The numbers of entries that a write transaction changes: kept in its slots, and written to the table of
/// keyspaces when it commits, if need be.
///
/// The table is a page of its own, which a small commit had better not write. New rows of `documents` and
/// `sequences` are mostly appended: each has the number after the highest. So the table says how many entries there
/// were when a certain row was the highest, and as long as rows are only appended it stays as it is. A transaction
/// that does anything else notes the bare number, and then those that add nothing leave it as it is.
extension EngineConnection {
  @inline(__always)
  func addEntries(_ count: Int, _ slot: Slot) {
    slot.pointee.delta &+= count
    touch(slot)
  }

  /// Notes that the slot holds something of the open transaction.
  @inline(__always)
  func touch(_ slot: Slot) {
    if !slot.pointee.isTouched {
      slot.pointee.isTouched = true
      touched.append(slot)
    }
  }

  /// Notes rows that were inserted by one statement.
  @inline(__always)
  func addRows(_ count: Int, _ slot: Slot) {
    slot.pointee.highest = csqlite_last_insert_rowid(functions, connection.handle)
    addEntries(count, slot)
  }

  /// To be called before what isn't an append: counts what there is, while the highest row still tells.
  @inline(__always)
  func count(before slot: Slot) throws {
    if slot.pointee.countBefore < 0, slot.pointee.keyspace.shape != .entries { try findCount(slot) }
  }

  @inline(never)
  private func findCount(_ slot: Slot) throws {
    let now = try count(of: slot.pointee.keyspace)
    slot.pointee.countBefore = now - slot.pointee.keptDelta - slot.pointee.delta
    touch(slot)
  }

  /// Entries of a keyspace: as the last commit of the snapshot left them, and what the open transaction adds.
  func count(of keyspace: Keyspace) throws -> Int {
    let slot = try slot(of: keyspace)
    let added = slot.pointee.keptDelta + slot.pointee.delta
    if slot.pointee.countBefore >= 0 {
      if hasDropped { _ = try storedCount(keyspace) }
      return slot.pointee.countBefore + added
    }
    countUse()
    let (entries, highest) = try storedCount(keyspace)
    guard let highest, keyspace.shape != .entries else { return entries + added }
    let statement = try statement(.highest, slot)
    let code = csqlite_step(functions, statement)
    guard code == SQLITE_ROW else { throw failure(code, statement, slot) }
    defer { _ = csqlite_reset(functions, statement) }
    return try CatalogTable.count(entries, highest, Int(csqlite_column_int64(functions, statement, 0)), path)
  }

  /// What the table of keyspaces says of one.
  private func storedCount(_ keyspace: Keyspace) throws -> (entries: Int, highest: Int?) {
    _ = csqlite_bind_int64(functions, countStatement, 1, sqlite3_int64(keyspace.number))
    let code = csqlite_step(functions, countStatement)
    guard code == SQLITE_ROW else {
      let error = connection.error(code, "count")
      _ = csqlite_reset(functions, countStatement)
      if code == SQLITE_DONE { throw noSuchKeyspace(keyspace) }
      throw StorageError(error, "counting a keyspace", path: path)
    }
    defer { _ = csqlite_reset(functions, countStatement) }
    let isNull = csqlite_column_type(functions, countStatement, 1) == SQLITE_NULL
    return (
      Int(csqlite_column_int64(functions, countStatement, 0)),
      isNull ? nil : Int(csqlite_column_int64(functions, countStatement, 1))
    )
  }

  /// What the part that ran now added, is kept.
  func keepCounts() {
    for slot in touched {
      slot.pointee.keptDelta += slot.pointee.delta
      slot.pointee.delta = 0
      slot.pointee.keptHighest = slot.pointee.highest
    }
  }

  /// What the part that ran now added, is undone.
  func dropPartCounts() {
    for slot in touched {
      slot.pointee.delta = 0
      slot.pointee.highest = slot.pointee.keptHighest
      slot.pointee.lastKeyCount = -1
    }
  }

  /// The statements that write counts; `?1` is the keyspace.
  struct CountStatements {
    /// Adds `?2` to the count.
    static let add = "UPDATE keyspaces SET entries = entries + ?2 WHERE number = ?1"
    /// Adds `?2` rows, the highest being `?3`; nothing changes where the highest row tells that already.
    static let append =
      "UPDATE keyspaces SET entries = entries + ?2, highest = ?3 WHERE number = ?1 AND highest IS NULL"
    /// Sets the count to `?2`.
    static let set = """
      UPDATE keyspaces SET entries = ?2, highest = NULL
      WHERE number = ?1 AND (entries <> ?2 OR highest IS NOT NULL)
      """
    let add, append, set: OpaquePointer
  }

  /// Writes the counts of the kept parts.
  func writeCounts(_ statements: CountStatements) throws {
    for slot in touched {
      let keyspace = slot.pointee.keyspace
      let added = slot.pointee.keptDelta
      if keyspace.shape == .entries {
        if added != 0 { try write(added, statements.add, slot) }
      } else if slot.pointee.countBefore >= 0 {
        try write(slot.pointee.countBefore + added, statements.set, slot)
      } else if added != 0 {
        _ = csqlite_bind_int64(functions, statements.append, 3, slot.pointee.keptHighest)
        try write(added, statements.append, slot)
      }
    }
  }

  private func write(_ count: Int, _ statement: OpaquePointer, _ slot: Slot) throws {
    _ = csqlite_bind_int64(functions, statement, 1, sqlite3_int64(slot.pointee.keyspace.number))
    _ = csqlite_bind_int64(functions, statement, 2, sqlite3_int64(count))
    let code = csqlite_step(functions, statement)
    guard code == SQLITE_DONE else { throw failure(code, statement, slot) }
    _ = csqlite_reset(functions, statement)
  }

  /// The transaction is over.
  func clearCounts() {
    for slot in touched {
      slot.pointee.keptDelta = 0
      slot.pointee.delta = 0
      slot.pointee.keptHighest = 0
      slot.pointee.highest = 0
      slot.pointee.countBefore = -1
      slot.pointee.isTouched = false
      // Another process may append next.
      slot.pointee.lastKeyCount = -1
    }
    touched.removeAll(keepingCapacity: true)
  }
}
