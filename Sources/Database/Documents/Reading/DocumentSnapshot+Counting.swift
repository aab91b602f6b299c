import Storage

/// Entries of a database whose keys can be walked and counted.
package enum CountedEntries: Sendable, Hashable, CaseIterable {
  /// Live documents, by their IDs.
  case documents
  /// The latest change of each document and tombstone, by its sequence (`DocumentSnapshot.range(after:before:)`).
  case changes
}

extension DocumentSnapshot {
  /// Calls `body` with each key in a range, in an order, until it returns false. Values aren't read.
  package func forEachKey(
    of entries: CountedEntries, in range: KeyRange, order: ScanOrder = .ascending,
    _ body: (_ key: RawSpan) throws -> Bool
  ) throws {
    let (transaction, context) = try open()
    let keyspace =
      switch entries {
      case .documents: context.keyspaces.docs
      case .changes: context.keyspaces.changes
      }
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    try transaction.scan(keyspace, range, order: order, fetch: .keys) { key, _ in
      try cancellation?.check()
      return try body(key)
    }
  }

  /// The number of all entries. Constant time.
  package func count(of entries: CountedEntries) throws -> Int {
    switch entries {
    case .documents: try documentCount
    case .changes: try documentCount + tombstoneCount
    }
  }
}
