import BLIP
import Blobs
import Bytes
import Documents
import Fleece
import Logs
import Replication
import Storage

/// The other side of a replication over BLIP: Couchbase Lite, Sync Gateway, or a database of this library.
///
/// Peers differ in how they name the database that is meant. Those with collections want `getCollections` first, and the
/// property `collection` in each request that follows. The others know neither. Which one this is shows in the answer to
/// the first request; until then other requests wait.
package final class BLIPPeer: Peer {
  /// How requests name the default collection.
  enum Form: Sendable, Equatable {
    /// They don't.
    case plain
    /// By its place in the list of `getCollections`.
    case collections
  }

  struct State {
    weak var owner: (any PeerOwner)?
    /// Nil until it is known.
    var form: Form?
    /// Whether a request was answered that has this form.
    var isFormProven = false
    /// Requests that wait for the form; they get the error if there is none.
    var waiting: [@Sendable (ReplicationError?) -> Void] = []
    var failure: ReplicationError?
    var isClosed = false
    var sink: (any PullSink)?
    /// Whether the peer takes changes that may conflict, as far as is known.
    var takesConflicts = true
  }

  static let firstCollection = "0"

  let connection: BLIPConnection
  private let firstForm: Form
  let state = Lock(State())
  let outbox: RevisionOutbox
  let blobs: BlobTransfer
  let hasAnsweredOffers = Lock(false)
  /// The lists of the peer that aren't answered.
  let offers = Lock((lists: 0, changes: 0))

  /// Makes a peer of a connection that isn't started. `subprotocol` is what the server has agreed on, nil if it isn't
  /// known.
  package init(_ connection: BLIPConnection, subprotocol: String?) {
    self.connection = connection
    firstForm = subprotocol == ReplicationProtocol.withoutCollections ? .plain : .collections
    let owner = WeakOwner()
    outbox = RevisionOutbox(connection) { try owner.storedBody($0, $1) }
    blobs = BlobTransfer(connection)
    weakOwner = owner
  }

  /// The owner for those that must not keep it alive.
  private final class WeakOwner: Sendable {
    private struct Reference { weak var owner: (any PeerOwner)? }
    private let reference = Lock(Reference())
    var owner: (any PeerOwner)? {
      get { reference.withLock { $0.owner } }
      set { reference.withLock { $0.owner = newValue } }
    }
    func storedBody(_ id: String, _ revision: String) throws -> SyncBody? {
      try owner?.storedBody(of: id, revision)
    }
    func openBlob(_ digest: BlobDigest) throws -> BlobReader {
      guard let owner else { throw ReplicationError(.http, 404, "the replication has ended") }
      return try owner.openBlob(digest)
    }
  }
  private let weakOwner: WeakOwner

  package var agreesOnRevisions: Bool { outbox.current.takesReplaces }

  package func begin(_ owner: any PeerOwner) {
    weakOwner.owner = owner
    state.withLock { $0.owner = owner }
    BlobTransfer.answer(connection) { [weakOwner] in try weakOwner.openBlob($0) }
    // A list may have several frames, and what says that all were offered has one.
    connection.onRequest(Profile.changes, inOrder: true) { [weak self] in self?.takeChanges($0) }
    let inbox = RevisionInbox(
      storedBody: { [weakOwner] in try weakOwner.storedBody($0, $1) },
      deliver: { [weak self] revisions, done in
        guard let sink = self?.sink else {
          return done(
            revisions.map { _ in .failure(ReplicationError(.http, 403, "nothing is pulled here")) })
        }
        sink.received(revisions, done)
      },
      refused: { [weak self] id, revision, error in self?.sink?.unreadable(id, revision, error) })
    connection.onRequest(Profile.rev, takesCut: true) { [weak self] request in
      if let code = request.message.properties["error"] {
        self?.takeUnavailable(request, code)
      } else {
        inbox.take(request)
      }
    }
    connection.onRequest(Profile.norev) { [weak self] request in
      self?.takeUnavailable(request, request.message.properties["error"] ?? "404")
    }
    // A peer that has nothing more to push says so this way.
    connection.onRequest(Profile.proposeChanges) { request in
      let isEmpty = (try? ChangeLists.proposed(request.message.body).isEmpty) ?? false
      if isEmpty {
        request.reply()
      } else {
        request.reply(ReplicationError(.http, 403, "this side takes no pushed changes").reply)
      }
    }
    connection.onClose { [weak self] error in self?.ended(ReplicationError(noReply: error)) }
    connection.start()
  }

  private func ended(_ error: ReplicationError) {
    let (owner, waiting) = state.withLock { state in
      defer {
        state.waiting = []
        state.sink = nil
        state.failure = state.failure ?? error
      }
      return (state.isClosed ? nil : state.owner, state.waiting)
    }
    for request in waiting { request(error) }
    owner?.connectionEnded(error)
  }

  package func close() {
    state.withLock { state in
      state.isClosed = true
      state.owner = nil
      state.sink = nil
    }
    connection.close()
  }

  /// What went over the network, both ways.
  package var traffic: PeerTraffic {
    let traffic = connection.traffic
    let messages = connection.messages
    return PeerTraffic(
      sentBytes: traffic.sentBytes, receivedBytes: traffic.receivedBytes, sentMessages: messages.sent,
      receivedMessages: messages.received)
  }

  // MARK: Requests

  var sink: (any PullSink)? { state.withLock { $0.sink } }

  /// Sends a request when the form is known. A peer that has collections and refuses the property gets it once more
  /// without.
  func ask(_ request: BLIPRequest, _ done: @escaping Completion<BLIPMessage>) {
    enum Next {
      case send(Form)
      case fail(ReplicationError)
      case wait
    }
    let next = state.withLock { state -> Next in
      if let failure = state.failure { return .fail(failure) }
      if let form = state.form { return .send(form) }
      state.waiting.append { [weak self] error in
        guard let self, error == nil else { return done(.failure(error ?? .connectionEnded)) }
        self.ask(request, done)
      }
      return .wait
    }
    switch next {
    case .send(let form): send(request, form, done)
    case .fail(let error): done(.failure(error))
    case .wait: break
    }
  }

  private func send(_ request: BLIPRequest, _ form: Form, _ done: @escaping Completion<BLIPMessage>) {
    var named = request
    if form == .collections { named.properties.append("collection", Self.firstCollection) }
    connection.send(named) { [weak self] result in
      switch result {
      case .failure(let error): done(.failure(ReplicationError(noReply: error)))
      case .success(let reply):
        guard let error = reply.error else {
          self?.state.withLock { $0.isFormProven = true }
          return done(.success(reply))
        }
        guard let self, form == .collections, error.domain == "HTTP", error.code == 400,
          self.givesUpCollections()
        else { return done(.failure(ReplicationError(error))) }
        self.send(request, .plain, done)
      }
    }
  }

  /// Goes over to the form without collections, unless the other one is known to work.
  private func givesUpCollections() -> Bool {
    let gaveUp = state.withLock { state in
      if state.form == .plain { return true }
      guard !state.isFormProven else { return false }
      state.form = .plain
      return true
    }
    if gaveUp { outbox.set(collection: nil) }
    return gaveUp
  }

  var collection: String? {
    state.withLock { $0.form } == .collections ? Self.firstCollection : nil
  }

  // MARK: Checkpoints

  package func checkpoint(_ id: String, _ done: @escaping Completion<StoredCheckpoint?>) {
    let isKnown = state.withLock { $0.form != nil || $0.failure != nil }
    if isKnown {
      ask(BLIPRequest(Profile.getCheckpoint, ["client": id])) { result in
        done(Self.checkpoint(result))
      }
    } else {
      find(firstForm, id, isSecond: false, done)
    }
  }

  /// Asks for the checkpoint in one form, and then in the other one.
  private func find(
    _ form: Form, _ id: String, isSecond: Bool, _ done: @escaping Completion<StoredCheckpoint?>
  ) {
    let request: BLIPRequest
    switch form {
    case .plain: request = BLIPRequest(Profile.getCheckpoint, ["client": id])
    case .collections:
      let body = JSONValue.object([
        "checkpoint_ids": [.string(id)], "collections": [.string(ReplicationProtocol.defaultCollection)],
      ])
      request = BLIPRequest(Profile.getCollections, body: .bytes((try? WireBody.text(body)) ?? []))
    }
    connection.send(request) { [weak self] result in
      guard let self else { return done(.failure(.connectionEnded)) }
      switch result {
      case .failure(let error):
        let error = ReplicationError(noReply: error)
        self.decide(nil, error)
        done(.failure(error))
      case .success(let reply):
        if let error = reply.error {
          let isUnknown = error.domain == BLIPErrorReply.blipDomain && error.code == 404
          let isMisused = error.domain == "HTTP" && error.code == 400
          if !isSecond, isUnknown || isMisused {
            return self.find(form == .plain ? .collections : .plain, id, isSecond: true, done)
          }
          guard form == .plain, error.domain == "HTTP", error.code == 404 else {
            let error = ReplicationError(error)
            self.decide(nil, error)
            return done(.failure(error))
          }
          self.decide(form, nil)
          return done(.success(nil))
        }
        do {
          let found = form == .plain ? Self.stored(reply) : try Self.collectionCheckpoint(reply)
          self.decide(form, nil)
          done(.success(found))
        } catch {
          let error = ReplicationError(error)
          self.decide(nil, error)
          done(.failure(error))
        }
      }
    }
  }

  private func decide(_ form: Form?, _ failure: ReplicationError?) {
    if form == .collections { outbox.set(collection: Self.firstCollection) }
    let waiting = state.withLock { state in
      state.form = form
      state.failure = failure
      defer { state.waiting = [] }
      return state.waiting
    }
    for request in waiting { request(failure) }
  }

  private static func stored(_ reply: BLIPMessage) -> StoredCheckpoint {
    StoredCheckpoint(json: Array(reply.body), revision: reply.properties["rev"] ?? "")
  }

  private static func checkpoint(_ result: Result<BLIPMessage, ReplicationError>)
    -> Result<StoredCheckpoint?, ReplicationError>
  {
    switch result {
    case .success(let reply): .success(stored(reply))
    case .failure(let error) where error.domain == .http && error.code == 404: .success(nil)
    case .failure(let error): .failure(error)
    }
  }

  /// Reads the answer to `getCollections`: `[{…, "rev": R}]`, `[{}]` without a checkpoint, `[null]` without the collection.
  private static func collectionCheckpoint(_ reply: BLIPMessage) throws -> StoredCheckpoint? {
    let value = try? reply.body.withUnsafeBytes { try JSONValue(json: $0) }
    guard case .array(let items)? = value, let item = items.first, items.count == 1 else {
      throw ChangeLists.malformed("the answer to getCollections isn't a list of one item")
    }
    guard case .object(var members) = item else {
      throw ReplicationError(.http, 404, "the other side doesn't replicate its default collection")
    }
    guard let revision = members.removeValue(forKey: "rev")?.string else { return nil }
    return StoredCheckpoint(json: try WireBody.text(.object(members)), revision: revision)
  }

  package func setCheckpoint(
    _ id: String, _ json: [UInt8], basedOn revision: String, _ done: @escaping Completion<String>
  ) {
    let request = BLIPRequest(
      Profile.setCheckpoint, ["client": id, "rev": revision], body: .bytes(json))
    ask(request) { result in
      done(
        result.flatMap { reply in
          guard let revision = reply.properties["rev"] else {
            return .failure(ChangeLists.malformed("a stored checkpoint has no revision"))
          }
          return .success(revision)
        })
    }
  }
}

extension BLIPRequest {
  /// Says that a revision which is wanted can't be sent.
  static func unavailable(_ revision: UnavailableRevision, collection: String?) -> BLIPRequest {
    var properties = BLIPProperties()
    if let collection { properties.append("collection", collection) }
    properties.append("id", revision.id)
    properties.append("rev", revision.revision)
    if let sequence = revision.sequence { properties.append("sequence", sequence.json) }
    properties.append("error", String(revision.code))
    var request = BLIPRequest(Profile.norev, properties)
    request.isNoReply = true
    return request
  }
}

extension ReplicationError {
  static let connectionEnded = ReplicationError(.webSocket, 1001, "the connection has ended")
}
