import Dispatch
import Synchronization

/// Stops queries, from another thread or after a time limit.
///
/// ```swift
/// let cancellation = QueryCancellation(timeLimit: .seconds(5))
/// let rows = try query.run(cancellation: cancellation)     // throws `timedOut` after five seconds
/// ```
///
/// Each run that uses it soon throws `cancelled` or `timedOut`. Runs check between rows. Within a row they
/// check between the items of ANY and EVERY, during LIKE and regular expressions, and between the comparisons
/// of a sort.
public final class QueryCancellation: Sendable {
  private enum State: UInt8 {
    case running, cancelled, timedOut
  }

  private let state = Atomic<UInt8>(State.running.rawValue)
  private let timeLimit: Duration?
  /// The queue only runs jobs that set a flag.
  private static let timers = DispatchQueue(label: "touchstone.query.timers")

  /// Creates a cancellation without a time limit.
  public init() { timeLimit = nil }

  /// Creates a cancellation that stops its queries after `timeLimit`, counted from now.
  public init(timeLimit: Duration) {
    self.timeLimit = timeLimit
    let (seconds, attoseconds) = max(timeLimit, .zero).components
    let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    // A limit above 10¹⁷ ns (about three years) needs no timer.
    guard nanoseconds < 1e17 else { return }
    Self.timers.asyncAfter(deadline: .now() + .nanoseconds(Int(nanoseconds))) { [weak self] in
      self?.end(.timedOut)
    }
  }

  /// Stops the queries. This can't be undone.
  public func cancel() { end(.cancelled) }

  private func end(_ reason: State) {
    _ = state.compareExchange(
      expected: State.running.rawValue, desired: reason.rawValue, ordering: .relaxed)
  }

  /// Whether `cancel()` was called, or the time limit has passed.
  @inline(__always)
  public var isCancelled: Bool { state.load(ordering: .relaxed) != State.running.rawValue }

  @inline(__always)
  func check() throws {
    if _slowPath(isCancelled) { throw error }
  }

  /// The error that stopped queries throw.
  var error: QueryError {
    guard state.load(ordering: .relaxed) == State.timedOut.rawValue, let timeLimit else {
      return QueryError(.cancelled, "the query was cancelled")
    }
    return QueryError(.timedOut, "the query took longer than its time limit of \(timeLimit)")
  }
}
