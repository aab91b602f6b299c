import Fleece
import Storage

// In-place access for queries besides scans: documents and IDs without copies.

extension DocumentSnapshot {
  /// Lends the document with this ID to `body`. Returns nil if there is none. With `includeDeleted`, it also
  /// finds a tombstone.
  package func withDocument<Result>(
    _ id: RawSpan, includeDeleted: Bool = false, _ body: (DocumentView) throws -> Result
  ) throws -> Result? {
    var result: Result?
    _ = try reader().read(id, includeDeleted: includeDeleted) { result = try body($0) }
    return result
  }

  /// Returns a reader that finds documents by their IDs, for many lookups. It must not be used after the
  /// snapshot ends.
  package func reader() throws -> DocumentReader { try reader(sharedKeys) }

  /// The same, with shared keys that are the snapshot's (`sharedKeys`).
  package func reader(_ sharedKeys: SharedKeys) throws -> DocumentReader {
    let (transaction, context) = try open()
    return DocumentReader(
      transaction, context.keyspaces.docs, context.keyspaces.deleted, sharedKeys)
  }

  /// Calls `body` with the ID of each live document until it returns false. No body is read.
  package func forEachID(
    in range: KeyRange = .all, order: ScanOrder = .ascending,
    _ body: (_ id: RawSpan) throws -> Bool
  ) throws {
    let (transaction, context) = try open()
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    try transaction.scan(context.keyspaces.docs, range, order: order, fetch: .keys) { key, _ in
      try body(key)
    }
  }

  /// Runs `body` while the batch of this snapshot can't write. A write would invalidate the bytes that the
  /// engine lends.
  package func withoutWrites<Result>(_ body: () throws -> Result) throws -> Result {
    _ = try open()
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    return try body()
  }

  /// Returns the revision ID of a stored record, such as the `bytes` of a `DocumentView`.
  package static func revisionID(ofRecord bytes: RawSpan) throws -> RevisionID {
    try DocumentRecord(bytes).currentRevisionID()
  }
}
