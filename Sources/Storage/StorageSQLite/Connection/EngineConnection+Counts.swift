import CSQLite
import SQLiteLibrary
import Storage

/// The entry counts that a write transaction changes. They are kept in the slots and written to the table of
/// keyspaces at the commit, if necessary.
///
/// That table is a separate page, which a small commit should not write. New rows of `documents` and
/// `sequences` are mostly appended, with the number after the highest one. The table therefore stores the
/// number of entries at the time when a certain row was the highest. It stays valid as long as rows are only
/// appended. Any other change stores the plain number. Later transactions that don't change the number leave
/// it as it is.
extension EngineConnection {
  @inline(__always)
  func addEntries(_ count: Int, _ slot: Slot) {
    slot.pointee.delta &+= count
    touch(slot)
  }

  /// Notes that the slot holds state of the open transaction.
  @inline(__always)
  func touch(_ slot: Slot) {
    if !slot.pointee.isTouched {
      slot.pointee.isTouched = true
      touched.append(slot)
    }
  }

  /// Counts the rows that one statement inserted.
  @inline(__always)
  func addRows(_ count: Int, _ slot: Slot) {
    slot.pointee.highest = csqlite_last_insert_rowid(functions, connection.handle)
    addEntries(count, slot)
  }

  /// Determines the count before a change that isn't an append. After such a change the highest row no longer
  /// gives the count.
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

  /// Returns the number of entries in a keyspace: those of the last commit that the snapshot sees, and those
  /// that the open transaction added.
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

  /// Returns the stored count of a keyspace, with the row that was the highest at that time.
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

  /// Keeps the counts of the current part.
  func keepCounts() {
    for slot in touched {
      slot.pointee.keptDelta += slot.pointee.delta
      slot.pointee.delta = 0
      slot.pointee.keptHighest = slot.pointee.highest
    }
  }

  /// Drops the counts of the current part, which is undone.
  func dropPartCounts() {
    for slot in touched {
      slot.pointee.delta = 0
      slot.pointee.highest = slot.pointee.keptHighest
      slot.pointee.lastKeyCount = -1
    }
  }

  /// The statements that write counts. `?1` is the number of the keyspace.
  struct CountStatements {
    /// Adds `?2` to the count.
    static let add = "UPDATE keyspaces SET entries = entries + ?2 WHERE number = ?1"
    /// Adds `?2` rows, with `?3` as the highest. Changes nothing if the highest row already gives the count.
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

  /// Clears the counts at the end of the transaction.
  func clearCounts() {
    for slot in touched {
      slot.pointee.keptDelta = 0
      slot.pointee.delta = 0
      slot.pointee.keptHighest = 0
      slot.pointee.highest = 0
      slot.pointee.countBefore = -1
      slot.pointee.isTouched = false
      // Another process may append before the next transaction.
      slot.pointee.lastKeyCount = -1
    }
    touched.removeAll(keepingCapacity: true)
  }
}
