/// What a document operation refuses: what was asked, of which document, and why.
public struct DocumentError: Error, Sendable, CustomStringConvertible {
  /// What kind of refusal it is.
  public enum Code: String, Sendable, CaseIterable {
    /// The parent revision isn't the current one, or there is a document where none was expected.
    case conflict
    /// There is no such document: none of that ID, or a deleted one.
    case notFound
    /// Empty, too long, with control characters, or beginning with an underscore (`DocumentID`).
    case invalidDocumentID
    /// Not `generation-suffix`, or beyond what can be stored (`RevisionID`).
    case invalidRevisionID
    /// A history that is empty or doesn't descend.
    case invalidHistory
    /// The body is no JSON object, or can't be stored.
    case invalidBody
    /// A property that begins with an underscore and has a meaning of its own.
    case reservedProperty
    /// The name or the definition of an index that can't be.
    case invalidIndex
    /// An index of a kind that the database wasn't opened with: it can't be kept.
    case unknownIndexKind
    /// A blob that the body names isn't in the database.
    case missingBlob
    /// What is stored can't be read.
    case damaged
    /// The data is of a format version that this release doesn't know.
    case unsupportedVersion
    /// An earlier failure inside the same batch: nothing of it can be committed.
    case batchFailed
    /// A write inside a scan of the same batch: what is scanned would change under it. Collect first, then write.
    case writeInScan
    /// A snapshot was used after the closure it was handed to.
    case snapshotEnded
  }

  /// What kind of refusal it is.
  public let code: Code
  /// What was tried, what was found and what to do, for people.
  public let message: String
  /// The document it is about.
  public let documentID: String?

  /// An error of that kind.
  public init(_ code: Code, _ message: String, documentID: String? = nil) {
    self.code = code
    self.message = message
    self.documentID = documentID
  }

  /// The message with the document's ID.
  public var description: String { documentID.map { "\(message): document \"\($0)\"" } ?? message }
}
