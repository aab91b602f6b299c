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
/// One thread is on its way to the jobs at a time: it wakes the next one when it has taken a job and there are more. Many short jobs
/// wake few threads so, because those that run take them first.
///
/// In a forked child the threads aren't there: the first job that is enqueued there starts one anew, and the parent's jobs are left
/// to the parent.
///
/// A job that waits for something outside, such as a client, says so with `whileBlocked`. Up to `spare` such jobs don't count, and
/// others run beside them.
@usableFromInline package final class Workers: Sendable {
  /// A job to run.
  package typealias Job = @Sendable () -> Void

  private let shared: Shared

  /// Makes workers with at most `maximum` threads (1 or more), and up to `spare` more while that many jobs are blocked. No thread
  /// starts yet.
  package convenience init(maximum: Int = 1, spare: Int = 0) {
    self.init(maximum: maximum, spare: spare, idleSeconds: 10)
  }

  /// Makes workers whose threads end after so many seconds without work.
  init(maximum: Int, spare: Int, idleSeconds: Double) {
    shared = Shared(maximum: max(1, maximum), spare: max(0, spare), idleSeconds: idleSeconds)
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

  /// Ends the process unless the calling thread runs a job of these workers: see `ThreadChecker`. With one thread, what its
  /// jobs use needs no lock.
  @inlinable
  package func assertCurrent(_ subject: StaticString) {
    #if THREAD_CHECKS
      check(subject)
    #endif
  }

  #if THREAD_CHECKS
    @usableFromInline func check(_ subject: StaticString) {
      let own = pthread_getspecific(Shared.key)
      // Without any thread, jobs run where they are enqueued.
      if own == Unmanaged.passUnretained(shared).toOpaque() || shared.state.withLock({ $0.running }) == 0 {
        return
      }
      ThreadChecker.fail("\(subject) is used outside of its workers")
    }
  #endif

  /// Whether jobs wait although as many jobs are blocked as don't count.
  package var isStarved: Bool {
    shared.state.withLock { shared.spare > 0 && $0.blocked >= shared.spare && $0.jobs.count > $0.head }
  }

  /// Waits until no job runs or waits, but for the one that calls this, at most so many seconds. Returns whether that is so. Whoever
  /// enqueues jobs meanwhile makes it wait for them too.
  package func waitUntilQuiet(seconds: Double) -> Bool { shared.waitUntilQuiet(seconds: seconds) }

  /// The state that the threads hold. It may outlive the `Workers` object.
  private final class Shared: Sendable {
    struct State {
      var jobs: [Job] = []
      var head = 0
      var running = 0
      var idle = 0
      /// Whether a thread was woken or started for the jobs, and hasn't looked at them yet.
      var isWaking = false
      /// Jobs that wait for something outside. They are among the running ones.
      var blocked = 0
      /// Whether the `Workers` object is gone, so that no more jobs come.
      var isReleased = false
      /// The number of forks before the threads were started.
      var forks = ForkCount.register()
      /// Who waits until no job is left, with the number of their own threads among those that run: 0 or 1.
      var whenQuiet: [(semaphore: CountingSemaphore, own: Int)] = []

      /// Whether no job waits, and none runs but for so many.
      func isQuiet(but own: Int) -> Bool { head == jobs.count && running - idle <= own }

      /// Forgets the threads of the parent if this is a forked child.
      mutating func noticeFork() {
        guard _slowPath(forks != ForkCount.now) else { return }
        // What its jobs hold stays: to release it here could end what is the parent's.
        if head < jobs.count { _ = Unmanaged.passRetained(Left(jobs)) }
        self = State()
      }

      /// A thread has no work any more.
      mutating func wakeThoseWhoWait() {
        guard !whenQuiet.isEmpty else { return }
        let all = whenQuiet
        whenQuiet = all.filter { !isQuiet(but: $0.own) }
        for waiting in all where isQuiet(but: waiting.own) { waiting.semaphore.signal() }
      }
    }
    /// Jobs of a parent.
    private final class Left {
      let jobs: [Job]
      init(_ jobs: [Job]) { self.jobs = jobs }
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
    let idleSeconds: Double
    let state = Lock(State())
    private let work = CountingSemaphore()

    init(maximum: Int, spare: Int, idleSeconds: Double) {
      self.maximum = maximum
      self.spare = spare
      self.idleSeconds = idleSeconds
    }

    /// The threads that count.
    private func active(_ state: State) -> Int { state.running - min(state.blocked, spare) }

    /// How a thread comes to the jobs.
    private enum Wake { case idle, new, none }

    func enqueue(_ job: @escaping Job) {
      let wake = state.withLock { state in
        state.noticeFork()
        state.jobs.append(job)
        return nextWake(&state)
      }
      // Without a new thread, running ones will take the job. If there are none, it runs here.
      if !perform(wake), state.withLock({ $0.running }) == 0 { runUntilEmpty() }
    }

    func block() {
      let wake = state.withLock { state in
        state.blocked += 1
        return nextWake(&state)
      }
      perform(wake)
    }

    func unblock() { state.withLock { $0.blocked -= 1 } }

    /// Decides whether one more thread is needed. If so, `perform` has to be called without the lock.
    private func nextWake(_ state: inout State) -> Wake {
      guard !state.isWaking, state.head < state.jobs.count else { return .none }
      if state.idle > 0 {
        state.isWaking = true
        return .idle
      }
      guard active(state) < maximum else { return .none }
      state.running += 1
      state.isWaking = true
      return .new
    }

    /// Returns false if a thread was to be started and couldn't be.
    @discardableResult
    private func perform(_ wake: Wake) -> Bool {
      switch wake {
      case .none: break
      case .idle: work.signal()
      case .new:
        guard !startThread() else { break }
        let mayBeIdle = state.withLock { state in
          state.running -= 1
          state.isWaking = state.idle > 0
          return state.isWaking
        }
        if mayBeIdle { work.signal() }
        return false
      }
      return true
    }

    func waitUntilQuiet(seconds: Double) -> Bool {
      let own = pthread_getspecific(Self.key) == Unmanaged.passUnretained(self).toOpaque() ? 1 : 0
      let semaphore = CountingSemaphore()
      let isQuiet = state.withLock { state in
        state.noticeFork()
        if state.isQuiet(but: own) { return true }
        state.whenQuiet.append((semaphore, own))
        return false
      }
      if isQuiet || semaphore.wait(seconds: max(0, seconds)) { return true }
      // It may have become quiet just now.
      return state.withLock { state in
        state.whenQuiet.removeAll { $0.semaphore === semaphore }
        return state.isQuiet(but: own)
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

    /// What a thread does next.
    private enum Step {
      case run(Job, Wake)
      case wait
      case end(Wake)
    }

    private func run() {
      pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
      // A thread is started for the jobs.
      var (isWoken, isIdle, isOver) = (true, false, false)
      while true {
        let step = state.withLock { state -> Step in
          if isIdle { state.idle -= 1 }
          if isWoken { state.isWaking = false }
          if let job = next(&state) { return .run(job, isWoken ? nextWake(&state) : .none) }
          // Those that were blocked go on, and there are enough of them; or there are no jobs any more.
          if active(state) > maximum || state.isReleased || isOver {
            state.running -= 1
            defer { state.wakeThoseWhoWait() }
            return .end(nextWake(&state))
          }
          state.idle += 1
          state.wakeThoseWhoWait()
          return .wait
        }
        switch step {
        case .run(let job, let wake):
          perform(wake)
          job()
          (isWoken, isIdle, isOver) = (false, false, false)
        case .wait:
          let isWork = work.wait(seconds: idleSeconds)
          (isWoken, isIdle, isOver) = (true, true, !isWork)
        case .end(let wake):
          perform(wake)
          return
        }
      }
    }

    private func runUntilEmpty() {
      while let job = state.withLock({ next(&$0) }) { job() }
    }

    private func next(_ state: inout State) -> Job? {
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
