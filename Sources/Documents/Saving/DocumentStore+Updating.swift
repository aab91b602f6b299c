import Fleece
import Storage

extension DocumentStore {
  /// Changes a document: reads it, lets `change` change it, saves it, and does all that again on what is stored by
  /// then when somebody was faster. `change` is run outside the write transaction, maybe several times.
  ///
  /// After `attempts` that all met a conflict it throws `conflict`. Without a live document it throws `notFound`, or
  /// with `creating` starts from an empty one. What `change` throws is rethrown, and nothing is saved.
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
          throw DocumentError(.notFound, "there is no such document to update", documentID: id)
        }
        mutable = MutableDocument(id: id)
      }
      try change(&mutable)
      do { return try save(&mutable, onConflict: .fail) } catch let error as DocumentError
        where error.code == .conflict
      {}
    }
    throw DocumentError(
      .conflict, "somebody else was faster \(max(1, attempts)) times: nothing was saved", documentID: id)
  }

  /// Deletes the document that was read: a tombstone becomes its current revision. `body` is what it keeps.
  ///
  /// When it has been changed since, the last write wins, or `conflict` is thrown. When it has been deleted
  /// since, or purged, and the last write wins, nothing is left to do and nil is returned.
  @discardableResult
  public func delete(
    _ document: Document, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    try delete(read: document.id, document.revisionID, keeping: body, control)
  }

  /// The same for a document that was read to be changed. One that was never saved is `notFound`.
  @discardableResult
  public func delete(
    _ document: inout MutableDocument, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    guard let revision = document.revisionID else {
      throw DocumentError(
        .notFound, "a document that was never saved can't be deleted", documentID: document.id)
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
