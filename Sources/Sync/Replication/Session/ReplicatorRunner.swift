import Bytes
import Documents
import Logs
import Storage
import Touchstone

/// How far the push of a session has come: the last sequence, the last one whose mark isn't trusted, and the documents that were
/// refused before.
struct PushReached: Sendable {
  var pushed: UInt64
  var unproven: UInt64
  var conflicts: OpenConflicts
}

/// Runs the sessions of a replicator, one after the other.
final class ReplicatorRunner: @unchecked Sendable {
  let configuration: ReplicatorConfiguration
  private let work = Workers()
  /// Calls the handlers.
  private let telling = Workers()

  private struct Shown {
    var status = ReplicatorStatus()
    var next = 0
    var statusHandlers: [Int: @Sendable (ReplicatorStatus) -> Void] = [:]
    var documentHandlers: [Int: @Sendable ([ReplicatedDocument]) -> Void] = [:]
  }
  private let shown = Lock(Shown())
  /// The bytes of earlier connections, and the peer of the present one.
  private let peers = Lock((earlier: PeerTraffic(), present: (any Peer)?.none))
  /// The number of documents that handlers weren't told of yet, and the most of them.
  private let untold = Lock(0)
  private static let maximumUntold = 20_000
  /// How far the present session has come; nil without one, or before it has begun.
  let reached = Lock<PushReached?>(nil)

  // Used on the thread `work` only.
  private var isRunning = false
  /// Whether the end was asked for: no other session follows.
  private var isStopping = false
  /// The documents that the present session, or the next one, asks for from the beginning.
  private var fetching: [String]?
  /// The conflicts that this start has told.
  private var told = ToldConflicts()
  private var session: Session?
  private var generation = 0
  private var retries = 0
  private var retryToken: TimerToken?
  private var wantsReset = false
  private var isReset = false
  private var closeHandler: Int?
  private var progress = ReplicatorStatus.Progress()
  /// The retries before the present connection.
  private var earlierRetries = 0
  /// Keeps it alive while it runs.
  private var own: ReplicatorRunner?

  init(_ configuration: ReplicatorConfiguration) {
    var configuration = configuration
    configuration.connection.cookies = CookieJar(configuration.database)
    self.configuration = configuration
    wantsReset = configuration.resetsCheckpoint
  }

  var status: ReplicatorStatus { shown.withLock { $0.status } }

  var traffic: PeerTraffic { peers.withLock { $0.earlier + ($0.present?.traffic ?? PeerTraffic()) } }

  /// Counts the bytes of another connection from now on; nil: of none.
  private func countTraffic(of peer: (any Peer)?) {
    peers.withLock { peers in
      peers.earlier = peers.earlier + (peers.present?.traffic ?? PeerTraffic())
      peers.present = peer
    }
  }

  private func enqueue(_ step: @escaping @Sendable (ReplicatorRunner) -> Void) {
    work.enqueue { [self] in step(self) }
  }

  // MARK: Observers

  func observe(_ handler: @escaping @Sendable (ReplicatorStatus) -> Void) -> TimerToken {
    let number = shown.withLock { shown in
      shown.next += 1
      shown.statusHandlers[shown.next] = handler
      return shown.next
    }
    return TimerToken { [weak self] in self?.shown.withLock { $0.statusHandlers[number] = nil } }
  }

  func observeDocuments(_ handler: @escaping @Sendable ([ReplicatedDocument]) -> Void) -> TimerToken {
    let number = shown.withLock { shown in
      shown.next += 1
      shown.documentHandlers[shown.next] = handler
      return shown.next
    }
    return TimerToken { [weak self] in self?.shown.withLock { $0.documentHandlers[number] = nil } }
  }

  private func show(_ activity: ReplicatorStatus.Activity, _ error: ReplicationError? = nil) {
    let status = ReplicatorStatus(activity: activity, progress: progress, error: error)
    let isNew = shown.withLock { shown in
      defer { shown.status = status }
      return shown.status != status && !shown.statusHandlers.isEmpty
    }
    if isNew { tell(status) }
  }

  private func tell(_ status: ReplicatorStatus) {
    telling.enqueue { [self] in
      for (_, handler) in shown.withLock({ $0.statusHandlers.sorted { $0.key < $1.key } }) {
        handler(status)
      }
    }
  }

  // MARK: Start and stop

