import Fleece

/// One revision of a document, with the known information about it.
public struct Revision: Sendable {
  /// The revision's ID.
  public let id: RevisionID
  /// The parent's ID. Nil for a root, and where pruning removed the ancestors.
  public let parent: RevisionID?
  /// Whether it is a tombstone.
  public let isDeleted: Bool
  /// Whether it is the last revision of its branch.
  public let isLeaf: Bool
  /// Whether it is the current revision.
  public let isCurrent: Bool
  /// The sequence of the change that added it.
  public let sequence: UInt64
  /// Whether its body is still stored. Revisions known only by their IDs have none, and compaction removes
  /// bodies.
  public let hasBody: Bool
  /// The body. Nil if it isn't stored any more or wasn't requested.
  public let body: JSONValue?
}
