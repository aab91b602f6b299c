import BLIP
import Blobs
import Documents
import Fleece
import Replication
import Storage

extension BLIPPeer {
  /// The most lists of the peer that aren't answered, and changes in them. Peers wait after a few lists of 200.
  static let maximumLists = 64
  static let maximumChanges = 20_000

  package func pull(_ request: PullRequest, into sink: any PullSink, _ done: @escaping Completion<Void>) {
    var properties = BLIPProperties()
    if let since = request.since { properties.append("since", since.json) }
    if request.isContinuous { properties.append("continuous", "true") }
    properties.append("batch", "200")
    if request.takesReplacements { properties.append("sendReplacementRevs", "1") }
    properties.append("versioning", "rev-trees")
    if request.takesReachedSequence { properties.append("upTo", "1") }
    if request.skipsTombstones { properties.append("activeOnly", "true") }
    if request.wantsLostAccess { properties.append("revocations", "true") }
    if let filter = request.filter {
      properties.append("filter", filter)
      for (name, value) in request.filterParameters.sorted(by: { $0.key < $1.key }) {
        let text: String? = if case .string(let text) = value { text } else { try? value.canonicalJSON() }
        properties.append(name, text ?? "null")
      }
    }
    var message = BLIPRequest(Profile.subChanges, properties)
    if let ids = request.documentIDs {
      let body = JSONValue.object(["docIDs": .array(ids.map { .string($0) })])
      do { message.body = .bytes(try WireBody.text(body)) } catch {
        return done(.failure(ReplicationError(error)))
      }
      message.isCompressed = true
    }
    state.withLock { $0.sink = sink }
    ask(message) { done($0.map { _ in }) }
  }

  /// Databases of this library take a second request on a connection.
  package var canPullAgain: Bool { outbox.current.takesReplaces }

  func takeChanges(_ request: BLIPIncomingRequest) {
    guard let sink else {
      // What this side hasn't asked for, it doesn't take.
      return _ = request.reply(ReplicationError(.http, 403, "nothing is pulled here").reply)
    }
    let changes: [OfferedChange]
    do { changes = try ChangeLists.offered(request.message.body) } catch {
      return _ = request.reply(ReplicationError(error).reply)
    }
    guard !changes.isEmpty else {
      let sequence = request.message.properties["upTo"]
      request.reply()
      return sink.caughtUp(
        at: sequence.flatMap { UInt64($0) == nil ? nil : RemoteSequence(json: $0) })
    }
    // Nobody could answer which of them are wanted.
    guard !request.message.isNoReply else { return }
    let count = changes.count
    let isTooMuch = offers.withLock { offers in
      offers.lists += 1
      offers.changes += count
      return offers.lists > Self.maximumLists || offers.lists > 1 && offers.changes > Self.maximumChanges
    }
    guard !isTooMuch else {
      return connection.close(.webSocket(1011, "the peer doesn't wait for answers to its changes"))
    }
    sink.offered(changes) { [hasAnsweredOffers, offers] answers in
      offers.withLock { offers in
        offers.lists -= 1
        offers.changes -= count
      }
      var properties: BLIPProperties = ["maxHistory": String(answers.maximumHistory), "blobs": "true"]
      let isFirst = hasAnsweredOffers.withLock { hasAnswered in
        defer { hasAnswered = true }
        return !hasAnswered
      }
      if isFirst { properties.append("deltas", "true") }
      properties.append("sendReplacementRevs", "1")
      var reply = BLIPReply(properties, body: .bytes(ChangeLists.body(answers.answers)))
      reply.isCompressed = true
      request.reply(reply)
    }
  }

  func takeUnavailable(_ request: BLIPIncomingRequest, _ code: String) {
    let properties = request.message.properties
    if let id = properties["id"], let rev = properties["rev"] {
      sink?.unavailable([
        UnavailableRevision(
          id: id, revision: rev, sequence: properties["sequence"].map { RemoteSequence(json: $0) },
          code: Int(code) ?? 404)
      ])
    }
    request.reply()
  }

  package func fetchBlob(
    _ blob: MissingBlob, of documentID: String, into writer: BlobWriter, _ done: @escaping Completion<Void>
  ) { blobs.fetch(blob, of: documentID, collection: collection, into: writer, done) }
}
