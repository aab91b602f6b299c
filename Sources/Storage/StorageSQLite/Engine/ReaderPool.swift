import CSQLite
import SQLiteLibrary
import Storage
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// How large the cache of a reader's connection is: the size in the options divided by the raw value. One reader has the
/// whole size and one has half of it. The others, opened when many snapshots are held at once, have an eighth.
enum CacheRank: Int, Comparable {
  case whole = 1
  case half = 2
  case eighth = 8

  /// Whether the connection keeps its cache, and stays open, while it is idle.
  var isLarge: Bool { self != .eighth }

  static func < (left: CacheRank, right: CacheRank) -> Bool { left.rawValue < right.rawValue }
}

/// The connections that hold snapshots. One is opened if none is idle, and is then kept for later snapshots.
final class ReaderPool: Sendable {
  /// The maximum number of open snapshots. Each one has a connection with two open files.
  static let maximumSnapshots = 2_500
  /// The maximum number of idle connections. Further ones are closed when their snapshots end. Opening one
  /// takes 20 µs per keyspace, because the library reads the definition of each table.
  static let keptIdle = 128
  /// The number of idle connections that keep their caches.
  static let cachedIdle = 16
  private struct State {
    /// The idle connections in the order of their caches. The largest is last and is taken first.
    var idle: [EngineConnection] = []
    var snapshots = 0
    var connections = 0
    /// The large caches that open connections have.
    var ranks: Set<CacheRank> = []
    var isClosed = false
    /// The number of the last round, and how many snapshots or single reads have ended in it.
    var lastRound: UInt64 = 0
    var ends = 0
    /// When the last one ended, in seconds since some time. Only outside of rounds.
    var lastEnd = 0.0
  }

  /// While reads follow each other, time is divided into rounds, in which idle readers keep their snapshots. A snapshot is given
  /// up at the end of its round, so that it holds up a checkpoint of another process no longer than this, in seconds.
  static let roundSeconds = 0.02
  /// The round; 0 outside of rounds. Changes under the lock.
  private let round = Atomic<UInt64>(0)
  private let timer: any CallTimer

  private let file: SQLiteFile
  private let still: StillFile?
  private let claim: OpenFiles.Claim
  private let cacheBytes: Int
  private let forks: UInt64
  private let state = Lock(State())
  /// The number of the engine in the versions of snapshots.
  let engineNumber = SnapshotVersion.newEngine()

  /// `first` is an open connection with a large cache, or nil. `timer` ends the rounds.
  init(
    _ file: SQLiteFile, _ claim: OpenFiles.Claim, _ still: StillFile?, cacheBytes: Int,
    first: EngineConnection?,
    timer: any CallTimer = SystemTimer()
  ) {
    self.timer = timer
    self.file = file
    self.claim = claim
    self.still = still
    self.cacheBytes = cacheBytes
    if let first {
      state.withLock { state in
        state.idle = [first]
        state.connections = 1
        state.ranks = [.whole]
      }
    }
    forks = csqlite_forks()
  }

  var snapshots: Int { state.withLock { $0.snapshots } }

  /// Takes a connection and begins a snapshot on it. The caller gives the connection back with `give`.
  ///
  /// - Parameters:
  ///   - isOwn: whether the engine itself needs the snapshot. It then ignores the limit of open snapshots.
  ///   - beginsSnapshot: false for a single statement, which needs no snapshot.
  func take(isOwn: Bool = false, beginsSnapshot: Bool = true) throws -> EngineConnection {
    guard let still else { return try take(isOwn, beginsSnapshot, nil) }
    let (connection, visit) = try still.connecting(upTo: StillFile.patience) { visit in
      try take(isOwn, beginsSnapshot, visit)
    }
    connection.visit = visit
    return connection
  }

  private func take(_ isOwn: Bool, _ beginsSnapshot: Bool, _ visit: StillFile.Visit?) throws
    -> EngineConnection
  {
    let (idle, rank): (EngineConnection?, CacheRank) = try state.withLock { state in
      guard !state.isClosed else {
        throw StorageError(.closed, "the database is closed and can't be read", path: file.path)
      }
      guard state.snapshots < Self.maximumSnapshots || isOwn else {
        throw StorageError(
          .tooManyReaders, "\(state.snapshots) snapshots are open, the maximum; end some of them first",
          path: file.path)
      }
      state.snapshots += 1
      if let connection = state.idle.popLast() { return (connection, connection.cacheRank) }
      state.connections += 1
      let rank = [.whole, .half].first { !state.ranks.contains($0) } ?? CacheRank.eighth
      if rank.isLarge { state.ranks.insert(rank) }
      return (nil, rank)
    }
    let connection: EngineConnection
    if let idle, idle.visit?.generation == visit?.generation {
      connection = idle
    } else {
      // The cache of the idle connection is of an older state of the file.
      idle?.close()
      do {
        connection = try open(rank, visit)
      } catch {
        state.withLock { state in
          state.snapshots -= 1
          state.connections -= 1
          if rank.isLarge { state.ranks.remove(rank) }
        }
        throw error
      }
    }
    if connection.state.pointee.isReading {
      if connection.kept.isCurrent {
        connection.kept.reuse()
        return connection
      }
      connection.kept.isOutdated()
      connection.endSnapshot()
    }
    let keeps = connection.kept.decide(visit == nil ? round.load(ordering: .relaxed) : 0)
    guard beginsSnapshot || keeps else { return connection }
    do {
      try storing("beginning a snapshot", file.path) { try connection.beginSnapshot() }
      if keeps { try connection.kept.findIndex(connection.connection) }
      return connection
    } catch {
      connection.visit = nil
      give(connection)
      throw error
    }
  }

