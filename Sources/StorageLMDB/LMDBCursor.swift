import CLMDB
import Storage

/// A cursor over a range. Each move fills locals: keeping LMDB's key and value in stored properties would
/// cost an exclusivity check an access.
final class LMDBCursor: Cursor {
  private enum Place {
    case beforeFirst
    case onEntry
    case afterLast
  }

  /// LMDB's cursor, or nil once its write transaction has ended.
  @exclusivity(unchecked) private var handle: OpaquePointer?
  private let database: MDB_dbi
  private let lower: KeyBound
  private let upper: KeyBound
  @exclusivity(unchecked) private var place = Place.beforeFirst
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
    var key = MDB_val(target)
    var value = MDB_val()
    let result = mdb_cursor_get(live, &key, &value, MDB_SET_RANGE)
    return try arrive(result, key, value, otherwise: .afterLast)
  }

  @inline(__always)
  func first() throws -> Entry? {
    var key = MDB_val()
    var value = MDB_val()
    let result = CursorMove.first(live, from: lower, &key, &value)
    return try arrive(result, key, value, otherwise: .afterLast)
  }

  @inline(__always)
  func last() throws -> Entry? {
    var key = MDB_val()
    var value = MDB_val()
    let result = CursorMove.last(live, to: upper, &key, &value)
    return try arrive(result, key, value, otherwise: .beforeFirst)
  }

  @inline(__always)
  func next() throws -> Entry? {
    switch place {
    case .beforeFirst: return try first()
    case .afterLast: return nil
    case .onEntry:
      var key = MDB_val()
      var value = MDB_val()
      let result = mdb_cursor_get(live, &key, &value, MDB_NEXT)
      return try arrive(result, key, value, otherwise: .afterLast)
    }
  }

  @inline(__always)
  func previous() throws -> Entry? {
    switch place {
    case .beforeFirst: return nil
    case .afterLast: return try last()
    case .onEntry:
      var key = MDB_val()
      var value = MDB_val()
      let result = mdb_cursor_get(live, &key, &value, MDB_PREV)
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
