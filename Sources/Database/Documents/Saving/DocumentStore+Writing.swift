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

// `Database` documents the methods of its own that have the same names.

extension DocumentStore {
  /// Saves a body as a new revision.
  @discardableResult
  package func save(
    _ id: String, _ body: DocumentBody, basedOn revision: RevisionID? = nil,
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try withContent(of: body) {
      try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
        try writing { writer in
          try writer.checkChosen(key)
          return try write(key, writer.encode(body, of: key), revision, deleted: false, control, writer)
        }
      }
    }
  }

  /// Saves the UTF-8 text of a JSON object.
  @discardableResult
  package func save(
    _ id: String, json: UnsafeRawBufferPointer, onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { writer in
        try writer.checkChosen(key)
        return try write(key, writer.encode(json: json, of: key), nil, deleted: false, control, writer)
      }
    }
  }

  /// Saves a document with other values at some paths, none of which lies within another one. `conflict` unless the document
  /// is still the stored one.
  ///
  /// - Returns: nil, and nothing has changed, for a body with blobs or reserved names, or one that isn't as bodies are written.
  ///   Such a body is changed as a `MutableDocument`.
  package func save(_ document: Document, changing changes: [BodyChange]) throws -> SavedRevision? {
    try DocumentID.withValidated(document.id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { writer -> SavedRevision? in
        try writer.checkChosen(key)
        guard let body = try writer.encode(document, changing: changes, of: key) else { return nil }
        return try writer.save(key, body, .based(on: document.revisionID))
      }
    }
  }

  /// Saves what was exported from a database: with any ID and any names that can be stored there, and with blobs that
  /// were lost there.
  @discardableResult
  package func restore(_ id: String, json: UnsafeRawBufferPointer) throws -> SavedRevision {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { writer in
        var body = try writer.encode(json: json, of: key)
        body.mayMissBlobs = true
        body.keepsReservedNames = true
        return try write(key, body, nil, deleted: false, .lastWriteWins, writer)
      }
    }
  }

  /// Makes a tombstone the current revision.
  @discardableResult
  package func delete(
    _ id: String, basedOn revision: RevisionID? = nil, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try withContent(of: body) {
      try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
        try writing { writer in
          try write(key, writer.encode(body, of: key), revision, deleted: true, control, writer)
        }
      }
    }
  }

  /// Tells `document` that `saved` is its revision now: for good, or until the open batch is rolled back.
  package func note(_ saved: SavedRevision, in document: inout MutableDocument) {
    document.base.note(saved, in: openRun)
  }

  private func write(
    _ key: UnsafeRawBufferPointer, _ body: EncodedBody, _ revision: RevisionID?, deleted: Bool,
    _ control: ConcurrencyControl, _ writer: DocumentWriter
  ) throws -> SavedRevision {
    switch control {
    case .allowConflict:
      let precondition = revision.map { Precondition.branching(from: $0) } ?? .based(on: nil)
      return try writer.save(key, body, deleted: deleted, precondition)
    case .fail: return try writer.save(key, body, deleted: deleted, .based(on: revision))
    case .lastWriteWins:
      return try writer.save(key, body, deleted: deleted, .lastWriteWins(basedOn: revision))
    }
  }

  /// Inserts a revision that another database created.
  @discardableResult
  package func apply(_ revision: PulledRevision) throws -> Bool {
    try withContent(of: revision.body) {
      try DocumentID.withValidated(revision.id, maximum: DocumentID.maximumStoredBytes) { key in
        try writing { writer in
          var body = try writer.encode(revision.body, of: key, isForeign: true, hasRevisionID: true)
          body.mayMissBlobs = revision.allowsMissingBlobs
          return try writer.apply(key, body, history: revision.history, deleted: revision.isDeleted)
        }
      }
    }
  }

  /// Removes the document with all its revisions.
  package func purge(_ id: String) throws {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      guard try writing({ try $0.purge(key) }) else {
        throw DocumentError(.notFound, "there is no such document, so it can't be purged", documentID: id)
      }
    }
  }

  /// Removes one branch of the document.
  @discardableResult
  package func purge(_ id: String, branch leaf: RevisionID) throws -> [RevisionID] {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { try $0.purge(key, branch: leaf) }
    }
  }

  /// Removes the bodies of all replaced revisions. Returns their number. Returning their space to the file
  /// system is up to the engine.
  @discardableResult
  package func dropReplacedBodies() throws -> Int { try writing { try $0.dropReplacedBodies() } }

  /// Removes bodies of replaced revisions with sequences up to `end`, the oldest first, at most `limit`.
  /// Returns their number.
  @discardableResult
  package func dropReplacedBodies(upTo end: UInt64, limit: Int) throws -> Int {
    try writing { try $0.dropReplacedBodies(upTo: end, limit: max(1, limit)) }
  }

  /// Returns the number of documents and tombstones, and the number of bodies of replaced revisions. Constant
  /// time.
  package func bodyCounts() throws -> (current: Int, replaced: Int) {
    try reading { transaction, context in
      let keyspaces = context.keyspaces
      return (
        try transaction.count(of: keyspaces.docs) + transaction.count(of: keyspaces.deleted),
        try transaction.count(of: keyspaces.bodies)
      )
    }
  }
}
