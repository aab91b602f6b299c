import CLMDB
import Glibc
import Storage
import Synchronization

/// A read transaction of LMDB with its reader slot. It is begun and reset many times.
///
/// One `LMDBReadTransaction` at a time owns it, so it needs no lock.
final class SnapshotSlot {
  let transaction: OpaquePointer
  /// The catalog of the snapshot. `catalogTransaction` is the transaction that it was found for. -1 is no
  /// transaction: LMDB's numbers start at 1, with the creation of the catalog.
  private(set) var catalog: Catalog?
  @exclusivity(unchecked) private(set) var catalogTransaction = -1
  /// The handle table of the catalog, or an empty one.
  @exclusivity(unchecked) private(set) var table = HandleTable.none
  /// The number of snapshots taken with this slot. A cached cursor of an earlier snapshot must be renewed.
  @exclusivity(unchecked) var serial: UInt = 0
  /// The transaction that the snapshot has marked, if the environment has marks.
  @exclusivity(unchecked) var mark = -1

  private struct CachedCursor {
    var handle: OpaquePointer?
    var database: MDB_dbi = 0
    var serial: UInt = 0
  }
  private static let cacheSize = 8
  private let cache: UnsafeMutablePointer<CachedCursor>
  private var nextVictim = 0

  init(_ transaction: OpaquePointer) {
    self.transaction = transaction
    cache = .allocate(capacity: Self.cacheSize)
    cache.initialize(repeating: CachedCursor(), count: Self.cacheSize)
  }

  deinit { cache.deallocate() }

  func found(_ catalog: Catalog, for transaction: Int) {
    self.catalog = catalog
    table = catalog.table
    catalogTransaction = transaction
  }

  /// Ends LMDB's transaction and frees its reader slot.
  func destroy() {
    for index in 0..<Self.cacheSize {
      if let cursor = cache[index].handle { mdb_cursor_close(cursor) }
      cache[index].handle = nil
    }
    mdb_txn_abort(transaction)
  }

  /// Takes a cursor for exclusive use. Give it back with `giveBack`.
  func takeCursor(_ database: MDB_dbi, _ cursor: inout OpaquePointer?) -> Int32 {
    for index in 0..<Self.cacheSize where cache[index].database == database {
      guard let cached = cache[index].handle else { continue }
      cache[index].handle = nil
      if cache[index].serial != serial {
        let result = mdb_cursor_renew(transaction, cached)
        guard result == 0 else {
          mdb_cursor_close(cached)
          return result
        }
      }
      cursor = cached
      return 0
    }
    return mdb_cursor_open(transaction, database, &cursor)
  }

  func giveBack(_ cursor: OpaquePointer, _ database: MDB_dbi) {
    var place = -1
    for index in 0..<Self.cacheSize where cache[index].handle == nil {
      place = index
      if cache[index].database == database { break }
    }
    if place < 0 {
      place = nextVictim
      nextVictim = (nextVictim + 1) % Self.cacheSize
      if let victim = cache[place].handle { mdb_cursor_close(victim) }
    }
    cache[place] = CachedCursor(handle: cursor, database: database, serial: serial)
  }
}

/// The pool of reset read transactions. A reset transaction keeps its reader slot but holds no pages.
///
/// Each thread has one of a few places, chosen by the address of the thread. Taking from a place and giving
/// back to it is one atomic exchange. Transactions that don't fit go to a list under a lock. Every existing
/// slot is either in the pool or in one open snapshot. This is how `close` and a change of the map know that
/// nobody reads.
final class SnapshotPool: @unchecked Sendable {
  private static let placeCount = 16
  /// The maximum length of the list. Each resting transaction takes a reader slot from other processes.
  private static let maximumResting = 64

  /// One place in a cache line of its own.
  private struct Place: ~Copyable {
    let resting = Atomic<UnsafeRawPointer?>(nil)
    let padding: (Int, Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0, 0)
  }

