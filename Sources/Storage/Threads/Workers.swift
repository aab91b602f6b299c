#if canImport(Glibc)
  import Glibc
#endif

/// Threads of their own for work that may block: nothing of it runs on the cooperative pool.
///
/// Jobs begin in the order in which they came, at most as many at a time as there may be threads: with one, they
/// run one after another. A thread is made when there is work for it, and ends after ten seconds without any, so
/// workers that aren't used cost nothing. Jobs that are left when the workers are released are still done; then the
/// threads end.
public final class Workers: Sendable {
  /// A piece of work.
  public typealias Job = @Sendable () -> Void

  private static let idleSeconds = 10.0
  private let shared: Shared

  /// Workers of at most `maximum` threads (1 or more).
  public init(maximum: Int = 1) { shared = Shared(maximum: max(1, maximum)) }

  deinit { shared.release() }

  /// Has the job done, soon and elsewhere.
  public func enqueue(_ job: @escaping Job) { shared.enqueue(job) }

  /// What the threads hold; the workers themselves may be gone before them.
  private final class Shared: Sendable {
    struct State {
      var jobs: [Job] = []
      var head = 0
      var running = 0
      var idle = 0
      /// Nobody will bring more.
      var isReleased = false
    }
    let maximum: Int
    let state = Lock(State())
    private let work = CountingSemaphore()

    init(maximum: Int) { self.maximum = maximum }

    func enqueue(_ job: @escaping Job) {
      let isNewNeeded = state.withLock { state in
        state.jobs.append(job)
        guard state.jobs.count - state.head > state.idle, state.running < maximum else { return false }
        state.running += 1
        return true
      }
      if isNewNeeded, !startThread() {
        // Better late than never, and without a thread of its own.
        state.withLock { $0.running -= 1 }
        if state.withLock({ $0.running }) == 0 { runUntilEmpty() }
      } else {
        work.signal()
      }
    }

    /// Wakes who waits for work that won't come.
    func release() {
      let idle = state.withLock { state in
        state.isReleased = true
        return state.idle
      }
      for _ in 0..<idle { work.signal() }
    }

    private func startThread() -> Bool {
      var attributes = pthread_attr_t()
      pthread_attr_init(&attributes)
      defer { pthread_attr_destroy(&attributes) }
      pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
      let argument = Unmanaged.passRetained(self).toOpaque()
      var thread = pthread_t()
      let result = pthread_create(
        &thread, &attributes,
        { argument in
          guard let argument else { return nil }
          Unmanaged<Shared>.fromOpaque(argument).takeRetainedValue().run()
          return nil
        }, argument)
      guard result == 0 else {
        Unmanaged<Shared>.fromOpaque(argument).release()
        return false
      }
      return true
    }

    private func run() {
      while true {
        runUntilEmpty()
        let isWaiting = state.withLock { state in
          if state.isReleased { return false }
          state.idle += 1
          return true
        }
        let isWork = isWaiting && work.wait(seconds: Workers.idleSeconds)
        let isOver = state.withLock { state in
          if isWaiting { state.idle -= 1 }
          guard state.isReleased || !isWork, state.head == state.jobs.count else { return false }
          state.running -= 1
          return true
        }
        if isOver { return }
      }
    }

    private func runUntilEmpty() {
      while let job = next() { job() }
    }

    private func next() -> Job? {
      state.withLock { state in
        guard state.head < state.jobs.count else { return nil }
        let job = state.jobs[state.head]
        state.head += 1
        if state.head == state.jobs.count {
          state.jobs.removeAll(keepingCapacity: state.head <= 64)
          state.head = 0
        } else if state.head >= 64, state.head * 2 >= state.jobs.count {
          state.jobs.removeFirst(state.head)
          state.head = 0
        }
        return job
      }
    }
  }
}
