import BLIP
import Bytes
import Documents
import Fleece
import Replication
import Storage

/// Takes messages `rev`: reads them on a thread of its own, hands over many at a time, and answers each when it is stored.
final class RevisionInbox: Sendable {
  /// What is handed over with one call at most.
  private static let revisionsTogether = 500
  private static let bytesTogether = 4 << 20
  /// What is handed over and not stored yet, at most. More waits as it came.
  private static let revisionsInFlight = 2_000
  private static let bytesInFlight = 8 << 20
  /// The most ancestors that a message may name. No side of this library sends more.
  private static let maximumHistory = 1_000
  /// The most values of a body.
  private static let maximumValues = 1_000_000

  /// Takes revisions. `done` gets the result of each once it is durable.
  typealias Deliver =
    @Sendable (
      [IncomingRevision], _ done: @escaping @Sendable ([Result<Void, ReplicationError>]) -> Void
    ) -> Void

  private let storedBody: @Sendable (_ id: String, _ revision: String) throws -> SyncBody?
  private let deliver: Deliver
  private let refused: Refused
  private struct State {
    var waiting: [BLIPIncomingRequest] = []
    /// Whether a job takes what waits.
    var isRunning = false
    var revisions = 0
    var bytes = 0
    var isFull: Bool { revisions >= RevisionInbox.revisionsInFlight || bytes >= RevisionInbox.bytesInFlight }
  }
  private let state = Lock(State())
  private let lane: JobLane

  /// Hears of a message that can't be read and isn't sent again, by its document and the revision that was asked for.
  typealias Refused = @Sendable (_ id: String, _ revision: String, ReplicationError) -> Void

  init(
    on pool: Workers? = nil,
    storedBody: @escaping @Sendable (_ id: String, _ revision: String) throws -> SyncBody?,
    deliver: @escaping Deliver, refused: @escaping Refused = { _, _, _ in }
  ) {
    lane = JobLane(on: pool)
    self.storedBody = storedBody
    self.deliver = deliver
    self.refused = refused
  }

  func take(_ request: BLIPIncomingRequest) {
    goOn { $0.waiting.append(request) }
  }

  /// Changes the state, and begins a job if there is something to do then.
  private func goOn(_ change: (inout State) -> Void) {
    let begins = state.withLock { state in
      change(&state)
      guard !state.isRunning, !state.waiting.isEmpty, !state.isFull else { return false }
      state.isRunning = true
      return true
    }
    if begins { lane.enqueue { [self] in handOver() } }
  }

  /// What is read next: a large message alone, or as many others as are handed over together. Empty if it has to wait.
  private func nextRequests() -> (requests: [BLIPIncomingRequest], isLarge: Bool) {
    state.withLock { state in
      guard let first = state.waiting.first, !state.isFull else {
        state.isRunning = false
        return ([], false)
      }
      if first.message.body.count > LargeBodies.bytes { return (state.waiting.takeFirst(1), true) }
      var (count, bytes) = (0, 0)
      while count < min(state.waiting.count, Self.revisionsTogether), bytes < Self.bytesTogether,
        case let size = state.waiting[count].message.body.count, size <= LargeBodies.bytes
      {
        count += 1
        bytes += size
      }
      return (state.waiting.takeFirst(count), false)
    }
  }

  private func handOver() {
    while case let (requests, isLarge) = nextRequests(), !requests.isEmpty {
      guard isLarge else {
        handOver(requests)
        continue
      }
      return LargeBodies.workers.enqueue { [self] in
        handOver(requests)
        lane.enqueue { [self] in handOver() }
      }
    }
  }

  private func handOver(_ requests: [BLIPIncomingRequest]) {
    var read: [BLIPIncomingRequest] = []
    var revisions: [IncomingRevision] = []
    var bytes = 0
    for request in requests {
      do {
        let revision = try self.read(request.message)
        // What was read isn't kept twice.
        read.append(request.withoutMessage)
        revisions.append(revision)
        bytes += revision.revision.body.byteCount
      } catch { refuse(request, ReplicationError(error)) }
    }
    guard !revisions.isEmpty else { return }
    let (count, size, answered) = (revisions.count, bytes, read)
    state.withLock { state in
      state.revisions += count
      state.bytes += size
    }
    deliver(revisions) { [self] results in
      for (request, result) in zip(answered, results) {
        if case .failure(let error) = result { request.reply(error.reply) } else { request.reply() }
      }
      goOn { state in
        state.revisions -= count
        state.bytes -= size
      }
    }
  }

