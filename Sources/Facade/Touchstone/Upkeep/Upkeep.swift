import Documents
import Logs
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The background work of an open database: purges expired documents, and compacts by its policy.
///
/// A thread sleeps until the next document expires. There is no such thread if no document expires; then a timer looks for expirations that
/// another process has set.
final class Upkeep: DocumentUpkeep {
  /// The delay after a failure, such as a full disk.
  private static let secondsAfterFailure = 60.0
  /// How long another process gets for the same work, in seconds.
  private static let secondsForOthers = 5.0
  /// The longest sleep, in seconds (30 years). A timer can't be set further ahead.
  private static let longestSleep = 1e9
  /// The longest sleep before an expiration, in seconds: the system's clock may be set meanwhile, or another process may set an earlier one.
  private static let longestSleepOfClock = 60.0

  /// Its jobs only start other work.
  private static let later = SystemTimer()

  private struct State {
    var isClosed = false
    var isTiming = false
    /// When the timer's thread wakes up, in milliseconds since 1970.
    var wakes = Int64.max
    var isLooking = false
    var looksAgain = false
    /// The next look for expirations, and the start of what earlier opens left.
    var nextLook: TimerToken?
    var start: TimerToken?
  }

  private let state = Lock(State())
  private let alarm = CountingSemaphore()
  private let timer = Workers()
  private let compactor = Workers()
  private let store: DocumentStore
  private let policy: CompactionPolicy
  /// The path that log entries name.
  private let path: String
  /// Runs a body unless another process does the same work, and returns whether it ran.
  private let inTurn: @Sendable (_ body: () throws -> Void) throws -> Bool
  private let makeFileSmaller: @Sendable () throws -> Void
  private let collectBlobs: @Sendable () throws -> Void
  /// `DocumentStore.removedBodyCount` when blobs were last collected. Used only by `look()`.
  private nonisolated(unsafe) var removedAtCollection: UInt64 = 0

  init(
    _ store: DocumentStore, _ policy: CompactionPolicy, path: String,
    inTurn: @escaping @Sendable (_ body: () throws -> Void) throws -> Bool,
    makeFileSmaller: @escaping @Sendable () throws -> Void,
    collectBlobs: @escaping @Sendable () throws -> Void
  ) {
    self.store = store
    self.policy = policy
    self.path = path
    self.inTurn = inTurn
    self.makeFileSmaller = makeFileSmaller
    self.collectBlobs = collectBlobs
  }

  /// Starts the work, and purges what expired while the database is closed.
  func start() throws {
    store.upkeep = self
    if try store.expirationCount > 0 { expirationWasSet(.min) }
    lookLater()
    // Work that earlier opens left. It starts later, because many opens are short.
    if policy.freePages != nil, fileBytes >= policy.minimumFreeBytes {
      let seconds = min(max(0, policy.quietSeconds), Upkeep.longestSleep)
      keep(\.start, Upkeep.later.schedule(after: seconds) { [weak self] in self?.manyChangesWereMade() })
    }
  }

  /// The size of the engine's file in bytes; 0 if there is none.
  private var fileBytes: Int { FileSize.of(store.engine.location) }

  /// Ends the work. Called after the engine has been closed.
  func close() {
    let tokens = state.withLock { state in
      state.isClosed = true
      return [state.nextLook.take(), state.start.take()]
    }
    for token in tokens { token?.cancel() }
    alarm.signal()
  }

  /// Keeps a token until the database is closed.
  private func keep(_ place: WritableKeyPath<State, TimerToken?>, _ token: TimerToken) {
    let isClosed = state.withLock { state in
      state[keyPath: place] = token
      return state.isClosed
    }
    if isClosed { token.cancel() }
  }

  /// Milliseconds since 1970.
  static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  // MARK: Expiration

  private func lookLater() {
    let token = Upkeep.later.schedule(after: Upkeep.longestSleepOfClock) { [weak self] in
      guard let self, !state.withLock({ $0.isClosed }) else { return }
      timer.enqueue { [weak self] in self?.lookForExpirations() }
      lookLater()
    }
    keep(\.nextLook, token)
  }

  /// Begins to wait for expirations that another process has set.
  func lookForExpirations() {
    do {
      let first = try store.inBackground { try store.expirations(limit: 1).first }
      if let first { expirationWasSet(first.milliseconds) }
    } catch { note(error, "can't look for expired documents") }
  }

  func expirationWasSet(_ milliseconds: Int64) {
    let (starts, wakes) = state.withLock { state in
      guard !state.isClosed, milliseconds < state.wakes else { return (false, false) }
      state.wakes = milliseconds
      defer { state.isTiming = true }
      return (!state.isTiming, state.isTiming)
    }
    if starts { timer.enqueue { self.keepTime() } }
    if wakes { alarm.signal() }
  }

  private func keepTime() {
    while true {
      var sleep = Upkeep.secondsAfterFailure
      var next: Int64?
      do {
        // Expirations set from here on signal the alarm.
        state.withLock { $0.wakes = .max }
        let isDone = try purgeExpired()
        next = try store.inBackground { try store.expirations(limit: 1).first?.milliseconds }
        guard let next else {
          let isOver = state.withLock { state in
            // An expiration may have been set in the meantime.
            guard state.isClosed || state.wakes == .max else { return false }
            state.isTiming = false
            return true
          }
          if isOver { return }
          continue
        }
        sleep = min(max(0, Double(next) / 1000 - Double(Upkeep.now) / 1000), Upkeep.longestSleepOfClock)
        if !isDone { sleep = max(sleep, Upkeep.secondsForOthers) }
      } catch {
        // The database was closed, or the loop tries again.
        note(error, "can't purge expired documents")
      }
      let isClosed = state.withLock { state in
        if let next { state.wakes = min(state.wakes, next) }
        return state.isClosed
      }
      if isClosed { return }
      if sleep > 0 { _ = alarm.wait(seconds: sleep) }
    }
  }

