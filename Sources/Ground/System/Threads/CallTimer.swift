/// Time, and calls at later times. Tests give their own.
package protocol CallTimer: Sendable {
  /// Seconds since some time.
  var now: Double { get }
  /// Calls `body` after that many seconds, unless the token is cancelled first. It must not wait.
  @discardableResult
  func schedule(after seconds: Double, _ body: @escaping @Sendable () -> Void) -> TimerToken
}

/// Cancels a scheduled call.
package final class TimerToken: Sendable {
  private let onCancel: @Sendable () -> Void
  package init(_ onCancel: @escaping @Sendable () -> Void) { self.onCancel = onCancel }
  package func cancel() { onCancel() }
}

/// The time of the system. Calls come from a thread of their own, so they come on time also when an app blocks Swift's
/// cooperative pool.
package struct SystemTimer: CallTimer {
  private let clock = ContinuousClock()
  private let start = ContinuousClock().now
  /// In seconds. A longer delay ends then.
  private static let longestDelay = 1e9

  package init() {}

  package var now: Double {
    let (seconds, attoseconds) = (clock.now - start).components
    return Double(seconds) + Double(attoseconds) / 1e18
  }

  @discardableResult
  package func schedule(after seconds: Double, _ body: @escaping @Sendable () -> Void) -> TimerToken {
    let nanoseconds = Int64(min(max(0, seconds), Self.longestDelay) * 1e9)
    return TimerThread.shared.schedule(at: .now + .nanoseconds(nanoseconds), body)
  }
}

/// Calls closures at their times. Its thread runs while any are scheduled.
private final class TimerThread: Sendable {
  private struct Entry {
    let number: UInt64
    let time: ContinuousClock.Instant
    let body: @Sendable () -> Void
  }

  private struct State {
    /// In the order of their times.
    var entries: [Entry] = []
    var next: UInt64 = 0
    var isRunning = false
    /// When the thread looks at the entries again. A time that has passed: it is about to.
    var wakes = ContinuousClock.now
    /// The number of forks before the thread was started. It isn't there in a forked child, nor what was scheduled before.
    var forks = ForkCount.register()
  }

  static let shared = TimerThread()
  /// The longest sleep, in seconds. The semaphore's clock stops while the machine sleeps, and the timers' clock doesn't.
  private static let longestSleep = 60.0

  private let state = Lock(State())
  private let isChanged = CountingSemaphore()
  private let workers = Workers()

  func schedule(at time: ContinuousClock.Instant, _ body: @escaping @Sendable () -> Void) -> TimerToken {
    let (number, starts, wakes) = state.withLock { state in
      if state.forks != ForkCount.now { state = State(next: state.next) }
      state.next += 1
      // Most new entries are the last ones.
      let place = state.entries.lastIndex { $0.time <= time }.map { $0 + 1 } ?? 0
      state.entries.insert(Entry(number: state.next, time: time, body: body), at: place)
      defer { state.isRunning = true }
      // The thread's sleep doesn't go on while the machine sleeps, so it may be late.
      return (state.next, !state.isRunning, time < state.wakes || state.wakes <= .now)
    }
    if starts { workers.enqueue { [self] in run() } } else if wakes { isChanged.signal() }
    return TimerToken { [self] in
      // It is released outside of the lock.
      let entry = state.withLock { state in
        state.entries.lastIndex { $0.number == number }.map { state.entries.remove(at: $0) }
      }
      withExtendedLifetime(entry) {}
    }
  }

  private func run() {
    while true {
      let (due, sleep) = state.withLock { state -> ([Entry], Double?) in
        let now = ContinuousClock.now
        state.wakes = now
        let count = state.entries.firstIndex { $0.time > now } ?? state.entries.count
        let due = state.entries.takeFirst(count)
        guard let next = state.entries.first else {
          if due.isEmpty { state.isRunning = false }
          return (due, nil)
        }
        let (seconds, attoseconds) = (next.time - now).components
        let sleep = min(Double(seconds) + Double(attoseconds) / 1e18, Self.longestSleep)
        if due.isEmpty { state.wakes = now + .seconds(sleep) }
        return (due, sleep)
      }
      for entry in due { entry.body() }
      if !due.isEmpty { continue }
      guard let sleep else { return }
      _ = isChanged.wait(seconds: sleep)
    }
  }
}
