/// What an export to a `.cblite2` database wrote, and what it changed or left behind and why.
public struct CBLite2ExportReport: Sendable {
  /// A revision whose ID 2.x can't hold.
  public struct Rewritten: Sendable, Equatable {
    /// The document.
    public let id: String
    /// The revision's ID here.
    public let revision: String
    /// Its ID in what was written.
    public let written: String
  }

  /// Something that was left behind.
  public struct Skipped: Sendable, Equatable {
    /// The document's ID, or what else it is.
    public let id: String
    /// Why.
    public let reason: String
  }

  /// Live documents that were written.
  public var documents = 0
  /// Tombstones that were written.
  public var tombstones = 0
  /// Revisions that were written.
  public var revisions = 0
  /// Bodies that were written.
  public var bodies = 0
  /// Documents with more than one live leaf revision.
  public var conflicts = 0
  /// Expirations that were written.
  public var expirations = 0
  /// Local documents that were written.
  public var localDocuments = 0
  /// Blobs that were written.
  public var blobs = 0
  /// Their bytes.
  public var blobBytes: UInt64 = 0
  /// Blobs that documents name and that aren't here, or not as they should be.
  public var missingBlobs = 0
  /// Revisions whose IDs had to be changed.
  public var rewrittenIDs = 0
  /// The first of them.
  public var rewritten: [Rewritten] = []
  /// Old revisions that were cut off trees of more than 65,535.
  public var cutOffRevisions = 0
  /// Documents that were left behind.
  public var skipped = 0
  /// The first of them, and of the blobs that are missing.
  public var details: [Skipped] = []
  /// Indexes of the database: 2.x makes its own.
  public var indexes: [String] = []

  /// How many are listed in `rewritten` and in `details`.
  public static let maximumDetails = 1_000

  /// An empty report.
  public init() {}

  mutating func note(_ id: String, _ reason: String) {
    if details.count < CBLite2ExportReport.maximumDetails { details.append(Skipped(id: id, reason: reason)) }
  }
}