  /// Purges what has expired. Returns false if another process is at it.
  private func purgeExpired() throws -> Bool {
    let now = Upkeep.now
    let due = try store.inBackground { try store.expirations(limit: 1).first?.milliseconds }
    guard let due, due <= now else { return true }
    return try inTurn { try purgeExpired(at: now) }
  }

  private func purgeExpired(at now: Int64) throws {
    // One chunk at a time, so that closing waits for at most one.
    while !state.withLock({ $0.isClosed }) {
      let due = try store.inBackground { try store.expirations(limit: 1).first?.milliseconds }
      guard let due, due <= now else { return }
      let count = try store.inBackground { try store.purgeExpiredChunk(at: now) }
      log("purged \(count) expired documents")
    }
  }

  // MARK: Compaction

  func manyChangesWereMade() {
    guard policy.replacedBodies != nil || policy.freePages != nil || policy.collectsBlobs else { return }
    let starts = state.withLock { state in
      guard !state.isClosed else { return false }
      guard !state.isLooking else {
        state.looksAgain = true
        return false
      }
      state.isLooking = true
      return true
    }
    if starts { compactor.enqueue { self.look() } }
  }

  /// Waits until the work requested so far is done. For tests.
  func waitForLooks() {
    let done = CountingSemaphore()
    compactor.enqueue { done.signal() }
    done.wait()
  }

  private func look() {
    repeat {
      state.withLock { $0.looksAgain = false }
      // After a failure (database closed or open in another process, disk full) the next look tries again.
      // What another process does now, it does for all.
      attempt("can't work in the background") {
        _ = try inTurn {
          attempt("can't drop bodies of replaced revisions", dropReplacedBodies)
          attempt("can't make the file smaller", makeSmaller)
          attempt("can't remove unused blobs", removeBlobs)
        }
      }
    } while state.withLock { state in
      state.isLooking = state.looksAgain && !state.isClosed
      return state.isLooking
    }
  }

  private func attempt(_ failure: String, _ body: () throws -> Void) {
    do { try body() } catch { note(error, failure) }
  }

  private func note(_ error: any Error, _ what: String) {
    let code = (error as? DatabaseError)?.code
    let isExpected = code == .closed || code == .inUse
    Log.write(
      isExpected ? .verbose : LogText.level(of: error), .database, path, "\(what): \(LogText.of(error))")
  }

  private func log(_ text: String) { Log.write(.verbose, .database, path, text) }

  private func dropReplacedBodies() throws {
    guard let share = policy.replacedBodies else { return }
    let (counts, last) = try store.inBackground { (try store.bodyCounts(), try store.lastSequence) }
    guard Double(counts.replaced) > share * Double(counts.replaced + counts.current),
      last > UInt64(policy.keepsLatestSequences)
    else { return }
    let end = last - UInt64(policy.keepsLatestSequences)
    while !state.withLock({ $0.isClosed }) {
      let count = try store.inBackground { try store.dropReplacedBodies(upTo: end, limit: 1_000) }
      guard count > 0 else { return }
      log("dropped \(count) bodies of replaced revisions")
    }
  }

  private func makeSmaller() throws {
    guard let share = policy.freePages else { return }
    while true {
      let (statistics, before) = try store.inBackground {
        (try store.engine.maintenance.statistics(), try self.progress)
      }
      let free = statistics.freePages
      guard Double(free) > share * Double(statistics.totalPages),
        free * statistics.pageBytes >= policy.minimumFreeBytes,
        (statistics.totalPages - free) * statistics.pageBytes <= policy.maximumCopiedBytes
      else { return }
      if try isQuiet(since: before) { return try makeFileSmaller() }
      if state.withLock({ $0.isClosed || $0.looksAgain }) { return }
    }
  }

  /// The progress of writers. Purges and dropped bodies take no sequence.
  private var progress: Progress {
    get throws { Progress(sequence: try store.lastSequence, removed: store.removedBodyCount) }
  }

  /// The progress of writers.
  private struct Progress: Equatable {
    let sequence, removed: UInt64
  }

  /// Removes unused blobs if enough bodies were removed since the last time. Finding them means reading all
  /// other bodies.
  private func removeBlobs() throws {
    let removed = store.removedBodyCount
    guard policy.collectsBlobs, removed > removedAtCollection else { return }
    let counts = try store.inBackground { try store.bodyCounts() }
    guard (removed - removedAtCollection) * 8 >= UInt64(counts.current + counts.replaced) else { return }
    try collectBlobs()
    log("removed unused blobs")
    removedAtCollection = removed
  }

  /// Waits for the quiet period, and returns whether nothing was written in it.
  private func isQuiet(since before: Progress) throws -> Bool {
    var waited = 0.0
    while waited < policy.quietSeconds {
      guard !state.withLock({ $0.isClosed }) else { return false }
      let step = min(0.1, policy.quietSeconds - waited)
      usleep(UInt32(step * 1e6))
      waited += step
    }
    return try store.inBackground { try self.progress } == before
  }
}