  func start() {
    // Who waits for the end from now on must not find that of an earlier run, or that nothing has begun.
    let status = ReplicatorStatus(activity: .connecting)
    let isNew = shown.withLock { shown in
      guard shown.status.activity == .stopped else { return false }
      shown.status = status
      return !shown.statusHandlers.isEmpty
    }
    if isNew { tell(status) }
    enqueue { runner in
      guard !runner.isRunning else { return }
      runner.isRunning = true
      runner.isStopping = false
      runner.fetching = nil
      runner.told = ToldConflicts()
      runner.own = runner
      runner.isReset = false
      runner.retries = 0
      runner.progress = ReplicatorStatus.Progress()
      runner.closeHandler = runner.configuration.database.addCloseHandler { [weak runner] in
        runner?.enqueue { $0.stopNow() }
      }
      runner.connect()
    }
  }

  func stop() {
    enqueue { runner in
      guard runner.isRunning else { return }
      runner.isStopping = true
      if let session = runner.session {
        session.stop()
      } else {
        runner.stopped(nil)
      }
    }
  }

  /// The database was closed.
  private func stopNow() {
    closeHandler = nil
    guard isRunning else { return }
    generation += 1
    session?.enqueue { $0.end(nil) }
    session = nil
    reached.withLock { $0 = nil }
    stopped(nil)
  }

  func resetCheckpoint() { enqueue { $0.wantsReset = true } }

  func networkChanged() {
    enqueue { runner in
      guard runner.isRunning, runner.session == nil, runner.retryToken != nil else { return }
      runner.retryToken?.cancel()
      runner.retryToken = nil
      runner.retries = 0
      runner.connect()
    }
  }

  private func stopped(_ error: ReplicationError?) {
    isRunning = false
    countTraffic(of: nil)
    generation += 1
    retryToken?.cancel()
    retryToken = nil
    if let closeHandler { configuration.database.removeCloseHandler(closeHandler) }
    closeHandler = nil
    own = nil
    show(.stopped, error)
  }

  // MARK: Connections

  private func connect() {
    generation += 1
    let generation = generation
    // For observers, a look at some documents once more belongs to the connection before.
    show(fetching == nil ? .connecting : .busy)
    configuration.target.connector.connect(configuration.connection) { [weak self] result in
      guard let self else {
        if case .success(let peer) = result { peer.close() }
        return
      }
      self.enqueue { runner in
        guard runner.isRunning, runner.generation == generation else {
          if case .success(let peer) = result { peer.close() }
          return
        }
        switch result {
        case .failure(let error): runner.ended(error)
        case .success(let peer):
          do { try runner.begin(peer) } catch {
            peer.close()
            runner.ended(ReplicationError(error))
          }
        }
      }
    }
  }

  private func begin(_ peer: any Peer) throws {
    earlierRetries = retries
    retries = 0
    var configuration = configuration
    configuration.resetsCheckpoint = wantsReset
    let (checkpointer, remote) = try prepare(configuration, peer)
    var own = checkpointer
    own.wasReset = isReset
    own.told = told
    // It ends when it has what it asks for.
    if fetching != nil { configuration.isContinuous = false }
    isReset = true
    let session = Session(configuration, peer, remote: remote, own, progress, fetching: fetching)
    session.owner = self
    self.session = session
    countTraffic(of: peer)
    session.start()
  }

  /// The checkpoint's IDs, and the number of the remote database.
  func prepare(_ configuration: ReplicatorConfiguration, _ peer: (any Peer)? = nil) throws -> (
    Checkpointer, UInt32
  ) {
    let checkpointID = configuration.checkpointID
    return try configuration.database.replicating { store in
      let id = try checkpointID.text(store.privateUUID)
      var asked = id
      // A copy goes on where its original has stopped.
      if try store.syncCheckpoint(id) == nil, let previous = try store.previousPrivateUUID {
        let older = try checkpointID.text(previous)
        if try store.syncCheckpoint(older) != nil {
          asked = older
          peer?.nameCheckpoint(older, try checkpointID.legacyNames(previous))
        }
      }
      peer?.nameCheckpoint(id, try checkpointID.legacyNames(store.privateUUID))
      return (Checkpointer(id: id, askedID: asked), try store.remoteNumber(checkpointID.remoteID))
    }
  }

