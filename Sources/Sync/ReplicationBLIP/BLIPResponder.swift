import BLIP
import Blobs
import Bytes
import Documents
import Fleece
import Logs
import Replication
import Storage
import Touchstone
import Transport

/// The passive side of a replication over BLIP: answers the requests of a replicator over one database.
///
/// It serves all generations of clients: those that begin with `getCollections` and name the collection in each request,
/// and those that know no collections. The default collection is the only one.
package final class BLIPResponder: Sendable {
  private struct State {
    /// The collections that the client has named, by their places: whether it is the default one. Nil: it knows none.
    var collections: [Bool]?
    var server: ChangeServer?
    var closeHandler: Int?
    var isEnded = false
    var hasAnsweredOffers = false
  }

  private let connection: BLIPConnection
  private let responder: PassiveResponder
  private let state = Lock(State())
  private let pool: Workers?
  private let lane: JobLane
  private let outbox: RevisionOutbox
  private let inserter: RevisionInserter
  private let blobs: BlobTransfer

  /// Makes a responder over a connection that isn't started. It lives until the connection ends. It works on threads of
  /// the pool, or on its own.
  package init(
    _ connection: BLIPConnection, _ database: Database,
    _ options: PassiveResponder.Options = PassiveResponder.Options(),
    on pool: Workers? = nil
  ) {
    self.connection = connection
    self.pool = pool
    lane = JobLane(on: pool)
    let responder = PassiveResponder(database, options)
    self.responder = responder
    let blobs = BlobTransfer(connection, on: pool)
    self.blobs = blobs
    let collection = Lock<String?>(nil)
    self.collection = collection
    outbox = RevisionOutbox(connection, on: pool) { id, revision in
      try database.replicating { try $0.syncBody(of: id, revision) }
    }
    inserter = RevisionInserter(responder, on: pool) { blob, id, writer, done in
      blobs.fetch(blob, of: id, collection: collection.withLock { $0 }, into: writer, done)
    }
  }

  /// The value of the property `collection` in requests of this side.
  private let collection: Lock<String?>

  /// Begins to answer.
  package func start() {
    // The database's close handler keeps it alive, and goes when the connection ends.
    let handler = responder.database.addCloseHandler { [self] in
      connection.close(.webSocket(1001, "the database was closed"))
    }
    state.withLock { $0.closeHandler = handler }
    connection.onClose { [weak self] _ in self?.end() }
    answer(Profile.getCollections, needsCollection: false) { try $0.getCollections($1) }
    answer(Profile.getCheckpoint) { try $0.getCheckpoint($1) }
    answer(Profile.setCheckpoint) { try $0.setCheckpoint($1) }
    answer(Profile.proposeChanges) { try $0.proposeChanges($1) }
    answer(Profile.changes) { try $0.changes($1) }
    answer(Profile.subChanges) { try $0.subChanges($1) }
    // What can't be sent is proposed again, or the document is gone.
    answer(Profile.norev) { _, _ in BLIPReply() }
    BlobTransfer.answer(connection, on: pool) { [responder] digest in
      try responder.database.replicating { try $0.requiredBlobs.open(digest) }
    }
    let database = responder.database
    let inbox = RevisionInbox(
      on: pool,
      storedBody: { id, revision in try database.replicating { try $0.syncBody(of: id, revision) } },
      deliver: { [inserter] revisions, done in inserter.store(revisions) { done($0.map { $0.map { _ in } }) }
      })
    connection.onRequest(Profile.rev, takesCut: true) { [weak self] request in
      do {
        guard let self else { throw ReplicationError.connectionEnded }
        try self.responder.checkAcceptsRevisions()
        try self.checkCollection(request.message)
        // The client couldn't send what was asked for.
        if request.message.properties["error"] != nil { return _ = request.reply() }
        inbox.take(request)
      } catch { request.reply(ReplicationError(error).reply) }
    }
    connection.start()
  }

  /// Ends the connection.
  package func close(_ close: TransportClose = .normal) { connection.close(close) }

  private func end() {
    let (server, handler) = state.withLock { state in
      defer {
        state.isEnded = true
        state.server = nil
        state.closeHandler = nil
      }
      return (state.server, state.closeHandler)
    }
    server?.stop()
    if let handler { responder.database.removeCloseHandler(handler) }
  }

  /// Answers the requests of a profile on a thread that may wait.
  private func answer(
    _ profile: String, needsCollection: Bool = true,
    _ body: @escaping @Sendable (BLIPResponder, BLIPMessage) throws -> BLIPReply
  ) {
    connection.onRequest(profile) { [weak self] request in
      guard let self else { return _ = request.reply(ReplicationError.connectionEnded.reply) }
      let job: JobLane.Job = {
        do {
          if needsCollection { try self.checkCollection(request.message) }
          request.reply(try body(self, request.message))
        } catch { request.reply(ReplicationError(error).reply) }
      }
      if request.message.body.count > LargeBodies.bytes {
        LargeBodies.workers.enqueue(job)
      } else {
        self.lane.enqueue(job)
      }
    }
  }

  // MARK: Collections

  /// Throws unless a request is for the default collection, named in the form that the client has begun with.
  private func checkCollection(_ message: BLIPMessage) throws {
    let name = message.properties["collection"]
    let collections = state.withLock { $0.collections }
    guard let collections else {
      if name == nil { return }
      throw ReplicationError(.http, 400, "the property collection needs getCollections first")
    }
    guard let name else {
      throw ReplicationError(.http, 400, "the property collection is missing after getCollections")
    }
    guard let index = Int(name), collections.indices.contains(index) else {
      throw ReplicationError(.http, 400, "there is no collection with this number")
    }
    guard collections[index] else {
      throw ReplicationError(.http, 404, "this database has only the default collection")
    }
  }

  private func getCollections(_ message: BLIPMessage) throws -> BLIPReply {
    let value = try ChangeLists.json(message.body, "the body of getCollections")
    guard let members = value?.object, case .array(let names)? = members["collections"],
      case .array(let ids)? = members["checkpoint_ids"], names.count == ids.count, !names.isEmpty,
      names.count <= 1_000
    else { throw ChangeLists.malformed("getCollections doesn't name as many collections as checkpoints") }
    let isDefault = names.map { name in
      name.string.map { ["_default", "_default._default"].contains($0) } ?? false
    }
    let items = try zip(isDefault, ids).map { isDefault, id -> JSONValue in
      guard isDefault else { return .null }
      guard let id = id.string else { throw ChangeLists.malformed("a checkpoint's ID isn't a string") }
      guard let stored = try responder.checkpoint(id) else { return .object([:]) }
      var members = (try? stored.json.withUnsafeBytes { try JSONValue(json: $0) })?.object ?? [:]
      members["rev"] = .string(stored.revision)
      return .object(members)
    }
    let index = isDefault.firstIndex(of: true).map(String.init)
    state.withLock { $0.collections = isDefault }
    collection.withLock { $0 = index }
    outbox.set(collection: index)
    return BLIPReply(body: .bytes(try WireBody.text(.array(items))))
  }

  // MARK: Checkpoints

  private static func client(_ message: BLIPMessage) throws -> String {
    guard let client = message.properties["client"], !client.isEmpty, client.utf8.count <= 1_000 else {
      throw ChangeLists.malformed("a checkpoint's ID is missing or too long", .blip)
    }
    return client
  }

  private func getCheckpoint(_ message: BLIPMessage) throws -> BLIPReply {
    guard let stored = try responder.checkpoint(Self.client(message)) else {
      throw ReplicationError(.http, 404, "")
    }
    return BLIPReply(["rev": stored.revision], body: .bytes(stored.json))
  }

  private func setCheckpoint(_ message: BLIPMessage) throws -> BLIPReply {
    guard message.body.count <= 64 << 10 else { throw ChangeLists.malformed("a checkpoint is too large") }
    let revision = try responder.setCheckpoint(
      Self.client(message), Array(message.body), basedOn: message.properties["rev"] ?? "")
    return BLIPReply(["rev": revision])
  }

  // MARK: Push of the client

  private func listReply(_ maximumHistory: Int, _ body: [UInt8]) -> BLIPReply {
    var properties: BLIPProperties = ["maxHistory": String(maximumHistory), "blobs": "true"]
    let isFirst = state.withLock { state in
      defer { state.hasAnsweredOffers = true }
      return !state.hasAnsweredOffers
    }
    if isFirst { properties.append("deltas", "true") }
    properties.append("sendReplacementRevs", "1")
    if isFirst { properties.append("replaces", "true") }
    var reply = BLIPReply(properties, body: .bytes(body))
    reply.isCompressed = true
    return reply
  }

  private func proposeChanges(_ message: BLIPMessage) throws -> BLIPReply {
    let changes = try ChangeLists.proposed(message.body)
    let answer = try responder.answer(changes)
    let withCurrent = message.properties.isTrue("conflictIncludesRev")
    return listReply(answer.maximumHistory, ChangeLists.body(answer.statuses, withCurrent: withCurrent))
  }

  private func changes(_ message: BLIPMessage) throws -> BLIPReply {
    let changes = try ChangeLists.offered(message.body)
    // Nobody would hear the answer.
    if message.isNoReply { return BLIPReply() }
    let answers = try responder.answer(changes)
    return listReply(answers.maximumHistory, ChangeLists.body(answers.answers))
  }

  // MARK: Pull of the client

  /// The properties of `subChanges` that aren't parameters of its filter.
  private static let ownProperties: Set<String> = [
    "Profile", "collection", "since", "continuous", "batch", "activeOnly", "sendReplacementRevs",
    "versioning",
    "upTo", "revocations", "filter",
  ]

  /// What an ID of a document takes beside its text, in the list of the request and in the set of the server: about 300 bytes were measured.
  private static let documentIDBytes = 300

  private func subChanges(_ message: BLIPMessage) throws -> BLIPReply {
    let properties = message.properties
    if let versioning = properties["versioning"], versioning != "rev-trees" {
      throw ReplicationError(.liteCore, 501, "this database has revision trees")
    }
    var request = PullRequest()
    if let since = properties["since"], !since.isEmpty, since != "null", since != "0" {
      guard since.utf8.count <= ChangeLists.maximumSequenceBytes, UInt64(since) != nil else {
        throw ChangeLists.malformed("the sequence to begin after isn't one of this database")
      }
      request.since = RemoteSequence(json: since)
    }
    request.isContinuous = properties.isTrue("continuous")
    request.skipsTombstones = properties.isTrue("activeOnly")
    request.takesReplacements = properties.isTrue("sendReplacementRevs")
    request.takesReachedSequence = properties.isTrue("upTo")
    request.filter = properties["filter"]
    request.channels = properties["channels"]?.split(separator: ",").map(String.init)
    if request.filter != nil {
      // Of a name that repeats the first one counts.
      for (name, value) in properties.entries.reversed() where !Self.ownProperties.contains(name) {
        request.filterParameters[name] = .string(value)
      }
    }
    if !message.body.isEmpty {
      // Each ID is between two quotes. What the list takes is several times its text.
      let most = message.body.count { $0 == UInt8(ascii: "\"") } / 2
      guard connection.hasMemory(for: message.body.count + most * Self.documentIDBytes) else {
        throw ReplicationError(
          .http, 503, "other clients have the memory that so many document IDs need; try again later")
      }
      let value = try ChangeLists.json(message.body, "the body of subChanges")
      guard let members = value?.object else {
        throw ChangeLists.malformed("the body of subChanges isn't JSON")
      }
      if case .array(let ids)? = members["docIDs"] { request.documentIDs = ids.compactMap(\.string) }
    }
    // They stay until the pull ends.
    let ids = request.documentIDs ?? []
    connection.keep(ids.reduce(0) { $0 + $1.utf8.count + Self.documentIDBytes })
    let batch = properties["batch"].flatMap { Int($0) } ?? ChangeServer.maximumListCount
    let sink = PullingClient(
      connection, outbox, collection: collection.withLock { $0 }, takesSequence: request.takesReachedSequence)
    let server = try ChangeServer(
      responder, request, sink, listCount: min(max(batch, 1), ChangeServer.maximumListCount), on: pool
    ) { [connection] error in
      connection.close(.webSocket(1011, error.message))
    }
    let (isEnded, earlier) = state.withLock { state in
      let earlier = state.server
      if !state.isEnded { state.server = server }
      return (state.isEnded, earlier)
    }
    earlier?.stop()
    if !isEnded { server.start() }
    return BLIPReply()
  }
}
