import Fleece
import Storage

extension DocumentStore {
  /// Updates a document: reads it, calls `change` and saves the result. If another writer has changed the
  /// document in the meantime, it starts again from the stored document. `change` runs outside the write
  /// transaction, maybe several times.
  ///
  /// Throws `conflict` after `attempts` attempts that all met a conflict. Without a live document it throws
  /// `notFound`, or starts with an empty document if `creating` is true. Errors of `change` are rethrown, and
  /// nothing is saved.
  @discardableResult
  public func update(
    _ id: String, attempts: Int = 10, creating: Bool = false, _ change: (inout MutableDocument) throws -> Void
  ) throws -> SavedRevision {
    for _ in 0..<max(1, attempts) {
      var mutable: MutableDocument
      if let document = try document(id) {
        mutable = try document.toMutable()
      } else {
        guard creating else {
          throw DocumentError(.notFound, "there is no such document, so it can't be updated", documentID: id)
        }
        mutable = MutableDocument(id: id)
      }
      try change(&mutable)
      do { return try save(&mutable, onConflict: .fail) } catch let error as DocumentError
        where error.code == .conflict
      {}
    }
    throw DocumentError(
      .conflict,
      "other writers changed the document in each of \(max(1, attempts)) attempts, so nothing was saved",
      documentID: id)
  }

  /// Deletes the document that was read: a tombstone becomes its current revision. `body` is the body of the
  /// tombstone.
  ///
  /// If the document has changed since, the last write wins, or `conflict` is thrown. If it has been deleted
  /// or purged since and the last write wins, nothing remains to be done and the result is nil.
  @discardableResult
  public func delete(
    _ document: Document, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    try delete(read: document.id, document.revisionID, keeping: body, control)
  }

  /// Deletes a document that was read to be changed, in the same way. Throws `notFound` for one that was
  /// never saved.
  @discardableResult
  public func delete(
    _ document: inout MutableDocument, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    guard let revision = document.revisionID else {
      throw DocumentError(
        .notFound, "the document was never saved, so it can't be deleted", documentID: document.id)
    }
    let saved = try delete(read: document.id, revision, keeping: body, control)
    if let saved {
      document.base.note(saved, in: openRun)
    }
    return saved
  }

  private func delete(
    read id: String, _ revision: RevisionID, keeping body: DocumentBody, _ control: ConcurrencyControl
  ) throws -> SavedRevision? {
    do { return try delete(id, basedOn: revision, keeping: body, onConflict: control) } catch let error
      as DocumentError where error.code == .notFound && control == .lastWriteWins
    { return nil }
  }
}
