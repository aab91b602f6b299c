/// A difference between two databases that should be equal.
public struct DocumentDifference: Sendable, Hashable, CustomStringConvertible {
  /// The kinds of differences.
  public enum Kind: String, Sendable, CaseIterable {
    /// Only one database has the document or its tombstone.
    case document
    /// Only one database has a revision.
    case revision
    /// A revision has different parents.
    case parent
    /// A revision is deleted, or closed, in only one of them.
    case flags
    /// The current revisions differ.
    case current
    /// A revision's bodies differ, or only one of them is stored.
    case body
    /// The sequences of a document or of a revision differ, or the last sequences of the databases.
    case sequence
    /// The expiration times of a document differ.
    case expiration
    /// A blob that both documents refer to is stored or intact in only one of them.
    case blob
    /// A local document differs.
    case local
    /// An index differs.
    case index
  }

  /// The ID of the document, or the name of the local document or index. Empty for the whole database.
  public let id: String
  /// The kind of difference.
  public let kind: Kind
  /// A description of the state in the left database.
  public let left: String
  /// A description of the state in the right database.
  public let right: String

  /// Creates a difference.
  package init(_ id: String, _ kind: Kind, _ left: String, _ right: String) {
    self.id = id
    self.kind = kind
    self.left = left
    self.right = right
  }

  /// The difference in one line.
  public var description: String { "\(id.isEmpty ? "(database)" : id): \(kind.rawValue): \(left) | \(right)" }
}
