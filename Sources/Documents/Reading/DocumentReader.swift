import Fleece
import Storage

/// Finds the documents of one snapshot by their IDs, in place. One thread at a time, and not beyond the snapshot.
public final class DocumentReader {
  private let transaction: any ReadTransaction
  private let docs: Keyspace
  private let deleted: Keyspace
  private let sharedKeys: SharedKeys

  init(_ transaction: any ReadTransaction, _ docs: Keyspace, _ deleted: Keyspace, _ sharedKeys: SharedKeys) {
    self.transaction = transaction
    self.docs = docs
    self.deleted = deleted
    self.sharedKeys = sharedKeys
  }

  /// Lends the live document of an ID to `body`; with `includeDeleted` a tombstone as well. False, and `body` isn't
  /// called, when there is none.
  @inline(__always)
  public func read(
    _ id: RawSpan, includeDeleted: Bool = false, _ body: (DocumentView) throws -> Void
  ) throws -> Bool {
    // No engine takes an empty key or a longer one, and no document has such an ID.
    guard id.byteCount > 0, id.byteCount <= StorageLimits.maximumKeyBytes else { return false }
    if try transaction.read(
      id, in: docs, { try body(DocumentView(idBytes: id, record: $0, sharedKeys: sharedKeys)) })
    {
      return true
    }
    guard includeDeleted else { return false }
    return try transaction.read(id, in: deleted) {
      try body(DocumentView(idBytes: id, record: $0, sharedKeys: sharedKeys))
    }
  }

  /// Lends the live documents that the entries of an index refer to (`FastReads.follow`), each with its entry.
  @inline(__always)
  public func follow(
    _ index: Keyspace, _ range: KeyRange, order: ScanOrder,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ record: RawSpan) throws -> Bool
  ) throws {
    try transaction.follow(index, range, order: order, into: docs, reference: reference, body)
  }
}
