import CLMDB
import Storage

/// A cursor over a range. Each move fills locals: keeping LMDB's key and value in stored properties would cost
/// an exclusivity check an access.
///
/// In a snapshot `next` fetches some entries ahead, as a scan does: what they point to stays. LMDB's cursor then
/// stands on the last one fetched, and is brought back when the move after is another.
final class LMDBCursor: UnsafeCursor {
  private enum Place {
    case beforeFirst
    case onEntry
    case afterLast
  }

  private struct Fetched {
    var key: MDB_val
    var value: MDB_val
  }

  private static let maximumBatch = 8

  // Read and written in every move; a check of exclusive access costs as much as the rest of one.
  /// LMDB's cursor, or nil once its write transaction has ended.
  @exclusivity(unchecked) private var handle: OpaquePointer?
  @exclusivity(unchecked) private var place = Place.beforeFirst
  /// What `next` has fetched: `fetched[index]` is where this cursor stands when `count` isn't 0.
  @exclusivity(unchecked) private var fetched: UnsafeMutablePointer<Fetched>?
  @exclusivity(unchecked) private var index = 0
  @exclusivity(unchecked) private var count = 0
  /// How many were fetched last: it begins with one and doubles, so that a few moves cost few.
  @exclusivity(unchecked) private var capacity = 1
  /// What LMDB said after the last entry fetched.
  @exclusivity(unchecked) private var ending: Int32 = 0
  private let database: MDB_dbi
  private let lower: KeyBound
  private let upper: KeyBound
  /// Whose cursor it is: one of the two.
  private let reader: LMDBReadTransaction?
  private let writer: LMDBWriteTransaction?

  init(
    _ handle: OpaquePointer, _ database: MDB_dbi, _ range: KeyRange, reader: LMDBReadTransaction?,
    writer: LMDBWriteTransaction?
  ) {
    self.handle = handle
    self.database = database
    self.reader = reader
    self.writer = writer
    lower = .copying(range.lower)
    upper = .copying(range.upper)
    writer?.track(self)
  }

  deinit {
    if let handle {
      if let reader { reader.giveBack(handle, database) } else { mdb_cursor_close(handle) }
    }
    writer?.forget(self)
    fetched?.deallocate()
    lower.deallocate()
    upper.deallocate()
  }

  /// Gives LMDB's cursor back before the write transaction ends.
  func close() {
    if let handle { mdb_cursor_close(handle) }
    handle = nil
  }

  @inline(__always)
  private var live: OpaquePointer {
    guard let handle, reader?.isOpen ?? true else {
      preconditionFailure("a cursor was used after its transaction had ended")
    }
    return handle
  }

  @inline(__always)
  func seek(_ target: UnsafeRawBufferPointer) throws -> Entry? {
    if target.count == 0 || lower.isAbove(MDB_val(target)) { return try first() }
    forget()
    var key = MDB_val(target)
    var value = MDB_val()
    let result = mdb_cursor_get(live, &key, &value, MDB_SET_RANGE)
    return try arrive(result, key, value, otherwise: .afterLast)
  }

  @inline(__always)
  func first() throws -> Entry? {
    forget()
    var key = MDB_val()
    var value = MDB_val()
    let result = CursorMove.first(live, from: lower, &key, &value)
    return try arrive(result, key, value, otherwise: .afterLast)
  }

  @inline(__always)
  func last() throws -> Entry? {
    forget()
    var key = MDB_val()
    var value = MDB_val()
    let result = CursorMove.last(live, to: upper, &key, &value)
    return try arrive(result, key, value, otherwise: .beforeFirst)
  }

  @inline(__always)
  func next() throws -> Entry? {
    if place == .onEntry, index + 1 < count, let fetched {
      index += 1
      let entry = fetched + index
      precondition(reader?.isOpen ?? true, "a cursor was used after its transaction had ended")
      return try arrive(0, entry.pointee.key, entry.pointee.value, otherwise: .afterLast)
    }
    return try nextFromLMDB()
  }

  @inline(never)
  private func nextFromLMDB() throws -> Entry? {
    switch place {
    case .beforeFirst: return try first()
    case .afterLast: return nil
    case .onEntry: break
    }
    if reader != nil { return try fetch() }
    var key = MDB_val()
    var value = MDB_val()
    let result = mdb_cursor_get(live, &key, &value, MDB_NEXT)
    return try arrive(result, key, value, otherwise: .afterLast)
  }

  /// Fetches the next entries and moves to the first of them.
  private func fetch() throws -> Entry? {
    let cursor = live
    let buffer = fetched ?? .allocate(capacity: Self.maximumBatch)
    fetched = buffer
    capacity = min(capacity * 2, Self.maximumBatch)
    var found = 0
    var result = ending
    while result == 0, found < capacity {
      let entry = buffer + found
      result = mdb_cursor_get(cursor, &entry.pointee.key, &entry.pointee.value, MDB_NEXT)
      if result == 0 { found += 1 }
    }
    index = 0
    count = found
    ending = result
    if found == 0 { return try arrive(result, MDB_val(), MDB_val(), otherwise: .afterLast) }
    return try arrive(0, buffer.pointee.key, buffer.pointee.value, otherwise: .afterLast)
  }

  /// Before LMDB's cursor goes elsewhere.
  @inline(__always)
  private func forget() {
    count = 0
    capacity = 1
    ending = 0
  }

  @inline(__always)
  func previous() throws -> Entry? {
    switch place {
    case .beforeFirst: return nil
    case .afterLast: return try last()
    case .onEntry:
      var key = MDB_val()
      var value = MDB_val()
      let cursor = live
      var result: Int32 = 0
      if count > 0, let fetched {
        if index + 1 < count || ending != 0 {
          key = fetched[index].key
          result = mdb_cursor_get(cursor, &key, &value, MDB_SET_KEY)
        }
        forget()
      }
      if result == 0 { result = mdb_cursor_get(cursor, &key, &value, MDB_PREV) }
      return try arrive(result, key, value, otherwise: .beforeFirst)
    }
  }

  @inline(__always)
  private func arrive(_ result: Int32, _ key: MDB_val, _ value: MDB_val, otherwise side: Place) throws
    -> Entry?
  {
    guard result == 0 else {
      place = side
      if result == MDB_NOTFOUND { return nil }
      throw failed(result)
    }
    if side == .afterLast ? upper.isBelow(key) : lower.isAbove(key) {
      place = side
      return nil
    }
    place = .onEntry
    return Entry(key: UnsafeRawBufferPointer(found: key), value: UnsafeRawBufferPointer(found: value))
  }

  @inline(never)
  private func failed(_ result: Int32) -> StorageError {
    let path = reader?.environment.path ?? writer?.environment.path ?? ""
    return .lmdb(result, "a cursor could not be moved", path: path)
  }
}
