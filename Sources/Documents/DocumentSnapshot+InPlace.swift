import Fleece
import Storage

// What queries need of a snapshot besides scans: documents and IDs in place, without copies.

extension DocumentSnapshot {
  /// Calls `body` with the document of an ID in place; nil when there is none. With `includeDeleted`, a tombstone as
  /// well. What `body` is handed ends when it returns.
  public func withDocument<Result>(
    _ id: UnsafeRawBufferPointer, includeDeleted: Bool = false, sharedKeys: SharedKeys,
    _ body: (DocumentView) throws -> Result
  ) throws -> Result? {
    let (transaction, context) = try open()
    // No engine takes an empty key or a longer one, and no document has such an ID.
    guard id.count > 0, id.count <= StorageLimits.maximumKeyBytes else { return nil }
    var found = try transaction.get(id, in: context.keyspaces.docs)
    if found == nil, includeDeleted { found = try transaction.get(id, in: context.keyspaces.deleted) }
    guard let found else { return nil }
    return try body(
      DocumentView(idBytes: id, bytes: found, record: try DocumentRecord(found), sharedKeys: sharedKeys))
  }

  /// What finds documents by their IDs, for whoever looks up many. Not to be used beyond the snapshot.
  public func reader() throws -> DocumentReader {
    let (transaction, context) = try open()
    return DocumentReader(transaction, context.keyspaces.docs, context.keyspaces.deleted)
  }

  /// Calls `body` with each live document's ID until it returns false; no body is read.
  public func forEachID(
    in range: KeyRange = .all, order: ScanOrder = .ascending,
    _ body: (_ id: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    let (transaction, context) = try open()
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    try transaction.unsafeScan(context.keyspaces.docs, range, order: order, fetch: .keys) { key, _ in
      try body(key)
    }
  }

  /// Runs `body` while nothing can be written in the batch that this is a snapshot of: the engine's bytes would end.
  public func withoutWrites<Result>(_ body: () throws -> Result) throws -> Result {
    _ = try open()
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    return try body()
  }

  /// Whether it is the view of a batch, which may change from one use to the next.
  public var isBatch: Bool { isOfBatch }

  /// The revision ID of a stored record, as a `DocumentView` has it in `bytes`.
  public static func revisionID(ofRecord bytes: UnsafeRawBufferPointer) throws -> RevisionID {
    let id = try DocumentRecord(bytes).currentRevision().id
    return RevisionID(generation: id.generation, suffix: id.suffix.text)
  }
}
