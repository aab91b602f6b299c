import Blobs
import Documents
import Fleece
import Storage

/// One connection of a relay, to both sides, from its beginning to its end.
///
/// Its state belongs to the relay's thread.
final class RelaySession: @unchecked Sendable {
  private let relay: Relay
  private let source: any RelayingPeer
  private let target: any RelayingPeer
  private var owners: [End] = []

  // Used on the relay's thread only.
  private var queue = SequenceQueue<RemoteSequence>()
  /// The revisions that have no outcome yet.
  private var awaited: [PullState.Key: Int] = [:]
  private var progress: ReplicatorStatus.Progress
  private var isBegun = false
  private var hasCaughtUp = false
  private var isStopping = false
  private var isFinishing = false
  private var isEnded = false
  private var isSaving = false
  /// What is recorded on both sides.
  private var saved: RemoteSequence?
  private var saveToken: TimerToken?
  private var failureToken: TimerToken?
  private var finishToken: TimerToken?
  /// Whether it has replicated anything, or was at the end. Read by the relay after the end.
  private(set) var hasProgressed = false
  /// The first failure that the next session may not have, and where it was.
  private(set) var transientFailure: ReplicationError?

  init(
    _ relay: Relay, _ source: any RelayingPeer, _ target: any RelayingPeer,
    _ progress: ReplicatorStatus.Progress
  ) {
    self.relay = relay
    self.source = source
    self.target = target
    self.progress = progress
  }

  private var configuration: RelayConfiguration { relay.configuration }

  private func enqueue(_ step: @escaping @Sendable (RelaySession) -> Void) {
    relay.work.enqueue { [self] in if !isEnded { step(self) } }
  }

  // MARK: The beginning

  func start() {
    owners = [End(self, .source), End(self, .target)]
    source.begin(owners[0])
    target.begin(owners[1])
    guard let name = configuration.checkpointName, let recorder = relay.recorder else {
      return begin(at: configuration.request.since)
    }
    read(name, of: source, .source) { session, there in
      session.read(name, of: session.target, .target) { session, here in
        let agreed = recorder.agree(source: there, target: here)
        session.saved = agreed
        session.relay.saved(at: agreed)
        session.begin(at: agreed ?? session.configuration.request.since)
      }
    }
  }

  private func read(
    _ name: String, of peer: any RelayingPeer, _ side: RelaySide,
    _ done: @escaping @Sendable (RelaySession, JSONObject?) -> Void
  ) {
    peer.localDocument(name) { [weak self] result in
      self?.enqueue { session in
        switch result {
        case .success(let document): done(session, document)
        case .failure(let error): session.end(error, Relay.Failure(side, false))
        }
      }
    }
  }

  private func begin(at sequence: RemoteSequence?) {
    isBegun = true
    queue = SequenceQueue(reached: sequence)
    guard !isStopping else { return step() }
    var request = configuration.request
    request.since = sequence
    source.relay(request, to: target, into: self) { [weak self] result in
      guard case .failure(let error) = result else { return }
      self?.enqueue { $0.end(error, Relay.Failure(.source, false)) }
    }
    step()
  }

  // MARK: Steps

  private var isIdle: Bool { hasCaughtUp && awaited.isEmpty }

  private func step() {
    guard !isEnded, isBegun else { return }
    showStatus()
    if configuration.checkpointName == nil { relay.saved(at: queue.reached) }
    if isIdle { hasProgressed = true }
    if isStopping || isIdle && (!configuration.request.isContinuous || transientFailure != nil) {
      finish()
    } else {
      scheduleSave()
    }
  }

  private func showStatus() {
    relay.show(isIdle && configuration.request.isContinuous ? .idle : .busy, progress)
  }

  private func failedTransiently(_ error: ReplicationError) {
    guard transientFailure == nil else { return }
    transientFailure = error
    // A continuous session may always have something else to do.
    failureToken = configuration.timer.schedule(after: Session.longestFailure) { [weak self] in
      self?.enqueue { $0.finish() }
    }
  }

  // MARK: Checkpoints

  private var isDirty: Bool { queue.reached != saved }

  private func scheduleSave() {
    guard configuration.checkpointName != nil, isDirty, !isSaving, saveToken == nil else { return }
    saveToken = configuration.timer.schedule(after: configuration.checkpointDelay) { [weak self] in
      self?.enqueue { session in
        session.saveToken = nil
        session.save()
      }
    }
  }

