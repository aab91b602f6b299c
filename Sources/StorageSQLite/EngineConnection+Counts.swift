import CSQLite
import SQLiteLibrary
import Storage

/// The numbers of entries that a write transaction changes: kept in its slots, and written to the table of
/// keyspaces when it commits.
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

  /// Entries that the open transaction has added to a keyspace.
  func addedEntries(_ keyspace: Keyspace) -> Int {
    guard keyspace.number < state.pointee.capacity, let slot = state.pointee.slots[keyspace.number] else {
      return 0
    }
    return slot.pointee.keptDelta + slot.pointee.delta
  }

  /// What the part that ran now added, is kept.
  func keepCounts() {
    for slot in touched {
      slot.pointee.keptDelta += slot.pointee.delta
      slot.pointee.delta = 0
    }
  }

  /// What the part that ran now added, is undone.
  func dropPartCounts() {
    for slot in touched {
      slot.pointee.delta = 0
      slot.pointee.lastKeyCount = -1
    }
  }

  /// Writes the counts of the kept parts.
  func writeCounts(_ statement: OpaquePointer) throws {
    for slot in touched where slot.pointee.keptDelta != 0 {
      _ = csqlite_bind_int64(functions, statement, 1, sqlite3_int64(slot.pointee.keptDelta))
      _ = csqlite_bind_int64(functions, statement, 2, sqlite3_int64(slot.pointee.keyspace.number))
      let code = csqlite_step(functions, statement)
      guard code == SQLITE_DONE else { throw failure(code, statement, slot) }
      _ = csqlite_reset(functions, statement)
    }
  }

  /// The transaction is over.
  func clearCounts() {
    for slot in touched {
      slot.pointee.keptDelta = 0
      slot.pointee.delta = 0
      slot.pointee.isTouched = false
      // Another process may append next.
      slot.pointee.lastKeyCount = -1
    }
    touched.removeAll(keepingCapacity: true)
  }
}
