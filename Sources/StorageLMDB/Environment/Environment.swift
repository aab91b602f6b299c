import CLMDB
import Glibc
import Storage
import Synchronization

/// An open file: LMDB's environment, the snapshots at rest, and the catalog as of the last known commit.
///
/// Handles of named databases (LMDB's `MDB_dbi`) follow LMDB's rule that no two transactions of a process
/// open some at the same time. All keyspaces of the file are opened with it; those made here get theirs in
/// the write transaction; those that another process made are opened when a snapshot first meets them, and
/// never while a write transaction of this process is open: such a snapshot is taken again, and then is of a
/// commit that the write transaction has met before.
final class Environment: @unchecked Sendable {
  /// Snapshots that may be open at once. Each takes a reader slot of the lock file, 64 bytes that are touched
  /// when they are first used.
  static let maximumReaders = 8_192
  /// Slots beyond those, for what the engine itself reads.
  static let reservedReaders = 16
  /// Commits after which the slots of dead processes are looked for: a system call for each other process that reads.
  static let commitsBetweenChecks = 64
  /// Handles: the keyspaces, the catalog, and husks that open snapshots may still read.
  static let maximumHandles = StorageLimits.maximumKeyspaces + 250

  let path: String
  let durability: Durability
  let isReadOnly: Bool
  let handle: OpaquePointer
  let usesLockFile: Bool
  /// Whether the lock file goes when the file is closed: one that is only read leaves nothing behind.
  private let removesLockFile: Bool
  let catalogHandle: MDB_dbi
  let queue = WriteQueue()
  let pool = SnapshotPool()
  private let forkGeneration: Int
  /// The last commit before this process could make one.
  private let transactionAtOpen: Int
  private let catalogState: Lock<CatalogState>
  /// A transaction found the map full: the next one grows it, when nobody reads.
  private let wantsLargerMap = Atomic<Bool>(false)

  private struct CatalogState: @unchecked Sendable {
    /// The newest commit whose catalog is known to be this one.
    var transaction: Int
    var catalog: Catalog
    /// Of every named database that this process has opened, husks included.
    var handles: [String: MDB_dbi]
    /// Counts openings of handles outside write transactions, which a write transaction begun meanwhile doesn't know.
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
    usesLockFile = opened.usesLockFile
    removesLockFile = options.isReadOnly && opened.usesLockFile && !hadLockFile
    catalogHandle = opened.catalogHandle
    // The first transaction makes the catalog, at the first opening: that is to be synced as well.
    transactionAtOpen = opened.transaction > 1 ? opened.transaction : 0
    catalogState = Lock(
      CatalogState(transaction: opened.transaction, catalog: opened.catalog, handles: opened.handles))
    pool.environment = self
  }

  /// The number of the last transaction that was committed, by any process.
  private var lastTransaction: Int {
    var info = MDB_envinfo()
    mdb_env_info(handle, &info)
    return info.me_last_txnid
  }

  // MARK: - Snapshots

  @inline(__always)
  func beginRead(upTo limit: Int = maximumReaders) throws -> LMDBReadTransaction {
    if ForkGuard.generation != forkGeneration { throw forked() }
    let snapshot = try pool.take(upTo: limit)
    let slot = snapshot.slot
    let result = mdb_txn_renew(slot.transaction)
    if result != 0 { try renewAgain(snapshot, result) }
    if mdb_txn_id(slot.transaction) != slot.catalogTransaction {
      do {
        try resolveCatalog(slot)
      } catch {
        mdb_txn_reset(slot.transaction)
        pool.giveBack(snapshot)
        throw error
      }
    }
    snapshot.open()
    return snapshot
  }

  /// A snapshot for the engine's own use, also when all others are taken.
  func beginOwnRead() throws -> LMDBReadTransaction {
    try beginRead(upTo: Self.maximumReaders + Self.reservedReaders)
  }

  @inline(never)
  private func renewAgain(_ snapshot: LMDBReadTransaction, _ failure: Int32) throws {
    do {
      let result = try withLargerMap(failure) { mdb_txn_renew(snapshot.slot.transaction) }
      if result != 0 { throw StorageError.lmdb(result, "a snapshot could not be begun", path: path) }
    } catch {
      pool.giveBack(snapshot)
      throw error
    }
  }

  /// Begins a snapshot again, by `begin`, after it has failed because another process has grown the file past this
  /// process's map: takes over that size, as often as it takes. The caller's one slot is at rest.
  func withLargerMap(_ failure: Int32, _ begin: () -> Int32) throws -> Int32 {
    var result = failure
    while result == MDB_MAP_RESIZED {
      // Others wait as well, each with a slot in hand, and none of them reads.
      try pool.waiting { try adoptLargerMap() }
      result = begin()
    }
    return result
  }

