import Storage

// `meta/security`: what a server lets whom do with the database, as JSON text (docs/http.md). The store keeps it and knows nothing of it.
// It isn't a document: it has no sequence and isn't replicated. Copies and conversions keep it.

extension DocumentStore {
  /// The most bytes that the text may have.
  package static let maximumSecurityBytes = 256 << 10

  private static let securityKey = Array("security".utf8)

  /// Returns the text that was stored last, as it is now; nil if none was. Other processes may have stored it.
  package func securityObject() throws -> [UInt8]? {
    try reading { transaction, context in
      try transaction.bytes(Self.securityKey, in: context.keyspaces.meta)
    }
  }

  /// Stores a text. Throws `invalidBody` if it has more than `maximumSecurityBytes`, and `nestedWrite` inside a batch.
  package func setSecurityObject(_ text: [UInt8]) throws {
    guard text.count <= Self.maximumSecurityBytes else {
      throw DocumentError(
        .invalidBody,
        "a security object has at most \(Self.maximumSecurityBytes) bytes, and not \(text.count)")
    }
    guard !isInBatch else {
      throw StorageError(
        .nestedWrite, "a security object can't be stored inside a batch", path: engine.location)
    }
    try writing { writer in
      try writer.checkWritable()
      try writer.mutating {
        try writer.transaction.put(Self.securityKey, text, in: writer.keyspaces.meta)
      }
    }
  }
}
