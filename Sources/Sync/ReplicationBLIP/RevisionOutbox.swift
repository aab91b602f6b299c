import BLIP
import Documents
import Fleece
import Replication
import Storage

/// Sends revisions as messages `rev`. Bodies become JSON, or deltas, on a thread of its own.
final class RevisionOutbox: Sendable {
  /// A revision to send.
  struct Item: Sendable {
    var revision: SyncRevision
    /// The sequence as JSON.
    var sequence: String
    var allowsNoConflict = false
    /// The revision that was asked for, if this one comes in its place.
    var replaced: String?
    /// Revisions of which the peer has the body.
    var deltaSources: [String] = []
  }

  /// What the peer has said of itself in an answer to a change list.
  struct Abilities: Sendable, Equatable {
    /// It knows blobs, and not only attachments.
    var takesBlobs = true
    /// It takes deltas.
    var takesDeltas = false
    /// It takes the property `replaces`, and histories with gaps: it is a database of this library.
    var takesReplaces = false
    /// The most ancestors that it takes.
    var maximumHistory = 20
  }

  /// Bodies with fewer bytes are sent whole.
  private static let smallestDeltaBody = 200
  /// Bodies with more aren't compared.
  private static let largestDeltaBody = 4 << 20

  private let connection: BLIPConnection
  private let storedBody: @Sendable (_ id: String, _ revision: String) throws -> SyncBody?
  private let lane: JobLane
  private let abilities = Lock(Abilities())
  /// The value of the property `collection`, nil if there is none.
  private let collection = Lock<String?>(nil)

  init(
    _ connection: BLIPConnection, on pool: Workers? = nil,
    storedBody: @escaping @Sendable (_ id: String, _ revision: String) throws -> SyncBody?
  ) {
    lane = JobLane(on: pool)
    self.connection = connection
    self.storedBody = storedBody
  }

  func set(collection: String?) { self.collection.withLock { $0 = collection } }

  var current: Abilities { abilities.withLock { $0 } }

  func changeAbilities(_ change: (inout Abilities) -> Void) { abilities.withLock { change(&$0) } }

  /// Sends revisions in order. `answered` is called with the place of each and its error, from the connection's thread
  /// or another one.
  func send(_ items: [Item], _ answered: @escaping @Sendable (_ index: Int, ReplicationError?) -> Void) {
    lane.enqueue { [self] in
      for (index, item) in items.enumerated() { send(item, asDelta: true) { answered(index, $0) } }
    }
  }

  private func send(
    _ item: Item, asDelta: Bool, _ answered: @escaping @Sendable (ReplicationError?) -> Void
  ) {
    let request: BLIPRequest
    let isDelta: Bool
    do { (request, isDelta) = try makeRequest(item, asDelta: asDelta) } catch {
      return answered(ReplicationError(error))
    }
    // What the peer takes its time with isn't kept here, unless it may have to be sent again.
    let again = isDelta ? item : nil
    connection.send(request) { [weak self] result in
      switch result {
      case .failure(let error): answered(ReplicationError(noReply: error))
      case .success(let reply):
        guard let error = reply.error else { return answered(nil) }
        // The peer may not have what the delta changes. Then it gets the whole body.
        if let again, !(error.domain == "HTTP" && [403, 409].contains(error.code)), let self {
          return self.lane.enqueue { self.send(again, asDelta: false, answered) }
        }
        answered(ReplicationError(error))
      }
    }
  }

  private func makeRequest(_ item: Item, asDelta: Bool) throws -> (BLIPRequest, isDelta: Bool) {
    let abilities = current
    let revision = item.revision
    var properties = BLIPProperties()
    if let collection = collection.withLock({ $0 }) { properties.append("collection", collection) }
    properties.append("id", revision.id)
    properties.append("rev", revision.revision)
    if let replaced = item.replaced { properties.append("replacedRev", replaced) }
    properties.append("sequence", item.sequence)
    if item.allowsNoConflict { properties.append("noconflicts", "1") }
    if revision.isDeleted { properties.append("deleted", "1") }
    if revision.history.count > 1 {
      let history =
        abilities.takesReplaces
        ? revision.history : RevisionHistory.filled(revision.history, maximum: abilities.maximumHistory)
      properties.append("history", history[1...].joined(separator: ","))
    }
    if abilities.takesReplaces, let replaces = revision.replaces { properties.append("replaces", replaces) }
    var delta: (source: String, json: [UInt8])?
    if asDelta, abilities.takesDeltas, abilities.takesBlobs, !revision.isDeleted, !item.deltaSources.isEmpty,
      (Self.smallestDeltaBody...Self.largestDeltaBody).contains(revision.body.byteCount)
    {
      delta = try self.delta(item)
    }
    if let delta { properties.append("deltaSrc", delta.source) }
    let body: [UInt8]
    if let delta {
      body = delta.json
    } else if !abilities.takesBlobs {
      body = try bodyWithStandIns(revision)
    } else {
      body = try revision.body.json(canonical: false)
    }
    var request = BLIPRequest(Profile.rev, properties, body: .bytes(body))
    request.isCompressed = true
    return (request, delta != nil)
  }

  /// The delta from the first stored body that the peer has, if it is smaller than the whole body.
  private func delta(_ item: Item) throws -> (source: String, json: [UInt8])? {
    for source in item.deltaSources {
      guard let old = try storedBody(item.revision.id, source) else { continue }
      guard old.byteCount <= Self.largestDeltaBody else { return nil }
      let (before, after) = (try old.value(), try item.revision.body.value())
      guard case .object(let members) = after, !members.isEmpty else { return nil }
      let json = try WireBody.text(JSONDelta.make(from: before, to: after) ?? .object([:]))
      return json.count < item.revision.body.byteCount ? (source, json) : nil
    }
    return nil
  }

  private func bodyWithStandIns(_ revision: SyncRevision) throws -> [UInt8] {
    guard revision.body.mightNameBlob else { return try revision.body.json(canonical: false) }
    var value = try revision.body.value()
    WireBody.addStandIns(to: &value, generation: RevisionID(revision.revision)?.generation ?? 1)
    return try WireBody.text(value)
  }
}
