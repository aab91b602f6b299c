import Fleece
import Storage

extension DocumentSnapshot {
  /// Calls `body` with the sequence of each change in a range and its document or tombstone in place, until it returns
  /// false.
  ///
  /// - Parameters:
  ///   - after: the range begins behind this sequence.
  ///   - before: the range ends before this sequence; nil: at the last one.
  ///   - order: `ascending` begins with the oldest change, `descending` with the newest one.
  package func forEachChangedDocument(
    after: UInt64 = 0, before: UInt64? = nil, order: ScanOrder = .ascending,
    _ body: (_ sequence: UInt64, _ document: DocumentView) throws -> Bool
  ) throws {
    guard after < maximumSequence else { return }
    let (transaction, context) = try open()
    let keyspaces = context.keyspaces
    let sharedKeys = try sharedKeys
    let blobs = store.blobSource
    let range = DocumentSnapshot.range(after: after, before: before)
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    try transaction.scan(keyspaces.changes, range, order: order, fetch: .entries) { key, value in
      try cancellation?.check()
      let change = try StoredChange(value)
      guard let sequence = StoredChange.sequence(of: key) else {
        throw DocumentError(.damaged, "an entry of the list of changes can't be read")
      }
      let id = change.id
      let keyspace = change.flags.contains(.deleted) ? keyspaces.deleted : keyspaces.docs
      var goesOn = true
      let found = try transaction.read(id, in: keyspace) { record in
        goesOn = try body(
          sequence, DocumentView(idBytes: id, record: record, sharedKeys: sharedKeys, blobs: blobs))
      }
      guard found else {
        throw DocumentError(.damaged, "a change belongs to no document", documentID: String(copying: id))
      }
      return goesOn
    }
  }

  /// The keys of the list of changes behind one sequence and before another one.
  package static func range(after: UInt64, before: UInt64?) -> KeyRange {
    KeyRange(
      lower: .exclusive(withSequenceKey(min(after, maximumSequence)) { Array($0) }),
      upper: before.map { before in
        .exclusive(withSequenceKey(min(before, maximumSequence)) { Array($0) })
      } ?? .unbounded)
  }

  /// Calls `body` with each leaf of a document besides the current revision whose body is stored, in the order of their
  /// priority.
  package func forEachOtherLeaf(
    of document: DocumentView, _ body: (_ id: RevisionID, _ isDeleted: Bool, _ body: Value) throws -> Void
  ) throws {
    guard document.mayHaveConflicts else { return }
    let (transaction, context) = try open()
    let tree = RevisionTree()
    try tree.decode(document.record.tree)
    for (index, node) in tree.nodes.enumerated()
    where index > 0 && node.isLeaf && node.flags.contains(.hasBody) {
      try withSequenceKey(node.sequence) { key in
        _ = try transaction.read(key.bytes, in: context.keyspaces.conflicts) { stored in
          guard let root = Value(rootOf: try BodyRecord(stored).body) else { throw DocumentRecord.damaged }
          try body(tree.revisionID(of: index), node.isDeleted, root)
        }
      }
    }
  }
}
