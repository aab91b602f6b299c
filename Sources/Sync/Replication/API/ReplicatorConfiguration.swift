import Documents
import Fleece
import Storage
import Touchstone

/// What a replicator connects to.
public struct ReplicatorTarget: Sendable {
  package let connector: any PeerConnector

  package init(_ connector: any PeerConnector) { self.connector = connector }

  /// Another database of this process. Bodies are handed over as they are stored.
  public static func database(_ database: Database) -> ReplicatorTarget {
    ReplicatorTarget(LocalConnector(database))
  }
}

/// A revision that a filter decides on.
public struct FilteredRevision: Sendable {
  /// The document's ID.
  public let documentID: String
  /// The ID of the revision.
  public let revisionID: String
  /// Whether it is a tombstone.
  public let isDeleted: Bool
  let content: SyncBody

  init(_ revision: SyncRevision) {
    documentID = revision.id
    revisionID = revision.revision
    isDeleted = revision.isDeleted
    content = revision.body
  }

  /// The body. Throws `damaged` if it can't be read.
  public func body() throws -> JSONValue { try content.value() }

  /// Lends the body in place, nil if it can't be read, with the shared keys that it needs. Returns nil without a call if the body is JSON.
  package func withStoredBody<Result>(
    _ use: (_ body: Value?, _ sharedKeys: SharedKeys) throws -> Result
  ) rethrows -> Result? {
    guard case .fleece(let bytes, let sharedKeys) = content else { return nil }
    return try use(Value(rootOf: bytes.span.bytes), sharedKeys)
  }
}

/// Decides whether a revision is replicated. It is called on a background thread and must not change the database.
public typealias ReplicationFilter = @Sendable (FilteredRevision) throws -> Bool

/// How conflicts of pulled revisions are resolved.
public enum ReplicationConflictResolver: Sendable {
  /// The rules of the other side's family. Those of Couchbase Lite (`DefaultConflictResolver`); over HTTP that conflicts
  /// stay, as in CouchDB and Couchbase Lite 1.x: all branches go both ways.
  case standard
  /// A resolver of the app. It is called on a background thread.
  case custom(any ConflictResolver)
  /// A resolver that takes its time. It is called again if the document changes meanwhile.
  case asynchronous(@Sendable (Conflict) async throws -> ConflictResolution)
}

/// What a replicator does. Copy and change it before the replicator is made.
///
/// ```swift
/// var configuration = ReplicatorConfiguration(local, .database(other))
/// configuration.isContinuous = true
/// let replicator = Replicator(configuration)
/// ```
public struct ReplicatorConfiguration: Sendable {
  /// The directions.
  public enum Direction: Sendable, CaseIterable {
    /// Local changes go to the target, and its changes come here.
    case pushAndPull
    /// Local changes go to the target.
    case push
    /// Changes of the target come here.
    case pull

    var pushes: Bool { self != .pull }
    var pulls: Bool { self != .push }
  }

  /// The local database.
  public var database: Database
  /// The other side.
  public var target: ReplicatorTarget
  /// Which way changes go. Default: both.
  public var direction = Direction.pushAndPull
  /// Whether it goes on after everything is replicated, and waits for changes. Default: false.
  public var isContinuous = false
  /// Only these documents are replicated. Nil: all.
  public var documentIDs: [String]?
  /// Only documents of these channels are pulled, from a server that has channels. Nil: all that the user may read.
  public var channels: [String]?
  /// A filter of the other side by its name, which chooses what is pulled: over HTTP `DESIGN/NAME`, over a WebSocket one of a
  /// `SyncListener` or of Sync Gateway. Nil: all. A peer without the filter refuses the pull; Couchbase Lite and local databases
  /// have none (LiteCore 19). It and its parameters are a part of the checkpoint's ID.
  public var filter: String?
  /// The parameters of `filter`. Over a WebSocket a string goes as it is, and another value as JSON.
  public var filterParameters: [String: JSONValue] = [:]
  /// What documents have to match to be pulled, in the language of CouchDB's `_find`. Only over HTTP; nil: all.
  public var selector: JSONValue?
  /// Which local revisions are pushed. Nil: all.
  public var pushFilter: ReplicationFilter?
  /// Which revisions are stored that arrive. Nil: all. One that is left out counts as replicated.
  public var pullFilter: ReplicationFilter?
  /// How conflicts are resolved.
  public var conflictResolver = ReplicationConflictResolver.standard
  /// How connections over the network are made: authentication, headers, TLS, proxy, heartbeat.
  public var connection = ConnectionOptions()
  /// Whether revisions that conflict with those of the peer are pushed, as another branch there. Couchbase Lite 2 and databases
  /// of this library accept them, unless they refuse conflicts. Over HTTP all branches are pushed anyway. Default: false.
  public var pushesConflicts = false
  /// How often the replicator connects again after a lost connection. Nil: 2 times, and without limit if it is continuous. The
  /// count starts again after a connection that has replicated something or has come to the end.
  public var maximumRetries: Int?
  /// The longest wait before a retry, in seconds. Waits are 2, 4, 8 … seconds.
  public var maximumRetryWait = 600.0
  /// Whether a connection that the peer closes normally is made again, as one that was lost.
  public var retriesAfterNormalClose = true
  /// Identifies the remote database in place of its URL, so that several URLs of one database share a checkpoint.
  public var remoteID: String?
  /// Whether documents are purged here that the user can't read there any more. Default: true.
  public var purgesOnLostAccess = true
  /// Whether the first pull into an empty database leaves out tombstones. Default: true, as Couchbase Lite.
  public var skipsTombstonesOfFirstPull = true
  /// Whether the first start of the replicator forgets how far earlier replications came. What the other side has isn't sent
  /// again.
  public var resetsCheckpoint = false

