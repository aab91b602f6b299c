import Bytes
import Documents
import Logs
import Storage
import Touchstone

/// Replicates a database with another one.
///
/// ```swift
/// let replicator = Replicator(ReplicatorConfiguration(notes, .database(copy)))
/// replicator.start()
/// for await status in replicator.statusChanges where status.activity == .stopped { break }
/// ```
///
/// It works on threads of its own, and may be used from any thread. It ends when it is stopped, when its database is
/// closed, and when the last reference to it goes.
public final class Replicator: Sendable {
  /// What it does. A copy: later changes of the original have no effect.
  public let configuration: ReplicatorConfiguration
  private let runner: ReplicatorRunner

  /// Creates a replicator. It does nothing until `start()`.
  public init(_ configuration: ReplicatorConfiguration) {
    self.configuration = configuration
    runner = ReplicatorRunner(configuration)
  }

  deinit { runner.stop() }

  /// Starts it. Does nothing if it runs. The local database must stay open.
  public func start() { runner.start() }

  /// Stops it: what has begun to be stored is stored, and the checkpoint is saved. Returns at once; the status says when
  /// it has stopped.
  public func stop() { runner.stop() }

  /// Makes the next start forget how far earlier replications came.
  public func resetCheckpoint() { runner.resetCheckpoint() }

  /// Says that the network is there, or has changed: a lost connection is made again at once.
  public func networkChanged() { runner.networkChanged() }

  /// The present status.
  public var status: ReplicatorStatus { runner.status }

  /// The present status and those that follow. A slow reader gets the latest one. After `start()`, the next `stopped` is
  /// the end of what was started.
  public var statusChanges: AsyncStream<ReplicatorStatus> {
    AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
      let token = runner.observe { continuation.yield($0) }
      continuation.yield(runner.status)
      continuation.onTermination = { _ in token.cancel() }
    }
  }

  /// Calls `handler` on a background thread with each new status, one call at a time, until the token is cancelled or
  /// released.
  public func observeStatus(_ handler: @escaping @Sendable (ReplicatorStatus) -> Void) -> ReplicatorToken {
    ReplicatorToken(runner.observe(handler))
  }

  /// Calls `handler` on a background thread with the documents that were replicated, or couldn't be, until the token is
  /// cancelled or released.
  public func observeDocuments(_ handler: @escaping @Sendable ([ReplicatedDocument]) -> Void)
    -> ReplicatorToken
  {
    ReplicatorToken(runner.observeDocuments(handler))
  }

  /// The bytes that were sent and received over the network since the replicator was made, with all its connections. Zeros
  /// for a database of this process.
  public var transferredBytes: (sent: UInt64, received: UInt64) {
    let traffic = runner.traffic
    return (traffic.sentBytes, traffic.receivedBytes)
  }

  /// The messages that were sent and received over the network since the replicator was made, as the protocol counts
  /// them.
  package var transferredMessages: (sent: UInt64, received: UInt64) {
    let traffic = runner.traffic
    return (traffic.sentMessages, traffic.receivedMessages)
  }

  /// How far it has come, as the local database has it stored: the local sequence up to which all is pushed, and the remote
  /// one up to which all is stored here; zero and nil at the beginning.
  package func savedCheckpoint() throws -> (pushed: UInt64, pulled: RemoteSequence?) {
    let checkpoint = try runner.savedCheckpoint() ?? Checkpoint()
    return (checkpoint.pushed, checkpoint.pulled)
  }

  /// The IDs of documents whose current revision isn't pushed yet, as far as is known. Where it is doubted whether the other side still
  /// has what was pushed, that is pending until the other side has said so. Empty if the replicator doesn't push.
  public func pendingDocumentIDs() throws -> Set<String> { try runner.pendingDocumentIDs() }

  /// Whether the current revision of the document isn't pushed yet.
  public func isDocumentPending(_ id: String) throws -> Bool { try runner.isPending(id) }
}

/// Ends the calls of a handler, also when the last reference to it goes.
public final class ReplicatorToken: Sendable {
  private let token: TimerToken

  init(_ token: TimerToken) { self.token = token }
  deinit { token.cancel() }

  /// Ends the calls. One that has begun completes.
  public func cancel() { token.cancel() }
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
  private let reached = Lock<(pushed: UInt64, unproven: UInt64)?>(nil)

