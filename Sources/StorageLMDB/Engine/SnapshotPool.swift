import CLMDB
import Glibc
import Storage
import Synchronization

/// One of LMDB's read transactions with its reader slot, begun and reset many times over.
///
/// Owned by one `LMDBReadTransaction` at a time, so nothing here needs a lock.
final class SnapshotSlot {
  let transaction: OpaquePointer
  /// The catalog of the snapshot, and the transaction it was found for: LMDB's numbers start at 1 with the
  /// catalog's own making.
  private(set) var catalog: Catalog?
  @exclusivity(unchecked) private(set) var catalogTransaction = -1
  /// The catalog's, or an empty one.
  @exclusivity(unchecked) private(set) var table = HandleTable.none
  /// Counts the snapshots taken with this slot: a cached cursor of an earlier one has to be renewed.
  @exclusivity(unchecked) var serial: UInt = 0

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

  /// A cursor to use alone until it is given back.
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

/// Read transactions at rest, to be begun again: a reset one keeps its reader slot and holds no pages.
///
/// Each thread is led to one of a few places by its own address; taking from and giving to a place is one
/// atomic exchange. What doesn't fit there goes to a list under a lock. All slots that exist are either here
/// or in the hands of one open snapshot, which is how `close` and a change of the map know that nobody reads.
final class SnapshotPool: @unchecked Sendable {
  private static let placeCount = 16
  /// How many may rest in the list. Each resting one takes a reader slot from other processes.
  private static let maximumResting = 64

  /// One place, alone in its cache line.
  private struct Place: ~Copyable {
    let resting = Atomic<UnsafeRawPointer?>(nil)
    let padding: (Int, Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0, 0)
  }

  /// What rests has one owner, the state, which the lock guards.
  private struct State: @unchecked Sendable {
    var resting: [LMDBReadTransaction] = []
    var total = 0
    /// Slots in the hands of threads that wait for a larger map: they could not begin, so they don't read.
    var waiting = 0
    var isClosed = false
  }

  private let places: UnsafeMutablePointer<Place>
  private let state = Lock(State())
  /// Set once, before anybody else has the environment.
  unowned(unsafe) var environment: Environment!
  let isAbandoned = Atomic<Bool>(false)
  /// The state's, to be asked without the lock.
  private let hasClosed = Atomic<Bool>(false)

  init() {
    places = .allocate(capacity: Self.placeCount)
    for index in 0..<Self.placeCount { (places + index).initialize(to: Place()) }
  }

  deinit {
    places.deinitialize(count: Self.placeCount)
    places.deallocate()
  }

  /// The place of this thread: thread blocks lie a stack apart, so the bits above a page tell them apart.
  @inline(__always)
  private var place: UnsafeMutablePointer<Place> {
    places + Int((UInt(pthread_self()) &>> 12) & UInt(Self.placeCount - 1))
  }

  /// A transaction that nobody else has a reference to, at rest.
  @inline(__always)
  func take(upTo limit: Int) throws -> LMDBReadTransaction {
    guard let resting = place.pointee.resting.exchange(nil, ordering: .acquiring) else {
      return try takeSlowly(upTo: limit)
    }
    return Self.alone(Unmanaged<LMDBReadTransaction>.fromOpaque(resting).takeRetainedValue())
  }

  /// Someone may hold on to an ended transaction and end it again, so an object is used again only when
  /// nobody can; else its slot goes on under a new one.
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
    var transaction: OpaquePointer?
    var result = mdb_txn_begin(environment.handle, nil, UInt32(MDB_RDONLY), &transaction)
    if result == MDB_READERS_FULL {
      // Slots of processes that died, and those that rest in other threads' places.
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
      throw StorageError.lmdb(result, "a snapshot could not be begun", path: environment.path)
    }
    mdb_txn_reset(transaction)
    return SnapshotSlot(transaction)
  }

  private func tooManyReaders(_ result: Int32) -> StorageError {
    StorageError(
      .tooManyReaders,
      "all \(Environment.maximumReaders) snapshots of this file are taken; end some before beginning others",
      path: environment.path, engineCode: Int(result), engineMessage: String(cString: mdb_strerror(result)))
  }

  /// Takes back an ended transaction; its slot is at rest.
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

  /// How many snapshots are open: all slots but those at rest.
  var openCount: Int {
    state.withLock { state in
      var open = state.total - state.resting.count
      for index in 0..<Self.placeCount where places[index].resting.load(ordering: .relaxed) != nil {
        open -= 1
      }
      return max(0, open)
    }
  }

  /// Frees the reader slots of what rests.
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

  /// Runs `body` while no snapshot is open and none can begin. Nil, and not run, when one is open.
  func whenIdle<Result: Sendable>(_ body: () throws -> Result) rethrows -> Result? {
    try state.withLock { state in
      gather(&state)
      guard state.resting.count == state.total else { return nil }
      return try body()
    }
  }

  /// Runs `body` while the caller's slot, whose transaction could not begin, counts as one that waits for a larger map.
  func waiting(_ body: () throws -> Void) rethrows {
    state.withLock { $0.waiting += 1 }
    // Under the lock: the map doesn't change any more when this returns, so the caller may begin.
    defer { state.withLock { $0.waiting -= 1 } }
    try body()
  }

  /// Runs `body` while no snapshot is open but such as can't begin before the map has grown. Nil, and not run, when one is
  /// open.
  func whenNobodyReads<Result: Sendable>(_ body: () throws -> Result) rethrows -> Result? {
    try state.withLock { state in
      gather(&state)
      guard state.resting.count + state.waiting == state.total else {
        return nil
      }
      return try body()
    }
  }

  /// Ends all slots, unless a snapshot is open: then false. True also when that was done before.
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
