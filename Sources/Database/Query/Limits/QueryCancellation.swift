import Dispatch
import Storage
import Synchronization

/// Stops queries, from another thread or after a time limit.
///
/// ```swift
/// let cancellation = QueryCancellation(timeLimit: .seconds(5))
/// let rows = try query.run(cancellation: cancellation)     // throws `timedOut` after five seconds
/// ```
///
/// Each run that uses it soon throws `cancelled` or `timedOut`. Runs check between rows. Within a row they
/// check between the items of ANY and EVERY, during LIKE and regular expressions, and between the comparisons
/// of a sort.
public final class QueryCancellation: Sendable {
  private enum State: UInt8 {
    case running, cancelled, timedOut
    /// The cancellation that it belongs to ended.
    case endedByParent
  }

  private let state = Atomic<UInt8>(State.running.rawValue)
  private let timeLimit: Duration?
  /// The cancellations that end with this one. Each belongs to a run in progress. Guarded by `family`.
  private nonisolated(unsafe) var children: [ObjectIdentifier: QueryCancellation] = [:]
  /// The one whose end ends this one. Guarded by `family`.
  private nonisolated(unsafe) var parent: QueryCancellation?
  /// One lock for all, because few cancellations have children, and each run makes a cancellation.
  private static let family = Lock(())

  /// Creates a cancellation without a time limit.
  public init() { timeLimit = nil }

  /// Creates a cancellation that stops its queries after `timeLimit`, counted from now.
  public init(timeLimit: Duration) {
    self.timeLimit = timeLimit
    Deadlines.shared.add(self, after: timeLimit)
  }

  deinit { if timeLimit != nil { Deadlines.shared.remove(ObjectIdentifier(self)) } }

  /// Stops the queries. This can't be undone.
  public func cancel() { end(.cancelled) }

  /// Called when the time limit has passed.
  fileprivate func timeOut() { end(.timedOut) }

  private func end(_ reason: State) {
    let (isFirst, _) = state.compareExchange(
      expected: State.running.rawValue, desired: reason.rawValue, ordering: .acquiringAndReleasing)
    guard isFirst else { return }
    for child in Self.family.withLock({ _ in Array(children.values) }) { child.end(.endedByParent) }
  }

  /// Calls `body` with a cancellation that ends when this one ends, or after `timeLimit`. Its end doesn't end
  /// this one.
  package func withTimeLimit<Result>(
    _ timeLimit: Duration, _ body: (QueryCancellation) throws -> Result
  ) rethrows -> Result {
    let child = QueryCancellation(timeLimit: timeLimit)
    return try ending(child) { try body(child) }
  }

  /// Calls `body`. If this cancellation ends before `body` returns, `child` ends with it. No other
  /// cancellation may end `child` this way.
  func ending<Result>(_ child: QueryCancellation, _ body: () throws -> Result) rethrows -> Result {
    Self.family.withLock { _ in
      child.parent = self
      children[ObjectIdentifier(child)] = child
    }
    defer { Self.family.withLock { _ in children[ObjectIdentifier(child)] = nil } }
    // If this one ended before the child was added, it didn't end the child.
    if isCancelled { child.end(.endedByParent) }
    return try body()
  }

  /// Whether `cancel()` was called, or the time limit has passed.
  @inline(__always)
  public var isCancelled: Bool { state.load(ordering: .relaxed) != State.running.rawValue }

  /// Throws `cancelled` or `timedOut` when it has ended.
  @inline(__always)
  package func check() throws {
    if _slowPath(isCancelled) { throw error }
  }

  /// The error that stopped queries throw.
  var error: QueryError {
    switch State(rawValue: state.load(ordering: .acquiring)) {
    case .timedOut:
      QueryError(
        .timedOut, "the query took longer than its time limit of \(timeLimit.map { "\($0)" } ?? "-")")
    case .endedByParent:
      Self.family.withLock { _ in parent }?.error ?? QueryError(.cancelled, "the query was cancelled")
    default: QueryError(.cancelled, "the query was cancelled")
    }
  }
}

/// Ends cancellations when their time limits have passed.
///
/// A run that ends before its limit leaves nothing behind: one timer waits for the earliest deadline, not one
/// for each run.
private final class Deadlines: Sendable {
  private struct Entry {
    /// In nanoseconds of uptime.
    let deadline: UInt64
    weak var cancellation: QueryCancellation?
  }

  private struct State {
    var entries: [ObjectIdentifier: Entry] = [:]
    /// The time of the next check. Nil when none is scheduled.
    var nextCheck: UInt64?
    /// The number of forks before it was scheduled. The timer isn't there in a forked child.
    var forks = ForkCount.register()

    /// Whether a check has to be scheduled for this deadline. Then it counts as scheduled.
    mutating func needsCheck(at deadline: UInt64) -> Bool {
      if let nextCheck, nextCheck <= deadline { return false }
      nextCheck = deadline
      return true
    }
  }

  static let shared = Deadlines()
  private let state = Lock(State())
  /// Its calls only set flags.
  private let timer = SystemTimer()

  func add(_ cancellation: QueryCancellation, after timeLimit: Duration) {
    guard timeLimit > .zero else { return cancellation.timeOut() }
    let (seconds, attoseconds) = timeLimit.components
    let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    // A limit above 10¹⁷ ns (about three years) needs no timer.
    guard nanoseconds < 1e17 else { return }
    let deadline = DispatchTime.now().uptimeNanoseconds + UInt64(nanoseconds)
    let isCheckNeeded = state.withLock { state in
      if state.forks != ForkCount.now { state = State() }
      state.entries[ObjectIdentifier(cancellation)] = Entry(deadline: deadline, cancellation: cancellation)
      return state.needsCheck(at: deadline)
    }
    if isCheckNeeded { schedule(deadline) }
  }

  func remove(_ cancellation: ObjectIdentifier) {
    // The entry is released outside of the lock.
    _ = state.withLock { $0.entries.removeValue(forKey: cancellation) }
  }

  private func schedule(_ time: UInt64) {
    let now = DispatchTime.now().uptimeNanoseconds
    timer.schedule(after: Double(time > now ? time - now : 0) / 1e9) { [self] in check(time) }
  }

  private func check(_ time: UInt64) {
    let now = DispatchTime.now().uptimeNanoseconds
    var due: [QueryCancellation] = []
    let next = state.withLock { state -> UInt64? in
      if state.nextCheck == time { state.nextCheck = nil }
      for (key, entry) in state.entries where entry.deadline <= now {
        // `due` keeps the object until the lock is released, because its deinit takes the lock.
        if let cancellation = entry.cancellation { due.append(cancellation) }
        state.entries[key] = nil
      }
      guard let earliest = state.entries.values.map(\.deadline).min(), state.needsCheck(at: earliest)
      else { return nil }
      return earliest
    }
    if let next { schedule(next) }
    for cancellation in due { cancellation.timeOut() }
  }
}