  // Used on the thread `work` only.
  private var isRunning = false
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
    show(.connecting)
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
    isReset = true
    let session = Session(configuration, peer, remote: remote, own, progress)
    session.owner = self
    self.session = session
    countTraffic(of: peer)
    session.start()
  }

  /// The checkpoint's IDs, and the number of the remote database.
  private func prepare(_ configuration: ReplicatorConfiguration, _ peer: (any Peer)? = nil) throws -> (
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
    session = nil
    reached.withLock { $0 = nil }
    if error?.isOfAnotherDatabase ?? false { forgetCheckpoint() }
    guard isRunning else { return }
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

  // MARK: Pending documents

  func pendingDocumentIDs() throws -> Set<String> {
    guard configuration.direction.pushes else { return [] }
    var pending: Set<String> = []
    try forEachPending { pending.insert($0.id) }
    return pending
  }

  func isPending(_ id: String) throws -> Bool {
    guard configuration.direction.pushes else { return false }
    let base = try pendingBase()
    return try configuration.database.replicating { store in
      guard let change = try store.syncChange(of: id, remote: base.remote), change.sequence > base.pushed
      else {
        return false
      }
      return try isPending(change, base, store)
    }
  }

  private func isPending(_ change: SyncChange, _ base: PendingBase, _ store: DocumentStore) throws -> Bool {
    // A session proposes what is marked and doubted, and so does this.
    if change.sequence > base.unproven, let known = change.known, known.hasSameBytes(as: change.revision) {
      return false
    }
    if let ids = configuration.documentIDs, !ids.contains(where: { $0.hasSameBytes(as: change.id) }) {
      return false
    }
    guard let filter = configuration.pushFilter else { return true }
    let wanted = SyncWanted(id: change.id, revision: change.revision, ancestors: [], maximumHistory: 0)
    guard case .revision(let revision) = try store.syncRevisions([wanted])[0] else { return false }
    return try filter(FilteredRevision(revision))
  }

  /// The stored checkpoint; nil if there is none.
  func savedCheckpoint() throws -> Checkpoint? {
    let (checkpointer, _) = try prepare(configuration)
    return try configuration.database.replicating { store in
      for id in [checkpointer.id, checkpointer.askedID] {
        if let json = try store.syncCheckpoint(id) { return Checkpoint(json: json) }
      }
      return nil
    }
  }

  /// What decides whether a change is pending.
  private struct PendingBase {
    /// The sequence up to which all is pushed.
    let pushed: UInt64
    /// The last sequence whose mark isn't trusted.
    let unproven: UInt64
    /// The number of the remote database.
    let remote: UInt32
  }

  /// From the present session, or what the next one finds.
  private func pendingBase() throws -> PendingBase {
    let (_, remote) = try prepare(configuration)
    if let reached = reached.withLock({ $0 }) {
      return PendingBase(pushed: reached.pushed, unproven: reached.unproven, remote: remote)
    }
    let saved = try savedCheckpoint()
    // Without a checkpoint, a session doubts all marks.
    return PendingBase(pushed: saved?.pushed ?? 0, unproven: saved?.unproven ?? .max, remote: remote)
  }

  private func forEachPending(_ body: (SyncChange) -> Void) throws {
    let base = try pendingBase()
    var since = base.pushed
    while true {
      let begin = since
      let (changes, reached) = try configuration.database.replicating { store in
        let (changes, reached) = try store.syncChanges(
          after: begin, upTo: store.lastSequence, limit: 1_000, remote: base.remote)
        return (try changes.filter { try isPending($0, base, store) }, changes.count < 1_000 ? nil : reached)
      }
      for change in changes { body(change) }
      guard let reached else { return }
      since = reached
    }
  }
}

extension ReplicatorRunner: Session.Owner {
  var wantsDocuments: Bool { shown.withLock { !$0.documentHandlers.isEmpty } }

  func sessionChanged(_ session: Session, isBusy: Bool, _ progress: ReplicatorStatus.Progress) {
    enqueue { runner in
      guard runner.session === session else { return }
      runner.progress = progress
      runner.show(isBusy || !runner.configuration.isContinuous ? .busy : .idle)
    }
  }

  func sessionReached(_ session: Session, pushed: UInt64, unproven: UInt64) {
    reached.withLock { $0 = (pushed, unproven) }
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
