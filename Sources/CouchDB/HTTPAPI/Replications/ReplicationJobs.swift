import Bytes
import Fleece
import Logs
import Storage
import Views

/// The replications of a server: starts them, as many at a time as may run, tries those again that have failed, and ends them.
///
/// All calls may come from any thread.
final class ReplicationJobs: Sendable {
  /// The most jobs of requests that are known at a time, running or waiting.
  static let mostRequests = 5_000
  /// The first wait after a failure in seconds, and the longest. Each wait is twice the one before.
  static let (firstWait, longestWait) = (30.0, 8 * 3_600.0)
  /// Who ran for so long was well, in seconds.
  static let healthySeconds = 120
  /// So often jobs that run give way to others that wait, in seconds, and so many at a time.
  static let (turnSeconds, turnCount) = (60.0, 20)

  struct State {
    var jobs: [String: ReplicationJob] = [:]
    /// The jobs that wait for their turn, the first one first.
    var pending: [ReplicationJob] = []
    /// How many run.
    var running = 0
    var next = 1
    var isStopped = false
    var turn: TimerToken?
  }

  let finder: ReplicationFinder
  let timer: any CallTimer
  private let maximum: Int
  let state = Lock(State())
  /// Opens databases and prepares runs.
  private let workers = Workers(maximum: 4)
  /// Called when a job of a document has ended for good, or another job has taken its place.
  private let onEnd = Lock<EndHandler?>(nil)

  init(_ finder: ReplicationFinder, maximum: Int, timer: any CallTimer) {
    self.finder = finder
    self.maximum = max(1, maximum)
    self.timer = timer
  }

  typealias EndHandler = @Sendable (ReplicationJob, Result<JSONValue, CouchDBError>?) -> Void

  /// Calls `handler` with each job of a document that has ended for good, on any thread; with nil when another job has taken its place.
  func whenJobEnds(_ handler: @escaping EndHandler) { onEnd.withLock { $0 = handler } }

  // MARK: Adding and removing

  /// What came of a job that was to be added.
  enum Added {
    case new(ReplicationJob)
    /// One does the same already. Whoever waits for the new one waits for that.
    case known(ReplicationJob)
    /// One does the same with another login or other headers, or for another user. Nobody joins it.
    case other(ReplicationJob)
    /// There are too many, or the server ends.
    case refused
  }

  /// Adds a job, or finds the one with the same ID.
  ///
  /// A job that has failed and waits for its next try is tried at once when somebody asks for the same. For another user, it gives way
  /// if that user may do what it can't. Who has asked before, and waits until no other job does the same, changes nothing of that
  /// (`isAskedAnew`).
  func add(
    _ request: ReplicationRequest, user: String?, _ origin: ReplicationJob.Origin, isAskedAnew: Bool = true,
    waiter: (@Sendable (Result<JSONValue, CouchDBError>) -> Void)? = nil
  ) -> Added {
    let id = request.id
    // Asked here, since databases may have to be opened.
    let mayDisplace: Bool
    if isAskedAnew, let job = job(id), !job.does(request, for: user), job.isCrashing {
      mayDisplace = finder.surelyHasRights(request, for: user)
    } else {
      mayDisplace = false
    }
    var displaced: ReplicationJob?
    let added = state.withLock { state -> Added in
      guard !state.isStopped else { return .refused }
      if let job = state.jobs[id] {
        if job.does(request, for: user) {
          if let waiter { job.state.withLock { $0.waiters.append(waiter) } }
          if isAskedAnew, job.wake() { state.pending.append(job) }
          return .known(job)
        }
        guard mayDisplace, job.isCrashing else { return .other(job) }
        displaced = job
      }
      if origin == .request, state.jobs.count >= Self.mostRequests { return .refused }
      let job = ReplicationJob(state.next, request, user: user, origin)
      state.next += 1
      if let waiter { job.state.withLock { $0.waiters.append(waiter) } }
      state.jobs[id] = job
      state.pending.append(job)
      return .new(job)
    }
    if let displaced { displace(displaced) }
    fill()
    return added
  }

  /// Ends a job that waited for its next try. Another one has its ID now.
  private func displace(_ job: ReplicationJob) {
    // Nobody waits for it: who asks has it tried.
    _ = job.markRemoved()
    if job.origin.documentID != nil { onEnd.withLock { $0 }?(job, nil) }
  }

  /// The job with an ID; nil if there is none.
  func job(_ id: String) -> ReplicationJob? { state.withLock { $0.jobs[id] } }

  /// Removes a job, and ends what runs of it. Those who wait for it are told. `ended` is called when nothing of it runs any more.
  func remove(_ job: ReplicationJob, _ ended: (@Sendable () -> Void)? = nil) {
    let isKnown = state.withLock { state in
      guard state.jobs[job.id] === job else { return false }
      state.jobs[job.id] = nil
      state.pending.removeAll { $0 === job }
      return true
    }
    guard isKnown else {
      ended?()
      return
    }
    let (run, waiters) = job.markRemoved(ended)
    run?.stop()
    if run == nil { ended?() }
    for waiter in waiters { waiter(.failure(CouchDBError(500, "error", "the replication was cancelled"))) }
  }

