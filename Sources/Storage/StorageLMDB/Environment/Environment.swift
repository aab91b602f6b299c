import CLMDB
import Glibc
import Storage
import Synchronization

/// An open file: LMDB's environment, the pool of snapshots, and the catalog of the last known commit.
///
/// LMDB requires that no two transactions of a process open handles of named databases (`MDB_dbi`) at the
/// same time. The handles of all keyspaces are opened with the file. A keyspace created by this process gets
/// its handle in the write transaction. The handles of keyspaces created by another process are opened when a
/// snapshot first finds them. This never happens while a write transaction of this process is open. In that
/// case the snapshot is taken again. It then sees a commit that the write transaction already knows.
package final class Environment: @unchecked Sendable {
  /// The maximum number of open snapshots. Each takes a reader slot of 64 bytes in the lock file, touched at
  /// its first use.
  static let maximumReaders = 8_192
  /// The number of additional slots for the engine's own reads.
  static let reservedReaders = 16
  /// The number of commits between searches for slots of dead processes. A search costs one system call for
  /// each other process that reads.
  static let commitsBetweenChecks = 64
  /// The maximum number of handles: for the keyspaces, the catalog, and the husks that open snapshots may
  /// still read.
  static let maximumHandles = StorageLimits.maximumKeyspaces + 250

  package let path: String
  package let durability: Durability
  package let isReadOnly: Bool
  let handle: OpaquePointer
  let usesLockFile: Bool
  /// Whether closing removes the lock file, so that an opening only for reading leaves nothing behind.
  private let removesLockFile: Bool
  let catalogHandle: MDB_dbi
  package let queue = GroupCommit()
  let pool = SnapshotPool()
  let forkGeneration: Int
  /// The last commit before the opening. 0 if the opening may have created the catalog.
  private let transactionAtOpen: Int
  private let catalogState: Lock<CatalogState>
  /// The trees that the opening has checked, without the keyspaces of users.
  let checkedAtOpen: CheckedTrees
  /// Room for the slots of readers in the lock file. Nil if this process may not write it.
  let room: LockFileRoom?
  /// The marks of this process's snapshots, if it may not write the lock file.
  let marks: SnapshotMarks?
  /// The marked snapshots of other processes. Only used by the thread of the write transaction.
  private let marked: MarkedReaders?
  /// Whether the meta page of the last commit may be missing on the disk, and no sync would write it
  /// (`writeMetaAgain`). Only used by the thread of the write transaction.
  private var mayLackMeta: Bool
  /// Whether a transaction found the map full. The next write grows the map if nobody reads.
  let wantsLargerMap = Atomic<Bool>(false)
  /// The number of the environment in the versions of snapshots.
  let engineNumber = SnapshotVersion.newEngine()

  private struct CatalogState: @unchecked Sendable {
    /// The newest commit that is known to have this catalog.
    var transaction: Int
    /// The commit that the last write transaction of this process began from, or its own.
    var left = -1
    var catalog: Catalog
    /// The handles of all named databases that this process has opened, including husks.
    var handles: [String: MDB_dbi]
    /// The number of times that handles were opened outside write transactions. A write transaction begun
    /// meanwhile doesn't know them.
    var openings = 0
    var isWriting = false
  }

  init(path: String, options: EngineOptions, mapBytes: Int, forkGeneration: Int, hadLockFile: Bool) throws {
    let opened = try EnvironmentOpening(path: path, options: options, mapBytes: mapBytes).run()
    self.path = path
    self.forkGeneration = forkGeneration
    durability = options.durability
    isReadOnly = options.isReadOnly
    handle = opened.handle
    usesLockFile = opened.marks == nil
    room = opened.room
    marks = opened.marks
    marked =
      opened.marks == nil && !options.isReadOnly
      ? MarkedReaders(opened.handle, opened.handle.dataDescriptor, path: path) : nil
    mayLackMeta = options.durability != .none
    removesLockFile = options.isReadOnly && opened.marks == nil && !hadLockFile
    catalogHandle = opened.catalogHandle
    checkedAtOpen = opened.checked
    // The first transaction creates the catalog, during the first opening. It must be synced as well.
    transactionAtOpen = opened.transaction > 1 ? opened.transaction : 0
    catalogState = Lock(
      CatalogState(transaction: opened.transaction, catalog: opened.catalog, handles: opened.handles))
    pool.environment = self
  }

  /// The number of the last committed transaction of any process.
  var lastTransaction: Int { handle.lastTransaction }

  // MARK: - Snapshots

  @inline(__always)
  package func beginRead() throws -> LMDBReadTransaction { try beginRead(upTo: Self.maximumReaders) }

  @inline(__always)
  private func beginRead(upTo limit: Int) throws -> LMDBReadTransaction {
    if ForkGuard.generation != forkGeneration { throw forked() }
    let snapshot = try pool.take(upTo: limit)
    let slot = snapshot.slot
    if let marks {
      try renewMarked(snapshot, marks)
    } else {
      let result = mdb_txn_renew(slot.transaction)
      if result != 0 { try renewAgain(snapshot, result) }
    }
    if mdb_txn_id(slot.transaction) != slot.catalogTransaction {
      do {
        try resolveCatalog(slot)
      } catch {
        endSnapshot(of: slot)
        pool.giveBack(snapshot)
        throw error
      }
    }
    snapshot.open()
    return snapshot
  }

  /// Begins a snapshot for the engine's own use, even if all others are taken.
  package func beginOwnRead() throws -> LMDBReadTransaction {
    try beginRead(upTo: Self.maximumReaders + Self.reservedReaders)
  }

  @inline(never)
  private func renewAgain(_ snapshot: LMDBReadTransaction, _ failure: Int32) throws {
    do {
      let result = try withLargerMap(failure) { mdb_txn_renew(snapshot.slot.transaction) }
      if result != 0 { throw StorageError.lmdb(result, "a snapshot could not be started", path: path) }
    } catch {
      pool.giveBack(snapshot)
      throw error
    }
  }

  @inline(never)
  private func renewMarked(_ snapshot: LMDBReadTransaction, _ marks: SnapshotMarks) throws {
    do { try renew(snapshot.slot, marks) } catch {
      pool.giveBack(snapshot)
      throw error
    }
  }

  private func renew(_ slot: SnapshotSlot, _ marks: SnapshotMarks) throws {
    slot.mark = try marks.mark(
      newest: { lastTransaction },
      begin: {
        let result = try withLargerMap(mdb_txn_renew(slot.transaction)) { mdb_txn_renew(slot.transaction) }
        if result != 0 { throw StorageError.lmdb(result, "a snapshot could not be started", path: path) }
        return mdb_txn_id(slot.transaction)
      }, undo: { mdb_txn_reset(slot.transaction) })
  }

  /// Ends the snapshot of a slot, with its mark.
  @inline(__always)
  func endSnapshot(of slot: SnapshotSlot) {
    mdb_txn_reset(slot.transaction)
    if let marks { marks.remove(slot.mark) }
  }

  /// Begins a snapshot again with `begin` after `MDB_MAP_RESIZED`: another process has grown the file beyond
  /// this process's map. Adopts the new size, and repeats this as often as needed. The caller's slot is
  /// reset.
  func withLargerMap(_ failure: Int32, _ begin: () -> Int32) throws -> Int32 {
    var result = failure
    while result == MDB_MAP_RESIZED {
      // Other threads may wait as well. Each holds a slot, and none of them reads.
      try pool.waiting { try adoptLargerMap() }
      result = begin()
    }
    return result
  }

  /// Finds the catalog of a slot's snapshot. Takes the snapshot again if it lacks handles.
  @inline(never)
  private func resolveCatalog(_ slot: SnapshotSlot) throws {
    // LMDB copies the handles when a transaction begins. So a catalog is valid for this snapshot only if it
    // was known before the snapshot was taken.
    var known = slot.catalog
    while true {
      let transaction = mdb_txn_id(slot.transaction)
      let catalog = try catalogState.withLock { try currentCatalog(slot.transaction, transaction, &$0) }
      if let catalog, catalog === known {
        slot.found(catalog, for: transaction)
        return
      }
      endSnapshot(of: slot)
      // A commit of this process that isn't published yet. Its thread is about to publish it.
      if catalog == nil { sched_yield() }
      known = catalog
      if let marks {
        slot.mark = -1
        try renew(slot, marks)
        continue
      }
      let result = try withLargerMap(mdb_txn_renew(slot.transaction)) { mdb_txn_renew(slot.transaction) }
      if result != 0 { throw StorageError.lmdb(result, "a snapshot could not be started", path: path) }
    }
  }

  /// Returns the catalog of a snapshot if it is the current one, or nil if the snapshot must be taken again.
  private func currentCatalog(
    _ snapshot: OpaquePointer, _ transaction: Int, _ state: inout CatalogState
  ) throws -> Catalog? {
    if transaction == state.transaction { return state.catalog }
    let records = CatalogRecords(transaction: snapshot, handle: catalogHandle, path: path)
    guard let found = try records.state() else { throw lostCatalog() }
    if found.version == state.catalog.version {
      state.transaction = max(state.transaction, transaction)
      return state.catalog
    }
    if transaction < state.transaction || state.isWriting { return nil }
    guard let catalog = try catalog(of: records, found, state) else {
      try openHandles(&state)
      return nil
    }
    state.catalog = catalog
    state.transaction = transaction
    return catalog
  }

  private func catalog(
    of records: CatalogRecords, _ found: CatalogRecords.State, _ state: CatalogState
  ) throws -> Catalog? {
    try EnvironmentOpening.catalog(try records.keyspaces(), found, state.handles, path: path)
  }

  /// Opens the keyspaces that another process has created. No write transaction of this process may be open.
  private func openHandles(_ state: inout CatalogState) throws {
    state.openings += 1
    var transaction: OpaquePointer?
    let begun = mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &transaction)
    guard begun == 0, let transaction else {
      throw StorageError.lmdb(begun, "new keyspaces could not be opened", path: path)
    }
    do {
      let records = CatalogRecords(transaction: transaction, handle: catalogHandle, path: path)
      let opened = try EnvironmentOpening.openHandles(
        transaction, try records.keyspaces().map(\.name), besides: state.handles, path: path)
      // The environment owns the handles of a transaction when it commits.
      mdb_txn_commit(transaction)
      state.handles.merge(opened) { $1 }
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
  }

  /// Ends the snapshot of a transaction object that was released without `end()`.
  func recover(_ slot: SnapshotSlot) {
    endSnapshot(of: slot)
    pool.giveBack(LMDBReadTransaction(slot, self))
  }

  // MARK: - Writing

  package func beginWrite() throws -> LMDBWriteTransaction {
    if pool.isClosed { throw error(.closed, "the database is closed") }
    if wantsLargerMap.load(ordering: .relaxed) { growMap() }
    while true {
      // Read under the lock. An opening of handles that is in progress is already counted, but LMDB doesn't
      // provide its handles yet.
      let openings = catalogState.withLock { $0.openings }
      var transaction: OpaquePointer?
      let result = mdb_txn_begin(handle, nil, 0, &transaction)
      if result == MDB_MAP_RESIZED {
        try adoptLargerMapWhileWriterIsOut()
        continue
      }
      guard result == 0, let transaction else { throw writeError(result, "a write could not be begun") }
      do {
        if let catalog = try catalogState.withLock({ try baseCatalog(transaction, openings, &$0) }) {
          do {
            if mayLackMeta {
              try MetaPage.writeAgain(mdb_txn_id(transaction) - 1, handle.dataDescriptor, path)
              mayLackMeta = false
            }
            try marked?.protect()
          } catch {
            catalogState.withLock { $0.isWriting = false }
            throw error
          }
          return LMDBWriteTransaction(transaction, self, catalog, [:])
        }
      } catch {
        mdb_txn_abort(transaction)
        throw error
      }
      mdb_txn_abort(transaction)
      try catalogState.withLock { state in
        if state.openings == openings { try openHandles(&state) }
      }
    }
  }

  /// Returns the catalog at the start of a write transaction, or nil if handles must be opened first.
  private func baseCatalog(
    _ transaction: OpaquePointer, _ openings: Int, _ state: inout CatalogState
  ) throws -> Catalog? {
    guard state.openings == openings else { return nil }
    let base = mdb_txn_id(transaction) - 1
    if base != state.left {
      // Another process has committed since.
      queue.breakLineage()
      state.left = base
    }
    if base != state.transaction {
      let records = CatalogRecords(transaction: transaction, handle: catalogHandle, path: path)
      guard let found = try records.state() else { throw lostCatalog() }
      if found.version != state.catalog.version {
        guard let catalog = try catalog(of: records, found, state) else { return nil }
        state.catalog = catalog
      }
      state.transaction = base
    }
    state.isWriting = true
    return state.catalog
  }

  package func commit(_ write: LMDBWriteTransaction) throws {
    let number = mdb_txn_id(write.transaction)
    if usesLockFile, number % Self.commitsBetweenChecks == 0 {
      // A snapshot of a dead process would keep all freed pages from being used again.
      var dead: Int32 = 0
      _ = mdb_reader_check(handle, &dead)
    }
    let result = mdb_txn_commit(write.transaction)
    marked?.release()
    if result != 0, durability != .none { mayLackMeta = true }
    catalogState.withLock { state in
      state.isWriting = false
      guard result == 0, write.hasWritten else { return }
      state.transaction = number
      state.left = number
      if write.catalog !== state.catalog {
        state.catalog = write.catalog
        state.handles.merge(write.newHandles) { $1 }
      }
    }
    if result != 0 { throw write.failed(result, "a commit could not be written") }
  }

  package func abort(_ write: LMDBWriteTransaction) {
    mdb_txn_abort(write.transaction)
    marked?.release()
    catalogState.withLock { $0.isWriting = false }
  }

  package func knownHandle(_ name: String) -> MDB_dbi? { catalogState.withLock { $0.handles[name] } }

  /// Closes the handles of husks, from within the write transaction, if no snapshot can read them. Returns
  /// whether any was closed.
  func closeUnusedHandles(besides used: [String: MDB_dbi]) -> Bool {
    let closed = pool.whenIdle {
      catalogState.withLock { state in
        let unused = state.handles.filter { state.catalog.items[$0.key] == nil && used[$0.key] == nil }
        for (name, database) in unused {
          mdb_dbi_close(handle, database)
          state.handles[name] = nil
        }
        return !unused.isEmpty
      }
    }
    return closed ?? false
  }

  // MARK: - The map

  /// The maximum time that snapshots and writes wait for open snapshots when the map must grow: 5 seconds.
  /// Tests shorten it.
  var patience: Duration {
    get { .milliseconds(patienceMilliseconds.load(ordering: .relaxed)) }
    set { patienceMilliseconds.store(Int(newValue / .milliseconds(1)), ordering: .relaxed) }
  }
  private let patienceMilliseconds = Atomic<Int>(5_000)

  // MARK: - Closing

  package func close() throws {
    // A child has nothing to close: the descriptors and locks belong to its parent.
    if ForkGuard.generation != forkGeneration { return }
    try queue.exclusively {
      if pool.isClosed { return }
      guard pool.close() else {
        throw error(.inUse, "\(pool.openCount) snapshots are open; end them before closing the database")
      }
      // The meta page of the last commit would reach the disk with the sync of the next commit, which won't
      // come. Skip the sync if nothing was committed, because it would cost just as much.
      var result: Int32 = 0
      if durability == .normal, !isReadOnly, lastTransaction != transactionAtOpen {
        result = mdb_env_sync(handle, 1)
      }
      marked?.endTransaction()
      EnvironmentRegistry.remove(self) {
        mdb_env_close(handle)
        room?.close()
        marked?.close()
        if removesLockFile { OpeningLock.removeLockFile(of: path) }
      }
      // The file is closed even if the sync failed.
      if result != 0 { throw StorageError.lmdb(result, "the last commits could not be synced", path: path) }
    }
  }

  /// Closes the environment when the engine is released: now, or when the last snapshot ends.
  package func abandon() {
    pool.isAbandoned.store(true, ordering: .relaxed)
    closeWhenIdle()
  }

  func closeWhenIdle() { try? close() }
}
