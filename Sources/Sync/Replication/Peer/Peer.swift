// What the replicator asks of the other side. Three kinds of peers meet it: another database of this process, BLIP, and
// the HTTP API of the CouchDB family.
//
// - Every call returns at once. Its answer comes later, on any thread, exactly once: an error when the connection ends.
// - Calls and answers carry many documents, so that no document costs a task or a change of threads.
// - The replicator bounds what is in flight to the peer. The peer bounds what it offers: it waits for the answers of its
//   sink.

import Blobs
import Documents
import Fleece
import Storage

/// A completion that is called exactly once, on any thread.
package typealias Completion<Value> = @Sendable (Result<Value, ReplicationError>) -> Void

/// A connection to another database.
package protocol Peer: AnyObject, Sendable {
  /// The most revisions that are proposed or accepted and not sent, and the most that are awaited. A peer that stores many
  /// in one transaction has more.
  var revisionsInFlight: Int { get }

  /// Whether all leaves of a document go both ways, as in the CouchDB family: conflicts stay there until somebody resolves
  /// them. Otherwise only the current revision goes.
  var exchangesLeaves: Bool { get }

  /// Whether it takes a revision in the place of another one that the sender knows, so that both sides end with the same revision of
  /// each document. Originals keep their own branches.
  var agreesOnRevisions: Bool { get }

  /// Begins the use of the connection. `owner` isn't kept alive.
  func begin(_ owner: any PeerOwner)

  // MARK: Checkpoints

  /// Tells the names that the checkpoint `id` has in the protocol of 1.x. Peers of that family need them before the first call
  /// with `id`.
  func nameCheckpoint(_ id: String, _ names: LegacyCheckpointNames)
  /// Asks for the checkpoint that this side stored there; nil if there is none.
  func checkpoint(_ id: String, _ done: @escaping Completion<StoredCheckpoint?>)
  /// Stores a checkpoint on top of the revision `basedOn`, empty for a new one. Answers its new revision, or the error
  /// HTTP 409 if there is another one.
  func setCheckpoint(
    _ id: String, _ json: [UInt8], basedOn revision: String, _ done: @escaping Completion<String>)

  // MARK: Pull

  /// Asks for changes. They arrive at `sink` until the connection ends, or with a one-shot request until the sink was
  /// told that all are there. `done` has the error of a request that the peer refuses.
  func pull(_ request: PullRequest, into sink: any PullSink, _ done: @escaping Completion<Void>)
  /// Whether a one-shot session may ask for changes once more, after it has pushed, to learn the sequence of what it has
  /// pushed itself. The next session doesn't get that then.
  var canPullAgain: Bool { get }
  /// Fetches a blob and writes its bytes, at most as many as the document says. The writer isn't finished by the peer.
  func fetchBlob(
    _ blob: MissingBlob, of documentID: String, into writer: BlobWriter, _ done: @escaping Completion<Void>)

  // MARK: Push

  /// Asks which of these revisions the peer takes. With `allowingConflicts` it may take those that conflict with its own,
  /// if it ever does.
  func propose(
    _ changes: [ProposedChange], allowingConflicts: Bool, _ done: @escaping Completion<ProposalAnswer>)
  /// Sends revisions. `answered` is called once or more, until each has its answer, by its place in `revisions`. A
  /// revision is answered without error after it is durable there.
  func send(_ revisions: [OutgoingRevision], _ answered: @escaping @Sendable ([SendAnswer]) -> Void)
  /// Says that revisions which the peer wants can't be sent.
  func unavailable(_ revisions: [UnavailableRevision])

  /// What went over the network.
  var traffic: PeerTraffic { get }

  // MARK: The end

  /// Ends the connection. What isn't answered yet is answered with an error. Nothing arrives at the sink afterwards.
  func close()
}

