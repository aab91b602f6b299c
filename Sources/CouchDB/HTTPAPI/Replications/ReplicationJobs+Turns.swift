import Fleece
import Storage
import Views

// When jobs run again: after a failure, and when others have had their turn.

extension ReplicationJobs {
  /// A run has failed: it is tried again after some time.
  func crash(_ job: ReplicationJob, _ error: CouchDBError) {
    let (count, waiters) = job.state.withLock {
      state -> (Int, [@Sendable (Result<JSONValue, CouchDBError>) -> Void]) in
      state.phase = .crashing
      // A job that ran well for some time begins to count again.
      if let run = state.run, ReplicationTime.now - run.began >= Self.healthySeconds { state.errorCount = 0 }
      state.run = nil
      state.error = error
      state.errorCount += 1
      state.note(.crashed, "\(error.error): \(error.reason)")
      defer { state.waiters = [] }
      return (state.errorCount, state.waiters)
    }
    for waiter in waiters { waiter(.failure(error)) }
    let delay = min(Self.firstWait * Double(UInt64(1) << UInt64(min(count - 1, 20))), Self.longestWait)
    let token = timer.schedule(after: delay) { [weak self, weak job] in
      guard let self, let job else { return }
      let isWaiting = job.state.withLock { state in
        guard !state.isRemoved, state.phase == .crashing else { return false }
        state.retry = nil
        state.phase = .pending
        return true
      }
      guard isWaiting else { return }
      state.withLock { $0.pending.append(job) }
      fill()
    }
    let isRemoved = job.state.withLock { state in
      if !state.isRemoved { state.retry = token }
      return state.isRemoved
    }
    if isRemoved { token.cancel() }
  }

  /// Lets continuous jobs that have run for long give way, as long as others wait.
  func takeTurns() {
    let needsTurn = state.withLock { !$0.pending.isEmpty && $0.turn == nil && !$0.isStopped }
    guard needsTurn else { return }
    let token = timer.schedule(after: Self.turnSeconds) { [weak self] in
      guard let self else { return }
      let (waiting, jobs) = state.withLock { state in
        state.turn = nil
        return (state.pending.count, Array(state.jobs.values))
      }
      let runs = jobs.compactMap { job in
        job.request.isContinuous ? job.state.withLock { $0.run }.map { (job, $0) } : nil
      }
      for (job, run) in runs.sorted(by: { ($0.1.began, $0.0.number) < ($1.1.began, $1.0.number) })
        .prefix(min(waiting, Self.turnCount))
      {
        job.state.withLock { $0.givesWay = true }
        run.stop()
      }
      takeTurns()
    }
    let isTaken = state.withLock { state in
      guard state.turn == nil, !state.isStopped else { return false }
      state.turn = token
      return true
    }
    if !isTaken { token.cancel() }
  }
}