  /// Only this state owns the resting transactions. The lock guards it.
  private struct State: @unchecked Sendable {
    var resting: [LMDBReadTransaction] = []
    var total = 0
    /// The number of slots held by threads that wait for a larger map. Their snapshots couldn't begin, so
    /// they don't read.
    var waiting = 0
    var isClosed = false
  }

  private let places: UnsafeMutablePointer<Place>
  private let state = Lock(State())
  /// Set once, before any other code uses the environment.
  unowned(unsafe) var environment: Environment!
  let isAbandoned = Atomic<Bool>(false)
  /// A copy of `State.isClosed` that is read without the lock.
  private let hasClosed = Atomic<Bool>(false)

  init() {
    places = .allocate(capacity: Self.placeCount)
    for index in 0..<Self.placeCount { (places + index).initialize(to: Place()) }
  }

  deinit {
    places.deinitialize(count: Self.placeCount)
    places.deallocate()
  }

  /// The place of this thread. Thread control blocks are a stack apart, so the address bits above a page tell
  /// threads apart.
  @inline(__always)
  private var place: UnsafeMutablePointer<Place> {
    places + Int((UInt(pthread_self()) &>> 12) & UInt(Self.placeCount - 1))
  }

  /// Takes a resting transaction that nobody else references.
  @inline(__always)
  func take(upTo limit: Int) throws -> LMDBReadTransaction {
    guard let resting = place.pointee.resting.exchange(nil, ordering: .acquiring) else {
      return try takeSlowly(upTo: limit)
    }
    return Self.alone(Unmanaged<LMDBReadTransaction>.fromOpaque(resting).takeRetainedValue())
  }

  /// Returns a transaction object that nobody else references. A caller may keep an ended transaction and end
  /// it again. The slot then gets a new object.
  @inline(__always)
  private static func alone(_ transaction: consuming LMDBReadTransaction) -> LMDBReadTransaction {
    var transaction = transaction
    if isKnownUniquelyReferenced(&transaction) { return transaction }
    return LMDBReadTransaction(transaction.slot, transaction.environment)
  }

  @inline(never)
  private func takeSlowly(upTo limit: Int) throws -> LMDBReadTransaction {
    let resting: LMDBReadTransaction? = try state.withLock { state in
      if state.isClosed { throw environment.error(.closed, "the database is closed") }
      if let resting = state.resting.popLast() { return resting }
      if state.total >= limit {
        gather(&state)
        guard let resting = state.resting.popLast() else { throw tooManyReaders(MDB_READERS_FULL) }
        return resting
      }
      state.total += 1
      return nil
    }
    if let resting { return Self.alone(resting) }
    do {
      return LMDBReadTransaction(try makeSlot(), environment)
    } catch {
      state.withLock { $0.total -= 1 }
      throw error
    }
  }

  private func makeSlot() throws -> SnapshotSlot {
    try environment.room?.makeRoom(environment.handle)
    var transaction: OpaquePointer?
    var result = mdb_txn_begin(environment.handle, nil, UInt32(MDB_RDONLY), &transaction)
    if result == MDB_READERS_FULL {
      // Frees the slots of dead processes and those that rest in other threads' places.
      var dead: Int32 = 0
      _ = mdb_reader_check(environment.handle, &dead)
      releaseResting()
      result = mdb_txn_begin(environment.handle, nil, UInt32(MDB_RDONLY), &transaction)
    }
    result = try environment.withLargerMap(result) {
      mdb_txn_begin(environment.handle, nil, UInt32(MDB_RDONLY), &transaction)
    }
    guard result == 0, let transaction else {
      if result == MDB_READERS_FULL { throw tooManyReaders(result) }
      throw StorageError.lmdb(result, "a snapshot could not be started", path: environment.path)
    }
    mdb_txn_reset(transaction)
    return SnapshotSlot(transaction)
  }

