/// The counts of an import of a `.cblite2` database: what was read, carried over and left out, with the
/// reasons.
public struct CBLite2ImportReport: Sendable {
  /// Something that was left out.
  public struct Skipped: Sendable, Equatable {
    /// The ID of the document, or another name of what was left out.
    public let id: String
    /// The reason.
    public let reason: String
  }

  /// A collection of the source.
  public struct Collection: Sendable, Equatable {
    /// The name: `_default`, `name` or `scope.name`.
    public let name: String
    /// The number of rows, including tombstones.
    public let documents: Int
  }

  /// The `user_version` of the source. It tells which release wrote it.
  public var version = 0
  /// The collection that was imported.
  public var collection = "_default"
  /// The number of rows that were read: documents and tombstones.
  public var read = 0
  /// The number of live documents that are new here.
  public var documents = 0
  /// The number of tombstones that are new here.
  public var tombstones = 0
  /// The number of existing documents that got new branches.
  public var merged = 0
  /// The number of existing documents that didn't change.
  public var unchanged = 0
  /// The number of revisions that were added to new and merged documents.
  public var revisions = 0
  /// The number of bodies of new documents.
  public var bodies = 0
  /// The number of new documents with more than one live leaf revision.
  public var conflicts = 0
  /// The number of new documents whose current revision is another leaf than in the source. In 2.x, a pulled
  /// conflict can't win until it is resolved.
  public var otherWinners = 0
  /// The number of expirations that were set.
  public var expirations = 0
  /// The number of documents that were left out because they had expired.
  public var expired = 0
  /// The number of local documents that were imported.
  public var localDocuments = 0
  /// The number of blobs that were copied.
  public var blobs = 0
  /// The size of these blobs in bytes.
  public var blobBytes: UInt64 = 0
  /// The number of blobs that documents name but that are missing or damaged in the source.
  public var missingBlobs = 0
  /// The number of documents that were left out.
  public var skipped = 0
  /// The first `maximumDetails` entries for documents and local documents that were left out, for missing blobs, and for
  /// a write-ahead log with commits that can't be read. Empty if nothing is missing.
  public var details: [Skipped] = []
  /// The collections that weren't imported.
  public var otherCollections: [Collection] = []
  /// The names of the source's indexes. They aren't imported.
  public var indexes: [String] = []
  /// The number of replication checkpoints. They belong to the source as a peer and aren't imported.
  public var checkpoints = 0
  /// The number of documents with notes about remote databases. The notes aren't imported.
  public var remoteNotes = 0

  /// The maximum number of entries in `details`.
  public static let maximumDetails = 1_000

  /// Creates an empty report.
  package init() {}

  mutating func note(_ id: String, _ reason: String) {
    if details.count < CBLite2ImportReport.maximumDetails { details.append(Skipped(id: id, reason: reason)) }
  }
}
