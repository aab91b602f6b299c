/// The latest change of a document. Each document has one such entry.
public struct Change: Sendable, Hashable {
  /// The sequence of the change, from 1. Later changes have higher sequences.
  public let sequence: UInt64
  /// The ID of the document that changed.
  public let documentID: String
  /// Whether its current revision is a tombstone.
  public let isDeleted: Bool
  /// Whether the document has more than one live leaf.
  public let isConflicted: Bool
  /// Whether the change came from another database by sync.
  public let isFromSync: Bool
}
