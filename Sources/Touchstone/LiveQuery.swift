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
    var isEnded = false
    var task: Task<Void, Never>?
  }

  private let query: Query
  private let parameters: [String: JSONValue]
  private let handler: @Sendable (Outcome) -> Void
  private let cancellation = QueryCancellation()
  /// Runs are long: neither the writer's thread, nor those of other observers, nor the cooperative pool has them.
  private let worker = Workers(maximum: 1)
  private let state = Lock(State())
  /// What was told last. Only runs use it, and they come one after another.
  private let last = Lock<QueryResults?>(nil)

  fileprivate init(
    _ query: Query, _ parameters: [String: JSONValue], _ handler: @escaping @Sendable (Outcome) -> Void
  ) {
    self.query = query
    self.parameters = parameters
    self.handler = handler
  }

  deinit { cancel() }

  /// Ends it. A call of the handler that is going on goes on, and none comes after it.
  public func cancel() {
    let task = state.withLock { state -> Task<Void, Never>? in
      state.isEnded = true
      defer { state.task = nil }
      return state.task
    }
    cancellation.cancel()
    task?.cancel()
  }

  /// Begins. The changes were asked for before the first run: a commit that it doesn't see comes through them.
  fileprivate func begin(_ changes: DatabaseChanges, onEnd: @escaping @Sendable () -> Void) {
    schedule()
    let task = Task { [weak self] in
      for await _ in changes { self?.schedule() }
      onEnd()
    }
    state.withLock { $0.task = task }
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

  private func refresh() {
    // Before the snapshot is taken: what is committed later schedules another run.
    state.withLock { $0.isScheduled = false }
    do {
      let results = try query.run(parameters, cancellation: cancellation)
      let isNew = last.withLock { last in
        if last == results { return false }
        last = results
        return true
      }
      if isNew { tell(.success(results)) }
    } catch {
      if (error as? QueryError)?.code == .cancelled { return }
      // The next result is told, whatever it is.
      last.withLock { $0 = nil }
      tell(.failure(error))
    }
  }

  private func tell(_ outcome: Outcome) {
    if !state.withLock({ $0.isEnded }) { handler(outcome) }
  }
}

extension Database {
  /// Calls `handler` with the rows of a query of this database: first as they are, then whenever a commit has changed
  /// them, until the live query is cancelled or released.
  ///
  /// It is called on a thread of its own, one call at a time. Commits that come while the query runs share the next
  /// run, and the last result always comes. A run that fails is told too, and the next commit tries again.
  public func observe(
    _ query: Query, parameters: [String: JSONValue] = [:],
    _ handler: @escaping @Sendable (LiveQuery.Outcome) -> Void
  ) throws -> LiveQuery {
    let live = LiveQuery(query, parameters, handler)
    live.begin(try changes) {}
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
    let changes = try changes
    return AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let live = LiveQuery(query, parameters) { outcome in
        switch outcome {
        case .success(let results): continuation.yield(results)
        case .failure(let error): continuation.finish(throwing: error)
        }
      }
      continuation.onTermination = { _ in live.cancel() }
      live.begin(changes) { continuation.finish() }
    }
  }
}
