import Blobs
import Bytes
import Documents
import Fleece
import Logs
import Storage
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// One connection of a replicator, from its beginning to its end: checkpoints, push and pull.
///
/// Its state belongs to one thread, `work`. Pulled revisions are stored on another one. Neither waits for the peer.
final class Session: @unchecked Sendable {
  /// What the replicator hears of its session. Calls come from the session's thread.
  protocol Owner: AnyObject, Sendable {
    func sessionChanged(_ session: Session, isBusy: Bool, _ progress: ReplicatorStatus.Progress)
    func sessionReplicated(_ documents: [ReplicatedDocument])
    /// It has ended. Nil: everything is replicated.
    func sessionEnded(_ session: Session, _ error: ReplicationError?)
    /// How far the push has come. Called on any step.
    func sessionReached(_ session: Session, _ reached: PushReached)
    /// Whether anybody wants to know which documents are replicated.
    var wantsDocuments: Bool { get }
  }

  let configuration: ReplicatorConfiguration
  let peer: any Peer
  let remote: UInt32
  let work = Workers()
  let inserter: RevisionInserter
  let order = PullOrder()
  /// Answers to sent revisions that wait for the session's thread.
  let waitingAnswers = Lock<[Answered]>([])
  weak var owner: (any Owner)?

  // Used on the thread `work` only.
  var push: PushState?
  var pull: PullState?
  var checkpointer: Checkpointer
  private(set) var isEnded = false
  /// The documents that it asks for from the beginning in place of all changes (`Session+Fetching.swift`).
  let fetching: [String]?
  /// Whether that pull runs. It moves no checkpoint.
  private(set) var isFetching: Bool
  /// The documents that the next session has to ask for. Read by the replicator after the end.
  var unfetched: [String] = []
  var refusalToken: TimerToken?
  /// Whether what was refused in earlier runs was proposed.
  var hasProposedConflicts = false
  /// Whether the pull begins behind changes that an earlier session has pulled.
  private(set) var hadPulled = false
  /// Whether documents were replicated, or everything was, or a checkpoint was saved. Read by the replicator after the end.
  var hasProgressed = false
  private var firstCompleted: UInt64 = 0
  private var isStopping = false
  /// Whether it ends so that the next session tries again what has failed.
  private var isWindingDown = false
  private var isBegun = false
  private var hasPulledAgain = false
  private var wasBusy: Bool?
  private var lastTold = ReplicatorStatus.Progress()
  private var lastToldTime = -1.0
  var progress = ReplicatorStatus.Progress()
  private let isClosed = Lock(false)

  init(
    _ configuration: ReplicatorConfiguration, _ peer: any Peer, remote: UInt32, _ checkpointer: Checkpointer,
    _ progress: ReplicatorStatus.Progress, fetching: [String]? = nil
  ) {
    self.configuration = configuration
    self.fetching = fetching
    isFetching = fetching != nil
    self.peer = peer
    self.remote = remote
    self.checkpointer = checkpointer
    self.progress = progress
    firstCompleted = progress.completed
    inserter = RevisionInserter(configuration, peer, remote: remote, order)
  }

  /// The first failure that the next session may not have. It ends this one when there is nothing else to do; a continuous one,
  /// which may always have something to do, after a minute.
  private(set) var transientFailure: ReplicationError?
  private var failureToken: TimerToken?
  /// Seconds from that failure to the end of a continuous session.
  static let longestFailure = 60.0

  func failedTransiently(_ error: ReplicationError) {
    guard transientFailure == nil else { return }
    transientFailure = error
    guard configuration.isContinuous else { return }
    failureToken = configuration.timer.schedule(after: Self.longestFailure) { [weak self] in
      self?.enqueue { session in
        session.windDown()
        session.step()
      }
    }
  }

  /// Begins nothing new, and ends with the next step, so that another session follows.
  func windDown() { isWindingDown = true }

  var database: Database { configuration.database }

  // MARK: Steps

  /// Runs a step on the session's thread. An error of it ends the session.
  func enqueue(_ step: @escaping @Sendable (Session) throws -> Void) {
    work.enqueue { [weak self] in
      guard let self, !self.isEnded else { return }
      do { try step(self) } catch { self.end(ReplicationError(error)) }
    }
  }

