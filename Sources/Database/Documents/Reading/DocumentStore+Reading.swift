import Bytes
import Fleece
import Storage

extension DocumentStore {
  /// Returns the document with this ID, or nil.
  package func document(_ id: String, includeDeleted: Bool = false) throws -> Document? {
    if !includeDeleted, let read = try readAlone(id) { return read }
    return try reading { transaction, context in
      try self.document(id, includeDeleted: includeDeleted, in: transaction, context)
    }
  }

  /// Reads the live document with this ID by a single read of one entry. Returns the outer nil if one entry
  /// isn't enough to decide.
  private func readAlone(_ id: String) throws -> Document?? {
    let context = context
    guard !isInBatch, let beginning = context.checksums?.beginning(in: context.keyspaces.docs) else {
      return nil
    }
    do {
      return try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key -> Document?? in
        let key = key.bytes
        var found: Document?
        let isThere = try context.engine.read(key, in: context.keyspaces.docs) { stored in
          found = try Document(
            id: id,
            record: EntryChecksums.value(of: stored, at: key, beginning, verifies: context.verifiesChecksums),
            sharedKeys: context.sharedKeys, blobs: blobSource)
        }
        guard isThere, let document = found else { return .some(nil) }
        // The record is damaged, or it needs shared keys that another process has added.
        if document.isDeleted || document.keyCount > context.sharedKeys.count { return nil }
        return .some(document)
      }
    } catch let error as StorageError where error.code == .closed || error.code == .snapshotExpired {
      return nil
    }
  }

  /// Calls `body` with the live document with this ID as JSON, as `Document.json()` gives it. Returns nil if there is none.
  ///
  /// Nothing of the document is copied but its JSON, so this is the fastest read of a whole document.
  package func withJSON<Result>(of id: String, _ body: (DocumentJSON) throws -> Result) throws -> Result? {
    var text = ByteBuffer(capacity: 2048)
    switch try readJSONAlone(id, into: &text) {
    case .missing: return nil
    case .found(let found): return try body(found.json(in: text.bytes))
    case .undecided:
      guard let document = try document(id) else { return nil }
      text.removeAll()
      return try body(document.write(to: &text).json(in: text.bytes))
    }
  }

  private enum JSONRead {
    case found(DocumentJSON.Layout)
    case missing
    /// One entry isn't enough to decide.
    case undecided
  }

  /// The same as `readAlone`, with the JSON in place of the record.
  private func readJSONAlone(_ id: String, into text: inout ByteBuffer) throws -> JSONRead {
    let context = context
    guard !isInBatch, let beginning = context.checksums?.beginning(in: context.keyspaces.docs) else {
      return .undecided
    }
    do {
      return try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key -> JSONRead in
        let key = key.bytes
        var read = JSONRead.missing
        _ = try context.engine.read(key, in: context.keyspaces.docs) { stored in
          let record = try DocumentRecord(
            EntryChecksums.value(of: stored, at: key, beginning, verifies: context.verifiesChecksums))
          guard !record.flags.contains(.deleted), record.keyCount <= context.sharedKeys.count else {
            read = .undecided
            return
          }
          read = .found(try record.write(to: &text, context.sharedKeys))
        }
        return read
      }
    } catch let error as StorageError where error.code == .closed || error.code == .snapshotExpired {
      return .undecided
    }
  }

  func document(
    _ id: String, includeDeleted: Bool, in transaction: any ReadTransaction, _ context: Context
  ) throws -> Document? {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      func read(_ keyspace: Keyspace) throws -> Document? {
        try transaction.withValue(at: key.bytes, in: keyspace) {
          try Document(id: id, record: $0, sharedKeys: context.sharedKeys, blobs: blobSource)
        }
      }
      func checked(_ document: Document, isDeleted: Bool) throws -> Document {
        guard document.isDeleted == isDeleted else { throw DocumentRecord.damaged }
        guard document.keyCount > context.sharedKeys.count else { return document }
        return document.with(try laterSharedKeys(document.keyCount, transaction, context))
      }
      if let live = try read(context.keyspaces.docs) { return try checked(live, isDeleted: false) }
      guard includeDeleted, let tombstone = try read(context.keyspaces.deleted) else { return nil }
      return try checked(tombstone, isDeleted: true)
    }
  }

  /// Returns shared keys of `transaction` for a body that needs the first `needed` of them.
  func sharedKeys(_ needed: Int, _ transaction: any ReadTransaction, _ context: Context) throws -> SharedKeys
  {
    needed > context.sharedKeys.count
      ? try laterSharedKeys(needed, transaction, context) : context.sharedKeys
  }

  /// Returns shared keys for every body that `transaction` can read.
  func sharedKeys(_ transaction: any ReadTransaction, _ context: Context) throws -> SharedKeys {
    try sharedKeys(State(transaction, context.keyspaces.meta).sharedKeyCount, transaction, context)
  }

  /// Loads the table of shared keys from `transaction`, for a body that needs more keys than `context` has.
  func laterSharedKeys(_ needed: Int, _ transaction: any ReadTransaction, _ context: Context) throws
    -> SharedKeys
  {
    let keys = try DocumentStore.loadSharedKeys(transaction, context.keyspaces.meta)
    guard keys.count >= needed else {
      throw DocumentError(.damaged, "a body needs \(needed) shared keys, but the table has \(keys.count)")
    }
    // Another process added the keys. Those of a snapshot are committed. Those of a batch may not be.
    if !isInBatch { publish(keys) }
    return keys
  }

  /// Runs `body` on one snapshot, or in the batch that this thread has open. With a `cancellation`, each use
  /// of the snapshot checks it.
  package func read<Result>(
    attempts: Int = 1, cancellation: JobCancellation? = nil, _ body: (DocumentSnapshot) throws -> Result
  ) throws -> Result {
    // Taken before the snapshot begins. A commit counted later may already be in the snapshot, and is then
    // examined twice.
    let unsequenced = unsequencedCommits.load(ordering: .acquiring)
    return try reading(attempts: attempts) { transaction, context in
      let snapshot = DocumentSnapshot(
        self, transaction, context, isOfBatch: isInBatch, cancellation: cancellation)
      snapshot.unsequencedCommits = unsequenced
      defer { snapshot.end() }
      return try body(snapshot)
    }
  }

  func forEachChange(
    since sequence: UInt64, _ transaction: any ReadTransaction, _ context: Context, isOfBatch: Bool,
    _ body: (Change) throws -> Bool
  ) throws {
    guard sequence < UInt64(Int64.max) else { return }
    let lower = (0..<8).map { UInt8(truncatingIfNeeded: sequence >> UInt64(56 - 8 * $0)) }
    if isOfBatch { writer.beginScan() }
    defer { if isOfBatch { writer.endScan() } }
    try transaction.scan(context.keyspaces.changes, KeyRange(lower: .exclusive(lower))) { key, value in
      let change = try StoredChange(value)
      guard let sequence = StoredChange.sequence(of: key) else {
        throw DocumentError(.damaged, "an entry of the list of changes can't be read")
      }
      let flags = change.flags
      return try body(
        Change(
          sequence: sequence, documentID: String(copying: change.id),
          isDeleted: flags.contains(.deleted), isConflicted: flags.contains(.conflicted),
          isFromSync: flags.contains(.fromSync)))
    }
  }
}

/// Runs `body`. Throws `damaged` when a stored body can't be read.
func undamaged<Result>(_ body: () throws(FleeceError) -> Result) throws -> Result {
  do { return try body() } catch {
    throw DocumentError(.damaged, "a stored body can't be read: \(error)")
  }
}
