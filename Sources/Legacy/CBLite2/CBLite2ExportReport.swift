/// The counts of an export to a `.cblite2` database: what was written, changed and left out, with the
/// reasons.
public struct CBLite2ExportReport: Sendable {
  /// A revision whose ID 2.x can't store.
  public struct Rewritten: Sendable, Equatable {
    /// The ID of the document.
    public let id: String
    /// The revision ID in this database.
    public let revision: String
    /// The revision ID in the exported database.
    public let written: String
  }

  /// Something that was left out.
  public struct Skipped: Sendable, Equatable {
    /// The ID of the document.
    public let id: String
    /// The reason.
    public let reason: String
  }

  /// The number of live documents that were written.
  public var documents = 0
  /// The number of tombstones that were written.
  public var tombstones = 0
  /// The number of revisions that were written.
  public var revisions = 0
  /// The number of bodies that were written.
  public var bodies = 0
  /// The number of documents with more than one live leaf revision.
  public var conflicts = 0
  /// The number of expirations that were written.
  public var expirations = 0
  /// The number of local documents that were written.
  public var localDocuments = 0
  /// The number of blobs that were written.
  public var blobs = 0
  /// The size of these blobs in bytes.
  public var blobBytes: UInt64 = 0
  /// The number of blobs that documents name but that are missing or damaged here.
  public var missingBlobs = 0
  /// The number of revisions whose ID was changed.
  public var rewrittenIDs = 0
  /// The first `maximumDetails` revisions whose ID was changed.
  public var rewritten: [Rewritten] = []
  /// The number of old revisions that were removed from trees of more than 65,535 revisions.
  public var cutOffRevisions = 0
  /// The number of documents that were left out.
  public var skipped = 0
  /// The first `maximumDetails` entries for documents that were left out and for missing blobs.
  public var details: [Skipped] = []
  /// The names of the database's indexes. They aren't exported.
  public var indexes: [String] = []

  /// The maximum number of entries in `rewritten` and in `details`.
  public static let maximumDetails = 1_000

  /// Creates an empty report.
  package init() {}

  mutating func note(_ id: String, _ reason: String) {
    if details.count < CBLite2ExportReport.maximumDetails { details.append(Skipped(id: id, reason: reason)) }
  }
}
