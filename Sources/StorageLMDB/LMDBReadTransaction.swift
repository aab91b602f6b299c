import CLMDB
import Storage

/// A snapshot: one of LMDB's read transactions, borrowed from the pool until `end`.
final class LMDBReadTransaction: ReadTransaction {
  let slot: SnapshotSlot
  unowned(unsafe) let environment: Environment
  /// The slot's, to have it in one load.
  private let transaction: OpaquePointer
  // Read in every call, written at the beginning and the end; a check of exclusive access costs as much as
  // the rest of a call.
  @exclusivity(unchecked) private(set) var isOpen = false
  /// Of the slot's catalog.
  @exclusivity(unchecked) private var table: HandleTable

  /// Over a slot at rest.
  init(_ slot: SnapshotSlot, _ environment: Environment) {
    self.slot = slot
    transaction = slot.transaction
    table = slot.table
    self.environment = environment
  }

  deinit {
    if isOpen { environment.recover(slot) }
  }

  /// Called by the environment once the slot's snapshot is taken.
  @inline(__always)
  func open() {
    slot.serial &+= 1
    table = slot.table
    isOpen = true
  }

  func end() {
    guard isOpen else { return }
    isOpen = false
    mdb_txn_reset(transaction)
    environment.pool.giveBack(self)
  }

  @inline(__always)
  private func handle(of keyspace: Keyspace) throws -> MDB_dbi {
    precondition(isOpen, "a snapshot was used after its end")
    let handle = table.handle(of: keyspace.number)
    if handle == 0 { throw noSuchKeyspace(keyspace) }
    return handle
  }

  /// Set since the snapshot was taken.
  private var catalog: Catalog { slot.catalog.unsafelyUnwrapped }

  var keepsBytes: Bool { true }

  func keyspace(named name: String) throws -> Keyspace? {
    precondition(isOpen, "a snapshot was used after its end")
    return catalog.items[name]?.keyspace
  }

  /// Whether the file has never held a keyspace.
  var isEmptyFromTheStart: Bool { catalog.items.isEmpty && catalog.nextNumber == 1 }

  func keyspaces() throws -> [String: Keyspace] {
    precondition(isOpen, "a snapshot was used after its end")
    return catalog.items.mapValues(\.keyspace)
  }

  func get(_ key: UnsafeRawBufferPointer, in keyspace: Keyspace) throws -> UnsafeRawBufferPointer? {
    let handle = try handle(of: keyspace)
    if !keyspace.takes(key) { throw invalidKey(key, keyspace) }
    var wanted = MDB_val(key)
    var value = MDB_val()
    let result = mdb_get(transaction, handle, &wanted, &value)
    if result == 0 { return UnsafeRawBufferPointer(found: value) }
    if result == MDB_NOTFOUND { return nil }
    throw failed(result, "a value could not be read")
  }

  func unsafeScan(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, fetch: ScanFetch,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    let handle = try handle(of: keyspace)
    let cursor = try takeCursor(handle)
    defer { slot.giveBack(cursor, handle) }
    let result = try Scan.run(cursor, range, order, fetch, fetchesAhead: environment, body)
    if result != 0, result != MDB_NOTFOUND { throw failed(result, "a scan could not go on") }
  }

  func unsafeScanBatches(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder,
    _ body: (_ entries: UnsafeBufferPointer<ScanEntry>) throws -> Bool
  ) throws {
    let handle = try handle(of: keyspace)
    let cursor = try takeCursor(handle)
    defer { slot.giveBack(cursor, handle) }
    let result = try Scan.runBatches(cursor, range, order, environment, body)
    if result != 0, result != MDB_NOTFOUND { throw failed(result, "a scan could not go on") }
  }

  func unsafeFollow(
    _ keyspace: Keyspace, _ range: KeyRange, order: ScanOrder, into target: Keyspace,
    reference: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> UnsafeReference,
    _ body: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    let handle = try handle(of: target)
    let places = slot.places(
      for: EntryPlaces.Version(
        keyspace: target.number, transaction: mdb_txn_id(transaction), map: environment.mapGeneration))
    let cursor = try takeCursor(handle)
    defer { slot.giveBack(cursor, handle) }
    try unsafeScanBatches(keyspace, range, order: order) { entries in
      for entry in entries {
        switch try reference(entry.key, entry.value) {
        case .end: return false
        case .none: continue
        case .key(let wanted):
          guard let found = try find(wanted, in: target, with: cursor, places) else { continue }
          guard try body(wanted, found) else { return false }
        }
      }
      return true
    }
  }

  /// The value of a key, where it was found before or by a search.
  @inline(__always)
  private func find(
    _ wanted: UnsafeRawBufferPointer, in keyspace: Keyspace, with cursor: OpaquePointer, _ places: EntryPlaces
  ) throws -> UnsafeRawBufferPointer? {
    let hash = KeyHash.of(wanted, 0)
    if let value = places.value(of: wanted, hash) { return value }
    if !keyspace.takes(wanted) { throw invalidKey(wanted, keyspace) }
    var key = MDB_val(wanted)
    var value = MDB_val()
    let result = mdb_cursor_get(cursor, &key, &value, MDB_SET_KEY)
    if result == MDB_NOTFOUND { return nil }
    if result != 0 { throw failed(result, "a value could not be read") }
    places.note(UnsafeRawBufferPointer(found: key), hash, UnsafeRawBufferPointer(found: value))
    return UnsafeRawBufferPointer(found: value)
  }

  func unsafeCursor(in keyspace: Keyspace, _ range: KeyRange) throws -> any UnsafeCursor {
    let handle = try handle(of: keyspace)
    return LMDBCursor(try takeCursor(handle), handle, range, reader: self, writer: nil)
  }

  func count(of keyspace: Keyspace) throws -> Int {
    var statistics = MDB_stat()
    let result = mdb_stat(transaction, try handle(of: keyspace), &statistics)
    if result != 0 { throw failed(result, "entries could not be counted") }
    return statistics.ms_entries
  }

  private func takeCursor(_ database: MDB_dbi) throws -> OpaquePointer {
    var cursor: OpaquePointer?
    let result = slot.takeCursor(database, &cursor)
    guard result == 0, let cursor else { throw failed(result, "a cursor could not be opened") }
    return cursor
  }

  /// Takes back LMDB's cursor of a cursor object that has gone.
  func giveBack(_ cursor: OpaquePointer, _ database: MDB_dbi) {
    if isOpen { slot.giveBack(cursor, database) } else { mdb_cursor_close(cursor) }
  }

  // Out of line, so that the paths that succeed hold no references.

  @inline(never)
  private func failed(_ result: Int32, _ what: String) -> StorageError {
    .lmdb(result, what, path: environment.path)
  }

  @inline(never)
  private func noSuchKeyspace(_ keyspace: Keyspace) -> StorageError { environment.noSuchKeyspace(keyspace) }

  @inline(never)
  private func invalidKey(_ key: UnsafeRawBufferPointer, _ keyspace: Keyspace) -> StorageError {
    environment.invalidKey(key, keyspace)
  }
}
