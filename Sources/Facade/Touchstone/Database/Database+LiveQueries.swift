import Documents
import Fleece
import Query
import Storage

// Live queries: their rows after each commit, or how the rows differ from those before.

extension Database {
  // MARK: Rows

  /// Calls `handler` with the rows of a query of this database: first with the current rows, then after each
  /// commit that changed them. It ends when the live query is cancelled or released, or when the database is
  /// closed.
  ///
  /// Rows have changed if they differ by `QueryResults.==`, which compares as `=` does: a change from 1 to
  /// 1.0 isn't reported. Expirations set by this process count for a query that uses `META().expiration`.
  ///
  /// `handler` is called on `executor`, by default on a separate thread, one call at a time. Commits that come
  /// during a run share the next run, and the latest result is always reported. A failed run is reported too;
  /// the next commit tries again.
  public func observe(
    _ query: Query, parameters: [String: JSONValue] = [:], on executor: CallbackExecutor = .background,
    _ handler: @escaping @Sendable (LiveQuery.Outcome) -> Void
  ) throws -> LiveQuery {
    try observe(
      query, parameters,
      LiveDelivery(on: executor, handler) { (_: QueryResults?, rows: QueryResults) in rows })
  }

  /// The same with a handler on the main actor.
  ///
  /// ```swift
  /// live = try travel.observe(hotels, on: MainActor.shared) { [weak self] in self?.show($0) }
  /// ```
  public func observe(
    _ query: Query, parameters: [String: JSONValue] = [:], on actor: MainActor,
    _ handler: @escaping @MainActor @Sendable (LiveQuery.Outcome) -> Void
  ) throws -> LiveQuery {
    try observe(query, parameters: parameters, on: .main) { outcome in
      MainActor.assumeIsolated { handler(outcome) }
    }
  }

  /// Returns a stream of the rows of a query of this database: the current rows first, then the rows after
  /// each commit that changed them.
  ///
  /// ```swift
  /// for try await hotels in try travel.results(of: query) { show(hotels) }
  /// ```
  ///
  /// A slow consumer gets only the latest rows. The stream ends when its task is cancelled, when it is
  /// released, or when the database is closed; a run in progress is cancelled then. If a run fails, the stream
  /// ends with that error.
  public func results(
    of query: Query, parameters: [String: JSONValue] = [:]
  ) throws -> AsyncThrowingStream<QueryResults, any Error> {
    let (stream, continuation) = AsyncThrowingStream<QueryResults, any Error>.makeStream(
      bufferingPolicy: .bufferingNewest(1))
    let live = try LiveQuery(query, of: path, liveRuns, parameters) { outcome in
      switch outcome {
      case .success(let results): continuation.yield(results)
      case .failure(let error): continuation.finish(throwing: error)
      }
    }
    continuation.onTermination = { _ in live.cancel() }
    try live.begin(self) { continuation.finish() }
    return stream
  }

  // MARK: Differences of rows

  /// Calls `handler` with the differences of the rows of a query of this database, for lists that animate:
  /// first with all current rows as inserted ones, then after each commit that changed the rows.
  ///
  /// ```swift
  /// let query = try travel.query("SELECT META().id AS id, name FROM _ WHERE type = 'hotel' ORDER BY name")
  /// let live = try travel.observeRows(of: query, on: MainActor.shared) { outcome in
  ///   guard let changes = try? outcome.get() else { return }
  ///   changes.apply(to: &names) { $0["name"].string ?? "-" }
  /// }
  /// ```
  ///
  /// Each call gets the differences from the rows of the last call that got rows, also if results in between
  /// were replaced by later ones. `RowChanges` says how rows are told apart. The differences are found on the
  /// thread of the live query. For all else see `observe(_:parameters:on:_:)`.
  ///
  /// `key` is the name of a column whose values identify rows.
  ///
  /// - Throws: `QueryError` (`unknownName`) when the query has no column of that name.
  public func observeRows(
    of query: Query, parameters: [String: JSONValue] = [:], key: String = "id",
    on executor: CallbackExecutor = .background, _ handler: @escaping @Sendable (RowChanges.Outcome) -> Void
  ) throws -> LiveQuery {
    let key = try query.columnIndex(ofKey: key)
    let delivery = LiveDelivery(on: executor, handler) { (last: RowChanges?, rows) in
      RowChanges(from: last?.rows, to: rows, key: key)
    }
    return try observe(query, parameters, delivery)
  }

  /// The same with a handler on the main actor.
  public func observeRows(
    of query: Query, parameters: [String: JSONValue] = [:], key: String = "id", on actor: MainActor,
    _ handler: @escaping @MainActor @Sendable (RowChanges.Outcome) -> Void
  ) throws -> LiveQuery {
    try observeRows(of: query, parameters: parameters, key: key, on: .main) { outcome in
      MainActor.assumeIsolated { handler(outcome) }
    }
  }

