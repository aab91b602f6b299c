import Storage

/// Time as replications see it. Tests give their own.
package protocol ReplicationTimer: Sendable {
  /// Seconds since some time.
  var now: Double { get }
  /// Calls `body` after that many seconds, unless the token is cancelled first. It must not wait.
  func schedule(after seconds: Double, _ body: @escaping @Sendable () -> Void) -> TimerToken
}

/// Cancels a scheduled call.
package final class TimerToken: Sendable {
  private let onCancel: @Sendable () -> Void
  package init(_ onCancel: @escaping @Sendable () -> Void) { self.onCancel = onCancel }
  package func cancel() { onCancel() }
}

/// The time of the system.
package struct SystemTimer: ReplicationTimer {
  private let clock = ContinuousClock()
  private let start = ContinuousClock().now

  package init() {}

  package var now: Double {
    let (seconds, attoseconds) = (clock.now - start).components
    return Double(seconds) + Double(attoseconds) / 1e18
  }

  package func schedule(after seconds: Double, _ body: @escaping @Sendable () -> Void) -> TimerToken {
    let task = Task {
      try await Task.sleep(for: .milliseconds(Int64(seconds * 1_000)))
      body()
    }
    return TimerToken { task.cancel() }
  }
}
