import Bytes
import Fleece
import Storage

// What modules above need to keep data of their own that is derived from the documents.

extension DocumentStore {
  /// The keyspace in which the module `Views` keeps the state of each view.
  package static let viewsKeyspace = "views"

  /// Runs `body` in a write transaction of this store, all or nothing. Inside a batch of the same thread it joins the
  /// batch's transaction, and an error fails the batch.
  ///
  /// `body` must write only to keyspaces that it has created itself. It runs again when the engine reports a conflict.
  package func writingDerived<Result>(_ body: (any WriteTransaction) throws -> Result) throws -> Result {
    try writing { writer in
      try writer.checkWritable()
      try writer.writePending()
      return try writer.mutating { try body(writer.transaction) }
    }
  }
}

/// The documents that were purged after a certain purge, for data that is derived from documents.
package struct PurgedDocuments {
  /// The number of the last recorded purge, 0 if there is none.
  package var newest: UInt64 = 0
  /// The documents that were purged, in order, some of them more than once.
  package var ids: [[UInt8]] = []
  /// Whether some purges aren't recorded any more, or can't be read.
  package var isIncomplete = false
}

extension DocumentSnapshot {
  /// The number of the last recorded purge, 0 if there is none.
  package var newestPurge: UInt64 { get throws { try PurgeRecord.newest(open().0) } }

  /// Returns the documents that were purged after the purge `number`.
  package func purgedDocuments(after number: UInt64) throws -> PurgedDocuments {
    let (transaction, _) = try open()
    var purged = PurgedDocuments()
    guard let keyspace = try transaction.keyspace(named: PurgeRecord.keyspace) else {
      purged.isIncomplete = number > 0
      return purged
    }
    purged.newest = try PurgeRecord.newest(transaction, keyspace)
    guard purged.newest > number else {
      // The records of another file: numbers never shrink.
      purged.isIncomplete = purged.newest < number
      return purged
    }
    var next = number + 1
    let lower = withSequenceKey(number) { Array($0) }
    try transaction.scan(keyspace, KeyRange(lower: .exclusive(lower))) { key, value in
      let found = StoredChange.sequence(of: key) ?? 0
      guard found == next, let id = PurgeRecord.documentID(key, value) else {
        purged.isIncomplete = true
        return false
      }
      purged.ids.append(id)
      next += 1
      return true
    }
    return purged
  }
}

extension DocumentView {
  /// The sequence of the current revision, which is lower than that of the latest change when another branch changed
  /// last. Throws `damaged`.
  package func currentSequence() throws -> UInt64 {
    var reader = ByteReader(record.tree)
    // The number of nodes, and the flags and the parent of the first one (RevisionTree.swift).
    guard reader.varint() != nil, reader.byte() != nil, reader.varint() != nil, let sequence = reader.varint()
    else {
      throw RevisionTree.damaged
    }
    return sequence
  }

  /// The leaves besides the current revision: live ones and tombstones, the highest IDs first.
  package func conflictingLeaves() throws -> (live: [RevisionID], deleted: [RevisionID]) {
    let tree = RevisionTree()
    try tree.decode(record.tree)
    var live: [RevisionID] = []
    var deleted: [RevisionID] = []
    for index in tree.leaves.dropFirst() {
      if tree.nodes[index].isDeleted {
        deleted.append(tree.revisionID(of: index))
      } else {
        live.append(tree.revisionID(of: index))
      }
    }
    return (live, deleted)
  }

  /// Appends the text of the current revision's ID. Throws `damaged`.
  package func appendRevisionID(to text: inout ByteBuffer) throws {
    try record.currentRevision().appendText(to: &text)
  }

  /// Whether the tree has more than one leaf or the document is conflicted: only then `conflictingLeaves` has any.
  package var mayHaveConflicts: Bool {
    var reader = ByteReader(record.tree)
    return reader.varint() != 1
  }
}

extension DocumentSnapshot {
  /// Lends the body of a revision of a document, given its sequence, if it is stored: the current one, a leaf that lost,
  /// or a replaced one. Returns nil otherwise.
  package func withRevision<Result>(
    of id: RawSpan, sequence: UInt64, _ body: (_ body: Value, _ revisionID: RevisionID) throws -> Result
  ) throws -> Result? {
    let (transaction, context) = try open()
    let tree = RevisionTree()
    var stored: [UInt8]?
    for keyspace in [context.keyspaces.docs, context.keyspaces.deleted] where stored == nil {
      stored = try transaction.withValue(at: id, in: keyspace) { [UInt8](copying: $0) }
    }
    guard let stored else { return nil }
    let record = try DocumentRecord(stored.span.bytes)
    try tree.decode(record.tree)
    guard
      let index = tree.nodes.indices.first(where: {
        tree.nodes[$0].sequence == sequence && tree.nodes[$0].flags.contains(.hasBody)
      })
    else { return nil }
    let revisionID = tree.revisionID(of: index)
    if index == 0 {
      guard let root = Value(rootOf: record.body) else { throw DocumentRecord.damaged }
      return try body(root, revisionID)
    }
    let keyspace = tree.nodes[index].isLeaf ? context.keyspaces.conflicts : context.keyspaces.bodies
    return try withSequenceKey(sequence) { key in
      try transaction.withValue(at: key.bytes, in: keyspace) {
        guard let root = Value(rootOf: try BodyRecord($0).body) else { throw DocumentRecord.damaged }
        return try body(root, revisionID)
      }
    }
  }
}
