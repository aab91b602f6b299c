import Blobs
import Bytes
import Documents
import Fleece
import Network
import Replication
import Storage
import Transport

/// The other side of a replication over HTTP: CouchDB, PouchDB's server, Couchbase Lite 1.x, Sync Gateway, or a listener of
/// this library.
///
/// All leaves go both ways. Requests that fail for a moment are repeated; when that doesn't help, the connection counts as
/// lost.
package final class HTTPPeer: Peer {
  private struct State {
    weak var owner: (any PeerOwner)?
    var isClosed = false
    var pull: HTTPPull?
    /// The generation of the newest revision that the other side has of a document that is about to be sent.
    var knownGenerations: [ByteString: [String]] = [:]
  }

  /// The most documents of which it is kept what the other side has.
  private static let maximumKnown = 10_000

  let requester: DatabaseRequester
  private let state = Lock(State())
  private let pushLane = JobLane()
  private let outbox: DocumentOutbox
  let checkpoints: HTTPCheckpoints

  init(_ requester: DatabaseRequester, instance: String? = nil) {
    self.requester = requester
    checkpoints = HTTPCheckpoints(requester, instance: instance)
    outbox = DocumentOutbox(requester)
  }

  /// With a list of the session's, at most 2,000 documents are on their way.
  package var revisionsInFlight: Int { 1_750 }
  package var canPullAgain: Bool { true }
  package var exchangesLeaves: Bool { true }

  package func begin(_ owner: any PeerOwner) {
    state.withLock { $0.owner = owner }
    outbox.storedBody = { [weak owner] id, revision in try owner?.storedBody(of: id, revision) }
    outbox.refused = { [weak self] in self?.fail($0) }
    outbox.openBlob = { [weak owner] digest in
      guard let owner else { throw ReplicationError.connectionEnded }
      return try owner.openBlob(digest)
    }
  }

  package var traffic: PeerTraffic {
    let traffic = requester.client.traffic
    return PeerTraffic(
      sentBytes: traffic.sent, receivedBytes: traffic.received, sentMessages: traffic.requests,
      receivedMessages: traffic.requests)
  }

  var owner: (any PeerOwner)? { state.withLock { $0.owner } }

  /// The connection counts as lost.
  func fail(_ error: ReplicationError) {
    let owner = state.withLock { state in state.isClosed ? nil : state.owner }
    owner?.connectionEnded(error)
  }

  package func close() {
    let pull = state.withLock { state in
      state.isClosed = true
      state.owner = nil
      defer { state.pull = nil }
      return state.pull
    }
    pull?.stop()
    requester.close()
  }

  // MARK: Checkpoints

  package func nameCheckpoint(_ id: String, _ names: LegacyCheckpointNames) { checkpoints.name(id, names) }

  package func checkpoint(_ id: String, _ done: @escaping Completion<StoredCheckpoint?>) {
    checkpoints.read(id, done)
  }

  package func setCheckpoint(
    _ id: String, _ json: [UInt8], basedOn revision: String, _ done: @escaping Completion<String>
  ) {
    checkpoints.save(id, json) { [weak self] result in
      // Nothing that this connection has sent is in the database that is there now.
      if case .failure(let error) = result, error.isOfAnotherDatabase { self?.fail(error) }
      done(result)
    }
  }

  // MARK: Pull

  package func pull(_ request: PullRequest, into sink: any PullSink, _ done: @escaping Completion<Void>) {
    pull(request, into: sink, arrivals: nil, done)
  }

  /// Does the same. With `arrivals`, revisions go there, and their attachments aren't fetched.
  func pull(
    _ request: PullRequest, into sink: any PullSink, arrivals: (any ArrivalSink)?,
    _ done: @escaping Completion<Void>
  ) {
    let pull = HTTPPull(self, request, sink, arrivals, done)
    let (earlier, isClosed) = state.withLock { state in
      defer { if !state.isClosed { state.pull = pull } }
      return (state.pull, state.isClosed)
    }
    earlier?.stop()
    if !isClosed { pull.start() }
  }

  package func fetchBlob(
    _ blob: MissingBlob, of documentID: String, into writer: BlobWriter, _ done: @escaping Completion<Void>
  ) {
    guard let pull = state.withLock({ $0.pull }) else { return done(.failure(.connectionEnded)) }
    pull.attachments.fetch(blob, into: writer, done)
  }

  // MARK: Push

  package func propose(
    _ changes: [ProposedChange], allowingConflicts: Bool, _ done: @escaping Completion<ProposalAnswer>
  ) {
    ask(changes[...]) { result in
      done(result.map { ProposalAnswer($0, maximumHistory: 1_000) })
    }
  }

  /// Asks which revisions are missing. A list that is too long for the server is asked about in halves.
  private func ask(
    _ changes: ArraySlice<ProposedChange>, _ done: @escaping Completion<[ProposalStatus]>
  ) {
    let request = requester.request("POST", "_revs_diff", json: RevisionDifference.body(changes))
    requester.ask(request, limit: 64 << 20) { [weak self] result in
      guard let self else { return done(.failure(.connectionEnded)) }
      switch result {
      case .failure(let error): done(.failure(error))
      case .success(let answer):
        switch answer.status {
        case 200..<300:
          self.pushLane.enqueue {
            do {
              let difference = try RevisionDifference(answer.body)
              self.keep(difference, changes)
              done(.success(changes.map(difference.status)))
            } catch { done(.failure(ReplicationError(error))) }
          }
        // A server that doesn't know the question gets everything.
        case 405, 501: done(.success(changes.map { _ in .send }))
        case 413 where changes.count > 1:
          let middle = changes.startIndex + changes.count / 2
          self.ask(changes[..<middle]) { first in
            guard case .success(let statuses) = first else { return done(first) }
            self.ask(changes[middle...]) { done($0.map { statuses + $0 }) }
          }
        default: done(.failure(answer.error("asking which revisions are missing")))
        }
      }
    }
  }

  private func keep(_ difference: RevisionDifference, _ changes: ArraySlice<ProposedChange>) {
    state.withLock { state in
      if state.knownGenerations.count > Self.maximumKnown { state.knownGenerations = [:] }
      for change in changes {
        let ancestors = difference.possibleAncestors(change)
        if !ancestors.isEmpty { state.knownGenerations[Self.key(change.id, change.revision)] = ancestors }
      }
    }
  }

  private static func key(_ id: String, _ revision: String) -> ByteString {
    ByteString(id + "\u{0}" + revision)
  }

  package func send(_ revisions: [OutgoingRevision], _ answered: @escaping @Sendable ([SendAnswer]) -> Void) {
    let ancestors = revisions.map { takeAncestors(of: $0.revision.id, $0.revision.revision) }
    pushLane.enqueue { [self] in
      outbox.send(revisions, ancestors) { [weak self] answers in
        answered(answers)
        // Without a connection the other requests won't fare better.
        if let error = answers.lazy.compactMap(\.error).first(where: { $0.domain != .http && $0.isTransient })
        {
          self?.fail(error)
        }
      }
    }
  }

  /// Returns, once, the revisions that the other side has of a document which was proposed.
  func takeAncestors(of id: String, _ revision: String) -> [String] {
    state.withLock { $0.knownGenerations.removeValue(forKey: Self.key(id, revision)) } ?? []
  }

  /// Saves documents without attachments. `answered` is called once or more, until each has its answer.
  func store(_ documents: [OutgoingDocument], _ answered: @escaping DocumentOutbox.Answered) {
    outbox.sendTogether(documents[...], answered)
  }

  /// Saves a document whose text, with its attachments, was read from another server.
  func save(
    _ id: String, type: String, _ body: any HTTPRequestSource,
    _ done: @escaping @Sendable (DocumentOutbox.Saved) -> Void
  ) { outbox.save(id, OutgoingDocument.unanswered, type: type, .source(body), done) }

  package func unavailable(_ revisions: [UnavailableRevision]) {
    state.withLock { state in
      for revision in revisions { state.knownGenerations[Self.key(revision.id, revision.revision)] = nil }
    }
  }
}
