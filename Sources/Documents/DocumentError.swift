/// What a document operation refuses: what was asked, of which document, and why.
public struct DocumentError: Error, Sendable, CustomStringConvertible {
  public enum Code: String, Sendable, CaseIterable {
    /// The parent revision isn't the current one, or there is a document where none was expected.
    case conflict
    case notFound
    case invalidDocumentID
    case invalidRevisionID
    /// A history that doesn't descend, or doesn't end at its revision.
    case invalidHistory
    /// The body is no JSON object, or can't be stored.
    case invalidBody
    /// A property that begins with an underscore and has a meaning of its own.
    case reservedProperty
    /// What is stored can't be read.
    case damaged
    /// The data is of a format version that this release doesn't know.
    case unsupportedVersion
    /// An earlier failure inside the same batch: nothing of it can be committed.
    case batchFailed
  }

  public let code: Code
  public let message: String
  public let documentID: String?

  public init(_ code: Code, _ message: String, documentID: String? = nil) {
    self.code = code
    self.message = message
    self.documentID = documentID
  }

  public var description: String { documentID.map { "\(message): document \"\($0)\"" } ?? message }
}
