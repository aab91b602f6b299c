import Storage

/// The runs of a database's live queries that are in progress. Closing the database waits for them.
///
/// The caller of `close()` can't know whether a live query is running, and its snapshot would make the close
/// fail. A handler call isn't part of a run: a handler may close the database.
final class LiveRuns: Sendable {
  private struct State {
    var running = 0
    var isClosing = false
    /// The number of runs that wait until the database is closed or the close fails.
    var waiting = 0
  }

  private let state = Lock(State())
  /// Signalled when the last run that a close waits for has ended.
  private let idle = CountingSemaphore()
  /// Signalled once per waiting run.
  private let decided = CountingSemaphore()
  /// Held during a close.
  private let closing = Lock(())

  /// Whether a close waits for runs, or is being made.
  var isClosing: Bool { state.withLock { $0.isClosing } }

  /// Calls `body` as a run that a close waits for. If a close is in progress, it waits for its end first.
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

  /// Calls `body` when no run is in progress. No run starts before it returns.
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
