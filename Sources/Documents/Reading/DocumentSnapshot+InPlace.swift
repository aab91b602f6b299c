import Fleece
import Storage

// What queries need of a snapshot besides scans: documents and IDs in place, without copies.

extension DocumentSnapshot {
  /// Lends the document of an ID to `body`; nil when there is none. With `includeDeleted`, a tombstone as well.
  public func withDocument<Result>(
    _ id: RawSpan, includeDeleted: Bool = false, _ body: (DocumentView) throws -> Result
  ) throws -> Result? {
    var result: Result?
    _ = try reader().read(id, includeDeleted: includeDeleted) { result = try body($0) }
    return result
  }

  /// What finds documents by their IDs, for whoever looks up many. Not to be used beyond the snapshot.
  public func reader() throws -> DocumentReader {
    let (transaction, context) = try open()
    return DocumentReader(
      transaction, context.keyspaces.docs, context.keyspaces.deleted, try sharedKeys)
  }

  /// Calls `body` with each live document's ID until it returns false; no body is read.
  public func forEachID(
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

  /// Runs `body` while nothing can be written in the batch that this is a snapshot of: the engine's bytes would end.
  public func withoutWrites<Result>(_ body: () throws -> Result) throws -> Result {
    _ = try open()
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    return try body()
  }

  /// The revision ID of a stored record, as a `DocumentView` has it in `bytes`.
  public static func revisionID(ofRecord bytes: RawSpan) throws -> RevisionID {
    try DocumentRecord(bytes).currentRevisionID()
  }
}
