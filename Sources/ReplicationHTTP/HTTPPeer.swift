import BLIP
import Blobs
import Bytes
import Documents
import Fleece
import Network
import Replication
import Storage

#if canImport(Glibc)
  import Glibc
#endif

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
    /// Which database it is, as soon as the server has said it.
    var instance: String?
    /// What was saved last, by the name of the document.
    var saved: [String: (sequence: String, revision: String)] = [:]
    /// The generation of the newest revision that the other side has of a document that is about to be sent.
    var knownGenerations: [ByteString: [String]] = [:]
  }

  /// The most documents of which it is kept what the other side has.
  private static let maximumKnown = 10_000

  let requester: Requester
  private let state = Lock(State())
  private let pushLane = Lane()
  private let outbox: DocumentOutbox

  init(_ requester: Requester, instance: String? = nil) {
    self.requester = requester
    state.withLock { $0.instance = instance }
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
    confirmDatabase(names) { [self] replaced in
      if let replaced {
        fail(replaced)
        return done(.failure(replaced))
      }
      write(names.push, CheckpointDocument(push: value)) { [self] push in
        guard case .success(let pushRevision) = push else { return done(push) }
        write(names.pull, CheckpointDocument(pull: value)) { pull in
          done(pull.map { "\(pushRevision) \($0)" })
        }
      }
    }
  }

  /// Sees to it that what was sent is on the disk there, since old servers keep it in memory for a while, and that the database is
  /// still the one that it was sent to. A checkpoint in another one, which was made in its place, would say that it has all of that.
  private func confirmDatabase(
    _ names: LegacyCheckpointNames, _ done: @escaping @Sendable (_ replaced: ReplicationError?) -> Void
  ) {
    requester.ask(requester.request("POST", "_ensure_full_commit", json: [])) { [self] result in
      if let instance = (try? result.get())?.instance {
        let isSame = state.withLock { state in
          if state.instance == nil { state.instance = instance }
          return state.instance == instance
        }
        return done(isSame ? nil : .replaced)
      }
      // The server doesn't say which one it is. A checkpoint that was there must be there.
      let saved = state.withLock { state in
        [names.push, names.pull].first { !(state.saved[$0]?.revision ?? "").isEmpty }
      }
      guard let saved else { return done(nil) }
      readCheckpoint(saved) { result in
        if case .success(nil) = result { done(.replaced) } else { done(nil) }
      }
    }
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
    let ancestors = state.withLock { state in
      revisions.map { revision in
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

extension ReplicationError {
  /// The database there isn't the one that the connection began with. The next connection begins anew.
  static let replaced = {
    var error = ReplicationError(
      .posix, Int(ECONNRESET), "the database of the other side was deleted and made again")
    error.isOfAnotherDatabase = true
    return error
  }()
}

extension HTTPAnswer {
  /// What tells the database from another one of its name: the time at which it was made, or opened by an old server. Nil where
  /// the server doesn't say it.
  var instance: String? {
    guard (200..<300).contains(status), let value = json?["instance_start_time"] else { return nil }
    let text = value.string ?? value.uint.map { "\($0)" } ?? ""
    return text.isEmpty || text == "0" ? nil : text
  }
}
