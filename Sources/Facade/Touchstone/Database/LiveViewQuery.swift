import Documents
import Storage
import Views

/// A query of a view that runs again after commits, until it is cancelled or released. See
/// `Database.observe(_:updateInterval:on:_:)`.
public final class LiveViewQuery: Sendable {
  /// The result of a run: the rows, or the error.
  public typealias Outcome = Result<ViewResults, any Error>

  private let runs: RepeatedRun<ViewResults>

  init(
    _ query: ViewQuery, of database: Database, interval: Duration, on executor: CallbackExecutor,
    _ handler: @escaping @Sendable (Outcome) -> Void
  ) throws {
    let name = query.view.name
    let indexes = query.view.indexes
    let runs = RepeatedRun<ViewResults>(
      "of the view '\(name)'", of: database, interval: interval, on: executor, handler
    ) { try query.run() }
    self.runs = runs
    let redefinition = indexes.addRedefinitionHandler { [weak runs] changed in
      // Views of one group share the documents, but not the functions.
      if changed.hasSameBytes(as: name) { runs?.schedule() }
    }
    do {
      try runs.begin(database) { indexes.removeRedefinitionHandler(redefinition) }
    } catch {
      indexes.removeRedefinitionHandler(redefinition)
      throw error
    }
  }

  /// Stops the live query. A call of the handler in progress completes; no call follows it.
  public func cancel() { runs.cancel() }

  /// The number of runs, for tests.
  var runCount: Int { runs.runCount }
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
    try LiveViewQuery(query, of: self, interval: updateInterval, on: executor, handler)
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