  /// Begins. The checkpoints decide where.
  func start() {
    peer.begin(self)
    enqueue { session in
      let stored = try session.readCheckpoint()
      // Without a local checkpoint everything begins at once. Then only its revision on the other side is needed.
      if stored == nil { try session.begin(isFirst: !session.isReset) }
      session.tellStatus()
      session.peer.checkpoint(session.checkpointer.askedID) { [weak session] result in
        session?.enqueue { session in
          switch result {
          case .failure(let error): session.end(error)
          case .success(let remote):
            session.checkpointer.agree(local: stored, remote: remote)
            if stored != nil { try session.begin() }
            session.saveCheckpoint()
          }
        }
      }
    }
  }

  /// With `isFirst`, no session has stored a checkpoint.
  private func begin(isFirst: Bool = false) throws {
    isBegun = true
    hadPulled = checkpointer.pulled != nil
    // Marks of later changes will be those of this session.
    checkpointer.unproven = min(checkpointer.unproven, try database.replicating { try $0.lastSequence })
    // As long as there is none, the next session trusts as little.
    if isFirst { checkpointer.saved.unproven = checkpointer.unproven }
    if configuration.direction.pulls {
      if checkpointer.pulled == nil { checkpointer.pulled = configuration.startSequence }
      pull = PullState(reached: checkpointer.pulled)
      try beginPull()
    }
    if configuration.direction.pushes {
      if checkpointer.pushed == 0, !configuration.direction.pulls, let start = configuration.startSequence {
        checkpointer.pushed = UInt64(start.json) ?? 0
      }
      push = PushState(after: checkpointer.pushed)
      try beginPush()
    }
    step()
  }

  private func beginPull() throws {
    var request = PullRequest(since: checkpointer.pulled)
    request.isContinuous = configuration.isContinuous
    request.documentIDs = configuration.documentIDs
    request.wantsLostAccess = configuration.purgesOnLostAccess
    request.filter = configuration.filter
    request.filterParameters = configuration.filterParameters
    request.selector = configuration.selector
    request.onlyWinners = configuration.replicatesOnlyWinners
    if let channels = configuration.channels, !channels.isEmpty {
      request.filter = "sync_gateway/bychannel"
      request.channels = channels
      request.filterParameters["channels"] = .string(channels.joined(separator: ","))
    }
    if isFetching {
      request.since = nil
      request.documentIDs = fetching
    } else if configuration.skipsTombstonesOfFirstPull, checkpointer.pulled == nil {
      request.skipsTombstones = try database.replicating { try $0.lastSequence == 0 }
    }
    peer.pull(request, into: self) { [weak self] result in
      if case .failure(let error) = result { self?.enqueue { $0.end(error) } }
    }
  }

  // MARK: Status

  var isBusy: Bool {
    guard isBegun else { return true }
    if let push, !push.isIdle { return true }
    if let pull, !pull.isIdle { return true }
    // Another session follows.
    return configuration.isContinuous && pull != nil
      && (!unfetched.isEmpty || !(push?.refused.isEmpty ?? true))
  }