  private func tooManyReaders(_ result: Int32) -> StorageError {
    StorageError(
      .tooManyReaders,
      "\(Environment.maximumReaders) snapshots of this file are open, the maximum; end some of them first",
      path: environment.path, engineCode: Int(result), engineMessage: String(cString: mdb_strerror(result)))
  }

  /// Takes back an ended transaction, whose slot has been reset.
  @inline(__always)
  func giveBack(_ transaction: LMDBReadTransaction) {
    let retained = Unmanaged.passRetained(transaction)
    let (given, _) = place.pointee.resting.compareExchange(
      expected: nil, desired: UnsafeRawPointer(retained.toOpaque()), successOrdering: .releasing,
      failureOrdering: .relaxed)
    if !given {
      retained.release()
      giveBackSlowly(transaction)
    }
    if isAbandoned.load(ordering: .relaxed) { environment.closeWhenIdle() }
  }

  @inline(never)
  private func giveBackSlowly(_ transaction: LMDBReadTransaction) {
    let isKept = state.withLock { state in
      guard state.resting.count < Self.maximumResting else { return false }
      state.resting.append(transaction)
      return true
    }
    if isKept { return }
    transaction.slot.destroy()
    state.withLock { $0.total -= 1 }
  }

  /// The number of open snapshots: all slots except the resting ones.
  var openCount: Int {
    state.withLock { state in
      var open = state.total - state.resting.count
      for index in 0..<Self.placeCount where places[index].resting.load(ordering: .relaxed) != nil {
        open -= 1
      }
      return max(0, open)
    }
  }

  /// Frees the reader slots of all resting transactions.
  private func releaseResting() {
    let released = state.withLock { state in
      gather(&state)
      let resting = state.resting
      state.resting = []
      state.total -= resting.count
      return resting.map { UncheckedTransaction(value: $0) }
    }
    for transaction in released { transaction.value.slot.destroy() }
  }

  private struct UncheckedTransaction: @unchecked Sendable { let value: LMDBReadTransaction }

  private func gather(_ state: inout State) {
    for index in 0..<Self.placeCount {
      guard let resting = places[index].resting.exchange(nil, ordering: .acquiring) else { continue }
      state.resting.append(Unmanaged<LMDBReadTransaction>.fromOpaque(resting).takeRetainedValue())
    }
  }

  /// Runs `body` while no snapshot is open and none can begin. Returns nil without running it if one is open.
  func whenIdle<Result: Sendable>(_ body: () throws -> Result) rethrows -> Result? {
    try state.withLock { state in
      gather(&state)
      guard state.resting.count == state.total else { return nil }
      return try body()
    }
  }

  /// Runs `body` while the caller's slot counts as waiting for a larger map. The slot's transaction couldn't
  /// begin.
  func waiting(_ body: () throws -> Void) rethrows {
    state.withLock { $0.waiting += 1 }
    // Under the lock, so that the map no longer changes when this returns. The caller may then begin.
    defer { state.withLock { $0.waiting -= 1 } }
    try body()
  }

  /// Runs `body` while nobody reads. Snapshots that wait for a larger map may exist. Returns nil without
  /// running it if another snapshot is open.
  func whenNobodyReads<Result: Sendable>(_ body: () throws -> Result) rethrows -> Result? {
    try state.withLock { state in
      gather(&state)
      guard state.resting.count + state.waiting == state.total else {
        return nil
      }
      return try body()
    }
  }

  /// Destroys all slots. Returns false if a snapshot is open, and true if the pool is closed now or was
  /// closed before.
  func close() -> Bool {
    state.withLock { state in
      if state.isClosed { return true }
      gather(&state)
      guard state.resting.count == state.total else { return false }
      for transaction in state.resting { transaction.slot.destroy() }
      state.resting = []
      state.total = 0
      state.isClosed = true
      hasClosed.store(true, ordering: .releasing)
      return true
    }
  }

  var isClosed: Bool { hasClosed.load(ordering: .acquiring) }
}
