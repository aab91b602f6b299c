// A peer that does something in the middle of a session.

import Blobs
import Documents
import Storage

@testable import Replication

/// Calls a closure between the answer to the first proposal and the sending.
final class HookConnector: PeerConnector {
  let inner: any PeerConnector
  let body: @Sendable () -> Void
  let unavailable = Lock<[String]>([])
  let isDone = Lock(false)
  /// Documents that the user of the pull can't read any more.
  let lost = Lock<[String]>([])
  init(inner: any PeerConnector, _ body: @escaping @Sendable () -> Void) {
    self.inner = inner
    self.body = body
  }
  var remoteID: String { inner.remoteID }
  var name: String { inner.name }
  func connect(_ options: ConnectionOptions, _ done: @escaping Completion<any Peer>) {
    inner.connect(options) { done($0.map { HookPeer($0, self) }) }
  }

  private final class HookPeer: Peer {
    let inner: any Peer
    let hook: HookConnector
    init(_ inner: any Peer, _ hook: HookConnector) {
      self.inner = inner
      self.hook = hook
    }
    var canPullAgain: Bool { inner.canPullAgain }
    var exchangesLeaves: Bool { inner.exchangesLeaves }
    func nameCheckpoint(_ id: String, _ names: LegacyCheckpointNames) { inner.nameCheckpoint(id, names) }
    func begin(_ owner: any PeerOwner) { inner.begin(owner) }
    func checkpoint(_ id: String, _ done: @escaping Completion<StoredCheckpoint?>) {
      inner.checkpoint(id, done)
    }
    func setCheckpoint(
      _ id: String, _ json: [UInt8], basedOn revision: String, _ done: @escaping Completion<String>
    ) { inner.setCheckpoint(id, json, basedOn: revision, done) }
    func pull(_ request: PullRequest, into sink: any PullSink, _ done: @escaping Completion<Void>) {
      // Once all is offered, the session may end.
      defer { inner.pull(request, into: sink, done) }
      let lost = hook.lost.withLock { $0 }
      guard !lost.isEmpty else { return }
      let changes = lost.map { id in
        var change = OfferedChange(
          sequence: RemoteSequence(json: "0"), id: id, revision: "1-a", isDeleted: false)
        change.isAccessLost = true
        return change
      }
      sink.offered(changes) { _ in }
    }
    func fetchBlob(
      _ blob: MissingBlob, of documentID: String, into writer: BlobWriter, _ done: @escaping Completion<Void>
    ) { inner.fetchBlob(blob, of: documentID, into: writer, done) }
    func propose(
      _ changes: [ProposedChange], allowingConflicts: Bool, _ done: @escaping Completion<ProposalAnswer>
    ) {
      inner.propose(changes, allowingConflicts: allowingConflicts) { [hook] answer in
        let isFirst = hook.isDone.withLock { isDone in
          defer { isDone = true }
          return !isDone
        }
        if isFirst { hook.body() }
        done(answer)
      }
    }
    func send(_ revisions: [OutgoingRevision], _ answered: @escaping @Sendable ([SendAnswer]) -> Void) {
      inner.send(revisions, answered)
    }
    func unavailable(_ revisions: [UnavailableRevision]) {
      hook.unavailable.withLock { $0 += revisions.map { "\($0.id) \($0.code)" } }
      inner.unavailable(revisions)
    }
    func close() { inner.close() }
  }
}
