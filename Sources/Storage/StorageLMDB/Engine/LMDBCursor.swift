import CLMDB
import Storage

/// A cursor over a range, with a cursor of LMDB.
final class LMDBCursor: Cursor {
  private enum Place {
    case beforeFirst
    case onEntry
    case afterLast
  }

  // Read and written in every move. A check of exclusive access would cost as much as the rest of the move.
  /// LMDB's cursor, or nil after its write transaction has ended.
  @exclusivity(unchecked) private var handle: OpaquePointer?
  @exclusivity(unchecked) private var place = Place.beforeFirst
  /// The bytes of the current entry.
  @exclusivity(unchecked) private var key = MDB_val()
  @exclusivity(unchecked) private var value = MDB_val()
  /// The number of closures that its entry is lent to.
  @exclusivity(unchecked) private var lent = 0
  /// The transaction's count of writes when the cursor was placed.
  @exclusivity(unchecked) private var writes: Int
  private let database: MDB_dbi
  private let lower: KeyBound
  private let upper: KeyBound
  private let owner: LMDBTransaction

  init(_ handle: OpaquePointer, _ database: MDB_dbi, _ range: KeyRange, _ owner: LMDBTransaction) {
    self.handle = handle
    self.database = database
    self.owner = owner
    writes = owner.writes
    lower = .copying(range.lower)
    upper = .copying(range.upper)
    owner.track(self)
  }

  deinit {
    if let handle { owner.giveBack(handle, database) }
    owner.forget(self)
    lower.deallocate()
    upper.deallocate()
  }

  /// Closes LMDB's cursor before the write transaction ends.
  func close() {
    if let handle { mdb_cursor_close(handle) }
    handle = nil
  }

  // MARK: Moving

  func seek(_ target: RawSpan) throws -> Bool {
    let cursor = try beginPlacing()
    return try target.withUnsafeBytes { target in
      if target.count == 0 || lower.isAbove(MDB_val(target)) { return try moveToFirst(cursor) }
      var key = MDB_val(target)
      var value = MDB_val()
      let result = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE)
      return try arrive(result, key, value, otherwise: .afterLast)
    }
  }

  func first() throws -> Bool { try moveToFirst(beginPlacing()) }

  func last() throws -> Bool { try moveToLast(beginPlacing()) }

  func next() throws -> Bool {
    let cursor = try beginMove()
    switch place {
    case .beforeFirst: return try moveToFirst(cursor)
    case .afterLast: return false
    case .onEntry: return try move(cursor, MDB_NEXT, otherwise: .afterLast)
    }
  }

  func previous() throws -> Bool {
    let cursor = try beginMove()
    switch place {
    case .beforeFirst: return false
    case .afterLast: return try moveToLast(cursor)
    case .onEntry: return try move(cursor, MDB_PREV, otherwise: .beforeFirst)
    }
  }

  private func moveToFirst(_ cursor: OpaquePointer) throws -> Bool {
    var key = MDB_val()
    var value = MDB_val()
    let result = CursorMove.first(cursor, from: lower, &key, &value)
    return try arrive(result, key, value, otherwise: .afterLast)
  }

  private func moveToLast(_ cursor: OpaquePointer) throws -> Bool {
    var key = MDB_val()
    var value = MDB_val()
    let result = CursorMove.last(cursor, to: upper, &key, &value)
    return try arrive(result, key, value, otherwise: .beforeFirst)
  }

  @inline(__always)
  private func move(_ cursor: OpaquePointer, _ step: MDB_cursor_op, otherwise side: Place) throws -> Bool {
    var key = MDB_val()
    var value = MDB_val()
    let result = mdb_cursor_get(cursor, &key, &value, step)
    return try arrive(result, key, value, otherwise: side)
  }

  @inline(__always)
  private func arrive(_ result: Int32, _ key: MDB_val, _ value: MDB_val, otherwise side: Place) throws -> Bool
  {
    guard result == 0 else {
      place = side
      if result == MDB_NOTFOUND { return false }
      throw owner.failed(result, "a cursor could not be moved")
    }
    if side == .afterLast ? upper.isBelow(key) : lower.isAbove(key) {
      place = side
      return false
    }
    self.key = key
    self.value = value
    place = .onEntry
    return true
  }

  // MARK: Lending

  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    _ = try live()
    guard place == .onEntry, writes == owner.writes else { throw notOnEntry() }
    lent &+= 1
    owner.beginLending()
    defer {
      lent &-= 1
      owner.endLending()
    }
    try body(UnsafeRawBufferPointer(found: key).bytes, UnsafeRawBufferPointer(found: value).bytes)
  }

  // MARK: Checks

  @inline(__always)
  private func live() throws -> OpaquePointer {
    guard let handle, owner.isOpen else { throw owner.ended() }
    return handle
  }

  /// Checks a move that doesn't depend on the current position.
  @inline(__always)
  private func beginPlacing() throws -> OpaquePointer {
    let cursor = try live()
    if lent > 0 { throw owner.lentBytes("a move of a cursor") }
    writes = owner.writes
    return cursor
  }

  /// Checks a move that starts from the current position.
  @inline(__always)
  private func beginMove() throws -> OpaquePointer {
    let cursor = try live()
    if lent > 0 { throw owner.lentBytes("a move of a cursor") }
    guard writes == owner.writes else { throw notOnEntry() }
    return cursor
  }

  @inline(never)
  private func notOnEntry() -> StorageError {
    owner.environment.error(
      .notOnEntry, "the cursor is on no entry; place it with seek, first or last")
  }
}
