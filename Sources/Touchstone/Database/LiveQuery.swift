import Documents
import Fleece
import Query
import Storage

/// A query that is run again after each commit, as long as it is held; see `Database.observe(_:parameters:_:)`.
public final class LiveQuery: Sendable {
  /// What is told: the rows, or why they couldn't be had.
  public typealias Outcome = Result<QueryResults, any Error>

  private struct State {
    /// Whether a run is waiting that has not begun: it will see what is committed by now.
    var isScheduled = false
    /// Whether there is no result that later commits could leave as it is, and the documents purged since the last run.
    var mustRun = true
    var purged: [String] = []
    /// How often the query was run: for tests.
    var runCount = 0
    var isEnded = false
    /// What schedules the runs: of a thread of the database's, so that a blocked cooperative pool doesn't matter.
    var token: ObservationToken?
    /// What waits for the end of a stream.
    var task: Task<Void, Never>?
  }

  private let query: Query
  private let runs: LiveRuns
  private let parameters: [String: JSONValue]
  private let handler: @Sendable (Outcome) -> Void
  /// Tells which commits can matter; nil when all can.
  private let relevance: QueryRelevance?
  private let cancellation = QueryCancellation()
  /// Runs are long: neither the writer's thread, nor those of other observers, nor the cooperative pool has them.
  private let worker = Workers(maximum: 1)
  private let state = Lock(State())
  /// What was told last. Only runs use it, and they come one after another.
  private let last = Lock<QueryResults?>(nil)

  fileprivate init(
    _ query: Query, _ runs: LiveRuns, _ parameters: [String: JSONValue],
    _ handler: @escaping @Sendable (Outcome) -> Void
  ) throws {
    relevance = try query.relevance()
    self.query = query
    self.runs = runs
    self.parameters = parameters
    self.handler = handler
  }

  deinit { cancel() }

  /// Ends it. A call of the handler that is going on goes on, and none comes after it.
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

  /// Begins. Changes are asked for before the first run: a commit that it doesn't see comes through them.
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

  /// Any number of commits that come before the next run begins share it.
  private func schedule() {
    let isNeeded = state.withLock { state in
      guard !state.isEnded, !state.isScheduled else { return false }
      state.isScheduled = true
      return true
    }
    if isNeeded { worker.enqueue { [weak self] in self?.refresh() } }
  }

  /// Waits until the runs that are scheduled by now are over: for tests.
  func waitForRuns() {
    let done = CountingSemaphore()
    worker.enqueue { done.signal() }
    done.wait()
  }

  /// How often the query was run: for tests.
  var runCount: Int { state.withLock { $0.runCount } }

  private func refresh() {
    // Before the snapshot is taken: what is committed later schedules another run.
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
      // The database was closed while this waited: the end, and no failure.
      if (error as? DatabaseError)?.code == .closed || (error as? StorageError)?.code == .closed {
        return cancel()
      }
      // The next result is told, whatever it is.
      last.withLock { $0 = nil }
      state.withLock { $0.mustRun = true }
      tell(.failure(error))
    }
  }

  /// The rows; nil when no commit since the last run can have changed them.
  private func run(always: Bool, _ purged: [String]) throws -> QueryResults? {
    guard let relevance else { return try query.run(parameters, cancellation: cancellation) }
    if always {
      relevance.forget()
      // Many live queries never see a commit: what could matter is found with the first.
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
  /// Calls `handler` with the rows of a query of this database: first as they are, then whenever a commit has changed
  /// them, until the live query is cancelled or released, or the database is closed.
  ///
  /// Rows have changed when they differ as `=` sees it (`QueryResults.==`): 1 that becomes 1.0 isn't told.
  /// Expirations count for a query that has `META().expiration`, those that this process sets.
  ///
  /// It is called on a thread of its own, one call at a time. Commits that come while the query runs share the next
  /// run, and the last result always comes. A run that fails is told too, and the next commit tries again.
  public func observe(
    _ query: Query, parameters: [String: JSONValue] = [:],
    _ handler: @escaping @Sendable (LiveQuery.Outcome) -> Void
  ) throws -> LiveQuery {
    let live = try LiveQuery(query, liveRuns, parameters, handler)
    try live.begin(self)
    return live
  }

  /// The rows of a query of this database as they are, and then each time a commit has changed them.
  ///
  /// ```swift
  /// for try await hotels in try travel.results(of: query) { show(hotels) }
  /// ```
  ///
  /// Who is slow gets the latest rows and misses those between. It ends when the database is closed, and with the
  /// error of a run that fails.
  public func results(
    of query: Query, parameters: [String: JSONValue] = [:]
  ) throws -> AsyncThrowingStream<QueryResults, any Error> {
    let (stream, continuation) = AsyncThrowingStream<QueryResults, any Error>.makeStream(
      bufferingPolicy: .bufferingNewest(1))
    let live = try LiveQuery(query, liveRuns, parameters) { outcome in
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