/// What a connection tells the side that began it.
package protocol PeerOwner: AnyObject, Sendable {
  /// The connection has ended, and `close` wasn't called.
  func connectionEnded(_ error: ReplicationError)
  /// Opens a blob that the peer asks for. A proof of possession reads it too.
  func openBlob(_ digest: BlobDigest) throws -> BlobReader
  /// Reads the body of a stored revision, nil if it isn't stored any more. It is what a delta is made from or applied to.
  func storedBody(of documentID: String, _ revision: String) throws -> SyncBody?
  /// Makes a writer for a blob that a revision names in another way than by its digest here. Whoever finishes it hands over
  /// the revision soon.
  func makeBlobWriter() throws -> BlobWriter
}

/// Makes connections to one database.
package protocol PeerConnector: Sendable {
  /// Identifies the remote database in checkpoints: its URL, or a name that the app gives it.
  var remoteID: String { get }
  /// What is shown to people.
  var name: String { get }
  /// Makes a connection.
  func connect(_ options: ConnectionOptions, _ done: @escaping Completion<any Peer>)
}

extension Peer {
  package var agreesOnRevisions: Bool { true }

  /// As many as Couchbase Lite has.
  package var revisionsInFlight: Int { 600 }
  package var canPullAgain: Bool { false }
  package var exchangesLeaves: Bool { false }
  package func nameCheckpoint(_ id: String, _ names: LegacyCheckpointNames) {}
  package var traffic: PeerTraffic { PeerTraffic() }
}

/// What a connection has sent and received over the network.
package struct PeerTraffic: Sendable, Hashable {
  package var sentBytes: UInt64 = 0
  package var receivedBytes: UInt64 = 0
  package var sentMessages: UInt64 = 0
  package var receivedMessages: UInt64 = 0

  package init(
    sentBytes: UInt64 = 0, receivedBytes: UInt64 = 0, sentMessages: UInt64 = 0, receivedMessages: UInt64 = 0
  ) {
    self.sentBytes = sentBytes
    self.receivedBytes = receivedBytes
    self.sentMessages = sentMessages
    self.receivedMessages = receivedMessages
  }

  package static func + (left: PeerTraffic, right: PeerTraffic) -> PeerTraffic {
    PeerTraffic(
      sentBytes: left.sentBytes + right.sentBytes, receivedBytes: left.receivedBytes + right.receivedBytes,
      sentMessages: left.sentMessages + right.sentMessages,
      receivedMessages: left.receivedMessages + right.receivedMessages)
  }
}

// MARK: - What is exchanged

/// A checkpoint on the other side.
package struct StoredCheckpoint: Sendable, Equatable {
  package var json: [UInt8]
  package var revision: String

  package init(json: [UInt8], revision: String) {
    self.json = json
    self.revision = revision
  }
}

/// The names of a checkpoint in the protocol of 1.x, where each direction has its own (`CheckpointID`).
package struct LegacyCheckpointNames: Sendable, Hashable {
  package var push: String
  package var pull: String

  package init(push: String, pull: String) {
    self.push = push
    self.pull = pull
  }
}

/// A sequence of the peer as JSON text. Only equality has a meaning.
package struct RemoteSequence: Hashable, Sendable {
  package let json: String
  package init(json: String) { self.json = json }
}

/// What a pull asks for.
package struct PullRequest: Sendable {
  /// The sequence after which to begin, nil for the beginning.
  package var since: RemoteSequence?
  package var isContinuous = false
  /// Whether tombstones are left out until the first time that all changes were sent.
  package var skipsTombstones = false
  /// Only these documents; nil for all.
  package var documentIDs: [String]?
  package var channels: [String]?
  /// Whether the peer may send a newer revision when the one that was asked for isn't there any more.
  package var takesReplacements = true
  /// Whether the peer says which sequence was reached when it has offered all. Then it needn't offer what came from this
  /// side.
  package var takesReachedSequence = true
  /// Whether the peer says which documents the user can't read any more.
  package var wantsLostAccess = true
  /// A filter of the peer with its parameters.
  package var filter: String?
  package var filterParameters: [String: JSONValue] = [:]
  /// What documents have to match, as CouchDB's `_find` says it.
  package var selector: JSONValue?
  /// Whether the peer, if it has several leaves of a document, offers only the current one.
  package var onlyWinners = false

  package init(since: RemoteSequence? = nil) { self.since = since }
}