  /// Ends all jobs, and returns when none runs any more, or after so many seconds. Nothing starts afterwards.
  func stop(seconds: Double) {
    let (jobs, turn) = state.withLock { state in
      state.isStopped = true
      defer { state.turn = nil }
      return (Array(state.jobs.values), state.turn)
    }
    turn?.cancel()
    for job in jobs { remove(job) }
    let deadline = ContinuousClock.now + .milliseconds(Int64(seconds * 1_000))
    let pause = CountingSemaphore()
    while state.withLock({ $0.running > 0 }), ContinuousClock.now < deadline {
      _ = pause.wait(seconds: 0.005)
    }
  }

  /// All jobs, in the order of their beginnings.
  var all: [ReplicationJob] { state.withLock { Array($0.jobs.values) }.sorted { $0.number < $1.number } }

  /// The number of jobs that run.
  var runningCount: Int { state.withLock { $0.running } }

  // MARK: Running

  /// Starts jobs that wait, as many as may run.
  func fill() {
    let jobs = state.withLock { state -> [ReplicationJob] in
      guard !state.isStopped else { return [] }
      let count = min(maximum - state.running, state.pending.count)
      guard count > 0 else { return [] }
      defer { state.pending.removeFirst(count) }
      state.running += count
      return Array(state.pending[..<count])
    }
    for job in jobs { workers.enqueue { [self] in begin(job) } }
    takeTurns()
  }

  private func begin(_ job: ReplicationJob) {
    do {
      let ends = try ReplicationEnds(job.request, for: job.user, finder)
      let run = try ReplicationRun(job.request, ends, finder, timer)
      let isRemoved = job.state.withLock { state in
        guard !state.isRemoved else { return true }
        state.run = run
        state.phase = .running
        state.error = nil
        state.note(.started)
        return false
      }
      guard !isRemoved else { return release() }
      run.start { [self] end in ended(job, end) }
      // A removal may have come before the start.
      if job.state.withLock({ $0.isRemoved }) { run.stop() }
    } catch let error as CouchDBError {
      ended(job, .failed(error, isFinal: error.status == 400 || error.status == 501))
    } catch {
      Log.write(.warning, .sync, nil, "a replication can't begin: \(LogText.of(error))")
      ended(job, .failed(CouchDBError(500, "error", "\(error)"), isFinal: false))
    }
  }

  private func ended(_ job: ReplicationJob, _ end: ReplicationRun.End) {
    defer { release() }
    // A removal may come at any moment until here.
    defer {
      let waiters = job.state.withLock { state in
        defer { state.endWaiters = [] }
        return state.endWaiters
      }
      for waiter in waiters { waiter() }
    }
    let (isRemoved, givesWay) = job.state.withLock { state in
      defer {
        state.givesWay = false
        if state.isRemoved { state.run = nil }
      }
      return (state.isRemoved, state.givesWay)
    }
    guard !isRemoved else { return }
    switch end {
    case .finished(let answer):
      if job.request.isContinuous {
        // It was asked to give way; or something else has stopped it.
        givesWay ? wait(job) : crash(job, CouchDBError(500, "error", "the replication was stopped"))
      } else {
        complete(job, .success(answer))
      }
    case .revoked(let error):
      Log.write(.info, .sync, nil, "the replication \(job.id) has lost its rights: \(error.reason)")
      // A document stays, and may be allowed again. A request has nobody who would see that.
      if job.origin == .request { complete(job, .failure(error)) } else { crash(job, error) }
    case .failed(let error, let isFinal):
      Log.write(.info, .sync, nil, "the replication \(job.id) has failed: \(error.error)")
      if isFinal || job.origin == .request && !job.request.isContinuous {
        complete(job, .failure(error))
      } else {
        crash(job, error)
      }
    }
  }

  private func release() {
    state.withLock { $0.running -= 1 }
    fill()
  }

  /// Lets a job wait for its next turn.
  private func wait(_ job: ReplicationJob) {
    let isWaiting = job.state.withLock { state in
      guard !state.isRemoved else { return false }
      state.phase = .pending
      state.run = nil
      state.note(.stopped)
      return true
    }
    if isWaiting { state.withLock { $0.pending.append(job) } }
  }

  /// A job has ended for good.
  private func complete(_ job: ReplicationJob, _ result: Result<JSONValue, CouchDBError>) {
    state.withLock { state in if state.jobs[job.id] === job { state.jobs[job.id] = nil } }
    let waiters = job.state.withLock { state in
      state.isRemoved = true
      switch result {
      case .success:
        state.phase = .completed
        state.errorCount = 0
      case .failure(let error):
        state.phase = .failed
        state.error = error
        state.errorCount += 1
      }
      state.note(.stopped)
      defer { state.waiters = [] }
      return state.waiters
    }
    if job.origin.documentID != nil { onEnd.withLock { $0 }?(job, result) }
    for waiter in waiters { waiter(result) }
  }
}
