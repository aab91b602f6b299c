import Bytes
import Fleece
import Storage

/// The revisions of one document in a snapshot: its tree, and the bodies that are stored. Revisions have numbers: 0 is the
/// current one, then come the other leaves. Use it on one thread at a time, and only while the snapshot lasts.
package final class DocumentRevisions {
  private let history: DocumentStore.History
  private let transaction: any ReadTransaction
  private let context: DocumentStore.Context
  private let store: DocumentStore

  init(
    _ history: DocumentStore.History, _ store: DocumentStore, _ transaction: any ReadTransaction,
    _ context: DocumentStore.Context
  ) {
    self.history = history
    self.store = store
    self.transaction = transaction
    self.context = context
  }

  /// The document with its current revision, which may be a tombstone.
  package var document: Document { history.document }

  /// The numbers of the leaves, the current revision first, the others in the order of CouchDB.
  package var leaves: [Int] { history.tree.leaves }

  /// Returns the number of a revision, nil if it isn't known.
  package func index(of revision: RevisionID) throws -> Int? { try history.index(of: revision) }

  /// The ID of a revision.
  package func id(of index: Int) -> RevisionID { history.tree.revisionID(of: index) }

  /// Whether a revision is a tombstone.
  package func isDeleted(_ index: Int) -> Bool { history.tree.nodes[index].isDeleted }

  /// Whether a revision is a leaf.
  package func isLeaf(_ index: Int) -> Bool { history.tree.nodes[index].isLeaf }

  /// Returns the number of a revision's parent, nil if none is known.
  package func parent(of index: Int) throws -> Int? {
    // The last node's parent may be outside of the record.
    if index == history.tree.nodes.count - 1 { try history.loadOlder() }
    let parent = Int(history.tree.nodes[index].parent)
    return parent < 0 ? nil : parent
  }

  /// Returns the numbers of a revision and of its ancestors, the newest first.
  package func ancestry(of index: Int) throws -> [Int] {
    var found = [index]
    while let parent = try parent(of: found[found.count - 1]) { found.append(parent) }
    return found
  }

  /// Returns a revision and its ancestors, the newest first, as far as the depth of revision trees reaches now. It may have been
  /// lowered after the document was saved: what is beyond it goes with the next save. A revision behind a gap stays: pruning has kept
  /// it, because another database has it.
  package func keptAncestry(of index: Int) throws -> [Int] {
    let all = try ancestry(of: index)
    guard all.count > 1 else { return all }
    let depth = try store.currentTreeDepth(transaction, context)
    return all.indices.filter { place in
      place < depth || id(of: all[place - 1]).generation != id(of: all[place]).generation + 1
    }.map { all[$0] }
  }

  /// Returns the IDs of `keptAncestry`. Gaps are filled (`RevisionHistory.dense`).
  package func keptHistory(of index: Int) throws -> [RevisionID] {
    RevisionHistory.dense(try keptAncestry(of: index).map { id(of: $0) })
  }

  /// Returns whether the body of a revision is stored.
  package func hasBody(_ index: Int) throws -> Bool {
    let node = history.tree.nodes[index]
    guard index > 0 else { return true }
    guard node.flags.contains(.hasBody) else { return false }
    return try withSequenceKey(node.sequence) { try transaction.contains($0.bytes, in: keyspace(of: node)) }
  }

  /// Lends the body of a revision. Returns nil without calling `body` if it isn't stored. Throws `damaged`.
  package func withBody<Result>(
    _ index: Int, _ body: (Value, SharedKeys) throws -> Result
  ) throws -> Result? {
    if index == 0 { return try document.withBody(body) }
    let node = history.tree.nodes[index]
    guard node.flags.contains(.hasBody) else { return nil }
    return try withSequenceKey(node.sequence) { key in
      try transaction.withValue(at: key.bytes, in: keyspace(of: node)) { bytes in
        let record = try BodyRecord(bytes)
        let keys = try store.sharedKeys(record.keyCount, transaction, context)
        guard let root = Value(rootOf: record.body) else { throw DocumentRecord.damaged }
        return try body(root, keys)
      }
    }
  }

  private func keyspace(of node: RevisionTree.Node) -> Keyspace {
    node.isLeaf ? context.keyspaces.conflicts : context.keyspaces.bodies
  }
}

extension DocumentSnapshot {
  /// Returns the revisions of the document or the tombstone with this ID, nil if there is none or the ID can't be stored.
  package func revisions(of id: String) throws -> DocumentRevisions? {
    let (transaction, context) = try open()
    guard DocumentID.isStorable(id), let history = try store.history(of: id, transaction, context) else {
      return nil
    }
    return DocumentRevisions(history, store, transaction, context)
  }
}

extension Document {
  /// Lends the body. Throws `damaged` if it can't be read.
  package func withBody<Result>(_ body: (Value, SharedKeys) throws -> Result) throws -> Result {
    try withRecord { record in
      guard let root = Value(rootOf: record.body) else { throw DocumentRecord.damaged }
      return try body(root, sharedKeys)
    }
  }
}
