import Dispatch
import Synchronization

/// Stops queries: from another thread, or when a time limit is over.
///
/// ```swift
/// let cancellation = QueryCancellation(timeLimit: .seconds(5))
/// let rows = try query.run(cancellation: cancellation)     // throws `timedOut` after five seconds
/// ```
///
/// Each run that it was handed to throws `cancelled` or `timedOut` soon: runs ask between rows, and inside of a row
/// between the items of ANY and EVERY, the steps of LIKE and of regular expressions, and the comparisons of a sort.
public final class QueryCancellation: Sendable {
  private enum State: UInt8 {
    case running, cancelled, timedOut
  }

  private let state = Atomic<UInt8>(State.running.rawValue)
  private let timeLimit: Duration?
  /// Its jobs do nothing but set a flag.
  private static let timers = DispatchQueue(label: "touchstone.query.timers")

  /// One that nobody has cancelled.
  public init() { timeLimit = nil }

  /// One that stops its queries by itself once `timeLimit` is over, counted from now.
  public init(timeLimit: Duration) {
    self.timeLimit = timeLimit
    let (seconds, attoseconds) = max(timeLimit, .zero).components
    let nanoseconds = Double(seconds) * 1e9 + Double(attoseconds) / 1e9
    // So long that nobody waits for it.
    guard nanoseconds < 1e17 else { return }
    Self.timers.asyncAfter(deadline: .now() + .nanoseconds(Int(nanoseconds))) { [weak self] in
      self?.end(.timedOut)
    }
  }

  /// Stops the queries. It can't be taken back.
  public func cancel() { end(.cancelled) }

  private func end(_ reason: State) {
    _ = state.compareExchange(
      expected: State.running.rawValue, desired: reason.rawValue, ordering: .relaxed)
  }

  /// Whether `cancel()` was called, or the time limit is over.
  @inline(__always)
  public var isCancelled: Bool { state.load(ordering: .relaxed) != State.running.rawValue }

  @inline(__always)
  func check() throws {
    if _slowPath(isCancelled) { throw error }
  }

  /// What stopped queries throw.
  var error: QueryError {
    guard state.load(ordering: .relaxed) == State.timedOut.rawValue, let timeLimit else {
      return QueryError(.cancelled, "the query was cancelled")
    }
    return QueryError(.timedOut, "the query took longer than its time limit of \(timeLimit)")
  }
}