  /// Where a replication begins that has no checkpoint yet: behind this sequence of the side that changes come from. Nil: at
  /// the beginning. A local sequence is a number.
  package var startSequence: RemoteSequence?
  /// Whether only the current revision of a document goes to or comes from a peer that has several leaves of it.
  package var replicatesOnlyWinners = false
  package var timer: any CallTimer = SystemTimer()
  /// Seconds from a change of the checkpoint to its save.
  package var checkpointDelay = 5.0
  /// Seconds in which the pull of a continuous session may settle a refused change by itself.
  package var refusalDelay = 1.0

  /// Creates a configuration for both directions, once.
  public init(_ database: Database, _ target: ReplicatorTarget) {
    self.database = database
    self.target = target
  }

  var checkpointID: CheckpointID {
    CheckpointID(
      remoteID: remoteID ?? target.connector.remoteID, channels: channels, filter: filter,
      filterParameters: filterParameters, selector: selector, documentIDs: documentIDs)
  }
}

/// What a replicator does at a moment.
public struct ReplicatorStatus: Sendable, Equatable {
  /// The states.
  public enum Activity: Int, Sendable, CaseIterable, Comparable {
    /// It has finished, was stopped, or had an error that a retry doesn't mend.
    case stopped
    /// The connection was lost. It is made again after some time.
    case offline
    /// It is connecting.
    case connecting
    /// A continuous replicator has replicated everything, and waits for changes.
    case idle
    /// It is working.
    case busy

    /// Orders states by how far the replicator has come.
    public static func < (a: Activity, b: Activity) -> Bool { a.rawValue < b.rawValue }
  }

  /// The number of changes that are done, and of those that are known.
  public struct Progress: Sendable, Hashable {
    /// Changes that are done since the start.
    public var completed: UInt64 = 0
    /// Changes that are known since the start.
    public var total: UInt64 = 0
  }

  /// The state.
  public var activity = Activity.stopped
  /// How far it is.
  public var progress = Progress()
  /// Why it stopped or is offline. Nil if nothing is wrong.
  public var error: ReplicationError?
}

/// A document that was replicated, or that couldn't be.
public struct ReplicatedDocument: Sendable, Hashable {
  /// The document's ID.
  public let id: String
  /// The ID of the revision.
  public let revisionID: String
  /// Whether the revision is a tombstone.
  public let isDeleted: Bool
  /// Whether it was pushed; otherwise it was pulled.
  public let isPush: Bool
  /// Whether it was pulled, conflicted with the current revision here, and the conflict was resolved.
  public let hadConflict: Bool
  /// Why it wasn't replicated. Nil if it was.
  public let error: ReplicationError?
  /// Whether the next connection tries it again, of this run or of the next one: the checkpoint doesn't pass it. A document
  /// with an error that isn't tried again counts as done.
  public let isUndone: Bool

  init(
    id: String, revisionID: String, isDeleted: Bool, isPush: Bool, hadConflict: Bool = false,
    error: ReplicationError?, isUndone: Bool = false
  ) {
    self.id = id
    self.revisionID = revisionID
    self.isDeleted = isDeleted
    self.isPush = isPush
    self.hadConflict = hadConflict
    self.error = error
    self.isUndone = isUndone
  }
}
