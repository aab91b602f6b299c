import HTTP
import Storage
import Touchstone

/// What a feed does now, and what was noted for it meanwhile. `own` is what one kind of feed has beside that.
struct FeedState<Own> {
  enum Phase {
    /// A thread has it, or the client is waited for.
    case running
    case waiting
    case ended
  }

  var phase = Phase.running
  /// There may be something that wasn't looked at.
  var hasNews = true
  /// Its time has come.
  var isDue = false
  var isClosed = false
  var isTimed = false
  /// When its time comes.
  var deadline = 0.0
  var sink: (any HTTPBodySink)?
  var grant: StandingRights.Grant?
  var own: Own
}

/// A feed that waits for more. It has no thread while it waits for news, for its time or for the client.
///
/// It runs on one thread at a time: `phase` says whether anybody has it. What happens meanwhile is noted, and looked at before it waits
/// again, so any number of events make one run. A feed that waits for the client doesn't read.
protocol WaitingFeed: TimedFeed {
  associatedtype Own
  var state: Lock<FeedState<Own>> { get }
  var watches: DatabaseWatches { get }
  var rights: StandingRights { get }
  /// The seconds from bytes to a heartbeat, or to the end.
  var interval: Double { get }

  /// Does what is to be done next, until it has to wait.
  func run()
  /// It has ended, and isn't woken any more.
  func leave()
}

extension WaitingFeed {
  /// Keeps where to send, and begins its time.
  func begin(_ sink: any HTTPBodySink) {
    state.withLock { state in
      state.sink = sink
      state.deadline = watches.timers.timer.now + interval
    }
  }

  /// Ends it when the user hasn't got the right any more.
  func holdRight(_ user: UserContext, _ right: Right, _ database: Database?) {
    guard let grant = rights.grant(user, right, database, { [weak self] _ in self?.close() }) else { return }
    state.withLock { $0.grant = grant }
  }

  // MARK: Events

  /// Who follows may not any more, or there is nothing to follow: the database is closed, or the server stops.
  func close() { notice { $0.isClosed = true } }

  /// Notes something, and goes on if it waits.
  func notice(_ note: (inout FeedState<Own>) -> Void) {
    let runs = state.withLock { state in
      note(&state)
      guard state.phase == .waiting else { return false }
      state.phase = .running
      return true
    }
    if runs { runLater() }
  }

  /// Its time may have come. Returns when to ask again; nil if it asks itself.
  func tick(now: Double) -> Double? {
    let (next, runs) = state.withLock { state -> (Double?, Bool) in
      guard state.phase == .waiting else {
        state.isTimed = false
        return (nil, false)
      }
      guard state.deadline <= now + 0.001 else { return (state.deadline, false) }
      state.isTimed = false
      state.isDue = true
      state.phase = .running
      return (nil, true)
    }
    if runs { runLater() }
    return next
  }

  private func runLater() { watches.workers.enqueue { [self] in run() } }

  // MARK: Sending

  /// Sends bytes, and goes on when the client has taken enough of them.
  func offer(_ bytes: [UInt8], extends: Bool = true) {
    let sink = state.withLock { state in
      if extends, !bytes.isEmpty { state.deadline = watches.timers.timer.now + interval }
      return state.sink
    }
    guard let sink else { return }
    guard !bytes.isEmpty else { return runLater() }
    sink.offer(bytes) { [self] error in
      if error != nil { return end(isWhole: false) }
      runLater()
    }
  }

  /// Sends the last bytes, if there are any, and ends.
  func finish(_ tail: String) {
    guard let sink = state.withLock({ $0.sink }), !tail.isEmpty else { return end(isWhole: true) }
    sink.offer(Array(tail.utf8)) { [self] error in end(isWhole: error == nil) }
  }

  func end(isWhole: Bool) {
    let (sink, grant) = state.withLock { state in
      state.phase = .ended
      defer { (state.sink, state.grant) = (nil, nil) }
      return (state.sink, state.grant)
    }
    if let grant { rights.end(grant) }
    guard let sink else { return }
    leave()
    if isWhole { sink.finish() } else { sink.fail() }
  }
}
