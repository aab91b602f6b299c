import Storage

/// Runs jobs one after another, in their order, on threads that many lanes may share.
///
/// A connection has several lanes. A listener with thousands of connections has a few threads.
package final class JobLane: Sendable {
  package typealias Job = Workers.Job

  private struct State {
    var jobs: [Job] = []
    var isRunning = false
  }

  /// After so many jobs other lanes take their turn.
  private static let jobsInTurn = 64

  private let pool: Workers
  private let state = Lock(State())
  private let thread = ThreadChecker("what a lane's jobs use")

  /// Makes a lane on the threads of a pool. Without one it has a thread of its own while it has work.
  package init(on pool: Workers? = nil) { self.pool = pool ?? Workers() }

  /// Runs a job after those that were enqueued before.
  package func enqueue(_ job: @escaping Job) {
    let isFirst = state.withLock { state in
      state.jobs.append(job)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    if isFirst { pool.enqueue { [self] in run() } }
  }

  /// Ends the process unless the calling thread runs a job of this lane: see `ThreadChecker`.
  package func assertCurrent() { thread.assertCurrent() }

  private func run() {
    var count = 0
    while count < Self.jobsInTurn {
      let jobs = state.withLock { state in
        defer { state.jobs = [] }
        if state.jobs.isEmpty { state.isRunning = false }
        return state.jobs
      }
      if jobs.isEmpty { return }
      thread.enter()
      for job in jobs { job() }
      thread.leave()
      count += jobs.count
    }
    pool.enqueue { [self] in run() }
  }
}
