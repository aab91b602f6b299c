import Documents
import Fleece

extension Database {
  // MARK: History

  /// Returns all known revisions of the document: the current one, then the other leaves, then their
  /// ancestors by generation. Nil if there is no such document. `withBodies: false` reads no bodies.
  public func revisions(of id: String, withBodies: Bool = true) throws -> [Revision]? {
    try store.revisions(of: id, withBodies: withBodies)
  }

  /// Returns one revision of the document with its body; nil if it isn't known.
  public func revision(_ revision: RevisionID, of id: String) throws -> Revision? {
    try store.revision(revision, of: id)
  }

  /// Returns the leaf revisions of the document with their bodies, the current one first. With
  /// `includeDeleted`, it also returns tombstones.
  public func leaves(of id: String, includeDeleted: Bool = false) throws -> [Revision] {
    try store.leaves(of: id, includeDeleted: includeDeleted)
  }

  /// Returns the newest revision that is an ancestor of both, or one of the two itself. It has its body if
  /// that is still stored. Nil if no common ancestor is known. Throws `notFound` if one of the two isn't
  /// known.
  public func commonAncestor(of first: RevisionID, and second: RevisionID, in id: String) throws -> Revision?
  {
    try store.commonAncestor(of: first, and: second, in: id)
  }

  /// The number of revisions that are kept per branch.
  public var maximumTreeDepth: Int { get throws { try store.currentTreeDepth() } }

  /// Sets the number of revisions kept per branch, from now on and for later opens without that option. It is
  /// 1 or more; 0 and less mean the default, 20. A document is pruned when it is next written.
  ///
  /// Other processes use the new value from their next open. Throws `nestedWrite` inside a batch.
  public func setMaximumTreeDepth(_ depth: Int) throws { try writable.setMaximumTreeDepth(depth) }

  // MARK: Conflicts

  /// Returns the live leaf revisions of a conflicted document with their bodies, the current one first. Empty
  /// if there is no conflict.
  public func conflicts(of id: String) throws -> [Revision] {
    let live = try leaves(of: id)
    return live.count > 1 ? live : []
  }

  /// Resolves a conflict: keeps the branch of `revision`, which must be a leaf, and ends every other live
  /// branch with a closed tombstone. With `body`, such as a merge, a new revision is added on top of
  /// `revision`.
  ///
  /// Throws `notFound` if there is no such document or revision, and `conflict` if the revision is no longer
  /// a leaf.
  public func resolveConflict(of id: String, keeping revision: RevisionID, merged body: DocumentBody? = nil)
    throws
  {
    try writable.resolveConflict(of: id, keeping: revision, merged: body)
  }

  /// Inserts a revision from another database, and calls `resolver` if it doesn't descend from the current
  /// one. Returns false, and changes nothing, if the revision is already known.
  ///
  /// The revision and the resolution are stored in one transaction, so no reader sees the conflict. Throws
  /// what `resolver` throws. If another write came first, the resolver runs again, at most `attempts` times in
  /// all. The last of them is inside the write transaction: it must not wait for another thread that writes.
  @discardableResult
  public func apply(
    _ revision: PulledRevision, resolvingWith resolver: some ConflictResolver, attempts: Int = 10
  ) throws -> Bool {
    try writable.apply(revision, resolvingWith: resolver, attempts: attempts)
  }

  /// Removes one branch: a leaf and its ancestors up to the first that another branch needs. Returns the
  /// removed revisions, newest first. It leaves no tombstone. What is left of the document is a change with a new sequence.
  /// Purging the last branch removes the document, without one.
  @discardableResult
  public func purge(_ id: String, branch leaf: RevisionID) throws -> [RevisionID] {
    try writable.purge(id, branch: leaf)
  }

  // MARK: Changing and deleting what was read

  /// Reads a document, applies `change`, and saves it. If another write came first, this is repeated with the
  /// new revision, so it succeeds however many others write.
  ///
  /// `change` may run several times, at most `attempts` times unless the engine reports conflicts. At first it
  /// runs outside of a transaction. After three writes of others it runs inside the write transaction, and
  /// nobody else can write meanwhile. Therefore it must not wait for another thread that writes. Its own calls
  /// of the database join that transaction.
  ///
  /// If there is no live document, this throws `notFound`, or with `creating` starts from an empty one. Throws
  /// `conflict` if `change` itself saves the document.
  @discardableResult
  public func update(
    _ id: String, attempts: Int = 10, creating: Bool = false, _ change: (inout MutableDocument) throws -> Void
  ) throws -> SavedRevision {
    func read() throws -> MutableDocument {
      if let document = try writable.document(id) { return try document.toMutable() }
      guard creating else {
        throw DocumentError(.notFound, "there is no such document, so it can't be updated", documentID: id)
      }
      return MutableDocument(id: id)
    }
    return try update(id, attempts: attempts, read: read, change) { try save(&$0, onConflict: .fail) }
  }

