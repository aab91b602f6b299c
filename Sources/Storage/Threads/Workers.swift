#if canImport(Glibc)
  import Glibc
#endif

/// A pool of threads for work that may block. Jobs don't run on Swift's cooperative pool.
///
/// Jobs start in the order in which they were enqueued, and at most `maximum` run at a time. With a maximum
/// of 1 they run one after another. A thread starts when there is work for it, and ends after ten seconds
/// without work, so unused workers cost nothing. When the workers are released, the remaining jobs still run.
/// Then the threads end.
package final class Workers: Sendable {
  /// A job to run.
  package typealias Job = @Sendable () -> Void

  private static let idleSeconds = 10.0
  private let shared: Shared

  /// Makes workers with at most `maximum` threads (1 or more). No thread starts yet.
  package init(maximum: Int = 1) { shared = Shared(maximum: max(1, maximum)) }

  deinit { shared.release() }

  /// Enqueues a job. It runs on a worker thread; if the system can't start any thread, it runs on the calling
  /// thread.
  package func enqueue(_ job: @escaping Job) { shared.enqueue(job) }

  /// The state that the threads hold. It may outlive the `Workers` object.
  private final class Shared: Sendable {
    struct State {
      var jobs: [Job] = []
      var head = 0
      var running = 0
      var idle = 0
      /// Whether the `Workers` object is gone, so that no more jobs come.
      var isReleased = false
    }
    private static let nothing: Job = {}
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
        // No thread could be started. Running threads will take the job. If there are none, it runs here.
        state.withLock { $0.running -= 1 }
        if state.withLock({ $0.running }) == 0 { runUntilEmpty() }
      } else {
        work.signal()
      }
    }

    /// Wakes the idle threads, so that they end.
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
        // The job leaves the array, so that it is released after it has run, and not below while the lock is held: it may
        // hold the last reference to these workers.
        let job = state.jobs[state.head]
        state.jobs[state.head] = Self.nothing
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
