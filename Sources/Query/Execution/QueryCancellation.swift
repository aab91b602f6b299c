import Synchronization

/// Stops queries from another thread: each run that it was handed to throws `cancelled` at its next row.
public final class QueryCancellation: Sendable {
  private let flag = Atomic<Bool>(false)

  /// One that nobody has cancelled.
  public init() {}

  /// Stops the queries. It can't be taken back.
  public func cancel() { flag.store(true, ordering: .relaxed) }

  /// Whether `cancel()` was called.
  public var isCancelled: Bool { flag.load(ordering: .relaxed) }

  @inline(__always)
  func check() throws {
    if isCancelled { throw QueryError(.cancelled, "the query was cancelled") }
  }
}
