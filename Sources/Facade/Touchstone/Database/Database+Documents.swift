import Documents
import Fleece

extension Database {
  // MARK: Counting

  /// The number of live documents. Constant time.
  public var documentCount: Int { get throws { try snapshot { try $0.documentCount } } }

  /// The number of tombstones. Constant time.
  public var tombstoneCount: Int { get throws { try snapshot { try $0.tombstoneCount } } }

  /// The sequence of the latest change; 0 if there is none.
  public var lastSequence: UInt64 { get throws { try store.lastSequence } }

  // MARK: Reading

  /// Returns the live document with that ID, or nil. With `includeDeleted`, it also returns a tombstone.
  public func document(_ id: String, includeDeleted: Bool = false) throws -> Document? {
    try store.document(id, includeDeleted: includeDeleted)
  }

  /// Calls `body` with the live document with that ID as JSON. Returns nil if there is none.
  package func withJSON<Result>(of id: String, _ body: (DocumentJSON) throws -> Result) throws -> Result? {
    try store.withJSON(of: id, body)
  }

  /// Resolves a property's name once, for reading it from many documents.
  ///
  /// A key works for all documents stored before it was resolved. If `isShared` is false, no document had the
  /// name yet: resolve it again after saving documents.
  public func key(_ name: String) throws -> Key {
    let known = Key(name, in: try store.sharedKeys)
    // Another process may have added the name.
    return known.isShared ? known : try snapshot { try $0.key(name) }
  }

  /// Returns the changes after `sequence`, oldest first, at most `limit`. Each document appears once, with
  /// its latest change.
  public func changes(since sequence: UInt64 = 0, limit: Int = .max) throws -> [Change] {
    try snapshot {
      var changes: [Change] = []
      guard limit > 0 else { return changes }
      try $0.forEachChange(since: sequence) { change in
        changes.append(change)
        return changes.count < limit
      }
      return changes
    }
  }

  /// Calls `body` with each change after `sequence`, oldest first, until it returns false. In a batch, a
  /// write inside `body` throws `writeInScan`.
  public func forEachChange(since sequence: UInt64 = 0, _ body: (Change) throws -> Bool) throws {
    try store.read { try $0.forEachChange(since: sequence, body) }
  }

  // MARK: Writing

  /// Saves the document as a new revision, and records that revision in `document`.
  ///
  /// Blobs of the document are stored with it, whatever database they were read from. With `_deleted: true` the
  /// revision is a tombstone that keeps the other properties.
  ///
  /// Throws a `DocumentError` and changes nothing: `conflict` if `control` requires it, `invalidDocumentID`,
  /// `invalidBody` or `reservedProperty` for properties that can't be stored, `rejected` by a validation function
  /// (`setValidation(_:_:)`), `missingBlob` for a blob whose content isn't known, and `notFound` for a deletion
  /// of a document that there isn't.
  @discardableResult
  public func save(_ document: inout MutableDocument, onConflict control: ConcurrencyControl = .lastWriteWins)
    throws -> SavedRevision
  {
    let store = try writable
    let saved = try store.save(
      document.id, .value(document.body), basedOn: document.revisionID, onConflict: control)
    store.note(saved, in: &document)
    return saved
  }

  /// Saves the document, and lets `conflictHandler` decide if the stored document isn't the revision that
  /// `document` is based on. Returns nil if it gives up.
  ///
  /// ```swift
  /// try travel.save(&hotel) { hotel, stored in
  ///   guard let stored else { return false }               // it was deleted
  ///   hotel["likes"] = try stored["likes"].jsonValue() ?? []
  ///   return true
  /// }
  /// ```
  ///
  /// The handler receives the document, which it may change, and the stored live document, nil if it was deleted
  /// or purged. True saves the document on top of the stored one; if that has changed again, the handler is
  /// called again. False gives up, and nothing is saved. The handler runs outside the write transaction, unless
  /// the thread has a batch open. For errors see `save(_:onConflict:)`; those of the handler are rethrown.
  @discardableResult
  public func save(
    _ document: inout MutableDocument, conflictHandler: (inout MutableDocument, Document?) throws -> Bool
  ) throws -> SavedRevision? {
    let store = try writable
    var base = document.revisionID
    while true {
      do {
        let saved = try store.save(
          document.id, .value(document.body), basedOn: base, onConflict: .fail)
        store.note(saved, in: &document)
        return saved
      } catch let error as DocumentError where error.code == .conflict {
        let stored = try store.document(document.id)
        guard try conflictHandler(&document, stored) else { return nil }
        base = stored?.revisionID
      }
    }
  }

  /// Saves a body as a new revision of a document. `revision` is the revision it is based on; nil for a new
  /// document.
  ///
  /// The new revision goes on top of `revision` if that is a leaf. Otherwise it goes on top of the current
  /// revision, or `control` decides to throw `conflict` or to add a branch. For other errors see
  /// `save(_:onConflict:)`.
  @discardableResult
  public func save(
    _ id: String, _ body: DocumentBody, basedOn revision: RevisionID? = nil,
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try writable.save(id, body, basedOn: revision, onConflict: control)
  }

  /// Saves the UTF-8 text of a JSON object as a document. This is the fastest way to write.
  @discardableResult
  public func save(
    _ id: String, json: UnsafeRawBufferPointer, onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try writable.save(id, json: json, onConflict: control)
  }

  /// Saves a document that was exported, on top of the stored one: also with an ID or names that only arrive from
  /// elsewhere, and with blobs that are missing.
  @discardableResult
  package func restore(_ id: String, json: UnsafeRawBufferPointer) throws -> SavedRevision {
    try writable.restore(id, json: json)
  }

  /// Deletes the document: its new current revision is a tombstone with `body` as its properties.
  ///
  /// Throws `notFound` if there is no such document or it is already deleted, and `conflict` if `control`
  /// requires it. If `revision` is a tombstone, another tombstone is added on top of it.
  @discardableResult
  public func delete(
    _ id: String, basedOn revision: RevisionID? = nil, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try writable.delete(id, basedOn: revision, keeping: body, onConflict: control)
  }

  /// Inserts a revision from another database. Returns false, and changes nothing, if it is already known.
  ///
  /// The newest known revision in its history becomes its ancestor. For the revisions in between, only the
  /// IDs are stored. If it doesn't descend from the current revision, the document is in conflict. Throws
  /// `invalidRevisionID` or `invalidHistory` if the history isn't valid, `rejected` by a validation function
  /// (`setValidation(_:_:)`), and `missingBlob`.
  @discardableResult
  public func apply(_ revision: PulledRevision) throws -> Bool { try writable.apply(revision) }

  /// Inserts many revisions in one transaction, all or nothing. Returns the number of new ones.
  @discardableResult
  public func apply(_ revisions: some Sequence<PulledRevision>) throws -> Int {
    // The transaction may run twice, and some sequences can be iterated only once.
    let revisions = Array(revisions)
    let store = try writable
    return try store.inBatch {
      var count = 0
      for revision in revisions where try store.apply(revision) { count += 1 }
      return count
    }
  }

  /// Removes the document with all its revisions, without a tombstone. Throws `notFound` if there is none.
  public func purge(_ id: String) throws { try writable.purge(id) }
}