  private func ended(_ error: ReplicationError?) {
    // What a document met isn't better with a new connection alone, and a connection that has brought nothing isn't either.
    if let session, let error, session.transientFailure == error || !session.hasProgressed {
      retries = earlierRetries
    }
    let ended = session
    if let ended { told = ended.checkpointer.told }
    session = nil
    reached.withLock { $0 = nil }
    if error?.isOfAnotherDatabase ?? false { forgetCheckpoint() }
    guard isRunning else { return }
    if isStopping {
      wantsReset = false
      return stopped(error.flatMap { $0.isTransient ? nil : $0 })
    }
    if error == nil, let ended, configuration.database.isOpenForReplication, follows(ended) {
      return connect()
    }
    // A close ends it without an error.
    guard var error, configuration.database.isOpenForReplication else {
      wantsReset = false
      return stopped(nil)
    }
    let isNormalClose = error.domain == .webSocket && error.code == 1000
    // This side didn't begin it: the peer goes away.
    if isNormalClose { error = ReplicationError(.webSocket, 1001, error.message) }
    let mayRetry =
      isNormalClose
      ? configuration.retriesAfterNormalClose
      : error.isTransient || configuration.isContinuous && error.dependsOnNetwork
    let most = configuration.maximumRetries ?? (configuration.isContinuous ? Int.max : 2)
    guard mayRetry, retries < most else {
      Log.write(.warning, .sync, configuration.database.path, "a replication stopped: \(error)")
      return stopped(error)
    }
    retries += 1
    let usual = min(retries > 30 ? Double.infinity : Double(1 << retries), configuration.maximumRetryWait)
    // A server that says when to come again is believed, up to an hour.
    let delay = max(usual, min(error.retryAfter ?? 0, 3_600))
    let generation = generation
    retryToken = configuration.timer.schedule(after: delay) {
      [weak self] in
      self?.enqueue { runner in
        guard runner.isRunning, runner.generation == generation, runner.retryToken != nil else { return }
        runner.retryToken = nil
        runner.connect()
      }
    }
    // Who hears this may count on the retry: it is scheduled.
    show(.offline, error)
  }

  /// Whether another session follows one that has ended without an error: it left documents to ask for, or it has asked for them
  /// and the replicator goes on.
  private func follows(_ ended: Session) -> Bool {
    let hasFetched = fetching != nil
    fetching = ended.unfetched.isEmpty ? nil : ended.unfetched
    return fetching != nil || hasFetched && configuration.isContinuous
  }

  /// The next session begins anew, and doesn't believe what is marked as known there.
  private func forgetCheckpoint() {
    do {
      let (checkpointer, _) = try prepare(configuration)
      try configuration.database.replicatingChanges { store in
        var forgotten = Checkpoint()
        forgotten.unproven = try store.lastSequence
        try store.setSyncCheckpoint(checkpointer.id, forgotten.json(time: nil))
      }
    } catch {
      Log.write(
        .warning, .sync, configuration.database.path, "a replication can't forget its checkpoint: \(error)")
    }
  }
}

extension ReplicatorRunner: Session.Owner {
  var wantsDocuments: Bool { shown.withLock { !$0.documentHandlers.isEmpty } }

  func sessionChanged(_ session: Session, isBusy: Bool, _ progress: ReplicatorStatus.Progress) {
    enqueue { runner in
      guard runner.session === session else { return }
      runner.progress = progress
      runner.show(isBusy || !runner.configuration.isContinuous || runner.fetching != nil ? .busy : .idle)
    }
  }

  func sessionReached(_ session: Session, _ reached: PushReached) {
    self.reached.withLock { $0 = reached }
  }

  func sessionReplicated(_ documents: [ReplicatedDocument]) {
    guard !documents.isEmpty else { return }
    let waiting = untold.withLock { untold in
      untold += documents.count
      return untold
    }
    telling.enqueue { [self] in
      // Sorted under the lock: the thread sanitizer doesn't see how dictionaries count their owners.
      for (_, handler) in shown.withLock({ $0.documentHandlers.sorted { $0.key < $1.key } }) {
        handler(documents)
      }
      untold.withLock { $0 -= documents.count }
    }
    // A slow handler slows down the replication, so that memory stays bounded.
    guard waiting > Self.maximumUntold else { return }
    let told = CountingSemaphore()
    telling.enqueue { told.signal() }
    told.wait()
  }

  func sessionEnded(_ session: Session, _ error: ReplicationError?) {
    enqueue { runner in
      guard runner.session === session else { return }
      runner.ended(error)
    }
  }
}
