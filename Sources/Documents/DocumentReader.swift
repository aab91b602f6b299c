import Storage

/// Finds the documents of one snapshot by their IDs, in place. One thread at a time, and not beyond the snapshot.
public final class DocumentReader {
  private let transaction: any ReadTransaction
  private let docs: Keyspace
  private let deleted: Keyspace
  /// Whether records stay until the snapshot ends; else each ends with the next use of the snapshot.
  public let keepsRecords: Bool

  init(_ transaction: any ReadTransaction, _ docs: Keyspace, _ deleted: Keyspace) {
    self.transaction = transaction
    self.docs = docs
    self.deleted = deleted
    keepsRecords = transaction.keepsBytes
  }

  /// The stored record of the live document of an ID (`DocumentView.init(idBytes:record:sharedKeys:)`), or nil; with
  /// `includeDeleted` that of a tombstone as well.
  public func record(
    of id: UnsafeRawBufferPointer, includeDeleted: Bool = false
  ) throws -> UnsafeRawBufferPointer? {
    // No engine takes an empty key or a longer one, and no document has such an ID.
    guard id.count > 0, id.count <= StorageLimits.maximumKeyBytes else { return nil }
    if let found = try transaction.get(id, in: docs) { return found }
    return includeDeleted ? try transaction.get(id, in: deleted) : nil
  }

  /// Calls `body` with the live documents that the entries of an index refer to (`ReadTransaction.follow`): the ID and the
  /// stored record, which stay until it returns.
  @inline(__always)
  public func follow(
    _ index: Keyspace, _ range: KeyRange, order: ScanOrder,
    reference: (_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws -> UnsafeReference,
    _ body: (_ id: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer) throws -> Bool
  ) throws {
    try transaction.unsafeFollow(index, range, order: order, into: docs, reference: reference, body)
  }
}
