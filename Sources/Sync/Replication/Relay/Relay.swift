import Fleece
import Logs
import Storage

/// Replicates from one database to another one, of which neither is here: sessions one after the other, as
/// `Replicator` has them.
///
/// All calls may come from any thread. Handlers are called on its own thread, one at a time. It stays alive
/// while it runs.
package final class Relay: RunningReplication, @unchecked Sendable {
  let configuration: RelayConfiguration
  let work = Workers()
  /// Decides what is recorded. It isn't kept alive. Set before the start.
  package weak var recorder: (any RelayRecorder)?

  private struct Shown {
    var status = ReplicatorStatus()
    /// What the handlers were told last, and when.
    var told = ReplicatorStatus()
    var toldTime = -1.0
    var next = 0
    var statusHandlers: [Int: @Sendable (ReplicatorStatus) -> Void] = [:]
    var documentHandlers: [Int: @Sendable ([ReplicatedDocument]) -> Void] = [:]
    var saved: RemoteSequence?
    var failure: Failure?
  }
  private let shown = Lock(Shown())

  /// Which side a relay has failed at.
  package struct Failure: Sendable {
    package let side: RelaySide
    /// Whether its checkpoint couldn't be stored there.
    package let isOfCheckpoint: Bool
  }

  // Used on the thread `work` only.
  private var isRunning = false
  private var isStopping = false
  private var session: RelaySession?
  private var generation = 0
  private var retries = 0
  /// The retries before the present connection.
  private var earlierRetries = 0
  private var retryToken: TimerToken?
  private var own: Relay?

  package init(_ configuration: RelayConfiguration) { self.configuration = configuration }

  private func enqueue(_ step: @escaping @Sendable (Relay) -> Void) { work.enqueue { [self] in step(self) } }

  // MARK: What is shown

  package var status: ReplicatorStatus { shown.withLock { $0.status } }
  /// The sequence of the source that both sides have recorded; without checkpoints the one that is reached.
  package var savedSequence: RemoteSequence? { shown.withLock { $0.saved } }
  /// Where the last connection has failed; nil if it hasn't.
  package var failure: Failure? { shown.withLock { $0.failure } }

  package func observeStatus(_ handler: @escaping @Sendable (ReplicatorStatus) -> Void) -> ReplicatorToken {
    let number = shown.withLock { shown in
      shown.next += 1
      shown.statusHandlers[shown.next] = handler
      return shown.next
    }
    return ReplicatorToken(
      TimerToken { [weak self] in self?.shown.withLock { $0.statusHandlers[number] = nil } })
  }

  package func observeDocuments(_ handler: @escaping @Sendable ([ReplicatedDocument]) -> Void)
    -> ReplicatorToken
  {
    let number = shown.withLock { shown in
      shown.next += 1
      shown.documentHandlers[shown.next] = handler
      return shown.next
    }
    return ReplicatorToken(
      TimerToken { [weak self] in self?.shown.withLock { $0.documentHandlers[number] = nil } })
  }

  /// Shows a state. Handlers hear of progress at most five times a second.
  func show(
    _ activity: ReplicatorStatus.Activity, _ progress: ReplicatorStatus.Progress? = nil,
    _ error: ReplicationError? = nil
  ) {
    let now = configuration.timer.now
    let (status, handlers) = shown.withLock { shown in
      let status = ReplicatorStatus(
        activity: activity, progress: progress ?? shown.status.progress, error: error)
      shown.status = status
      let isTold = activity == shown.told.activity && error == shown.told.error
      guard !isTold || progress != shown.told.progress && now - shown.toldTime >= 0.2 else {
        return (status, [@Sendable (ReplicatorStatus) -> Void]())
      }
      (shown.told, shown.toldTime) = (status, now)
      return (status, shown.statusHandlers.sorted { $0.key < $1.key }.map(\.value))
    }
    for handler in handlers { handler(status) }
  }

  func tell(_ documents: [ReplicatedDocument]) {
    guard !documents.isEmpty else { return }
    for (_, handler) in shown.withLock({ $0.documentHandlers.sorted { $0.key < $1.key } }) {
      handler(documents)
    }
  }

  func saved(at sequence: RemoteSequence?) { shown.withLock { $0.saved = sequence } }

  // MARK: Start and stop

  package func start() {
    enqueue { relay in
      guard !relay.isRunning else { return }
      relay.isRunning = true
      relay.isStopping = false
      relay.own = relay
      relay.retries = 0
      relay.shown.withLock { ($0.status.progress, $0.failure) = (ReplicatorStatus.Progress(), nil) }
      relay.connect()
    }
  }

  package func stop() {
    enqueue { relay in
      guard relay.isRunning else { return }
      relay.isStopping = true
      if let session = relay.session { session.stop() } else { relay.stopped(nil) }
    }
  }

  private func stopped(_ error: ReplicationError?) {
    isRunning = false
    generation += 1
    retryToken?.cancel()
    retryToken = nil
    show(.stopped, nil, error)
    own = nil
  }

  // MARK: Connections

  private func connect() {
    generation += 1
    show(.connecting)
    connect(.source) { relay, source in
      // The target isn't made for a source that isn't there.
      relay.connect(.target) { relay, target in
        relay.begin(source, target)
      } failed: {
        source.close()
      }
    } failed: {
    }
  }

  private func connect(
    _ side: RelaySide, _ done: @escaping @Sendable (Relay, any RelayingPeer) -> Void,
    failed: @escaping @Sendable () -> Void
  ) {
    let generation = generation
    let (target, options) =
      side == .source
      ? (configuration.source, configuration.sourceConnection)
      : (configuration.target, configuration.targetConnection)
    target.connector.connect(options) { [self] result in
      enqueue { relay in
        guard relay.isRunning, relay.generation == generation else {
          if case .success(let peer) = result { peer.close() }
          return failed()
        }
        switch result {
        case .success(let peer as any RelayingPeer): done(relay, peer)
        case .success(let peer):
          peer.close()
          failed()
          relay.ended(
            ReplicationError(
              .network, ReplicationError.NetworkCode.invalidURL.rawValue,
              "nothing can be relayed by way of \(target.connector.name)"), Failure(side, false))
        case .failure(let error):
          failed()
          relay.ended(error, Failure(side, false))
        }
      }
    }
  }

  private func begin(_ source: any RelayingPeer, _ target: any RelayingPeer) {
    earlierRetries = retries
    retries = 0
    let session = RelaySession(self, source, target, status.progress)
    self.session = session
    session.start()
  }

  /// A session has ended; without an error everything is replicated, or it was stopped.
  func sessionEnded(_ ended: RelaySession, _ error: ReplicationError?, _ failure: Failure?) {
    guard session === ended else { return }
    // What a document met isn't better with a new connection alone, and one that has brought nothing isn't either.
    if let error, ended.transientFailure == error || !ended.hasProgressed { retries = earlierRetries }
    session = nil
    self.ended(error, failure)
  }

  private func ended(_ error: ReplicationError?, _ failure: Failure?) {
    guard isRunning else { return }
    guard let error, !(isStopping && error.isTransient) else { return stopped(nil) }
    shown.withLock { $0.failure = failure }
    let mayRetry =
      !isStopping
      && (error.isTransient || configuration.request.isContinuous && error.dependsOnNetwork)
    let most = configuration.maximumRetries ?? (configuration.request.isContinuous ? Int.max : 2)
    guard mayRetry, retries < most else {
      Log.write(.warning, .sync, configuration.source.connector.name, "a replication stopped: \(error)")
      return stopped(error)
    }
    retries += 1
    let usual = min(retries > 30 ? Double.infinity : Double(1 << retries), configuration.maximumRetryWait)
    // A server that says when to come again is believed, up to an hour.
    let delay = max(usual, min(error.retryAfter ?? 0, 3_600))
    let generation = generation
    retryToken = configuration.timer.schedule(after: delay) { [weak self] in
      self?.enqueue { relay in
        guard relay.isRunning, relay.generation == generation, relay.retryToken != nil else { return }
        relay.retryToken = nil
        relay.connect()
      }
    }
    show(.offline, nil, error)
  }
}

extension Relay.Failure {
  init(_ side: RelaySide, _ isOfCheckpoint: Bool) {
    (self.side, self.isOfCheckpoint) = (side, isOfCheckpoint)
  }
}