  /// The differences of the rows of a query of this database, as an `AsyncSequence`: first all current rows as
  /// inserted ones, then the differences after each commit that changed the rows.
  ///
  /// ```swift
  /// for try await changes in try travel.rowChanges(of: query) { list.apply(changes) }
  /// ```
  ///
  /// A slow consumer gets fewer and larger differences. The sequence ends as `results(of:parameters:)` does.
  ///
  /// `key` is the name of a column whose values identify rows (`RowChanges`).
  ///
  /// - Throws: `QueryError` (`unknownName`) when the query has no column of that name.
  public func rowChanges(
    of query: Query, parameters: [String: JSONValue] = [:], key: String = "id"
  ) throws -> LiveRowChanges {
    let key = try query.columnIndex(ofKey: key)
    return LiveRowChanges(results: try results(of: query, parameters: parameters), key: key)
  }

  private func observe<Value>(
    _ query: Query, _ parameters: [String: JSONValue], _ delivery: LiveDelivery<QueryResults, Value>
  ) throws -> LiveQuery {
    let live = try LiveQuery(
      query, of: path, liveRuns, parameters, onCancel: delivery.end, report: delivery.post)
    try live.begin(self)
    return live
  }

  // MARK: Parameters of other types

  /// Calls `handler` with the rows of a query, with parameters of any type that has a JSON form.
  @_disfavoredOverload
  public func observe(
    _ query: Query, parameters: [String: any JSONConvertible], on executor: CallbackExecutor = .background,
    _ handler: @escaping @Sendable (LiveQuery.Outcome) -> Void
  ) throws -> LiveQuery {
    try observe(query, parameters: parameters.jsonValues, on: executor, handler)
  }

  /// Calls `handler` on the main actor with the rows of a query, with parameters of any type that has a JSON
  /// form.
  @_disfavoredOverload
  public func observe(
    _ query: Query, parameters: [String: any JSONConvertible], on actor: MainActor,
    _ handler: @escaping @MainActor @Sendable (LiveQuery.Outcome) -> Void
  ) throws -> LiveQuery {
    try observe(query, parameters: parameters.jsonValues, on: actor, handler)
  }

  /// Returns a stream of the rows of a query, with parameters of any type that has a JSON form.
  @_disfavoredOverload
  public func results(
    of query: Query, parameters: [String: any JSONConvertible]
  ) throws -> AsyncThrowingStream<QueryResults, any Error> {
    try results(of: query, parameters: parameters.jsonValues)
  }

  /// Calls `handler` with the differences of the rows of a query, with parameters of any type that has a JSON
  /// form.
  @_disfavoredOverload
  public func observeRows(
    of query: Query, parameters: [String: any JSONConvertible], key: String = "id",
    on executor: CallbackExecutor = .background, _ handler: @escaping @Sendable (RowChanges.Outcome) -> Void
  ) throws -> LiveQuery {
    try observeRows(of: query, parameters: parameters.jsonValues, key: key, on: executor, handler)
  }

  /// Calls `handler` on the main actor with the differences of the rows of a query, with parameters of any type
  /// that has a JSON form.
  @_disfavoredOverload
  public func observeRows(
    of query: Query, parameters: [String: any JSONConvertible], key: String = "id", on actor: MainActor,
    _ handler: @escaping @MainActor @Sendable (RowChanges.Outcome) -> Void
  ) throws -> LiveQuery {
    try observeRows(of: query, parameters: parameters.jsonValues, key: key, on: actor, handler)
  }

  /// The differences of the rows of a query, with parameters of any type that has a JSON form.
  @_disfavoredOverload
  public func rowChanges(
    of query: Query, parameters: [String: any JSONConvertible], key: String = "id"
  ) throws -> LiveRowChanges {
    try rowChanges(of: query, parameters: parameters.jsonValues, key: key)
  }
}

/// An `AsyncSequence` of the differences of a live query's rows. See `Database.rowChanges(of:parameters:key:)`.
///
/// Use it in one loop only. Make another one for another loop.
public struct LiveRowChanges: AsyncSequence, Sendable {
  fileprivate let results: AsyncThrowingStream<QueryResults, any Error>
  fileprivate let key: Int

  /// Returns the elements one by one.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var results: AsyncThrowingStream<QueryResults, any Error>.Iterator
    fileprivate let key: Int
    private var last: QueryResults?

    fileprivate init(_ sequence: LiveRowChanges) {
      results = sequence.results.makeAsyncIterator()
      key = sequence.key
    }

    /// Returns the differences from the rows of the last call, and waits until there are some. Nil after the
    /// end, and if the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)? = #isolation
    ) async throws -> RowChanges? {
      guard let rows = try await results.next(isolation: actor) else { return nil }
      defer { last = rows }
      return RowChanges(from: last, to: rows, key: key)
    }
  }

  /// Makes an iterator, for `for try await`.
  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
