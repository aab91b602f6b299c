import BLIP
import Blobs
import Bytes
import Documents
import Fleece
import Network
import Replication
import Storage

/// The other side of a replication over HTTP: CouchDB, PouchDB's server, Couchbase Lite 1.x, Sync Gateway, or a listener of
/// this library.
///
/// All leaves go both ways. Requests that fail for a moment are repeated; when that doesn't help, the connection counts as
/// lost.
package final class HTTPPeer: Peer {
  private struct State {
    weak var owner: (any PeerOwner)?
    var isClosed = false
    var names: [String: LegacyCheckpointNames] = [:]
    var pull: HTTPPull?
    /// What was saved last, by the name of the document.
    var saved: [String: (sequence: String, revision: String)] = [:]
    /// Whether something was pushed since the last checkpoint.
    var hasPushed = false
    /// The generation of the newest revision that the other side has of a document that is about to be sent.
    var knownGenerations: [ByteString: [String]] = [:]
  }

  /// The most documents of which it is kept what the other side has.
  private static let maximumKnown = 10_000

  let requester: Requester
  private let state = Lock(State())
  private let pushLane = Lane()
  private let outbox: DocumentOutbox

  init(_ requester: Requester) {
    self.requester = requester
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

  package func nameCheckpoint(_ id: String, _ names: LegacyCheckpointNames) {
    state.withLock { $0.names[id] = names }
  }

  private func names(_ id: String) -> LegacyCheckpointNames {
    let escaped = HTTPDatabaseURL.escaped(id)
    return state.withLock { $0.names[id] }
      ?? LegacyCheckpointNames(push: escaped + ".push", pull: escaped + ".pull")
  }

  package func checkpoint(_ id: String, _ done: @escaping Completion<StoredCheckpoint?>) {
    let names = names(id)
    let found = Lock<
      (
        push: Result<CheckpointDocument?, ReplicationError>?,
        pull: Result<CheckpointDocument?, ReplicationError>?
      )
    >(
      (nil, nil))
    @Sendable func finish() {
      let both = found.withLock {
        found -> (
          Result<CheckpointDocument?, ReplicationError>, Result<CheckpointDocument?, ReplicationError>
        )? in
        guard let push = found.push, let pull = found.pull else { return nil }
        return (push, pull)
      }
      guard let (push, pull) = both else { return }
      do {
        let (push, pull) = (try push.get(), try pull.get())
        note(names.push, push)
        note(names.pull, pull)
        done(.success(CheckpointDocument.stored(push: push, pull: pull)))
      } catch { done(.failure(ReplicationError(error))) }
    }
    readCheckpoint(names.push) { result in
      found.withLock { $0.push = result }
      finish()
    }
    readCheckpoint(names.pull) { result in
      found.withLock { $0.pull = result }
      finish()
    }
  }

  private func note(_ name: String, _ document: CheckpointDocument?) {
    state.withLock { state in
      state.saved[name] = document.map { ($0.sequence ?? "", $0.revision) }
    }
  }

  private func readCheckpoint(_ name: String, _ done: @escaping Completion<CheckpointDocument?>) {
    requester.ask(requester.request("GET", "_local/\(name)"), limit: 1 << 20) { result in
      done(
        result.flatMap { answer in
          switch answer.status {
          case 200: .success(CheckpointDocument(answer.json))
          // Some servers have no local documents.
          case 404, 405, 501: .success(nil)
          default: .failure(answer.error("reading the checkpoint"))
          }
        })
    }
  }

  package func setCheckpoint(
    _ id: String, _ json: [UInt8], basedOn revision: String, _ done: @escaping Completion<String>
  ) {
    guard let value = try? json.withUnsafeBytes({ try JSONValue(json: $0) }) else {
      return done(.failure(.malformed("a checkpoint isn't JSON")))
    }
    let names = names(id)
    let hasPushed = state.withLock { state in
      defer { state.hasPushed = false }
      return state.hasPushed
    }
    ensureCommit(hasPushed) { [self] in
      write(names.push, CheckpointDocument(push: value)) { [self] push in
        guard case .success(let pushRevision) = push else { return done(push) }
        write(names.pull, CheckpointDocument(pull: value)) { pull in
          done(pull.map { "\(pushRevision) \($0)" })
        }
      }
    }
  }

  /// Old servers keep what they are sent in memory for a while.
  private func ensureCommit(_ isNeeded: Bool, _ done: @escaping @Sendable () -> Void) {
    guard isNeeded else { return done() }
    requester.ask(requester.request("POST", "_ensure_full_commit", json: [])) { _ in done() }
  }

  /// Saves one direction's document, unless it says so already.
  private func write(_ name: String, _ document: CheckpointDocument, _ done: @escaping Completion<String>) {
    let saved = state.withLock { $0.saved[name] }
    guard let sequence = document.sequence, sequence != saved?.sequence else {
      return done(.success(saved?.revision ?? ""))
    }
    var document = document
    document.revision = saved?.revision ?? ""
    let request = requester.request("PUT", "_local/\(name)", json: document.text(name))
    requester.ask(request, limit: 1 << 20) { [self] result in
      done(
        result.flatMap { answer in
          guard (200..<300).contains(answer.status) else {
            return .failure(answer.error("saving the checkpoint"))
          }
          let revision = answer.json?["rev"].string ?? ""
          state.withLock { $0.saved[name] = (sequence, revision) }
          return .success(revision)
        })
    }
  }

  // MARK: Pull

  package func pull(_ request: PullRequest, into sink: any PullSink, _ done: @escaping Completion<Void>) {
    let pull = HTTPPull(self, request, sink, done)
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
              done(.success(ProposalAnswer(changes.map(difference.status), maximumHistory: 1_000)))
            } catch { done(.failure(ReplicationError(error))) }
          }
        // A server that doesn't know the question gets everything.
        case 405, 501: done(.success(ProposalAnswer(changes.map { _ in .send }, maximumHistory: 1_000)))
        default: done(.failure(answer.error("asking which revisions are missing")))
        }
      }
    }
  }

  private func keep(_ difference: RevisionDifference, _ changes: [ProposedChange]) {
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
    let ancestors = state.withLock { state in
      state.hasPushed = true
      return revisions.map { revision in
        state.knownGenerations.removeValue(forKey: Self.key(revision.revision.id, revision.revision.revision))
          ?? []
      }
    }
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

  package func unavailable(_ revisions: [UnavailableRevision]) {
    state.withLock { state in
      for revision in revisions { state.knownGenerations[Self.key(revision.id, revision.revision)] = nil }
    }
  }
}
