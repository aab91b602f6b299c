import Blobs
import Documents
import Storage
import Touchstone

/// Another database of this process as a peer. Bodies go from one to the other as they are stored, and blobs by their
/// files.
package final class LocalPeer: Peer {
  private struct State {
    weak var owner: (any PeerOwner)?
    var isClosed = false
    var server: ChangeServer?
    var closeHandler: Int?
    /// Revisions that wait for the writing thread.
    var queued: [Sending] = []
  }

  private struct Sending: Sendable {
    let revisions: [OutgoingRevision]
    let answered: @Sendable ([SendAnswer]) -> Void
  }

  /// The most revisions of one transaction.
  static let revisionsTogether = 2_000

  package var revisionsInFlight: Int { 4_000 }
  package let exchangesLeaves: Bool

  private let responder: PassiveResponder
  private let state = Lock(State())
  /// The threads: one for answers and blobs, one that writes.
  private let reading = Workers()
  private let writing = Workers()

  package init(
    _ database: Database, _ options: PassiveResponder.Options = PassiveResponder.Options(),
    exchangesLeaves: Bool = false
  ) {
    responder = PassiveResponder(database, options)
    self.exchangesLeaves = exchangesLeaves
  }

  package func begin(_ owner: any PeerOwner) {
    let number = responder.database.addCloseHandler { [weak self] in
      self?.end(ReplicationError(.touchstone, ErrorKind.misuse.rawValue, "the target database was closed"))
    }
    state.withLock { state in
      state.owner = owner
      state.closeHandler = number
    }
  }

  private static let ended = ReplicationError(.webSocket, 1001, "the connection has ended")

  private func end(_ error: ReplicationError) {
    let owner = state.withLock { state in state.isClosed ? nil : state.owner }
    owner?.connectionEnded(error)
  }

  package func close() {
    let (server, handler) = state.withLock { state in
      defer {
        state.isClosed = true
        state.server = nil
        state.owner = nil
        state.closeHandler = nil
      }
      return (state.server, state.closeHandler)
    }
    server?.stop()
    if let handler { responder.database.removeCloseHandler(handler) }
  }

  /// Runs a request on a thread, and answers it.
  private func run<Value: Sendable>(
    on workers: Workers, _ done: @escaping Completion<Value>,
    _ body: @escaping @Sendable (LocalPeer) throws -> Value
  ) {
    workers.enqueue { [self] in
      guard !state.withLock({ $0.isClosed }) else { return done(.failure(Self.ended)) }
      do { done(.success(try body(self))) } catch { done(.failure(ReplicationError(error))) }
    }
  }

  // MARK: Checkpoints

  package func checkpoint(_ id: String, _ done: @escaping Completion<StoredCheckpoint?>) {
    run(on: reading, done) { try $0.responder.checkpoint(id) }
  }

  package func setCheckpoint(
    _ id: String, _ json: [UInt8], basedOn revision: String, _ done: @escaping Completion<String>
  ) {
    run(on: reading, done) { try $0.responder.setCheckpoint(id, json, basedOn: revision) }
  }

  // MARK: Pull

  package func pull(_ request: PullRequest, into sink: any PullSink, _ done: @escaping Completion<Void>) {
    run(on: reading, done) { peer in
      let server = try ChangeServer(peer.responder, request, sink) { [weak peer] in peer?.end($0) }
      let (isClosed, earlier) = peer.state.withLock { state in
        let earlier = state.server
        if !state.isClosed { state.server = server }
        return (state.isClosed, earlier)
      }
      earlier?.stop()
      if !isClosed { server.start() }
    }
  }

  package var canPullAgain: Bool { true }

  package func fetchBlob(
    _ blob: MissingBlob, of documentID: String, into writer: BlobWriter, _ done: @escaping Completion<Void>
  ) {
    let given = UncheckedWriter(writer: writer)
    run(on: reading, done) { peer in
      let reader = try peer.responder.database.replicating { try $0.requiredBlobs.open(blob.digest) }
      try given.writer.write(contentsOf: reader)
    }
  }

  /// A writer on its way to the thread that uses it next.
  private struct UncheckedWriter: @unchecked Sendable { let writer: BlobWriter }

  // MARK: Push

  package func propose(
    _ changes: [ProposedChange], allowingConflicts: Bool, _ done: @escaping Completion<ProposalAnswer>
  ) {
    run(on: reading, done) { peer in
      guard allowingConflicts, !peer.responder.options.refusesConflicts else {
        return try peer.responder.answer(changes)
      }
      let offered = changes.map { change in
        OfferedChange(
          sequence: RemoteSequence(json: "0"), id: change.id, revision: change.revision,
          isDeleted: change.isDeleted)
      }
      return ProposalAnswer(try peer.responder.answer(offered))
    }
  }

  package func send(_ revisions: [OutgoingRevision], _ answered: @escaping @Sendable ([SendAnswer]) -> Void) {
    var revisions = revisions
    // Where all leaves are kept, none takes the place of another one.
    if exchangesLeaves { for index in revisions.indices { revisions[index].revision.replaces = nil } }
    let sending = Sending(revisions: revisions, answered: answered)
    state.withLock { $0.queued.append(sending) }
    writing.enqueue { [self] in write() }
  }

  /// Stores what is queued, in one transaction if it isn't too much.
  private func write() {
    let (parts, isClosed, owner) = state.withLock { state in
      var count = 0
      var parts = 0
      while parts < state.queued.count, count < Self.revisionsTogether {
        count += state.queued[parts].revisions.count
        parts += 1
      }
      return (state.queued.takeFirst(parts), state.isClosed, state.owner)
    }
    guard !parts.isEmpty else { return }
    let revisions = parts.count == 1 ? parts[0].revisions : parts.flatMap(\.revisions)
    var errors = [ReplicationError?](repeating: nil, count: revisions.count)
    do {
      guard !isClosed else { throw Self.ended }
      var ready: [Int] = []
      ready.reserveCapacity(revisions.count)
      for (index, revision) in revisions.enumerated() {
        do {
          for blob in try responder.missingBlobs(of: revision.revision.body) { try copy(blob.digest, owner) }
          ready.append(index)
        } catch { errors[index] = .refused(error) }
      }
      let results = try responder.insert(
        ready.count == revisions.count ? revisions : ready.map { revisions[$0] })
      for (index, error) in zip(ready, results) { errors[index] = error }
    } catch {
      errors = errors.map { _ in ReplicationError(error) }
    }
    var start = 0
    for part in parts {
      part.answered(part.revisions.indices.map { SendAnswer($0, errors[start + $0]) })
      start += part.revisions.count
    }
  }

  private func copy(_ digest: BlobDigest, _ owner: (any PeerOwner)?) throws {
    guard let owner else { throw Self.ended }
    let reader = try owner.openBlob(digest)
    try responder.database.replicatingChanges { store in
      let writer = try store.requiredBlobs.makeWriter()
      try writer.write(contentsOf: reader)
      let stored = try writer.finish()
      guard stored.digest == digest else {
        try store.requiredBlobs.discard(stored)
        throw ReplicationError.wrongBlob("the blob \(digest) has the digest \(stored.digest)")
      }
    }
  }

  package func unavailable(_ revisions: [UnavailableRevision]) {}
}

/// Connects to another database of this process. With `exchangesLeaves`, all leaves go there, as in the CouchDB family.
package struct LocalConnector: PeerConnector {
  let database: Database
  let options: PassiveResponder.Options
  let exchangesLeaves: Bool

  package init(
    _ database: Database, _ options: PassiveResponder.Options = PassiveResponder.Options(),
    exchangesLeaves: Bool = false
  ) {
    self.database = database
    self.options = options
    self.exchangesLeaves = exchangesLeaves
  }

  /// What was done without the other leaves says nothing of them.
  package var remoteID: String { "database:\(database.publicUUID)\(exchangesLeaves ? "#leaves" : "")" }
  package var name: String { database.path }

  package func connect(_ options: ConnectionOptions, _ done: @escaping Completion<any Peer>) {
    done(.success(LocalPeer(database, self.options, exchangesLeaves: exchangesLeaves)))
  }
}
