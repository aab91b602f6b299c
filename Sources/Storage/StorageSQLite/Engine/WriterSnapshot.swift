import Storage

/// The snapshot that the writer keeps from one transaction to the next.
///
/// A write transaction begins with a snapshot and then takes the lock of writers. To begin and to end the snapshot takes four
/// locks of the file, and the lock of writers two. So while commits follow each other, the writer's connection keeps its
/// snapshot: the library lets a connection write on top of a snapshot if nobody else has committed since. If somebody has, the
/// snapshot is given up, and the transaction begins with a new one.
///
/// A kept snapshot holds back the checkpoints of other processes. So it is given up after `ReaderPool.roundSeconds`, and before
/// each checkpoint of this process, after which the log starts again.
///
/// The queue of writers calls everything but `endRound`.
final class WriterSnapshot: @unchecked Sendable {
  private struct State {
    var isHeld = false
    /// Whether a transaction is open. Only its thread may then use the connection.
    var isUsed = false
    /// Whether the timer will call.
    var isTimed = false
    /// Whether the timer has called during the open transaction.
    var isOver = false
    /// When the last transaction ended.
    var lastEnd = 0.0
    var isClosed = false
  }

  private let connection: EngineConnection
  private let timer: any CallTimer
  private let state = Lock(State())

  init(_ connection: EngineConnection, timer: any CallTimer = SystemTimer()) {
    self.connection = connection
    self.timer = timer
  }

  var isHeld: Bool { state.withLock { $0.isHeld } }

  /// Call it before a transaction begins. Each call is followed by one of `leave`.
  func use() {
    state.withLock { state in
      state.isUsed = true
      guard state.isHeld, !connection.kept.isCurrent else { return }
      connection.kept.isOutdated()
      letGo(&state)
    }
  }

  /// Keeps the snapshot of the open transaction, if commits follow each other. Call it before the commit.
  func hold() {
    state.withLock { state in
      guard !state.isHeld else { return connection.kept.reuse() }
      guard !state.isClosed, ReaderPool.coarseTime - state.lastEnd < ReaderPool.roundSeconds,
        connection.kept.decide(1), (try? connection.kept.findIndex(connection.connection)) != nil,
        connection.kept.hasIndex
      else { return }
      connection.kept.begin()
      state.isHeld = connection.holdSnapshot()
      guard state.isHeld, !state.isTimed else { return }
      state.isTimed = true
      timer.schedule(after: ReaderPool.roundSeconds) { [weak self] in self?.endRound() }
    }
  }

  /// Call it after a transaction has ended. Only a commit leaves a snapshot that is worth keeping.
  func leave(afterCommit: Bool) {
    state.withLock { state in
      state.isUsed = false
      state.lastEnd = ReaderPool.coarseTime
      if state.isHeld {
        if afterCommit, !state.isOver { connection.kept.renew() } else { letGo(&state) }
      }
      state.isOver = false
    }
  }

  /// Gives the snapshot up.
  func giveUp() { state.withLock { letGo(&$0) } }

  /// Gives the snapshot up for good.
  func close() {
    state.withLock { state in
      state.isClosed = true
      letGo(&state)
    }
  }

  private func endRound() {
    state.withLock { state in
      state.isTimed = false
      if state.isUsed { state.isOver = true } else { letGo(&state) }
    }
  }

  private func letGo(_ state: inout State) {
    guard state.isHeld else { return }
    state.isHeld = false
    connection.letGoOfSnapshot()
  }
}
