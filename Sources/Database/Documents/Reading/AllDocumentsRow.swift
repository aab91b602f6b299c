/// A row of an enumeration of documents: one for each document, or one for each key that was asked for.
public struct AllDocumentsRow: Sendable {
  /// The document's ID, or the key that was asked for.
  public let key: String
  /// The document's ID. Nil if there is no document or tombstone with this ID.
  public internal(set) var documentID: String?
  /// The ID of the current revision, nil if there is no document.
  public internal(set) var revisionID: RevisionID?
  /// Whether the document is a tombstone.
  public internal(set) var isDeleted = false
  /// The document if the mode selects it. Nil for a key without a document, and for a tombstone unless the mode
  /// is `includingDeleted`.
  public internal(set) var document: Document?
  /// In the modes `showConflicts` and `onlyConflicts`, the live leaf revisions of a conflicted document with
  /// their bodies, the current one first. Otherwise empty.
  public internal(set) var conflictingRevisions: [Revision] = []
  /// The error that concerns this row alone: `invalidDocumentID` for a key that can't be an ID, `damaged` for a
  /// document that can't be read.
  public internal(set) var error: DocumentError?

  init(key: String) { self.key = key }
}
