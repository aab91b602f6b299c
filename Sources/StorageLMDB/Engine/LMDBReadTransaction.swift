import CLMDB
import Storage

/// A snapshot: one of LMDB's read transactions, borrowed from the pool until `end`.
final class LMDBReadTransaction: LMDBTransaction, ReadTransaction {
  let slot: SnapshotSlot

  /// Over a slot at rest.
  init(_ slot: SnapshotSlot, _ environment: Environment) {
    self.slot = slot
    super.init(slot.transaction, environment, slot.table, isOpen: false)
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

  func end() { endSnapshot() }

  override func returned() {
    mdb_txn_reset(transaction)
    environment.pool.giveBack(self)
  }

  /// Set since the snapshot was taken.
  private var catalog: Catalog { slot.catalog.unsafelyUnwrapped }

  func keyspace(named name: String) throws -> Keyspace? {
    try checkOpen()
    return catalog.items[name]?.keyspace
  }

  func keyspaces() throws -> [String: Keyspace] {
    try checkOpen()
    return catalog.items.mapValues(\.keyspace)
  }

  /// Whether the file has never held a keyspace.
  var isEmptyFromTheStart: Bool { catalog.items.isEmpty && catalog.nextNumber == 1 }

  override func takeCursor(_ database: MDB_dbi) throws -> OpaquePointer {
    var cursor: OpaquePointer?
    let result = slot.takeCursor(database, &cursor)
    guard result == 0, let cursor else { throw failed(result, "a cursor could not be opened") }
    return cursor
  }

  override func giveBack(_ cursor: OpaquePointer, _ database: MDB_dbi) {
    // After the end the slot may be another snapshot's, on another thread.
    if isOpen { slot.giveBack(cursor, database) } else { mdb_cursor_close(cursor) }
  }
}
