import Storage

/// Runs jobs, at most so many at a time. The others wait in their order.
///
/// A job begins on the thread that hands it in, or on one that ends another job. It must not wait for long.
final class JobLimit: Sendable {
  /// A job. It calls `ended` once, from any thread.
  typealias Job = @Sendable (_ ended: @escaping @Sendable () -> Void) -> Void

  private struct State {
    var waiting: [Job] = []
    /// How many jobs may begin.
    var free: Int
    /// Whether a thread begins jobs. It looks for more before it stops.
    var isBeginning = false
  }
  private let state: Lock<State>

  init(_ count: Int) { state = Lock(State(free: count)) }

  func enqueue(_ job: @escaping Job) {
    state.withLock { $0.waiting.append(job) }
    begin()
  }

  /// Begins jobs, one after the other: many that end at once take no more stack than one.
  private func begin() {
    let isFirst = state.withLock { state in
      defer { state.isBeginning = true }
      return !state.isBeginning
    }
    guard isFirst else { return }
    while let job = next() {
      job { [self] in
        state.withLock { $0.free += 1 }
        begin()
      }
    }
  }

  private func next() -> Job? {
    state.withLock { state in
      guard state.free > 0, !state.waiting.isEmpty else {
        state.isBeginning = false
        return nil
      }
      state.free -= 1
      return state.waiting.removeFirst()
    }
  }
}