/// A change that the peer offers.
package struct OfferedChange: Sendable {
  package var sequence: RemoteSequence
  package var id: String
  package var revision: String
  package var isDeleted: Bool
  /// Whether the user of this side can't read the document any more. It has no revision to send then.
  package var isAccessLost = false
  package var bodyBytes: Int

  package init(sequence: RemoteSequence, id: String, revision: String, isDeleted: Bool, bodyBytes: Int = 0) {
    self.sequence = sequence
    self.id = id
    self.revision = revision
    self.isDeleted = isDeleted
    self.bodyBytes = bodyBytes
  }
}

/// The answer to an offered change.
package enum OfferAnswer: Sendable, Equatable {
  case unwanted
  /// The revision is wanted. These may be its ancestors.
  case wanted(possibleAncestors: [String])
}

/// The answers to offered changes, in their order.
package struct OfferAnswers: Sendable {
  package var answers: [OfferAnswer]
  /// The most ancestors that a history needs.
  package var maximumHistory: Int

  package init(_ answers: [OfferAnswer], maximumHistory: Int) {
    self.answers = answers
    self.maximumHistory = maximumHistory
  }
}

/// A revision that arrives.
package struct IncomingRevision: Sendable {
  package var revision: SyncRevision
  package var sequence: RemoteSequence
  /// The revision that was asked for, if another one came instead.
  package var replaces: String?
  /// Stored revisions of the receiver, from which a delta may be made.
  package var deltaSources: [String] = []
  /// Whether it must be refused if it makes a conflict.
  package var allowsNoConflict = false
  /// Whether it says that the user of this side can't read the document any more. It has no body then.
  package var isAccessLost = false
  /// The revision that was asked for.
  package var asked: String { replaces ?? revision.revision }

  package init(_ revision: SyncRevision, sequence: RemoteSequence, replaces: String? = nil) {
    self.revision = revision
    self.sequence = sequence
    self.replaces = replaces
  }
}

/// A revision that can't be sent although it is wanted.
package struct UnavailableRevision: Sendable {
  package var id: String
  package var revision: String
  package var sequence: RemoteSequence?
  /// As of HTTP: 404 there is no such document, 410 the revision is obsolete, 403 it may not be read.
  package var code: Int

  package init(id: String, revision: String, sequence: RemoteSequence?, code: Int) {
    self.id = id
    self.revision = revision
    self.sequence = sequence
    self.code = code
  }
}

/// What may be sent at a time.
package struct SendingLimits: Sendable {
  /// The most bytes of bodies that are read and not stored yet.
  package var bytesInFlight = 4 << 20
  /// Bodies are sent together up to this many bytes.
  package var bytesTogether = 1 << 20

  package init() {}

  /// While memory is short. Something is always on its way, so that everything goes on.
  package static let short: SendingLimits = {
    var limits = SendingLimits()
    (limits.bytesInFlight, limits.bytesTogether) = (64 << 10, 64 << 10)
    return limits
  }()
}

