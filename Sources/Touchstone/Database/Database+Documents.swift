import Documents
import Fleece

extension Database {
  // MARK: Counting

  /// How many live documents there are. Constant time.
  public var documentCount: Int { get throws { try store.documentCount } }

  /// How many tombstones there are. Constant time.
  public var tombstoneCount: Int { get throws { try store.tombstoneCount } }

  /// The sequence of the latest change, 0 when there was none.
  public var lastSequence: UInt64 { get throws { try store.lastSequence } }

  // MARK: Reading

  /// The live document of that ID, or nil. With `includeDeleted`, a tombstone as well.
  public func document(_ id: String, includeDeleted: Bool = false) throws -> Document? {
    try store.document(id, includeDeleted: includeDeleted)
  }

  /// A property's name resolved once, for reading it from many documents.
  ///
  /// It is right for documents that were stored before; resolve it again for those saved later when no document
  /// had the name yet (`isShared` is false).
  public func key(_ name: String) throws -> Key { try store.key(name) }

  /// Runs `body` on one snapshot: what it reads belongs together, whatever is written meanwhile.
  ///
  /// An engine whose snapshots have a limited age throws `StorageError.snapshotExpired` past it; a body that can be run
  /// again says by `attempts` how often at most. (Those of SQLite and LMDB never expire.)
  public func read<Result>(attempts: Int = 1, _ body: (DocumentSnapshot) throws -> Result) throws -> Result {
    try store.read(attempts: attempts, body)
  }

  /// The changes after `sequence`, oldest first, each document once with its latest; at most `limit`.
  public func changes(since sequence: UInt64 = 0, limit: Int = .max) throws -> [Change] {
    try store.changes(since: sequence, limit: limit)
  }

  /// Calls `body` with each change after `sequence`, oldest first, until it returns false. In a batch, a write
  /// inside `body` throws `writeInScan`.
  public func forEachChange(since sequence: UInt64 = 0, _ body: (Change) throws -> Bool) throws {
    try store.forEachChange(since: sequence, body)
  }

  // MARK: Writing

  /// Runs `body` in one transaction, all or nothing. What is read inside on the same thread sees what was
  /// written. Nested calls join it; one that throws makes the whole batch fail, also where its error is caught.
  ///
  /// **`body` may run more than once**: when the engine says that it met another transaction (`StorageError.conflict`),
  /// nothing of it remains and it is run again, up to `attempts` times in all; then `conflict` is thrown. (SQLite and LMDB
  /// never do.) So it should begin from what is stored, and change nothing outside that a second run would change again; a
  /// body that can't run twice gives `attempts: 1`. A `MutableDocument` that was saved in a run, or in a batch that
  /// failed, is based on the revision again that it was based on before; its properties stay as they are.
  @discardableResult
  public func inBatch<Result>(
    attempts: Int = DocumentStore.defaultAttempts, _ body: () throws -> Result
  ) throws -> Result {
    try writable.inBatch(attempts: attempts, body)
  }

  /// Saves the document as a new revision, and notes that revision in it.
  ///
  /// Throws a `DocumentError`: `conflict` when `control` says so, `invalidDocumentID`, and `invalidBody` or
  /// `reservedProperty` for what can't be a body. Nothing is changed then.
  @discardableResult
  public func save(_ document: inout MutableDocument, onConflict control: ConcurrencyControl = .lastWriteWins)
    throws -> SavedRevision
  {
    try writable.save(&document, onConflict: control)
  }

  /// Saves a body under an ID as a new revision. `revision` is what it is based on, nil for a new document.
  @discardableResult
  public func save(
    _ id: String, _ body: DocumentBody, basedOn revision: RevisionID? = nil,
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try writable.save(id, body, basedOn: revision, onConflict: control)
  }

  /// Saves the UTF-8 of a JSON object under an ID: the fast way in.
  @discardableResult
  public func save(
    _ id: String, json: UnsafeRawBufferPointer, onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try writable.save(id, json: json, onConflict: control)
  }

  /// Deletes the document: a tombstone becomes its current revision. `body` is what the tombstone keeps.
  ///
  /// Throws `notFound` when there is no such document or it has been deleted already, and `conflict` when
  /// `control` says so.
  @discardableResult
  public func delete(
    _ id: String, basedOn revision: RevisionID? = nil, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try writable.delete(id, basedOn: revision, keeping: body, onConflict: control)
  }

  /// Inserts a revision that another database made. False when it was known already: then nothing changes.
  ///
  /// The newest revision of its history that is known here becomes its ancestor; those in between are
  /// remembered by their IDs. When it doesn't descend from what is current, the document is conflicted.
  /// Throws `invalidRevisionID` and `invalidHistory` for a history that can't be.
  @discardableResult
  public func apply(_ revision: PulledRevision) throws -> Bool { try writable.apply(revision) }

  /// Inserts many in one transaction, all or nothing; says how many were new.
  @discardableResult
  public func apply(_ revisions: some Sequence<PulledRevision>) throws -> Int {
    try writable.apply(revisions)
  }

  /// Forgets the document and all its revisions, without a tombstone. Throws `notFound` when there is none.
  public func purge(_ id: String) throws { try writable.purge(id) }
}
