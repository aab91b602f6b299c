/// Something that two databases which should be equal don't have in common.
public struct DocumentDifference: Sendable, Hashable, CustomStringConvertible {
  /// What differs.
  public enum Kind: String, Sendable, CaseIterable {
    /// One has the document, or its tombstone, and the other doesn't.
    case document
    /// One has a revision that the other doesn't.
    case revision
    /// A revision has another parent.
    case parent
    /// A revision is deleted, or closed, in one of them.
    case flags
    /// Another revision is current.
    case current
    /// A revision's body has another content, or is here in one of them only.
    case body
    /// The document's, or a revision's, sequence.
    case sequence
    /// When the document expires.
    case expiration
    /// The bytes of a blob that both documents name are here in one of them only, or damaged.
    case blob
    /// A local document.
    case local
    /// An index.
    case index
  }

  /// The document, or the name of the local document or index; empty for what is the whole database's.
  public let id: String
  /// What differs.
  public let kind: Kind
  /// What the left one has, in words.
  public let left: String
  /// What the right one has.
  public let right: String

  /// A difference of that kind.
  public init(_ id: String, _ kind: Kind, _ left: String, _ right: String) {
    self.id = id
    self.kind = kind
    self.left = left
    self.right = right
  }

  /// All of it in one line.
  public var description: String { "\(id.isEmpty ? "(database)" : id): \(kind.rawValue): \(left) | \(right)" }
}
