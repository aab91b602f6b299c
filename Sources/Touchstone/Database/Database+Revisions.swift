import Documents
import Fleece

extension Database {
  // MARK: History

  /// All known revisions of the document, the current one first, other leaves next, then their ancestors by
  /// generation; nil when there is no document. `withBodies: false` reads no body.
  public func revisions(of id: String, withBodies: Bool = true) throws -> [Revision]? {
    try store.revisions(of: id, withBodies: withBodies)
  }

  /// One revision of the document with its body; nil when it isn't known.
  public func revision(_ revision: RevisionID, of id: String) throws -> Revision? {
    try store.revision(revision, of: id)
  }

  /// The leaf revisions of the document with their bodies, the current one first; with `includeDeleted`, also
  /// tombstones.
  public func leaves(of id: String, includeDeleted: Bool = false) throws -> [Revision] {
    try store.leaves(of: id, includeDeleted: includeDeleted)
  }

  /// The newest revision that both descend from, or are, with its body while that is here; nil when nothing in
  /// common is known. Throws `notFound` when one of them isn't known.
  public func commonAncestor(of first: RevisionID, and second: RevisionID, in id: String) throws -> Revision?
  {
    try store.commonAncestor(of: first, and: second, in: id)
  }

  /// How many revisions of each branch are remembered.
  public var maximumTreeDepth: Int { get throws { try store.maximumTreeDepth } }

  /// Sets how many revisions of each branch are remembered from now on, and by later opens that don't say: 1 or
  /// more; 0 and less mean the default, 20. A document is pruned to it when it is next written.
  ///
  /// Other processes see it at their next open. Throws `nestedWrite` inside a batch.
  public func setMaximumTreeDepth(_ depth: Int) throws { try writable.setMaximumTreeDepth(depth) }

  // MARK: Conflicts

  /// The live leaf revisions of a conflicted document with their bodies, the current one first; empty when there is
  /// no conflict.
  public func conflicts(of id: String) throws -> [Revision] { try store.conflicts(of: id) }

  /// Ends a conflict: the branch of `revision`, a leaf, goes on, every other live branch ends with a closed
  /// tombstone. With `body`, a merge or another choice becomes a new revision on top of `revision`.
  ///
  /// Throws `notFound` when there is no such document or revision, and `conflict` when the revision isn't a leaf
  /// any more.
  public func resolveConflict(of id: String, keeping revision: RevisionID, merged body: DocumentBody? = nil)
    throws
  {
    try writable.resolveConflict(of: id, keeping: revision, merged: body)
  }

  /// Inserts a revision that another database made, and asks `resolver` when it doesn't descend from the current
  /// one. False when it was known already: then nothing changes.
  ///
  /// Revision and resolution are stored in one transaction: nobody sees the conflict. Throws what `resolver` throws,
  /// and `conflict` when the document was changed meanwhile `attempts` times.
  @discardableResult
  public func apply(
    _ revision: PulledRevision, resolvingWith resolver: some ConflictResolver, attempts: Int = 10
  ) throws -> Bool {
    try writable.apply(revision, resolvingWith: resolver, attempts: attempts)
  }

  /// Forgets one branch: a leaf and its ancestors up to the first that another branch needs. Says which revisions
  /// are gone, newest first; with the last branch the document goes. No sequence, no tombstone.
  @discardableResult
  public func purge(_ id: String, branch leaf: RevisionID) throws -> [RevisionID] {
    try writable.purge(id, branch: leaf)
  }

  // MARK: Changing and deleting what was read

  /// Changes a document: reads it, lets `change` change it, saves it, and does all that again on what is stored by
  /// then when somebody was faster. `change` is run outside the write transaction, maybe several times.
  ///
  /// After `attempts` that all met a conflict it throws `conflict`. Without a live document it throws `notFound`, or
  /// with `creating` starts from an empty one.
  @discardableResult
  public func update(
    _ id: String, attempts: Int = 10, creating: Bool = false, _ change: (inout MutableDocument) throws -> Void
  ) throws -> SavedRevision {
    try writable.update(id, attempts: attempts, creating: creating, change)
  }

  /// Deletes the document that was read: a tombstone becomes its current revision. `body` is what it keeps.
  ///
  /// When it has been changed since, the last write wins, or `conflict` is thrown. When it has been deleted since,
  /// or purged, and the last write wins, nothing is left to do and nil is returned.
  @discardableResult
  public func delete(
    _ document: Document, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    try writable.delete(document, keeping: body, onConflict: control)
  }

  /// The same for a document that was read to be changed. One that was never saved is `notFound`.
  @discardableResult
  public func delete(
    _ document: inout MutableDocument, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    try writable.delete(&document, keeping: body, onConflict: control)
  }

  // MARK: Enumerating

  /// Calls `body` with each document that is asked for, in order, until it returns false. The view ends when `body`
  /// returns. All of it is one snapshot.
  public func enumerate(_ documents: AllDocuments = AllDocuments(), _ body: (DocumentView) throws -> Bool)
    throws
  {
    try store.read { try $0.enumerate(documents, body) }
  }

  /// The documents that are asked for, to keep.
  public func documents(_ documents: AllDocuments = AllDocuments()) throws -> [Document] {
    try store.read(attempts: DocumentStore.defaultAttempts) { try $0.documents(documents) }
  }

  // MARK: Local documents

  /// The local document of that name, or nil.
  public func localDocument(_ id: String) throws -> LocalDocument? { try store.localDocument(id) }

  /// The names of all local documents, in order.
  public func localDocumentIDs() throws -> [String] { try store.localDocumentIDs() }

  /// Saves a local document. `generation` is that of the one it is based on, nil for a new one.
  ///
  /// Throws `conflict` when another is stored, unless the last write wins. It takes no sequence.
  @discardableResult
  public func saveLocalDocument(
    _ id: String, _ body: JSONValue, basedOn generation: UInt64? = nil,
    onConflict control: ConcurrencyControl = .fail
  ) throws -> LocalDocument {
    try writable.saveLocalDocument(id, body, basedOn: generation, onConflict: control)
  }

  /// Removes a local document. Throws `notFound` when there is none, and `conflict` as a save does.
  public func deleteLocalDocument(
    _ id: String, basedOn generation: UInt64? = nil, onConflict control: ConcurrencyControl = .fail
  ) throws {
    try writable.deleteLocalDocument(id, basedOn: generation, onConflict: control)
  }
}
