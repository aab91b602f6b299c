/// What an import of a `.cblite2` database read, what it carried over, and what it left behind and why.
public struct CBLite2ImportReport: Sendable {
  /// Something that was left behind.
  public struct Skipped: Sendable, Equatable {
    /// The document's ID, or what else it is.
    public let id: String
    /// Why.
    public let reason: String
  }

  /// A collection of the source.
  public struct Collection: Sendable, Equatable {
    /// Its name: `_default`, `name` or `scope.name`.
    public let name: String
    /// Rows that it has, those of tombstones too.
    public let documents: Int
  }

  /// The source's `user_version`: which release wrote it.
  public var version = 0
  /// The collection that was imported.
  public var collection = "_default"
  /// Rows that were read: documents and tombstones.
  public var read = 0
  /// Live documents that are new here.
  public var documents = 0
  /// Tombstones that are new here.
  public var tombstones = 0
  /// Documents that were here already and got branches that they didn't have.
  public var merged = 0
  /// Documents that were here already as they are.
  public var unchanged = 0
  /// Revisions of what is new or was merged.
  public var revisions = 0
  /// Bodies among them.
  public var bodies = 0
  /// New documents with more than one live leaf revision.
  public var conflicts = 0
  /// New documents of which another leaf is current here: 2.x keeps a pulled conflict from winning until it is resolved.
  public var otherWinners = 0
  /// Expirations that were set.
  public var expirations = 0
  /// Documents that had expired, and were left behind for that.
  public var expired = 0
  /// Local documents.
  public var localDocuments = 0
  /// Blobs that were copied.
  public var blobs = 0
  /// Their bytes.
  public var blobBytes: UInt64 = 0
  /// Blobs that documents name and that the source doesn't have, or not as they should be.
  public var missingBlobs = 0
  /// Documents that were left behind.
  public var skipped = 0
  /// The first of them, and of the blobs that are missing.
  public var details: [Skipped] = []
  /// Collections that weren't asked for.
  public var otherCollections: [Collection] = []
  /// Indexes of the source: they are made anew by who needs them.
  public var indexes: [String] = []
  /// Replication checkpoints: they belong to the source as a peer, and stay there.
  public var checkpoints = 0
  /// Documents with notes about what remote databases have: not taken over.
  public var remoteNotes = 0

  /// How many are listed in `details`.
  public static let maximumDetails = 1_000

  /// An empty report.
  public init() {}

  mutating func note(_ id: String, _ reason: String) {
    if details.count < CBLite2ImportReport.maximumDetails { details.append(Skipped(id: id, reason: reason)) }
  }
}