  /// Ends the snapshot of a connection and takes the connection back.
  func give(_ connection: EngineConnection) {
    guard csqlite_forks() == forks else { return connection.abandon() }
    let keeps = canKeep(connection)
    if keeps { connection.endCursors() } else { connection.endSnapshot() }
    if let still, let visit = connection.visit { still.leave(visit) }
    // Other threads may give connections back at the same time. The number of kept caches is then off by a
    // few.
    if !connection.cacheRank.isLarge, state.withLock({ $0.idle.count >= Self.cachedIdle }) {
      _ = csqlite_db_release_memory(connection.functions, connection.connection.handle)
    }
    let isKept = state.withLock { state in
      state.snapshots -= 1
      state.ends &+= 1
      if round.load(ordering: .relaxed) == 0, still == nil { considerRounds(&state) }
      // The round may have ended meanwhile.
      if keeps, !connection.kept.canStay(in: round.load(ordering: .relaxed)) { connection.endSnapshot() }
      guard !state.isClosed, state.idle.count < Self.keptIdle || connection.cacheRank.isLarge else {
        state.connections -= 1
        if connection.cacheRank.isLarge { state.ranks.remove(connection.cacheRank) }
        return false
      }
      let place = state.idle.firstIndex { $0.cacheRank <= connection.cacheRank } ?? state.idle.endIndex
      state.idle.insert(connection, at: place)
      return true
    }
    if !isKept { connection.close() }
  }

  // MARK: Kept snapshots

  private func canKeep(_ connection: EngineConnection) -> Bool {
    let state = connection.state.pointee
    return state.isReading && !state.hasFailed && connection.kept.canStay(in: round.load(ordering: .relaxed))
      && (connection.cacheRank.isLarge || self.state.withLock { $0.idle.count < Self.cachedIdle })
  }

  /// Begins rounds if reads follow each other.
  private func considerRounds(_ state: inout State) {
    let now = Self.coarseTime
    defer { state.lastEnd = now }
    guard now - state.lastEnd < Self.roundSeconds, !state.isClosed else { return }
    nextRound(&state)
  }

  /// Seconds since some time, to some milliseconds.
  static var coarseTime: Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }

  private func nextRound(_ state: inout State) {
    state.lastRound += 1
    state.ends = 0
    round.store(state.lastRound, ordering: .relaxed)
    timer.schedule(after: Self.roundSeconds) { [weak self] in self?.endRound() }
  }

  private func endRound() {
    state.withLock { state in
      giveUpKept(state)
      if state.ends > 0, !state.isClosed { nextRound(&state) } else { round.store(0, ordering: .relaxed) }
    }
  }

  /// Ends the snapshots that idle connections keep, and lets no other one that is open now be kept. Any thread may call it.
  func giveUpKept() {
    state.withLock { state in
      giveUpKept(state)
      guard round.load(ordering: .relaxed) != 0 else { return }
      state.lastRound += 1
      round.store(state.lastRound, ordering: .relaxed)
    }
  }

  private func giveUpKept(_ state: borrowing State) {
    for connection in state.idle where connection.state.pointee.isReading { connection.endSnapshot() }
  }

  /// Closes the idle connections and refuses new snapshots. Throws `inUse` while snapshots are open.
  func close() throws {
    let idle = try state.withLock { state in
      guard state.snapshots == 0 else {
        throw StorageError(
          .inUse, "the database can't be closed: \(state.snapshots) snapshots are open", path: file.path)
      }
      state.isClosed = true
      defer { state.idle = [] }
      return state.idle
    }
    for connection in idle { connection.close() }
  }

  /// Closes the idle connections of an engine that nobody references any more. Remaining snapshots close
  /// their connections when they end.
  func abandon() {
    let idle = state.withLock { state in
      state.isClosed = true
      defer { state.idle = [] }
      return state.idle
    }
    let isForked = csqlite_forks() != forks
    for connection in idle { isForked ? connection.abandon() : connection.close() }
  }

  private func open(_ rank: CacheRank, _ visit: StillFile.Visit?) throws -> EngineConnection {
    do {
      return try storing("opening a reader", file.path) { try connect(rank, visit) }
    } catch let error as StorageError where error.code == .tooManyReaders && Self.raiseFileLimit() {
      return try storing("opening a reader", file.path) { try connect(rank, visit) }
    }
  }

  private func connect(_ rank: CacheRank, _ visit: StillFile.Visit?) throws -> EngineConnection {
    var file = file
    if let visit { file.access = visit.access }
    let connection = try claim.opening(file.path) {
      try file.connect(cacheBytes: cacheBytes / rank.rawValue, for: .reading)
    } close: {
      $0.close()
    }
    do {
      try Self.prepare(connection)
      return try EngineConnection(
        connection, path: file.path, places: file.places, cacheRank: rank)
    } catch {
      connection.close()
      throw error
    }
  }

  /// Makes a connection read-only.
  static func prepare(_ connection: Connection) throws { try connection.execute("PRAGMA query_only = 1") }

  /// Raises the process's limit of open files to the maximum that the system allows. Returns false if the
  /// limit is already there. Each snapshot has two open files.
  private static func raiseFileLimit() -> Bool {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max
    else { return false }
    limit.rlim_cur = limit.rlim_max
    return setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
  }
}
