import Fleece
import Storage

/// What to do when the stored document isn't the one that a change is based on.
public enum ConcurrencyControl: Sendable {
  /// The change goes on top of whatever is stored.
  case lastWriteWins
  /// The change is refused with a `conflict`.
  case fail
  /// The change goes on top of the revision that it is based on, also when that has been replaced: then the
  /// document is conflicted. A revision that isn't known is `notFound`.
  case allowConflict
}

extension DocumentStore {
  /// Saves the document as a new revision, and notes that revision in it.
  ///
  /// Throws `conflict` when `control` says so, `invalidDocumentID`, and `invalidBody` or `reservedProperty`
  /// for what can't be a body, and `missingBlob`. Nothing is changed then.
  @discardableResult
  public func save(_ document: inout MutableDocument, onConflict control: ConcurrencyControl = .lastWriteWins)
    throws -> SavedRevision
  {
    let saved = try save(
      document.id, .value(document.body), basedOn: document.revisionID, onConflict: control)
    document.base.note(saved, in: openRun)
    return saved
  }

  /// Saves a body under an ID as a new revision. `revision` is what it is based on, nil for a new document.
  ///
  /// It goes on top of `revision` while that is a leaf. Otherwise it goes on top of what is current, or throws
  /// `conflict` when `control` says so; what else it throws, see `save(_:onConflict:)`.
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

  /// Saves the UTF-8 of a JSON object under an ID: the fast way in.
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

  /// Deletes the document: a tombstone becomes its current revision. `body` is what the tombstone keeps.
  ///
  /// Throws `notFound` when there is no such document or it has been deleted already, and `conflict` when
  /// `control` says so. A tombstone's own ID as `revision` adds another on top of it.
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

  /// Inserts a revision that another database made. False when it was known already: then nothing changes.
  ///
  /// The newest revision of its history that is known here becomes its ancestor; those in between are
  /// remembered by their IDs. When it doesn't descend from what is current, the document is conflicted.
  /// Throws `invalidRevisionID` and `invalidHistory` for a history that can't be, and `missingBlob`.
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

  /// Inserts many in one transaction, all or nothing; says how many were new.
  @discardableResult
  public func apply(_ revisions: some Sequence<PulledRevision>) throws -> Int {
    // A sequence can perhaps be gone through only once, and a transaction may run twice.
    let revisions = Array(revisions)
    return try inBatch {
      var count = 0
      for revision in revisions where try apply(revision) { count += 1 }
      return count
    }
  }

  /// Forgets the document and all its revisions, without a tombstone. Throws `notFound` when there is none.
  public func purge(_ id: String) throws {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      guard try writing({ try $0.purge(key) }) else {
        throw DocumentError(.notFound, "there is no such document to purge", documentID: id)
      }
    }
  }

  /// Forgets one branch: a leaf and its ancestors up to the first that another branch needs. Says which revisions
  /// are gone, newest first; with the last branch the document goes.
  ///
  /// It takes no sequence and leaves no tombstone. When the current revision goes, the next leaf in order becomes
  /// current. Throws `notFound` when there is no such document, or the revision isn't one of its leaves.
  @discardableResult
  public func purge(_ id: String, branch leaf: RevisionID) throws -> [RevisionID] {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { try $0.purge(key, branch: leaf) }
    }
  }

  /// Drops the bodies of replaced revisions, and says how many there were. What is left of their space is
  /// the engine's to give back.
  @discardableResult
  public func dropReplacedBodies() throws -> Int { try writing { try $0.dropReplacedBodies() } }

  /// Drops those of sequences up to `end`, the oldest first, at most `limit`, and says how many there were.
  @discardableResult
  public func dropReplacedBodies(upTo end: UInt64, limit: Int) throws -> Int {
    try writing { try $0.dropReplacedBodies(upTo: end, limit: max(1, limit)) }
  }

  /// How many documents and tombstones there are, and how many bodies of replaced revisions. Constant time.
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
