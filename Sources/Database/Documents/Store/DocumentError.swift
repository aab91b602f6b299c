/// An error of a document operation: what was tried, on which document, and why it failed.
public struct DocumentError: Error, Sendable, CustomStringConvertible {
  /// The kinds of errors.
  public enum Code: String, Sendable, CaseIterable {
    /// The parent revision isn't the current revision, or a document exists where none was expected.
    case conflict
    /// The document doesn't exist or is deleted.
    case notFound
    /// The document ID is empty, too long, has control characters or begins with an underscore, unless it is a
    /// design document's (see
    /// `DocumentID`).
    case invalidDocumentID
    /// The revision ID doesn't have the form `generation-suffix`, or exceeds a storage limit (see
    /// `RevisionID`).
    case invalidRevisionID
    /// The revision history is empty, or its generations don't descend.
    case invalidHistory
    /// The body isn't a JSON object, or it can't be stored.
    case invalidBody
    /// The body has a property that begins with an underscore and has a meaning of its own.
    case reservedProperty
    /// The name or the definition of an index is invalid.
    case invalidIndex
    /// The database has an index of a kind that it wasn't opened with. The index can't be maintained.
    case unknownIndexKind
    /// The body refers to a blob that isn't in the database.
    case missingBlob
    /// A validation function rejected the revision (`Database.setValidation`).
    case rejected
    /// Stored data can't be read.
    case damaged
    /// The data has a format version that this release doesn't know.
    case unsupportedVersion
    /// An earlier operation in the same batch failed. Nothing of the batch can be committed.
    case batchFailed
    /// A batch tried to write during one of its own scans. The write would change the scanned data. Collect
    /// the results first, then write.
    case writeInScan
    /// A snapshot was used after the closure that received it returned.
    case snapshotEnded
  }

  /// The kind of error.
  public let code: Code
  /// A message for people: what was tried, what was found and what to do.
  public let message: String
  /// The ID of the document concerned, or nil.
  public let documentID: String?

  /// Creates an error.
  package init(_ code: Code, _ message: String, documentID: String? = nil) {
    self.code = code
    self.message = message
    self.documentID = documentID
  }

  /// The message, followed by the document's ID if there is one.
  public var description: String { documentID.map { "\(message): document \"\($0)\"" } ?? message }
}
