import Documents
import Fleece
import Logs
import Query
import Storage

/// A query that runs again after each commit that can change its result, until it is cancelled or released.
/// See `Database.observe(_:parameters:_:)`.
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
  private let handler: @Sendable (Outcome) -> Void
  /// Tells which commits can change the result; nil if any commit can.
  private let relevance: QueryRelevance?
  private let cancellation = QueryCancellation()
  /// Runs can be long, so they have a thread of their own. They don't block the writer, other observers or
  /// the cooperative pool.
  private let worker = Workers(maximum: 1)
  private let state = Lock(State())
  /// The last reported result. Only runs use it, and they are serial.
  private let last = Lock<QueryResults?>(nil)

  fileprivate init(
    _ query: Query, _ path: String, _ runs: LiveRuns, _ parameters: [String: JSONValue],
    _ handler: @escaping @Sendable (Outcome) -> Void
  ) throws {
    relevance = try query.relevance()
    self.query = query
    self.path = path
    self.runs = runs
    self.parameters = parameters
    self.handler = handler
  }

  deinit { cancel() }

  /// Stops the live query. A call of the handler in progress completes; no call follows it.
  public func cancel() {
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
  fileprivate func begin(_ database: Database, onEnd: (@Sendable () -> Void)? = nil) throws {
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
    if !state.withLock({ $0.isEnded }) { handler(outcome) }
  }
}

extension Database {
  /// Calls `handler` with the rows of a query of this database: first with the current rows, then after each
  /// commit that changed them. It ends when the live query is cancelled or released, or when the database is
  /// closed.
  ///
  /// Keep the live query: when the last reference to it goes, for example at the end of a function, the calls end at
  /// once.
  ///
  /// Rows have changed if they differ by `QueryResults.==`, which compares as `=` does: a change from 1 to
  /// 1.0 isn't reported. Expirations set by this process count for a query that uses `META().expiration`.
  ///
  /// `handler` is called on a separate thread, one call at a time. Commits that come during a run share the
  /// next run, and the latest result is always reported. A failed run is reported too; the next commit tries
  /// again.
  public func observe(
    _ query: Query, parameters: [String: JSONValue] = [:],
    _ handler: @escaping @Sendable (LiveQuery.Outcome) -> Void
  ) throws -> LiveQuery {
    let live = try LiveQuery(query, path, liveRuns, parameters, handler)
    try live.begin(self)
    return live
  }

  /// Returns a stream of the rows of a query of this database: the current rows first, then the rows after
  /// each commit that changed them.
  ///
  /// ```swift
  /// for try await hotels in try travel.results(of: query) { show(hotels) }
  /// ```
  ///
  /// A slow consumer gets only the latest rows. The stream ends when the database is closed. If a run fails,
  /// the stream ends with that error.
  public func results(
    of query: Query, parameters: [String: JSONValue] = [:]
  ) throws -> AsyncThrowingStream<QueryResults, any Error> {
    let (stream, continuation) = AsyncThrowingStream<QueryResults, any Error>.makeStream(
      bufferingPolicy: .bufferingNewest(1))
    let live = try LiveQuery(query, path, liveRuns, parameters) { outcome in
      switch outcome {
      case .success(let results): continuation.yield(results)
      case .failure(let error): continuation.finish(throwing: error)
      }
    }
    continuation.onTermination = { _ in live.cancel() }
    try live.begin(self) { continuation.finish() }
    return stream
  }
}
