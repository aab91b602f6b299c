import Fleece

/// One revision of a document, as far as it is known.
public struct Revision: Sendable {
  /// Its ID.
  public let id: RevisionID
  /// Nil at a root, and where pruning cut the ancestors off.
  public let parent: RevisionID?
  /// Whether it is a tombstone.
  public let isDeleted: Bool
  /// Whether nothing came after it on its branch.
  public let isLeaf: Bool
  /// Whether it is the one that wins.
  public let isCurrent: Bool
  /// Of the change that brought it.
  public let sequence: UInt64
  /// Whether its body is still here: not of a revision that is known by its ID alone, nor after compaction.
  public let hasBody: Bool
  /// Nil when it isn't here any more, or wasn't asked for.
  public let body: JSONValue?
}