  /// Finds the catalog of a slot's snapshot, taking the snapshot again when it lacks handles.
  @inline(never)
  private func resolveCatalog(_ slot: SnapshotSlot) throws {
    // LMDB copies the handles at the beginning of a transaction, so a catalog is good for this snapshot only
    // if it was known before the snapshot was taken.
    var known = slot.catalog
    while true {
      let transaction = mdb_txn_id(slot.transaction)
      let catalog = try catalogState.withLock { try currentCatalog(slot.transaction, transaction, &$0) }
      if let catalog, catalog === known {
        slot.found(catalog, for: transaction)
        return
      }
      mdb_txn_reset(slot.transaction)
      // A commit of this process that isn't published yet: its thread is about to.
      if catalog == nil { sched_yield() }
      known = catalog
      let result = try withLargerMap(mdb_txn_renew(slot.transaction)) { mdb_txn_renew(slot.transaction) }
      if result != 0 { throw StorageError.lmdb(result, "a snapshot could not be begun", path: path) }
    }
  }

  /// The catalog of a snapshot if it is the current one; nil when the snapshot has to be taken again.
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

  /// Opens what another process has made. No write transaction of this process is open.
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
      // Handles opened in a transaction are the environment's once it commits.
      mdb_txn_commit(transaction)
      state.handles.merge(opened) { $1 }
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
  }

  /// Ends the snapshot of a transaction object that went away without `end()`.
  func recover(_ slot: SnapshotSlot) {
    mdb_txn_reset(slot.transaction)
    pool.giveBack(LMDBReadTransaction(slot, self))
  }

  // MARK: - Writing

  func beginWrite() throws -> LMDBWriteTransaction {
    if pool.isClosed { throw error(.closed, "the database is closed") }
    if wantsLargerMap.load(ordering: .relaxed) { growMap() }
    while true {
      // Under the lock: an opening that is going on counts already, and LMDB doesn't give its handles yet.
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

  /// The catalog that a write transaction begins with; nil when handles are to be opened before it.
  private func baseCatalog(
    _ transaction: OpaquePointer, _ openings: Int, _ state: inout CatalogState
  ) throws -> Catalog? {
    guard state.openings == openings else { return nil }
    let base = mdb_txn_id(transaction) - 1
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

  func commit(_ write: LMDBWriteTransaction) throws {
    let number = mdb_txn_id(write.transaction)
    if usesLockFile, number % Self.commitsBetweenChecks == 0 {
      // A snapshot of a process that died keeps all pages that are freed from being used again.
      var dead: Int32 = 0
      _ = mdb_reader_check(handle, &dead)
    }
    let result = mdb_txn_commit(write.transaction)
    catalogState.withLock { state in
      state.isWriting = false
      guard result == 0, write.hasWritten else { return }
      state.transaction = number
      if write.catalog !== state.catalog {
        state.catalog = write.catalog
        state.handles.merge(write.newHandles) { $1 }
      }
    }
    if result != 0 { throw write.failed(result, "a commit could not be written") }
  }

  func abort(_ write: LMDBWriteTransaction) {
    mdb_txn_abort(write.transaction)
    catalogState.withLock { $0.isWriting = false }
  }

  func knownHandle(_ name: String) -> MDB_dbi? { catalogState.withLock { $0.handles[name] } }

  /// Closes handles of husks, from within the write transaction, when no snapshot can read them.
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

  /// Doubles the map between transactions; not while a snapshot is open, whose map it would pull away.
  private func growMap() {
    _ = pool.whenIdle {
      let size = MapSize.current(of: handle) * 2
      guard MapSize.isAvailable(size), mdb_env_set_mapsize(handle, size) == 0 else { return }
      wantsLargerMap.store(false, ordering: .relaxed)
    }
  }

  /// Takes over the size that another process has grown the map to. The caller's slot counts as waiting.
  private func adoptLargerMap() throws {
    do {
      try queue.exclusively { try adoptLargerMapWhileWriterIsOut() }
    } catch let error as StorageError where error.code == .nestedWrite {
      throw StorageError.lmdb(MDB_MAP_RESIZED, "a snapshot could not be begun", path: path)
    }
  }

  /// Waits for open snapshots to end: new ones wait as well until the map has grown. Throws `mapFull` when one stays open.
  private func adoptLargerMapWhileWriterIsOut() throws {
    let start = ContinuousClock.now
    while mapIsTooSmall {
      let result = pool.whenNobodyReads { mdb_env_set_mapsize(handle, 0) }
      if let result {
        if result != 0 { throw StorageError.lmdb(result, "the map could not be enlarged", path: path) }
        continue
      }
      if ContinuousClock.now - start > patience {
        throw StorageError.lmdb(MDB_MAP_RESIZED, "the map could not be enlarged", path: path)
      }
      usleep(500)
    }
  }

  /// Whether the file has pages that the map doesn't reach.
  private var mapIsTooSmall: Bool {
    var info = MDB_envinfo()
    mdb_env_info(handle, &info)
    var statistics = MDB_stat()
    mdb_env_stat(handle, &statistics)
    return info.me_mapsize / Int(statistics.ms_psize) < info.me_last_pgno + 1
  }

  /// How long snapshots and writes wait for open snapshots when the map has to grow. Tests make it short.
  var patience: Duration {
    get { .milliseconds(patienceMilliseconds.load(ordering: .relaxed)) }
    set { patienceMilliseconds.store(Int(newValue / .milliseconds(1)), ordering: .relaxed) }
  }
  private let patienceMilliseconds = Atomic<Int>(5_000)

  // MARK: - Closing

  func close() throws {
    // A child has nothing to close: descriptors and locks are its parent's.
    if ForkGuard.generation != forkGeneration { return }
    try queue.exclusively {
      if pool.isClosed { return }
      guard pool.close() else {
        throw error(.inUse, "\(pool.openCount) snapshots are open; end them before closing the database")
      }
      // The last commit's meta page reaches the disk with the next commit's sync, which won't come. A sync of
      // nothing would cost as much as one of something.
      var result: Int32 = 0
      if durability == .normal, !isReadOnly, lastTransaction != transactionAtOpen {
        result = mdb_env_sync(handle, 1)
      }
      EnvironmentRegistry.remove(self) {
        mdb_env_close(handle)
        if removesLockFile { OpeningLock.removeLockFile(of: path) }
      }
      // It is closed all the same.
      if result != 0 { throw StorageError.lmdb(result, "the last commits could not be synced", path: path) }
    }
  }

  /// The engine is gone: closes, now or when the last snapshot ends.
  func abandon() {
    pool.isAbandoned.store(true, ordering: .relaxed)
    closeWhenIdle()
  }

  func closeWhenIdle() { try? close() }

  // MARK: - Checks and errors

  func checkProcess() throws {
    if ForkGuard.generation != forkGeneration { throw forked() }
  }

  @inline(never)
  func error(_ code: StorageError.Code, _ message: String) -> StorageError {
    StorageError(code, message, path: path)
  }

  /// Throws `invalidArgument` for a name that no keyspace can have.
  func checkName(_ name: String) throws {
    guard Catalog.isValid(name) else {
      throw error(
        .invalidArgument,
        "a keyspace's name is 1 to 64 of the ASCII letters, digits, '.', '-' and '_', not \"\(name)\"")
    }
  }

  @inline(never)
  func invalidKey(_ key: UnsafeRawBufferPointer, _ keyspace: Keyspace) -> StorageError {
    if keyspace.shape == .sequences {
      return error(
        .invalidKey,
        "keys of a keyspace of sequences are 8 bytes, big-endian and below 2^63; this one has \(key.count)")
    }
    return error(
      .invalidKey, "keys are 1 to \(StorageLimits.maximumKeyBytes) bytes; this one has \(key.count)")
  }

  @inline(never)
  func noSuchKeyspace(_ keyspace: Keyspace) -> StorageError {
    error(.noSuchKeyspace, "there is no keyspace number \(keyspace.number) in this transaction")
  }

  @inline(never)
  func valueTooLarge(_ count: Int) -> StorageError {
    error(
      .valueTooLarge, "values are at most \(StorageLimits.maximumValueBytes) bytes; this one has \(count)")
  }

  @inline(never)
  private func forked() -> StorageError {
    error(.unsupported, "this database was opened before a fork; open it anew in the child process")
  }

  @inline(never)
  private func lostCatalog() -> StorageError { error(.damaged, "the catalog has lost its state") }

  /// What a failure of a write means; a full map is remembered.
  func writeError(_ result: Int32, _ what: String) -> StorageError {
    if result == MDB_MAP_FULL {
      wantsLargerMap.store(true, ordering: .relaxed)
      return StorageError(
        .mapFull,
        "\(what): the map of \(MapSize.current(of: handle)) bytes is full; it is doubled before the next "
          + "write that no snapshot is open beside",
        path: path, engineCode: Int(result), engineMessage: String(cString: mdb_strerror(result)))
    }
    if result == EIO, FilePath.isFull(path) {
      return StorageError(
        .diskFull, what, path: path, engineCode: Int(result),
        engineMessage: "the write was cut short: no space is left, or the limit of file sizes is reached")
    }
    return .lmdb(result, what, path: path)
  }
}