  /// Records on both sides what is reached, unless that is being done.
  private func save() {
    guard !isSaving else { return }
    let reached = queue.reached
    showStatus()
    guard let name = configuration.checkpointName, let record = relay.recorder?.record(at: reached) else {
      saved = reached
      if isFinishing { end(outcome, nil) }
      return
    }
    isSaving = true
    // What is reached meanwhile doesn't hold up the end.
    let isLast = isFinishing
    write(name, record, to: source, .source) { session in
      session.write(name, record, to: session.target, .target) { session in
        session.isSaving = false
        session.saved = reached
        session.relay.saved(at: reached)
        session.hasProgressed = true
        if isLast {
          session.end(session.outcome, nil)
        } else if session.isFinishing {
          session.save()
        } else {
          session.step()
        }
      }
    }
  }

  private func write(
    _ name: String, _ record: JSONObject, to peer: any RelayingPeer, _ side: RelaySide,
    _ done: @escaping @Sendable (RelaySession) -> Void
  ) {
    peer.saveLocalDocument(name, record) { [weak self] result in
      self?.enqueue { session in
        switch result {
        case .success: done(session)
        case .failure(let error): session.end(error, Relay.Failure(side, true))
        }
      }
    }
  }

  // MARK: The end

  private var outcome: ReplicationError? { isStopping ? nil : transientFailure }

  /// Ends what is new. What is on its way to the target may still arrive there.
  func stop() {
    isStopping = true
    if isBegun { finish() } else { end(nil, nil) }
  }

  private func finish() {
    // A server that doesn't answer any more can't hold up a stop. Otherwise its requests end by themselves.
    if isStopping, finishToken == nil {
      finishToken = configuration.timer.schedule(after: 2) { [weak self] in
        self?.enqueue { $0.end(nil, nil) }
      }
    }
    guard !isFinishing else { return }
    isFinishing = true
    save()
  }

  private func end(_ error: ReplicationError?, _ failure: Relay.Failure?) {
    guard !isEnded else { return }
    isEnded = true
    for token in [saveToken, failureToken, finishToken] { token?.cancel() }
    source.close()
    target.close()
    relay.sessionEnded(self, error, failure)
  }

  /// Hears of the end of a connection.
  private final class End: PeerOwner {
    private weak let session: RelaySession?
    private let side: RelaySide

    init(_ session: RelaySession, _ side: RelaySide) {
      self.session = session
      self.side = side
    }

    func connectionEnded(_ error: ReplicationError) {
      let side = side
      session?.enqueue { $0.end(error, Relay.Failure(side, false)) }
    }

    // Nothing is stored here.
    func openBlob(_ digest: BlobDigest) throws -> BlobReader { throw Self.nothing }
    func makeBlobWriter() throws -> BlobWriter { throw Self.nothing }
    func storedBody(of documentID: String, _ revision: String) throws -> SyncBody? { nil }

    private static let nothing = ReplicationError(.http, 404, "a relay stores no attachments")
  }
}

extension RelaySession: RelaySink {
  func offered(_ changes: [OfferedChange]) {
    enqueue { session in
      for change in changes {
        let ticket = session.queue.append(change.sequence)
        let key = PullState.Key(id: change.id, revision: change.revision)
        if let earlier = session.awaited.updateValue(ticket, forKey: key) {
          session.queue.complete(earlier)
          session.progress.completed += 1
        }
      }
      session.progress.total += UInt64(changes.count)
      session.step()
    }
  }

  func settled(_ outcomes: [RelayOutcome]) {
    enqueue { session in
      var documents: [ReplicatedDocument] = []
      for outcome in outcomes {
        let key = PullState.Key(id: outcome.id, revision: outcome.offered)
        guard let ticket = session.awaited.removeValue(forKey: key) else { continue }
        session.progress.completed += 1
        var failure: (error: ReplicationError, isUndone: Bool)?
        switch outcome.result {
        case .known, .unavailable:
          session.queue.complete(ticket)
          continue
        case .written:
          session.queue.complete(ticket)
          session.hasProgressed = true
        case .failed(let error, let isUndone):
          failure = (error, isUndone)
          if isUndone { session.queue.abandon(ticket) } else { session.queue.complete(ticket) }
          if isUndone, error.isTransient { session.failedTransiently(error) }
        }
        documents.append(
          ReplicatedDocument(
            id: outcome.id, revisionID: outcome.revision, isDeleted: outcome.isDeleted, isPush: true,
            error: failure?.error, isUndone: failure?.isUndone ?? false))
      }
      session.relay.tell(documents)
      session.step()
    }
  }

  func caughtUp(at sequence: RemoteSequence?) {
    enqueue { session in
      session.hasCaughtUp = true
      if let sequence { session.queue.pass(sequence) }
      session.step()
    }
  }
}
