import Blobs
import Documents
import Storage

/// What a conversion, a copy, an encryption or a decryption couldn't take along: the blobs that documents name and that the
/// database lacked already. Everything else is carried over or the operation throws.
public struct ConversionReport: Sendable, Hashable {
  /// A blob that a document names and that is missing.
  public struct MissingBlob: Sendable, Hashable, CustomStringConvertible {
    /// The ID of the document.
    public let documentID: String
    /// The digest of the blob: `sha1-` and 28 characters.
    public let digest: String
    /// Where the document names it: `/photos/3`, `/_attachments/a.png`.
    public let path: String

    /// The document, the digest and the path in one line, as a check says it.
    public var description: String { "document '\(documentID)': the blob \(digest) at \(path) is missing" }
  }

  /// The number of missing blobs. One that several documents name counts once.
  public private(set) var missingBlobCount = 0
  /// The number of documents with a revision that names one of them. Tombstones and revisions that lost a conflict or were replaced
  /// count too, as far as they are stored.
  public private(set) var documentCount = 0
  /// For each of these documents its missing blobs, by document ID, live documents before tombstones; the first
  /// `maximumMissingBlobs`.
  public private(set) var missingBlobs: [MissingBlob] = []

  /// The maximum number of entries in `missingBlobs`.
  public static let maximumMissingBlobs = 1_000

  /// Whether nothing is missing.
  public var isComplete: Bool { missingBlobCount == 0 }

  /// The report of a database from which nothing is missing.
  init() {}

  /// Looks into the documents of `engine` for what `blobs` lacks.
  init(_ engine: any StorageEngine, _ blobs: BlobStore) throws {
    let search = try LostBlobSearch.run(in: engine, blobs, limit: Self.maximumMissingBlobs)
    missingBlobCount = search.digests.count
    documentCount = search.documentCount
    missingBlobs = search.references.map {
      MissingBlob(documentID: $0.documentID, digest: "\($0.digest)", path: $0.path)
    }
  }

  /// What the log says of it, after a comma; empty if nothing is missing.
  var logText: String {
    isComplete
      ? "" : ", without \(missingBlobCount) blobs that \(documentCount) documents name and that were missing"
  }
}
