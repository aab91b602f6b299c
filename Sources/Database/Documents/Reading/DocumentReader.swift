import Fleece
import Storage

/// Finds documents of one snapshot by their IDs, without copies. Use it on one thread at a time, and only
/// while the snapshot lasts.
package final class DocumentReader {
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

  /// Lends the live document with this ID to `body`. With `includeDeleted`, it also finds a tombstone.
  /// Returns false without calling `body` if there is none.
  @inline(__always)
  package func read(
    _ id: RawSpan, includeDeleted: Bool = false, _ body: (DocumentView) throws -> Void
  ) throws -> Bool {
    // Engines don't take empty keys or longer keys, and no document has such an ID.
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

  /// Lends each live document that the entries of an index refer to (`FastReads.follow`), together with its
  /// entry.
  @inline(__always)
  package func follow(
    _ index: Keyspace, _ range: KeyRange, order: ScanOrder,
    reference: (_ key: RawSpan, _ value: RawSpan) throws -> ScanReference,
    _ body: (_ key: RawSpan, _ value: RawSpan, _ record: RawSpan) throws -> Bool
  ) throws {
    try transaction.follow(index, range, order: order, into: docs, reference: reference, body)
  }
}
