import Storage

// The steps that `DocumentImport` and `DocumentInserter` share.

extension DocumentWriter {
  /// Returns whether there is a document or a tombstone with this ID.
  func contains(_ id: UnsafeRawBufferPointer) throws -> Bool {
    if try transaction.contains(id.bytes, in: keyspaces.docs) { return true }
    return try mayHaveTombstones && transaction.contains(id.bytes, in: keyspaces.deleted)
  }

  /// Stores a new document with the revisions in `tree` and the body of its current revision. The caller
  /// stores its change and its other bodies.
  func insertRecord(
    _ id: UnsafeRawBufferPointer, _ sequence: UInt64, keyCount: Int, body: UnsafeRawBufferPointer
  ) throws -> DocumentRecord.Flags {
    let flags = encodeTree()
    compose(flags: flags, sequence, keyCount: keyCount, body: body)
    try putRecord(id, replacing: nil)
    try updateIndexes(id, old: nil, new: liveBodyOfRecord)
    return flags
  }

  /// Raises the last sequence to `sequence` if it is lower. A sequence above `limit` is ignored.
  func raiseLastSequence(to sequence: UInt64, limit: UInt64 = maximumSequence) {
    guard let lastSequence, sequence > lastSequence, sequence <= limit else { return }
    self.lastSequence = sequence
  }
}
