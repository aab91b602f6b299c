import BLIP
import Documents
import Replication
import Storage

/// Carries what a `ChangeServer` offers and sends to a client that pulls.
final class PullingClient: PullSink {
  private let connection: BLIPConnection
  private let outbox: RevisionOutbox
  private let collection: String?
  /// Whether the client takes the sequence that was reached: it is of this library.
  private let takesSequence: Bool

  init(_ connection: BLIPConnection, _ outbox: RevisionOutbox, collection: String?, takesSequence: Bool) {
    self.takesSequence = takesSequence
    self.connection = connection
    self.outbox = outbox
    self.collection = collection
  }

  private func changes(_ changes: [OfferedChange]) -> BLIPRequest {
    var properties = BLIPProperties()
    if let collection { properties.append("collection", collection) }
    var request = BLIPRequest(Profile.changes, properties, body: .bytes(ChangeLists.body(changes)))
    request.isUrgent = true
    return request
  }

  func offered(_ changes: [OfferedChange], _ answer: @escaping @Sendable (OfferAnswers) -> Void) {
    let isFit = changes.map { takesSequence || $0.id.utf8.count <= ReplicationProtocol.longestID }
    guard isFit.contains(false) else { return offer(changes, answer) }
    let fit = zip(changes, isFit).filter(\.1).map(\.0)
    let expand: @Sendable (OfferAnswers) -> Void = { answers in
      var rest = answers.answers[...]
      answer(
        OfferAnswers(
          isFit.map { $0 ? rest.popFirst() ?? .unwanted : .unwanted }, maximumHistory: answers.maximumHistory)
      )
    }
    if fit.isEmpty { expand(OfferAnswers([], maximumHistory: 0)) } else { offer(fit, expand) }
  }

  private func offer(_ changes: [OfferedChange], _ answer: @escaping @Sendable (OfferAnswers) -> Void) {
    var request = self.changes(changes)
    request.isCompressed = true
    connection.send(request) { [outbox, connection, takesSequence] result in
      guard case .success(let reply) = result else { return }
      // A client that is about to end answers no lists any more.
      if reply.error != nil { return }
      let properties = reply.properties
      let history = min(max(properties["maxHistory"].flatMap { Int($0) } ?? 20, 1), 1_000)
      outbox.changeAbilities { abilities in
        abilities.takesBlobs = properties.isTrue("blobs")
        abilities.takesReplaces = takesSequence
        abilities.maximumHistory = history
        if properties.isTrue("deltas") { abilities.takesDeltas = true }
      }
      do {
        let answers = try ChangeLists.offerAnswers(reply.body, count: changes.count)
        answer(OfferAnswers(answers, maximumHistory: history))
      } catch { connection.close(.webSocket(1011, ReplicationError(error).message)) }
    }
  }

  func received(
    _ revisions: [IncomingRevision], _ done: @escaping @Sendable ([Result<Void, ReplicationError>]) -> Void
  ) {
    let items = revisions.map { revision in
      RevisionOutbox.Item(
        revision: revision.revision, sequence: revision.sequence.json, replaced: revision.replaces,
        deltaSources: revision.deltaSources)
    }
    let results = Lock((left: items.count, errors: [ReplicationError?](repeating: nil, count: items.count)))
    outbox.send(items) { index, error in
      let all = results.withLock { results -> [ReplicationError?]? in
        results.errors[index] = error
        results.left -= 1
        return results.left == 0 ? results.errors : nil
      }
      if let all { done(all.map { error in error.map { .failure($0) } ?? .success(()) }) }
    }
  }

  var sendingLimits: SendingLimits { connection.isMemoryShort ? .short : SendingLimits() }

  func unavailable(_ revisions: [UnavailableRevision]) {
    for revision in revisions { connection.send(.unavailable(revision, collection: collection)) { _ in } }
  }

  func caughtUp(at sequence: RemoteSequence?) {
    var request = changes([])
    if takesSequence, let sequence { request.properties.append("upTo", sequence.json) }
    request.isNoReply = true
    connection.send(request) { _ in }
  }
}
