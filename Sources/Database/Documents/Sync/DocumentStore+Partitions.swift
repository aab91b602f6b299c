import Storage

// `meta/partitioned`: whether a server holds the IDs of documents to CouchDB's form PARTITION:NAME (docs/http-documents.md). The store keeps
// it and checks no ID: writes that don't come through the server aren't held to it. Copies and conversions keep it.

extension DocumentStore {
  private static let partitionedKey = Array("partitioned".utf8)

  /// Whether the IDs of documents name partitions.
  package func isPartitioned() throws -> Bool {
    try reading { transaction, context in
      try transaction.bytes(Self.partitionedKey, in: context.keyspaces.meta) == [1]
    }
  }

  /// Stores that the IDs of documents name partitions. It is for a new database. Throws `nestedWrite` inside a batch.
  package func setPartitioned() throws {
    guard !isInBatch else {
      throw StorageError(
        .nestedWrite, "a database can't become partitioned inside a batch", path: engine.location)
    }
    try writing { writer in
      try writer.checkWritable()
      try writer.mutating {
        try writer.transaction.put(Self.partitionedKey, [1], in: writer.keyspaces.meta)
      }
    }
  }
}