  /// Deletes a document that was read before: its new current revision is a tombstone with `body` as its
  /// properties.
  ///
  /// If the document has been changed since, the last write wins, or `conflict` is thrown, as `control` says.
  /// Returns nil if the last write wins and the document has been deleted or purged since.
  @discardableResult
  public func delete(
    _ document: Document, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    try delete(read: document.id, document.revisionID, keeping: body, control)
  }

  /// Deletes a document that was read to be changed. Throws `notFound` if it was never saved.
  @discardableResult
  public func delete(
    _ document: inout MutableDocument, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    let store = try writable
    guard let revision = document.revisionID else {
      throw DocumentError(
        .notFound, "the document was never saved, so it can't be deleted", documentID: document.id)
    }
    let saved = try delete(read: document.id, revision, keeping: body, control)
    if let saved { store.note(saved, in: &document) }
    return saved
  }

  func delete(
    read id: String, _ revision: RevisionID, keeping body: DocumentBody, _ control: ConcurrencyControl
  ) throws -> SavedRevision? {
    do { return try delete(id, basedOn: revision, keeping: body, onConflict: control) } catch let error
      as DocumentError where error.code == .notFound && control == .lastWriteWins
    { return nil }
  }

  // MARK: Enumerating

  /// Calls `body` with each of the requested documents, in order, until it returns false. All reads use one
  /// snapshot. A view is valid only until `body` returns.
  public func enumerate(_ documents: AllDocuments = AllDocuments(), _ body: (DocumentView) throws -> Bool)
    throws
  {
    try store.read { try $0.enumerate(documents, body) }
  }

  /// Returns the requested documents as values that can be kept.
  public func documents(_ documents: AllDocuments = AllDocuments()) throws -> [Document] {
    try snapshot { try $0.documents(documents) }
  }

  /// Calls `body` with a row for each requested document, in order, until it returns false. All reads use one
  /// snapshot.
  ///
  /// With `AllDocuments.keys` there is a row for each key, also for an unknown, a deleted and an invalid one. In
  /// the modes `showConflicts` and `onlyConflicts`, rows have the conflicting revisions.
  public func enumerateRows(
    _ documents: AllDocuments = AllDocuments(), _ body: (AllDocumentsRow) throws -> Bool
  ) throws {
    try store.read { try $0.enumerateRows(documents, body) }
  }

  /// Returns the rows of the requested documents (`enumerateRows(_:_:)`).
  public func rows(_ documents: AllDocuments = AllDocuments()) throws -> [AllDocumentsRow] {
    try snapshot { try $0.rows(documents) }
  }

  // MARK: Local documents

  /// Returns the local document with that ID, or nil.
  public func localDocument(_ id: String) throws -> LocalDocument? { try store.localDocument(id) }

  /// Returns the IDs of all local documents, in order.
  public func localDocumentIDs() throws -> [String] { try store.localDocumentIDs() }

  /// Saves a local document. `generation` is that of the version it is based on; nil for a new one.
  ///
  /// Throws `conflict` if another generation is stored, unless `control` is `lastWriteWins`. It takes no
  /// sequence.
  @discardableResult
  public func saveLocalDocument(
    _ id: String, _ body: JSONValue, basedOn generation: UInt64? = nil,
    onConflict control: ConcurrencyControl = .fail
  ) throws -> LocalDocument {
    try writable.saveLocalDocument(id, body, basedOn: generation, onConflict: control)
  }

  /// Removes a local document. Throws `notFound` if there is none, and `conflict` as saving does.
  public func deleteLocalDocument(
    _ id: String, basedOn generation: UInt64? = nil, onConflict control: ConcurrencyControl = .fail
  ) throws {
    try writable.deleteLocalDocument(id, basedOn: generation, onConflict: control)
  }
}
