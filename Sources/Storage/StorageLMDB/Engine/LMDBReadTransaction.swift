import CLMDB
import Storage

/// A snapshot: a read transaction of LMDB that the pool lends until `end`.
package final class LMDBReadTransaction: LMDBTransaction, ReadTransaction {
  let slot: SnapshotSlot

  /// Makes a transaction over a resting slot.
  init(_ slot: SnapshotSlot, _ environment: Environment) {
    self.slot = slot
    super.init(slot.transaction, environment, slot.table, isOpen: false)
  }

  deinit {
    if isOpen { environment.recover(slot) }
  }

  /// Marks the snapshot as open. The environment calls this when the slot's snapshot has begun.
  @inline(__always)
  func open() {
    slot.serial &+= 1
    table = slot.table
    isOpen = true
  }

  package func end() { endSnapshot() }

  /// LMDB numbers the commits of all processes.
  package var snapshotVersion: SnapshotVersion? {
    guard isOpen else { return nil }
    return SnapshotVersion(
      engine: environment.engineNumber, number: UInt64(UInt(bitPattern: slot.catalogTransaction)))
  }

  package override func returned() {
    environment.endSnapshot(of: slot)
    environment.pool.giveBack(self)
  }

  /// The catalog of the snapshot. It is set before the snapshot opens.
  private var catalog: Catalog { slot.catalog.unsafelyUnwrapped }

  package func keyspace(named name: String) throws -> Keyspace? {
    try checkOpen()
    return catalog.items[name]?.keyspace
  }

  package func keyspaces() throws -> [String: Keyspace] {
    try checkOpen()
    return catalog.items.mapValues(\.keyspace)
  }

  /// Whether the file has never held a keyspace.
  package var isEmptyFromTheStart: Bool { catalog.items.isEmpty && catalog.nextNumber == 1 }

  override func takeCursor(_ database: MDB_dbi) throws -> OpaquePointer {
    var cursor: OpaquePointer?
    let result = slot.takeCursor(database, &cursor)
    guard result == 0, let cursor else { throw failed(result, "a cursor could not be opened") }
    return cursor
  }

  override func giveBack(_ cursor: OpaquePointer, _ database: MDB_dbi) {
    // After the end, another snapshot may use the slot on another thread.
    if isOpen { slot.giveBack(cursor, database) } else { mdb_cursor_close(cursor) }
  }
}
