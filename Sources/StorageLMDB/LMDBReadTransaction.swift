import CLMDB
import Storage

/// A snapshot: one of LMDB's read transactions, borrowed from the pool until `end`.
final class LMDBReadTransaction: ReadTransaction {
  let slot: SnapshotSlot
  unowned(unsafe) let environment: Environment
  private(set) var isOpen = false

  init(_ slot: SnapshotSlot, _ environment: Environment) {
    self.slot = slot
    self.environment = environment
  }

  deinit {
    if isOpen { environment.recover(slot) }
  }

  /// Called by the environment once the slot's snapshot is taken.
  @inline(__always)
  func open() {
    slot.serial &+= 1
    isOpen = true
  }

  func end() {
    guard isOpen else { return }
    isOpen = false
    mdb_txn_reset(slot.transaction)
    environment.pool.giveBack(self)
  }

  @inline(__always)
  private func handle(of keyspace: Keyspace) throws -> MDB_dbi {
    precondition(isOpen, "a snapshot was used after its end")
    let handle = catalog.table.handle(of: keyspace.number)
    if handle == 0 { throw environment.noSuchKeyspace(keyspace) }
    return handle
  }

  /// Set since the snapshot was taken.
  @inline(__always)
  private var catalog: Catalog { slot.catalog.unsafelyUnwrapped }

  func keyspace(named name: String) throws -> Keyspace? {
    precondition(isOpen, "a snapshot was used after its end")
    return catalog.items[name]?.keyspace
  }

  func keyspaces() throws -> [String: Keyspace] {
    precondition(isOpen, "a snapshot was used after its end")
    return catalog.items.mapValues(\.keyspace)
  }

  func get(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> UnsafeRawBufferPointer? {
    let handle = try handle(of: keyspace)
    try environment.checkKey(key, keyspace)
    var wanted = MDB_val(key)
    var value = MDB_val()
    let result = mdb_get(slot.transaction, handle, &wanted, &value)
    if result == 0 { return UnsafeRawBufferPointer(value) }
    if result == MDB_NOTFOUND { return nil }
    throw StorageError.lmdb(result, "a value could not be read", path: environment.path)
  }

  func scan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    let handle = try handle(of: keyspace)
    let cursor = try takeCursor(handle)
    defer { slot.giveBack(cursor, handle) }
    let result = try Scan.run(cursor, range, order, fetch, body)
    if result != 0, result != MDB_NOTFOUND {
      throw StorageError.lmdb(result, "a scan could not go on", path: environment.path)
    }
  }

  func cursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any Cursor {
    let handle = try handle(of: keyspace)
    return LMDBCursor(try takeCursor(handle), handle, range, reader: self, writer: nil)
  }

  func count(of keyspace: Keyspace) throws -> Int {
    var statistics = MDB_stat()
    let result = mdb_stat(slot.transaction, try handle(of: keyspace), &statistics)
    if result != 0 { throw StorageError.lmdb(result, "entries could not be counted", path: environment.path) }
    return statistics.ms_entries
  }

  private func takeCursor(_ database: MDB_dbi) throws -> OpaquePointer {
    var cursor: OpaquePointer?
    let result = slot.takeCursor(database, &cursor)
    guard result == 0, let cursor else {
      throw StorageError.lmdb(result, "a cursor could not be opened", path: environment.path)
    }
    return cursor
  }

  /// Takes back LMDB's cursor of a cursor object that has gone.
  func giveBack(_ cursor: OpaquePointer, _ database: MDB_dbi) {
    if isOpen { slot.giveBack(cursor, database) } else { mdb_cursor_close(cursor) }
  }
}
