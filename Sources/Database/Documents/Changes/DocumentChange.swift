import Storage

/// The latest change of a document, as reported to observers after the commit.
public struct DocumentChange: Sendable, Hashable {
  /// The kinds of changes.
  public enum Kind: String, Sendable, CaseIterable {
    /// A revision was added: saved, deleted or resolved locally, or received by sync. Or a branch was purged.
    case saved
    /// The document was purged. Nothing of it remains.
    case purged
    /// The document was purged because it expired.
    case expired
  }

  /// The kind of change.
  public let kind: Kind
  /// The ID of the document that changed.
  public let documentID: String
  /// The document's current revision after the change, nil if it was purged.
  public let revisionID: RevisionID?
  /// The sequence of the change. 0 for a purged document.
  public let sequence: UInt64
  /// Whether its current revision is a tombstone.
  public let isDeleted: Bool
  /// Whether the document has more than one live leaf.
  public let isConflicted: Bool
  /// Whether the change came from another database by sync (`apply`).
  public let isFromSync: Bool

  /// Returns whether all properties are equal. Document IDs are compared by their bytes.
  public static func == (left: DocumentChange, right: DocumentChange) -> Bool {
    left.documentID.hasSameBytes(as: right.documentID) && left.kind == right.kind
      && left.revisionID == right.revisionID && left.sequence == right.sequence
      && left.isDeleted == right.isDeleted && left.isConflicted == right.isConflicted
      && left.isFromSync == right.isFromSync
  }
}

/// The changes since an observer was last notified, each document once.
public struct DatabaseChange: Sendable, Hashable {
  /// In the order of the commits. Of a document that changed more than once, the last change.
  public let changes: [DocumentChange]
  /// Set when an observer may have missed changes after this sequence: it fell behind and couldn't catch up, because
  /// the database was closed or couldn't be read, or another process purged more documents than are recorded.
  /// Otherwise nil.
  public let missedSince: UInt64?

  /// The documents that changed.
  public var documentIDs: [String] { changes.map(\.documentID) }
}
