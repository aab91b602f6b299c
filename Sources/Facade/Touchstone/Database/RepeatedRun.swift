import Documents
import Logs
import Storage

/// Runs something again after commits, and hands over what has changed. Live queries of views and of all documents are
/// such runs.
///
/// All commits before the next run begins share that run, which begins an interval after the last one at the earliest.
final class RepeatedRun<Rows: Sendable & Equatable>: Sendable {
  private struct State {
    /// Whether a run is due and hasn't begun. It will see everything committed so far.
    var isScheduled = false
    var isEnded = false
    var lastRun: ContinuousClock.Instant?
    var token: ObservationToken?
    var onCancel: (@Sendable () -> Void)?
    /// The number of runs, for tests.
    var runCount = 0
  }

  /// What is run, as log entries name it: `of the view 'byType'`.
  private let subject: String
  private let path: String
  private let runs: LiveRuns
  private let interval: Duration
  private let delivery: LiveDelivery<Rows, Rows>
  private let body: @Sendable () throws -> Rows
  private let worker = Workers(maximum: 1)
  private let state = Lock(State())
  /// The last reported rows. Only runs use it, and they are serial.
  private let last = Lock<Rows?>(nil)

  init(
    _ subject: String, of database: Database, interval: Duration, on executor: CallbackExecutor,
    _ handler: @escaping @Sendable (Result<Rows, any Error>) -> Void,
    run body: @escaping @Sendable () throws -> Rows
  ) {
    self.subject = subject
    path = database.path
    runs = database.liveRuns
    self.interval = max(.zero, interval)
    delivery = LiveDelivery(on: executor, handler) { (_: Rows?, rows: Rows) in rows }
    self.body = body
  }

  deinit { cancel() }

  /// Stops the runs. A call of the handler in progress completes; no call follows it.
  func cancel() {
    delivery.end()
    let (token, onCancel) = state.withLock { state -> (ObservationToken?, (@Sendable () -> Void)?) in
      state.isEnded = true
      defer { (state.token, state.onCancel) = (nil, nil) }
      return (state.token, state.onCancel)
    }
    token?.cancel()
    onCancel?()
  }

  /// Starts the runs. Changes are observed before the first run, so a commit that the run doesn't see is observed.
  func begin(_ database: Database, onCancel: (@Sendable () -> Void)? = nil) throws {
    let token = try database.observe(includesUnsequenced: true) { [weak self] _ in self?.schedule() }
    state.withLock { ($0.token, $0.onCancel) = (token, onCancel) }
    schedule()
  }

  /// The number of runs, for tests.
  var runCount: Int { state.withLock { $0.runCount } }

  /// Makes sure that a run begins after this call.
  func schedule() {
    let delay = state.withLock { state -> Duration? in
      guard !state.isEnded, !state.isScheduled else { return nil }
      state.isScheduled = true
      guard let lastRun = state.lastRun else { return .zero }
      return min(max(.zero, interval - (ContinuousClock.now - lastRun)), interval)
    }
    guard let delay else { return }
    guard delay > .zero else { return worker.enqueue { [weak self] in self?.refresh() } }
    let (seconds, attoseconds) = delay.components
    SystemTimer().schedule(after: Double(seconds) + Double(attoseconds) / 1e18) { [weak self] in
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
      let rows = try runs.run(body)
      let isNew = last.withLock { last in
        if last == rows { return false }
        last = rows
        return true
      }
      if isNew { tell(.success(rows)) }
    } catch {
      // The database was closed while this run waited. That ends the live query and isn't an error.
      if (error as? any TouchstoneError)?.kind == .misuse { return cancel() }
      last.withLock { $0 = nil }
      Log.write(.verbose, .query, path, "a live query \(subject) failed: \(LogText.of(error))")
      tell(.failure(error))
    }
  }

  private func tell(_ outcome: Result<Rows, any Error>) {
    if !state.withLock({ $0.isEnded }) { delivery.post(outcome) }
  }
}
