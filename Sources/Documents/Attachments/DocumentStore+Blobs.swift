import Fleece
import Storage

extension DocumentStore {
  // MARK: New blobs

  /// Stores bytes for a document that is saved later, and returns what the document names them by.
  ///
  /// Until then they are kept as long as the database is open. Throws a `StorageError`: `diskFull`, `readOnly`, …
  public func makeBlob(_ bytes: some Sequence<UInt8>, contentType: String? = nil) throws -> Blob {
    let writer = try makeBlobWriter()
    try writer.write(bytes)
    return Blob(try writer.finish(), contentType)
  }

  /// Stores the bytes of a file, in constant memory, as `makeBlob(_:contentType:)` does.
  public func makeBlob(contentsOfFile path: String, contentType: String? = nil) throws -> Blob {
    Blob(try requiredBlobs().store(contentsOfFile: path), contentType)
  }

  /// Takes the bytes of a new blob in pieces; `BlobWriter.finish()` ends it, and `Blob(_:_:)` names it.
  public func makeBlobWriter() throws -> BlobWriter { try requiredBlobs().makeWriter() }

  // MARK: Reading

  /// Opens a blob for reading in pieces, in constant memory. Throws `notFound` when it isn't here, and `damaged`.
  public func open(_ blob: Blob) throws -> BlobReader { try requiredBlobs().open(blob.digest) }

  /// All bytes of a blob, at most `limit` (2 GiB): else `valueTooLarge`.
  public func contents(of blob: Blob, limit: UInt64 = 1 << 31) throws -> [UInt8] {
    try requiredBlobs().contents(of: blob.digest, limit: limit)
  }

  /// Whether the bytes of a blob are here.
  public func contains(_ blob: Blob) throws -> Bool { try blobs?.contains(blob.digest) ?? false }

  private func requiredBlobs() throws -> BlobStore {
    guard let blobs else {
      throw StorageError(.unsupported, "these documents were opened without a place for blobs")
    }
    return blobs
  }

  // MARK: Removing what nothing names

  /// The removal of blobs that no revision names, between its two halves.
  public final class BlobRemoval {
    fileprivate let sweep: BlobSweep
    /// The last sequence of the snapshot that was looked at.
    fileprivate let sequence: UInt64

    fileprivate init(_ sweep: BlobSweep, _ sequence: UInt64) {
      self.sweep = sweep
      self.sequence = sequence
    }
  }

  /// Looks for blobs that no stored revision names, beside writers; nil when there are no files at all. What it
  /// finds is removed by `finish(_:)`: after what was committed by now is safe from a power loss.
  public func beginBlobRemoval() throws -> BlobRemoval? {
    guard let blobs, try !blobs.names().isEmpty else { return nil }
    var begun: BlobSweep?
    // Between transactions: whoever puts a blob in place from now on marks its file.
    try exclusively { begun = try blobs.beginSweep() }
    guard let sweep = begun else { return nil }
    let sequence = try withSnapshot { transaction, context in
      if !sweep.isEmpty {
        for keyspace in [
          context.keyspaces.docs, context.keyspaces.deleted, context.keyspaces.bodies,
          context.keyspaces.conflicts,
        ] {
          try transaction.scan(keyspace, order: .stored) { _, value in
            try sweep.keepAll(in: value)
            return !sweep.isEmpty
          }
        }
      }
      return try Self.lastSequence(transaction, context.keyspaces)
    }
    return BlobRemoval(sweep, sequence)
  }

  /// Removes the blobs that were found and that nothing names by now either. Writers wait, in all processes, but
  /// only for what changed since the beginning to be read. Throws `nestedWrite` inside a batch.
  @discardableResult
  public func finish(_ removal: BlobRemoval) throws -> BlobSweep.Result {
    var result = BlobSweep.Result()
    try exclusively {
      try withSnapshot { transaction, context in
        let keyspaces = context.keyspaces
        // What a new revision names is under a new sequence: as its document's body, or aside.
        let since = KeyRange(
          lower: .exclusive(
            (0..<8).map { UInt8(truncatingIfNeeded: removal.sequence >> UInt64(56 - 8 * $0)) }))
        for keyspace in [keyspaces.bodies, keyspaces.conflicts] {
          try transaction.scan(keyspace, since) { _, value in
            try removal.sweep.keepAll(in: value)
            return true
          }
        }
        var changed: [(id: [UInt8], isDeleted: Bool)] = []
        try transaction.scan(keyspaces.changes, since) { _, value in
          let change = try StoredChange(value)
          changed.append(([UInt8](copying: change.id), change.flags.contains(.deleted)))
          return true
        }
        for (id, isDeleted) in changed {
          _ = try transaction.read(id.span.bytes, in: isDeleted ? keyspaces.deleted : keyspaces.docs) {
            try removal.sweep.keepAll(in: $0)
          }
        }
      }
      result = try removal.sweep.finish()
    }
    return result
  }
}

extension Blob {
  /// What documents name a blob by that was stored.
  public init(_ stored: StoredBlob, _ contentType: String? = nil) {
    self.init(digest: stored.digest, length: stored.length, contentType: contentType)
  }
}
