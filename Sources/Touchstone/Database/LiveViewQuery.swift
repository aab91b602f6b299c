import Dispatch
import Documents
import Logs
import Storage
import Views

/// A query of a view that runs again after commits, until it is cancelled or released. See
/// `Database.observe(_:updateInterval:on:_:)`.
public final class LiveViewQuery: Sendable {
  /// The result of a run: the rows, or the error.
  public typealias Outcome = Result<ViewResults, any Error>

  private struct State {
    /// Whether a run is due and hasn't begun. It will see everything committed so far.
    var isScheduled = false
    var isEnded = false
    var lastRun: ContinuousClock.Instant?
    var token: ObservationToken?
    var redefinition: UInt64?
    /// The number of runs, for tests.
    var runCount = 0
  }

  /// Its jobs only start runs.
  private static let later = DispatchQueue(label: "touchstone.live-views")

  private let query: ViewQuery
  private let path: String
  private let runs: LiveRuns
  private let interval: Duration
  private let delivery: LiveDelivery<ViewResults, ViewResults>
  private let worker = Workers(maximum: 1)
  private let state = Lock(State())
  /// The last reported rows. Only runs use it, and they are serial.
  private let last = Lock<ViewResults?>(nil)

  init(
    _ query: ViewQuery, of path: String, _ runs: LiveRuns, interval: Duration,
    _ delivery: LiveDelivery<ViewResults, ViewResults>
  ) {
    self.query = query
    self.path = path
    self.runs = runs
    self.interval = max(.zero, interval)
    self.delivery = delivery
  }

  deinit { cancel() }

  /// Stops the live query. A call of the handler in progress completes; no call follows it.
  public func cancel() {
    delivery.end()
    let (token, redefinition) = state.withLock { state -> (ObservationToken?, UInt64?) in
      state.isEnded = true
      defer { (state.token, state.redefinition) = (nil, nil) }
      return (state.token, state.redefinition)
    }
    token?.cancel()
    if let redefinition { query.view.indexes.removeRedefinitionHandler(redefinition) }
  }

  /// Starts the live query. It observes changes before the first run, so a commit that the run doesn't see is observed.
  func begin(_ database: Database) throws {
    let token = try database.observe(includesUnsequenced: true) { [weak self] _ in self?.schedule() }
    let name = query.view.name
    let redefinition = query.view.indexes.addRedefinitionHandler { [weak self] changed in
      // Views of one group share the documents, but not the functions.
      if changed.hasSameBytes(as: name) { self?.schedule() }
    }
    state.withLock { ($0.token, $0.redefinition) = (token, redefinition) }
    schedule()
  }

  /// The number of runs, for tests.
  var runCount: Int { state.withLock { $0.runCount } }

  /// All commits before the next run begins share that run, which begins an interval after the last one at the earliest.
  private func schedule() {
    let delay = state.withLock { state -> Duration? in
      guard !state.isEnded, !state.isScheduled else { return nil }
      state.isScheduled = true
      guard let lastRun = state.lastRun else { return .zero }
      return min(max(.zero, interval - (ContinuousClock.now - lastRun)), interval)
    }
    guard let delay else { return }
    guard delay > .zero else { return worker.enqueue { [weak self] in self?.refresh() } }
    let (seconds, attoseconds) = delay.components
    let nanoseconds = Int(clamping: seconds) * 1_000_000_000 + Int(attoseconds / 1_000_000_000)
    LiveViewQuery.later.asyncAfter(deadline: .now() + .nanoseconds(nanoseconds)) { [weak self] in
      guard let self else { return }
      worker.enqueue { [weak self] in self?.refresh() }
    }
  }

  private func refresh() {
    let isEnded = state.withLock { state in
      // This comes before the run: later commits schedule another one.
      state.isScheduled = false
      state.lastRun = .now
      state.runCount += 1
      return state.isEnded
    }
    guard !isEnded else { return }
    do {
      let results = try runs.run { try query.run() }
      let isNew = last.withLock { last in
        if last == results { return false }
        last = results
        return true
      }
      if isNew { tell(.success(results)) }
    } catch {
      // The database was closed while this run waited. That ends the live query and isn't an error.
      if (error as? any TouchstoneError)?.kind == .misuse { return cancel() }
      last.withLock { $0 = nil }
      Log.write(
        .verbose, .query, path, "a live query of the view '\(query.view.name)' failed: \(LogText.of(error))")
      tell(.failure(error))
    }
  }

  private func tell(_ outcome: Outcome) {
    if !state.withLock({ $0.isEnded }) { delivery.post(outcome) }
  }
}

extension Database {
  /// Calls `handler` with the rows of a query of a view of this database: first with the current rows, then whenever a
  /// commit, or another map or reduce function, has changed them. It ends when the live query is cancelled or released, or
  /// when the database is closed.
  ///
  /// A run begins `updateInterval` after the last one at the earliest; commits that come meanwhile share it. `handler` is
  /// called on `executor`, one call at a time, and gets the latest rows. A failed run is reported too; the next commit
  /// tries again.
  public func observe(
    _ query: ViewQuery, updateInterval: Duration = .milliseconds(200),
    on executor: CallbackExecutor = .background,
    _ handler: @escaping @Sendable (LiveViewQuery.Outcome) -> Void
  ) throws -> LiveViewQuery {
    let delivery = LiveDelivery(on: executor, handler) { (_: ViewResults?, rows: ViewResults) in rows }
    let live = LiveViewQuery(query, of: path, liveRuns, interval: updateInterval, delivery)
    try live.begin(self)
    return live
  }

  /// The same with a handler on the main actor.
  public func observe(
    _ query: ViewQuery, updateInterval: Duration = .milliseconds(200), on actor: MainActor,
    _ handler: @escaping @MainActor @Sendable (LiveViewQuery.Outcome) -> Void
  ) throws -> LiveViewQuery {
    try observe(query, updateInterval: updateInterval, on: .main) { outcome in
      MainActor.assumeIsolated { handler(outcome) }
    }
  }
}
