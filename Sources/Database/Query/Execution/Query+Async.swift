import Fleece
import Storage

// Asynchronous runs. They take a thread of the database, so they never block Swift's cooperative pool.

extension Query {
  /// Runs the query and returns all rows, on one of the database's threads for asynchronous reads.
  ///
  /// If the task is cancelled, the run ends soon and the call throws `CancellationError`. A run that waits for
  /// a thread then ends at once. The run doesn't join a transaction: `Transaction.run` does.
  ///
  /// - Throws: `CancellationError`, and the errors of the synchronous `run(_:cancellation:)`.
  public func run(
    _ parameters: [String: JSONValue] = [:], cancellation: QueryCancellation = QueryCancellation()
  ) async throws -> QueryResults {
    try await onReader(cancellation) { try self.run(parameters, cancellation: $0) }
  }

  /// Runs the query and decodes each row, both on one of the database's threads for asynchronous reads. See
  /// the synchronous `run(as:_:cancellation:)`.
  public func run<Row: Decodable & Sendable>(
    as type: Row.Type, _ parameters: [String: JSONValue] = [:],
    cancellation: QueryCancellation = QueryCancellation()
  ) async throws -> [Row] {
    try await onReader(cancellation) { cancellation in
      try self.run(as: type, parameters, cancellation: cancellation)
    }
  }

  /// Runs the query on one of the database's threads for asynchronous reads, and calls `body` there with each
  /// row until it returns false. See the synchronous `forEach(_:cancellation:_:)`.
  public func forEach(
    _ parameters: [String: JSONValue] = [:], cancellation: QueryCancellation = QueryCancellation(),
    _ body: @escaping @Sendable (QueryRow) throws -> Bool
  ) async throws {
    try await onReader(cancellation) { try self.forEach(parameters, cancellation: $0, body) }
  }

  /// Explains how the query finds its rows, on one of the database's threads for asynchronous reads. See the
  /// synchronous `explain(analyze:_:cancellation:)`.
  public func explain(
    analyze: Bool = false, _ parameters: [String: JSONValue] = [:],
    cancellation: QueryCancellation = QueryCancellation()
  ) async throws -> QueryExplanation {
    try await onReader(cancellation) {
      try self.explain(analyze: analyze, parameters, cancellation: $0)
    }
  }

  /// Runs `body` on a reader's thread. Its cancellation ends with the caller's one and with the task.
  private func onReader<Result: Sendable>(
    _ cancellation: QueryCancellation,
    _ body: @escaping @Sendable (QueryCancellation) throws -> Result
  ) async throws -> Result {
    // The caller may use its cancellation for other runs, so the task cancels only this one.
    let own = QueryCancellation()
    return try await source.readers.run(onCancel: { own.cancel() }) { job in
      do {
        let result = try cancellation.ending(own) { try body(own) }
        try job.check()
        return result
      } catch let error as QueryError where error.code == .cancelled && job.isCancelled {
        throw CancellationError()
      }
    }
  }
}