/// Takes what a pull brings. Calls may come on any thread, one at a time, in the order of the changes.
package protocol PullSink: AnyObject, Sendable {
  /// Asks which of the offered changes are wanted. The peer doesn't offer more than a few lists without an answer. The
  /// answer may take long: that is how a slow sink slows down its peer.
  func offered(_ changes: [OfferedChange], _ answer: @escaping @Sendable (OfferAnswers) -> Void)
  /// Takes revisions. `done` has the result of each, once it is durable.
  func received(
    _ revisions: [IncomingRevision], _ done: @escaping @Sendable ([Result<Void, ReplicationError>]) -> Void)
  /// Takes note of wanted revisions that don't come.
  func unavailable(_ revisions: [UnavailableRevision])
  /// Takes note of a revision that has come, couldn't be read, and was refused. It isn't sent again. `revision` is the one
  /// that was asked for.
  func unreadable(_ documentID: String, _ revision: String, _ error: ReplicationError)
  /// All changes so far were offered. With `sequence`, all up to this one: those behind the last one that was offered
  /// aren't wanted, or came from this side.
  func caughtUp(at sequence: RemoteSequence?)
  /// What it takes at a time now.
  var sendingLimits: SendingLimits { get }
}

extension PullSink {
  package var sendingLimits: SendingLimits { SendingLimits() }
  package func unreadable(_ documentID: String, _ revision: String, _ error: ReplicationError) {}
}

/// A revision that this side wants to push.
package struct ProposedChange: Sendable {
  package var id: String
  package var revision: String
  /// The revision that is known to be the peer's current one.
  package var remoteRevision: String?
  /// Its sequence here.
  package var sequence: UInt64
  package var isDeleted: Bool
  package var bodyBytes: Int

  package init(
    id: String, revision: String, remoteRevision: String?, sequence: UInt64 = 0, isDeleted: Bool = false,
    bodyBytes: Int = 0
  ) {
    self.sequence = sequence
    self.id = id
    self.revision = revision
    self.remoteRevision = remoteRevision
    self.isDeleted = isDeleted
    self.bodyBytes = bodyBytes
  }
}

/// The answer to a proposed change.
package enum ProposalStatus: Sendable, Equatable {
  case send
  /// The peer has the revision.
  case known
  /// The revision would conflict with this one, if the peer says which; empty if the peer has no such document.
  case conflict(current: String?)
  /// The branch of the revision has ended there: the peer has it, and deleted what came of it. This one is current there.
  case ended(current: String)
  case refused(ReplicationError)
}

/// The answers to proposed changes, in their order.
package struct ProposalAnswer: Sendable {
  package var statuses: [ProposalStatus]
  /// The most ancestors that a history needs.
  package var maximumHistory: Int

  package init(_ statuses: [ProposalStatus], maximumHistory: Int) {
    self.statuses = statuses
    self.maximumHistory = maximumHistory
  }
}

extension ProposalAnswer {
  /// What the answers to offered changes say of a push.
  package init(_ answers: OfferAnswers) {
    self.init(
      answers.answers.map { $0 == .unwanted ? .known : .send }, maximumHistory: answers.maximumHistory)
  }
}

/// A revision on its way to the peer.
package struct OutgoingRevision: Sendable {
  package var revision: SyncRevision
  package var sequence: UInt64
  /// Whether the peer must refuse it if it makes a conflict.
  package var allowsNoConflict: Bool
  /// The peer's current revision, if this one descends from it and its history doesn't show that any more: so many revisions lie
  /// between that they are pruned here. Its branch ends.
  package var closes: String?

  package init(_ revision: SyncRevision, sequence: UInt64, allowsNoConflict: Bool = true) {
    self.revision = revision
    self.sequence = sequence
    self.allowsNoConflict = allowsNoConflict
  }
}

/// The answer to a revision that was sent.
package struct SendAnswer: Sendable {
  /// The place of the revision in what was sent.
  package var index: Int
  /// Nil if the revision is durable there.
  package var error: ReplicationError?
  /// Whether the next run sends it again, because the error doesn't say that the peer refuses it for good.
  package var isUndone: Bool

  /// Makes an answer. The default of `isUndone` is true for an error that isn't a refusal of the document.
  package init(_ index: Int, _ error: ReplicationError? = nil, isUndone: Bool? = nil) {
    self.index = index
    self.error = error
    self.isUndone = isUndone ?? error.map { !$0.isRefusal } ?? false
  }
}