  private func refuse(_ request: BLIPIncomingRequest, _ error: ReplicationError) {
    let properties = request.message.properties
    request.reply(error.reply)
    // A delta that can't be applied is followed by the whole body.
    if error.code == 422 && properties["deltaSrc"] != nil { return }
    guard let id = properties["id"], let revision = properties["replacedRev"] ?? properties["rev"] else {
      return
    }
    refused(id, revision, error)
  }

  /// Reads a message. Throws HTTP 400 if something is missing or can't be, 422 for a delta that can't be applied.
  private func read(_ message: BLIPMessage) throws -> IncomingRevision {
    let properties = message.properties
    guard let id = properties["id"], let rev = properties["rev"] else {
      throw ChangeLists.malformed("a revision has no ID")
    }
    guard !message.isCut else {
      throw ReplicationError(.http, 413, "the body of a document is longer than this side takes")
    }
    guard let sequence = properties["sequence"], sequence.utf8.count <= ChangeLists.maximumSequenceBytes
    else {
      throw ChangeLists.malformed("a revision has no sequence")
    }
    var history = [rev]
    if let older = properties["history"], !older.isEmpty {
      let ids = older.split(separator: ",", maxSplits: Self.maximumHistory, omittingEmptySubsequences: false)
      guard ids.count <= Self.maximumHistory else {
        throw ChangeLists.malformed("a revision has more than \(Self.maximumHistory) ancestors")
      }
      // Some peers write blanks behind the commas.
      history += ids.map { $0.first == " " ? String($0.dropFirst()) : String($0) }
    }
    let json = message.body.isEmpty ? Array("{}".utf8) : Array(message.body)
    try checkMeasure(of: json)
    let (body, isRemoved) =
      try properties["deltaSrc"].map { try applyDelta(json, to: $0, of: id) } ?? WireBody.received(json)
    var revision = SyncRevision(
      id: id, history: history, isDeleted: properties.isTrue("deleted"), body: .json(body))
    revision.replaces = properties["replaces"]
    var incoming = IncomingRevision(
      revision, sequence: RemoteSequence(json: sequence), replaces: properties["replacedRev"])
    incoming.allowsNoConflict = properties.isTrue("noconflicts")
    incoming.isAccessLost = isRemoved
    return incoming
  }

  /// Throws HTTP 413 if a body is nested too deeply for a database, or has more values than is fit to be read at once.
  private func checkMeasure(of json: [UInt8]) throws {
    // A body that is nested deeply has an opening and a closing bracket for each level.
    guard json.count > 2 * FleeceLimits.depth else { return }
    let measure = json.withUnsafeBytes { JSONMeasure($0) }
    guard measure.depth <= FleeceLimits.depth else {
      throw ReplicationError(
        .http, 413, "the body of a document is nested deeper than \(FleeceLimits.depth) levels")
    }
    guard measure.values <= Self.maximumValues else {
      throw ReplicationError(
        .http, 413, "the body of a document has more than \(Self.maximumValues) values")
    }
  }

  private func applyDelta(_ json: [UInt8], to source: String, of id: String) throws -> (
    stored: [UInt8], isRemoved: Bool
  ) {
    func unusable(_ why: String) -> ReplicationError {
      ReplicationError(.http, 422, "a delta can't be applied: \(why)")
    }
    guard let old = try storedBody(id, source) else { throw unusable("its source isn't stored") }
    guard let delta = try? json.withUnsafeBytes({ try JSONValue(json: $0) }) else {
      throw unusable("it isn't JSON")
    }
    var value: JSONValue
    do { value = try JSONDelta.apply(delta, to: old.value()) } catch let error as JSONDelta.Mismatch {
      throw unusable(error.description)
    }
    let isRemoved = WireBody.saysRemoved(value)
    _ = try WireBody.clean(&value)
    return (try WireBody.text(value), isRemoved)
  }
}
