/// A change to a document: the latest one, for each document has one entry.
public struct Change: Sendable, Hashable {
  /// Of the change: from 1, without order among documents but that of time.
  public let sequence: UInt64
  /// The document that changed.
  public let documentID: String
  /// Whether its current revision is a tombstone.
  public let isDeleted: Bool
  /// Whether it has more than one live leaf.
  public let isConflicted: Bool
  /// Whether it came from another database by sync.
  public let isFromSync: Bool
}
