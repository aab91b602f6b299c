import Storage

/// The runs of a database's live queries that are going on, which closing it waits for.
///
/// Nobody who closes a database can know whether one of its live queries runs at that moment; its snapshot would make the
/// close fail. Handlers aren't part of a run: one of them may close the database.
final class LiveRuns: Sendable {
  private struct State {
    var running = 0
    var isClosing = false
    /// Runs that wait until the database is closed, or can't be.
    var waiting = 0
  }

  private let state = Lock(State())
  /// Signalled when the last run ends that a close waits for.
  private let idle = CountingSemaphore()
  /// Signalled for each run that waits.
  private let decided = CountingSemaphore()
  /// Held by who closes.
  private let closing = Lock(())

  /// Calls `body`, which a close waits for; while one is going on, waits for its end.
  func run<Result>(_ body: () throws -> Result) rethrows -> Result {
    while !begin() { decided.wait() }
    defer {
      let isLast = state.withLock { state in
        state.running -= 1
        return state.isClosing && state.running == 0
      }
      if isLast { idle.signal() }
    }
    return try body()
  }

  private func begin() -> Bool {
    state.withLock { state in
      if state.isClosing { state.waiting += 1 } else { state.running += 1 }
      return !state.isClosing
    }
  }

  /// Calls `body` when no run is going on, and lets none begin meanwhile.
  func whileIdle<Result>(_ body: () throws -> Result) rethrows -> Result {
    try closing.withLock { _ in
      let mustWait = state.withLock { state in
        state.isClosing = true
        return state.running > 0
      }
      if mustWait { idle.wait() }
      defer {
        let waiting = state.withLock { state in
          defer { (state.isClosing, state.waiting) = (false, 0) }
          return state.waiting
        }
        for _ in 0..<waiting { decided.signal() }
      }
      return try body()
    }
  }
}
