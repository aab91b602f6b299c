#if canImport(Glibc)
  import Glibc
#endif

/// A pool of threads for work that may block. Jobs don't run on Swift's cooperative pool.
///
/// Jobs start in the order in which they were enqueued, and at most `maximum` run at a time. With a maximum
/// of 1 they run one after another. A thread starts when there is work for it, and ends after ten seconds
/// without work, so unused workers cost nothing. When the workers are released, the remaining jobs still run.
/// Then the threads end.
///
/// A job that waits for something outside, such as a client, says so with `whileBlocked`. Up to `spare` such jobs don't count, and
/// others run beside them.
package final class Workers: Sendable {
  /// A job to run.
  package typealias Job = @Sendable () -> Void

  private static let idleSeconds = 10.0
  private let shared: Shared

  /// Makes workers with at most `maximum` threads (1 or more), and up to `spare` more while that many jobs are blocked. No thread
  /// starts yet.
  package init(maximum: Int = 1, spare: Int = 0) {
    shared = Shared(maximum: max(1, maximum), spare: max(0, spare))
  }

  deinit { shared.release() }

  /// Enqueues a job. It runs on a worker thread; if the system can't start any thread, it runs on the calling
  /// thread.
  package func enqueue(_ job: @escaping Job) { shared.enqueue(job) }

  /// Runs `body`, which waits for something outside. On a thread of workers another job may run meanwhile.
  package static func whileBlocked<Result>(_ body: () throws -> Result) rethrows -> Result {
    guard let own = pthread_getspecific(Shared.key) else { return try body() }
    let shared = Unmanaged<Shared>.fromOpaque(own).takeUnretainedValue()
    guard shared.spare > 0 else { return try body() }
    shared.block()
    defer { shared.unblock() }
    return try body()
  }

  /// Whether jobs wait although as many jobs are blocked as don't count.
  package var isStarved: Bool {
    shared.state.withLock { shared.spare > 0 && $0.blocked >= shared.spare && $0.jobs.count > $0.head }
  }

  /// The state that the threads hold. It may outlive the `Workers` object.
  private final class Shared: Sendable {
    struct State {
      var jobs: [Job] = []
      var head = 0
      var running = 0
      var idle = 0
      /// Jobs that wait for something outside. They are among the running ones.
      var blocked = 0
      /// Whether the `Workers` object is gone, so that no more jobs come.
      var isReleased = false
    }
    private static let nothing: Job = {}
    /// Gives the workers that a thread belongs to.
    static let key = {
      var key = pthread_key_t()
      pthread_key_create(&key, nil)
      return key
    }()
    let maximum: Int
    let spare: Int
    let state = Lock(State())
    private let work = CountingSemaphore()

    init(maximum: Int, spare: Int) {
      self.maximum = maximum
      self.spare = spare
    }

    /// The threads that count.
    private func active(_ state: State) -> Int { state.running - min(state.blocked, spare) }

    func enqueue(_ job: @escaping Job) {
      let isNewNeeded = state.withLock { state in
        state.jobs.append(job)
        guard state.jobs.count - state.head > state.idle, active(state) < maximum else { return false }
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

    func block() {
      let isNewNeeded = state.withLock { state in
        state.blocked += 1
        guard state.jobs.count - state.head > state.idle, active(state) < maximum else { return false }
        state.running += 1
        return true
      }
      if isNewNeeded, !startThread() { state.withLock { $0.running -= 1 } }
    }

    func unblock() { state.withLock { $0.blocked -= 1 } }

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
      pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
      while true {
        runUntilEmpty()
        let isWaiting = state.withLock { state in
          if state.isReleased || active(state) > maximum { return false }
          state.idle += 1
          return true
        }
        let isWork = isWaiting && work.wait(seconds: Workers.idleSeconds)
        let isOver = state.withLock { state in
          if isWaiting { state.idle -= 1 }
          // Those that were blocked go on, and there are enough of them.
          let isSpare = !isWaiting && active(state) > maximum
          guard isSpare || (state.isReleased || !isWork) && state.head == state.jobs.count else {
            return false
          }
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
        guard state.head < state.jobs.count, active(state) <= maximum else { return nil }
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
