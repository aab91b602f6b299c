import Storage

/// What happened to a document, as observers are told: after the commit, the latest of it.
public struct DocumentChange: Sendable, Hashable {
  /// What kind of change it is.
  public enum Kind: String, Sendable, CaseIterable {
    /// A revision was added: saved, deleted or resolved here, or brought by sync. Or a branch was purged.
    case saved
    /// The document was purged: nothing of it is left.
    case purged
    /// The document was purged because its time was over.
    case expired
  }

  /// What kind of change it is.
  public let kind: Kind
  /// The document that changed.
  public let documentID: String
  /// The document's current revision after the change; nil when it was purged.
  public let revisionID: RevisionID?
  /// The sequence of the change. A purge takes none, and has 0; that of a branch has the document's.
  public let sequence: UInt64
  /// Whether its current revision is a tombstone.
  public let isDeleted: Bool
  /// Whether it has more than one live leaf.
  public let isConflicted: Bool
  /// Whether the change came from another database by sync (`apply`).
  public let isFromSync: Bool

  /// Whether both say the same, of documents whose IDs have the same bytes.
  public static func == (left: DocumentChange, right: DocumentChange) -> Bool {
    left.documentID.hasSameBytes(as: right.documentID) && left.kind == right.kind
      && left.revisionID == right.revisionID && left.sequence == right.sequence
      && left.isDeleted == right.isDeleted && left.isConflicted == right.isConflicted
      && left.isFromSync == right.isFromSync
  }
}

/// Changes that were committed since the last time an observer was told, each document once.
public struct DatabaseChange: Sendable, Hashable {
  /// In the order of the commits; of a document that changed more than once, the last.
  public let changes: [DocumentChange]
  /// Nil but for an observer that fell behind and couldn't catch up, because the database was closed or couldn't be
  /// read: it may have missed changes after this sequence.
  public let missedSince: UInt64?

  /// The documents that changed.
  public var documentIDs: [String] { changes.map(\.documentID) }
}
