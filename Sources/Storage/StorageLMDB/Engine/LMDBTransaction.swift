import CLMDB
import Storage

/// The base class of snapshots and write transactions of LMDB. It implements their reads.
///
/// Bytes are lent in LMDB's own memory. Bytes of a snapshot are in the map, and its pages don't change until
/// it ends. Bytes of a write transaction are in the map or on pages that the transaction has changed. Only
/// its own writes move those, so a write throws `bytesAreLent` while bytes are lent. Each scan and each
/// cursor has its own cursor of LMDB, so reads can be nested to any depth.
package class LMDBTransaction: LendingTransaction {
  package final unowned(unsafe) let environment: Environment
  package final let transaction: OpaquePointer
  // Read in every call. A check of exclusive access would cost as much as the rest of the call.
  @exclusivity(unchecked) package final var isOpen: Bool
  @exclusivity(unchecked) package final var lent = 0
  /// The handles of the keyspaces that the transaction sees.
  @exclusivity(unchecked) final var table: HandleTable
  /// The number of writes. Each write makes all cursor positions invalid.
  @exclusivity(unchecked) final var writes = 0

  init(_ transaction: OpaquePointer, _ environment: Environment, _ table: HandleTable, isOpen: Bool) {
    self.environment = environment
    self.transaction = transaction
    self.table = table
    self.isOpen = isOpen
  }

  // MARK: Overridden by subclasses

  package func returned() {}

  /// Takes a cursor of LMDB for exclusive use. Give it back with `giveBack`.
  func takeCursor(_ database: MDB_dbi) throws -> OpaquePointer {
    var cursor: OpaquePointer?
    let result = mdb_cursor_open(transaction, database, &cursor)
    guard result == 0, let cursor else { throw failed(result, "a cursor could not be opened") }
    return cursor
  }

  func giveBack(_ cursor: OpaquePointer, _ database: MDB_dbi) { mdb_cursor_close(cursor) }

  func track(_ cursor: LMDBCursor) {}
  func forget(_ cursor: LMDBCursor) {}

  package func failed(_ result: Int32, _ what: String) -> StorageError {
    .lmdb(result, what, path: environment.path)
  }

  // MARK: Reading

  @inline(__always)
  final func handle(of keyspace: Keyspace) throws -> MDB_dbi {
    try checkOpen()
    let handle = table.handle(of: keyspace.number)
    if handle == 0 { throw environment.noSuchKeyspace(keyspace) }
    return handle
  }

  package final func read(
    _ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void
  ) throws -> Bool {
    guard let value = try key.withUnsafeBytes({ try find($0, in: keyspace) }) else { return false }
    beginLending()
    defer { endLending() }
    try body(value.bytes)
    return true
  }

  /// Returns the bytes of the value at a key, or nil.
  @inline(__always)
  private final func find(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws
    -> UnsafeRawBufferPointer?
  {
    let handle = try handle(of: keyspace)
    if !keyspace.takes(key) { throw environment.invalidKey(key, keyspace) }
    var wanted = MDB_val(key)
    var value = MDB_val()
    let result = mdb_get(transaction, handle, &wanted, &value)
    if result == 0 { return UnsafeRawBufferPointer(found: value) }
    if result == MDB_NOTFOUND { return nil }
    throw failed(result, "a value could not be read")
  }

  package final func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: RawSpan, _ value: RawSpan) throws -> Bool
  ) throws {
    let handle = try handle(of: keyspace)
    let cursor = try takeCursor(handle)
    beginLending()
    defer {
      giveBack(cursor, handle)
      endLending()
    }
    let result = try Scan.run(cursor, range, order, fetch, body)
    if result != 0, result != MDB_NOTFOUND { throw failed(result, "a scan could not continue") }
  }

  package final func follow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ found: RawSpan) throws -> Bool
  ) throws {
    let handle = try handle(of: target)
    // One cursor for all lookups. It starts from the root only when the next key is on another page.
    let cursor = try takeCursor(handle)
    defer { giveBack(cursor, handle) }
    try scan(keyspace, range, order: order, fetch: .entries) { key, value in
      let found: UnsafeRawBufferPointer?
      switch try reference(key, value) {
      case .end: return false
      case .none: return true
      case .inKey(let place): found = try find(place, of: key, in: target, with: cursor)
      case .inValue(let place): found = try find(place, of: value, in: target, with: cursor)
      }
      guard let found else { return true }
      return try body(key, value, found.bytes)
    }
  }

  /// Returns the bytes of the value at a key that is part of an entry, or nil.
  @inline(__always)
  private final func find(
    _ place: Range<Int>, of entry: RawSpan, in keyspace: Keyspace, with cursor: OpaquePointer
  ) throws -> UnsafeRawBufferPointer? {
    guard place.lowerBound >= 0, place.upperBound <= entry.byteCount else {
      throw environment.error(
        .invalidArgument, "a reference names the bytes \(place) of an entry of \(entry.byteCount) bytes")
    }
    return try entry.extracting(place).withUnsafeBytes { wanted in
      if !keyspace.takes(wanted) { throw environment.invalidKey(wanted, keyspace) }
      var key = MDB_val(wanted)
      var value = MDB_val()
      let result = mdb_cursor_get(cursor, &key, &value, MDB_SET_KEY)
      if result == 0 { return UnsafeRawBufferPointer(found: value) }
      if result == MDB_NOTFOUND { return nil }
      throw failed(result, "a value could not be read")
    }
  }

  package final func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    let handle = try handle(of: keyspace)
    return LMDBCursor(try takeCursor(handle), handle, range, self)
  }

  package final func entryCount(of keyspace: Keyspace) throws -> EntryCount {
    var statistics = MDB_stat()
    let result = mdb_stat(transaction, try handle(of: keyspace), &statistics)
    if result != 0 { throw failed(result, "entries could not be counted") }
    return .exact(statistics.ms_entries)
  }
}
