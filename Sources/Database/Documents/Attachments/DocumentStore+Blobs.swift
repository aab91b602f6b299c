import Blobs
import Fleece
import Storage

extension DocumentStore {
  /// The store of blobs. Throws `unsupported` if these documents have none.
  package var requiredBlobs: BlobStore {
    get throws {
      guard let blobs else {
        throw StorageError(.unsupported, "the documents were opened without a directory for blobs")
      }
      return blobs
    }
  }

  /// Removes unsaved blobs, and ends the reading of blobs by documents that were read. Called when the database
  /// is closed.
  package func closeBlobs() {
    blobs?.discardUnsaved()
    blobSource?.close()
  }

  // MARK: Removing unreferenced blobs

  /// A removal of unreferenced blobs, between its two steps.
  package final class BlobRemoval {
    fileprivate let sweep: BlobSweep
    /// The last sequence of the snapshot that was examined.
    fileprivate let sequence: UInt64

    fileprivate init(_ sweep: BlobSweep, _ sequence: UInt64) {
      self.sweep = sweep
      self.sequence = sequence
    }
  }

  /// Finds blobs that no stored revision refers to, while writers continue. Nil if there are no blob files.
  /// `finish(_:)` removes what is found. Before that, make the commits up to now durable against a power
  /// loss.
  package func beginBlobRemoval() throws -> BlobRemoval? {
    guard let blobs, try !blobs.names().isEmpty else { return nil }
    var begun: BlobSweep?
    // Called between transactions. Writers that put a blob in place from now on mark its file.
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

  /// Removes the blobs that were found and still aren't referenced. Writers in all processes wait meanwhile,
  /// but only while the changes since `beginBlobRemoval()` are read and the files are removed. Throws
  /// `nestedWrite` inside a batch.
  @discardableResult
  package func finish(_ removal: BlobRemoval) throws -> BlobSweep.Result {
    var result = BlobSweep.Result()
    try exclusively {
      try withSnapshot { transaction, context in
        let keyspaces = context.keyspaces
        // A new revision has a new sequence. Its body is the document's current body, or is in one of these
        // keyspaces.
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