  /// Looks at what is done after a step: tells the status, saves the checkpoint when there is nothing to do, and ends a
  /// one-shot session.
  func step() {
    work.assertCurrent("a session")
    guard !isEnded, isBegun else { return }
    do { try sendForbiddenAgain() } catch { return end(ReplicationError(error)) }
    if var push {
      checkpointer.pushed = push.progress.reached ?? checkpointer.pushed
      if !trustsMarks, push.isIdle, push.scanned >= checkpointer.unproven, push.progress.open == 0,
        !push.progress.isStuck
      {
        checkpointer.unproven = 0
      }
      // The pull of a one-shot session may have resolved conflicts, whose results are pushed too.
      if !configuration.isContinuous, push.isIdle, let pull, pull.isIdle, !push.hasSeenPull {
        push.hasSeenPull = true
        self.push = push
        do {
          self.push?.end = try database.replicating { try $0.lastSequence }
          try scan()
        } catch { return end(ReplicationError(error)) }
        return step()
      }
      if !hasProposedConflicts, push.isIdle, pull?.isIdle ?? true {
        hasProposedConflicts = true
        do { try proposeConflicts() } catch { return end(ReplicationError(error)) }
        return step()
      }
      if !configuration.isContinuous, !stopsNewWork, push.isIdle || push.isFull, pull?.isIdle ?? true,
        !push.refused.isEmpty
      {
        do { try settleRefused() } catch { return end(ReplicationError(error)) }
        return step()
      }
    }
    if let pull { checkpointer.pulled = pull.progress.reached ?? checkpointer.pulled }
    owner?.sessionReached(
      self,
      PushReached(
        pushed: checkpointer.pushed, unproven: checkpointer.unproven, conflicts: checkpointer.openConflicts))
    if !configuration.isContinuous, !isStopping, !hasPulledAgain, let push, push.hasSent, push.isIdle,
      pull?.isIdle == true, peer.canPullAgain
    {
      hasPulledAgain = true
      // It may resolve conflicts too.
      self.push?.hasSeenPull = false
      isFetching = false
      pull?.hasCaughtUp = false
      do { try beginPull() } catch { return end(ReplicationError(error)) }
    }
    let isBusy = isBusy
    if !isBusy || progress.completed > firstCompleted { hasProgressed = true }
    tellStatus()
    if isStopping || isWindingDown {
      if pull?.stores ?? 0 == 0 { finish() }
    } else if !isBusy {
      if configuration.isContinuous, transientFailure == nil { saveCheckpoint() } else { finish() }
    } else {
      scheduleSave()
    }
  }

  private func tellStatus() {
    let isBusy = isBusy
    let now = configuration.timer.now
    guard isBusy != wasBusy || (progress != lastTold && now - lastToldTime >= 0.2) else { return }
    wasBusy = isBusy
    lastTold = progress
    lastToldTime = now
    owner?.sessionChanged(self, isBusy: isBusy, progress)
  }

  func replicated(_ documents: @autoclosure () -> [ReplicatedDocument]) {
    guard let owner, owner.wantsDocuments else { return }
    owner.sessionReplicated(documents())
  }

  // MARK: The end

  /// What it ends with.
  var outcome: ReplicationError? { isStopping ? nil : transientFailure }
  private(set) var isFinishing = false
  /// Whether the end waits for the peer as long as one that was asked for.
  private var endsSoon = false

  /// Saves the checkpoint for the last time and ends.
  private func finish() {
    guard !isFinishing || (isStopping && !endsSoon) else { return }
    endsSoon = isStopping
    // A peer that doesn't answer any more can't hold up the end.
    finishToken?.cancel()
    finishToken = configuration.timer.schedule(after: isStopping ? 2 : 60) { [weak self] in
      self?.enqueue { $0.end($0.outcome) }
    }
    guard !isFinishing else { return }
    isFinishing = true
    if checkpointer.canSave || !checkpointer.isDirty { saveCheckpoint() } else if isStopping { end(nil) }
  }
  private var finishToken: TimerToken?

  /// Ends what is new, and the session when what it stores is stored.
  func stop() {
    enqueue { session in
      session.isStopping = true
      guard session.isBegun else { return session.end(nil) }
      session.step()
    }
  }

  var stopsNewWork: Bool { isStopping || isWindingDown || isFinishing }

  func end(_ error: ReplicationError?) {
    guard !isEnded else { return }
    isEnded = true
    finishToken?.cancel()
    failureToken?.cancel()
    refusalToken?.cancel()
    checkpointer.token?.cancel()
    push?.observer?.cancel()
    isClosed.withLock { $0 = true }
    peer.close()
    reportRefused()
    owner?.sessionChanged(self, isBusy: wasBusy ?? true, progress)
    owner?.sessionEnded(self, error)
    push = nil
    pull = nil
  }
}

extension Session: PeerOwner {
  func connectionEnded(_ error: ReplicationError) { enqueue { $0.end(error) } }

  func openBlob(_ digest: BlobDigest) throws -> BlobReader {
    try database.replicating { try $0.requiredBlobs.open(digest) }
  }

  func makeBlobWriter() throws -> BlobWriter {
    try database.replicatingChanges { try $0.requiredBlobs.makeWriter() }
  }

  func storedBody(of documentID: String, _ revision: String) throws -> SyncBody? {
    try database.replicating { try $0.syncBody(of: documentID, revision) }
  }
}
