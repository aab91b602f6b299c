import Fleece
import Storage

/// The rule for a change that isn't based on the current stored document.
public enum ConcurrencyControl: Sendable {
  /// The change goes on top of the stored document.
  case lastWriteWins
  /// The change is rejected with `conflict`.
  case fail
  /// The change goes on top of the revision that it is based on. If that has been replaced, the document
  /// becomes conflicted. An unknown revision throws `notFound`.
  case allowConflict
}

extension DocumentStore {
  /// Saves the document as a new revision and updates `revisionID` of `document`.
  ///
  /// Throws `conflict` according to `control`, `invalidDocumentID` when the ID is invalid, `invalidBody` or
  /// `reservedProperty` when the body is invalid, and `missingBlob`. Then nothing has changed.
  @discardableResult
  public func save(_ document: inout MutableDocument, onConflict control: ConcurrencyControl = .lastWriteWins)
    throws -> SavedRevision
  {
    let saved = try save(
      document.id, .value(document.body), basedOn: document.revisionID, onConflict: control)
    document.base.note(saved, in: openRun)
    return saved
  }

  /// Saves a body under an ID as a new revision. `revision` is the revision that it is based on, nil for a
  /// new document.
  ///
  /// The new revision goes on top of `revision` if that is a leaf. Otherwise it goes on top of the current
  /// revision, or `control` decides to throw `conflict` or to add a branch. For other errors see
  /// `save(_:onConflict:)`.
  @discardableResult
  public func save(
    _ id: String, _ body: DocumentBody, basedOn revision: RevisionID? = nil,
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try DocumentID.withValidated(id) { key in
      try writing { writer in
        try writer.encode(body, of: key)
        return try write(key, revision, deleted: false, control, writer)
      }
    }
  }

  /// Saves a JSON object in UTF-8 under an ID. This is the fastest way to save.
  @discardableResult
  public func save(
    _ id: String, json: UnsafeRawBufferPointer, onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try DocumentID.withValidated(id) { key in
      try writing { writer in
        try writer.encode(json: json, of: key)
        return try write(key, nil, deleted: false, control, writer)
      }
    }
  }

  /// Deletes the document: a tombstone becomes its current revision. `body` is the body of the tombstone.
  ///
  /// Throws `notFound` when there is no such document or it is deleted already, and `conflict` according to
  /// `control`. If `revision` is the ID of a tombstone, another tombstone is added on top of it.
  @discardableResult
  public func delete(
    _ id: String, basedOn revision: RevisionID? = nil, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { writer in
        try writer.encode(body, of: key)
        return try write(key, revision, deleted: true, control, writer)
      }
    }
  }

  private func write(
    _ key: UnsafeRawBufferPointer, _ revision: RevisionID?, deleted: Bool, _ control: ConcurrencyControl,
    _ writer: DocumentWriter
  ) throws -> SavedRevision {
    switch control {
    case .allowConflict:
      let precondition = revision.map { Precondition.branching(from: $0) } ?? .based(on: nil)
      return try writer.save(key, deleted: deleted, precondition)
    case .fail: return try writer.save(key, deleted: deleted, .based(on: revision))
    case .lastWriteWins:
      return try writer.save(key, deleted: deleted, .lastWriteWins(basedOn: revision))
    }
  }

  /// Inserts a revision that another database created. Returns false, and changes nothing, if it is known
  /// already.
  ///
  /// The newest known revision of its history becomes its ancestor. Of the revisions in between, only the IDs
  /// are stored. If it doesn't descend from the current revision, the document becomes conflicted. Throws
  /// `invalidRevisionID` and `invalidHistory` when the history is invalid, and `missingBlob`.
  @discardableResult
  public func apply(_ revision: PulledRevision) throws -> Bool {
    try DocumentID.withValidated(revision.id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { writer in
        try writer.encode(revision.body, of: key, isForeign: true, hasRevisionID: true)
        writer.bodyBlobs.mayBeMissing = revision.allowsMissingBlobs
        return try writer.apply(key, history: revision.history, deleted: revision.isDeleted)
      }
    }
  }

  /// Inserts several revisions in one transaction, all or nothing. Returns the number of new ones.
  @discardableResult
  public func apply(_ revisions: some Sequence<PulledRevision>) throws -> Int {
    // The transaction may run twice, and some sequences can be iterated only once.
    let revisions = Array(revisions)
    return try inBatch {
      var count = 0
      for revision in revisions where try apply(revision) { count += 1 }
      return count
    }
  }

  /// Removes the document and all its revisions without a tombstone. Throws `notFound` when there is none.
  public func purge(_ id: String) throws {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      guard try writing({ try $0.purge(key) }) else {
        throw DocumentError(.notFound, "there is no such document, so it can't be purged", documentID: id)
      }
    }
  }

  /// Removes one branch: a leaf and its ancestors up to the first one that another branch needs. Returns the
  /// removed revisions, newest first. Purging the last branch removes the document.
  ///
  /// It takes no sequence and leaves no tombstone. If the current revision is removed, the next leaf in order
  /// becomes current. Throws `notFound` when there is no such document, or the revision isn't one of its
  /// leaves.
  @discardableResult
  public func purge(_ id: String, branch leaf: RevisionID) throws -> [RevisionID] {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { try $0.purge(key, branch: leaf) }
    }
  }

  /// Removes the bodies of all replaced revisions. Returns their number. Returning their space to the file
  /// system is up to the engine.
  @discardableResult
  public func dropReplacedBodies() throws -> Int { try writing { try $0.dropReplacedBodies() } }

  /// Removes bodies of replaced revisions with sequences up to `end`, the oldest first, at most `limit`.
  /// Returns their number.
  @discardableResult
  public func dropReplacedBodies(upTo end: UInt64, limit: Int) throws -> Int {
    try writing { try $0.dropReplacedBodies(upTo: end, limit: max(1, limit)) }
  }

  /// Returns the number of documents and tombstones, and the number of bodies of replaced revisions. Constant
  /// time.
  public func bodyCounts() throws -> (current: Int, replaced: Int) {
    try reading { transaction, context in
      let keyspaces = context.keyspaces
      return (
        try transaction.count(of: keyspaces.docs) + transaction.count(of: keyspaces.deleted),
        try transaction.count(of: keyspaces.bodies)
      )
    }
  }
}
