import Documents
import Fleece
import Logs
import Query
import Storage

/// A query that runs again after each commit that can change its result, until it is cancelled or released.
/// See `Database.observe(_:parameters:on:_:)` and `Database.observeRows(of:parameters:key:on:_:)`.
public final class LiveQuery: Sendable {
  /// The result of a run: the rows, or the error.
  public typealias Outcome = Result<QueryResults, any Error>

  private struct State {
    /// Whether a run is queued and hasn't started. It will see everything committed so far.
    var isScheduled = false
    /// `mustRun`: whether the next run must execute the query, because no previous result can still be valid.
    /// `purged`: the documents purged since the last run.
    var mustRun = true
    var purged: [String] = []
    /// The number of runs of the query, for tests.
    var runCount = 0
    var isEnded = false
    /// Schedules the runs from a thread of the database, so a blocked cooperative pool doesn't delay them.
    var token: ObservationToken?
    /// Waits for the end of the change stream.
    var task: Task<Void, Never>?
  }

  private let query: Query
  /// The path that log entries name.
  private let path: String
  private let runs: LiveRuns
  private let parameters: [String: JSONValue]
  private let report: @Sendable (Outcome) -> Void
  private let onCancel: @Sendable () -> Void
  /// Tells which commits can change the result; nil if any commit can.
  private let relevance: QueryRelevance?
  private let cancellation = QueryCancellation()
  /// Runs can be long, so they have a thread of their own. They don't block the writer, other observers or
  /// the cooperative pool.
  private let worker = Workers(maximum: 1)
  private let state = Lock(State())
  /// The last reported result. Only runs use it, and they are serial.
  private let last = Lock<QueryResults?>(nil)

  /// Makes a live query that hands each new outcome to `report`, on the thread that ran the query.
  init(
    _ query: Query, of path: String, _ runs: LiveRuns, _ parameters: [String: JSONValue],
    onCancel: @escaping @Sendable () -> Void = {}, report: @escaping @Sendable (Outcome) -> Void
  ) throws {
    relevance = try query.relevance()
    self.query = query
    self.path = path
    self.runs = runs
    self.parameters = parameters
    self.report = report
    self.onCancel = onCancel
  }

  deinit { cancel() }

  /// Stops the live query. A call of the handler in progress completes; no call follows it. So on the
  /// handler's executor, no call comes after this one.
  public func cancel() {
    onCancel()
    let (token, task) = state.withLock { state -> (ObservationToken?, Task<Void, Never>?) in
      state.isEnded = true
      defer { (state.token, state.task) = (nil, nil) }
      return (state.token, state.task)
    }
    cancellation.cancel()
    token?.cancel()
    task?.cancel()
  }

  /// Starts the live query. It observes changes before the first run, so a commit that the run doesn't see is
  /// observed.
  func begin(_ database: Database, onEnd: (@Sendable () -> Void)? = nil) throws {
    let token = try database.observe(includesUnsequenced: true) { [weak self] in self?.note($0) }
    state.withLock { $0.token = token }
    if let onEnd {
      let changes = try database.changes
      let task = Task {
        for await _ in changes {}
        onEnd()
      }
      state.withLock { $0.task = task }
    }
    schedule()
  }

  private func note(_ change: DatabaseChange) {
    if relevance != nil {
      let purged = change.changes.filter { $0.kind != .saved }.map(\.documentID)
      state.withLock { state in
        state.purged += purged
        if change.missedSince != nil { state.mustRun = true }
      }
    }
    schedule()
  }

  /// All commits before the next run starts share that run.
  private func schedule() {
    let isNeeded = state.withLock { state in
      guard !state.isEnded, !state.isScheduled else { return false }
      state.isScheduled = true
      return true
    }
    if isNeeded { worker.enqueue { [weak self] in self?.refresh() } }
  }

  /// Waits until the runs queued so far have ended. For tests.
  func waitForRuns() {
    let done = CountingSemaphore()
    worker.enqueue { done.signal() }
    done.wait()
  }

  /// The number of runs of the query, for tests.
  var runCount: Int { state.withLock { $0.runCount } }

  private func refresh() {
    // This comes before the snapshot: later commits schedule another run.
    let (mustRun, purged) = state.withLock { state in
      defer { (state.isScheduled, state.mustRun, state.purged) = (false, false, []) }
      return (state.mustRun, state.purged)
    }
    do {
      guard let results = try runs.run({ try run(always: mustRun, purged) }) else { return }
      state.withLock { $0.runCount += 1 }
      let isNew = last.withLock { last in
        if last == results { return false }
        last = results
        return true
      }
      if isNew { tell(.success(results)) }
    } catch {
      if (error as? QueryError)?.code == .cancelled { return }
      // The database was closed while this run waited. That ends the live query and isn't an error.
      if (error as? DatabaseError)?.code == .closed || (error as? StorageError)?.code == .closed {
        return cancel()
      }
      // The next result is reported even if it equals the last one.
      last.withLock { $0 = nil }
      state.withLock { $0.mustRun = true }
      Log.write(.verbose, .query, path, "a live query failed: \(LogText.of(error))")
      tell(.failure(error))
    }
  }

  /// Returns the rows; nil if no commit since the last run can have changed them.
  private func run(always: Bool, _ purged: [String]) throws -> QueryResults? {
    guard let relevance else { return try query.run(parameters, cancellation: cancellation) }
    if always {
      relevance.forget()
      // Many live queries never see a commit, so the relevant data is determined only at the first one.
      return try query.run(parameters, cancellation: cancellation)
    }
    return try query.runIfConcerned(
      by: relevance, purged: purged, parameters, cancellation: cancellation)
  }

  private func tell(_ outcome: Outcome) {
    if !state.withLock({ $0.isEnded }) { report(outcome) }
  }
}
