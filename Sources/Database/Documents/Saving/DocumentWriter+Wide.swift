import Bytes
import Storage

// A transaction that changes a document with many leaves again and again writes its record once.
//
// The record has the whole tree, so to write it takes a time in proportion to the leaves. After the first such change of a transaction the
// writer keeps the tree, and leaves its nodes where they are (RevisionTree+Unordered.swift). Bodies and changes are written at
// once. The record is written by `writePending()`: before another document is loaded, before anything is read from the store in the same
// transaction, and at its end.

/// A document with many leaves, as the open transaction has left it. Its tree is in `DocumentWriter.tree`, and its current body in
/// `DocumentWriter.stored`.
struct WideDocument {
  let id: [UInt8]
  /// What `load` would return.
  var stored: DocumentWriter.Stored
  /// Whether the tree is as pruning leaves it, and no revision was kept only because it is marked.
  var isPruned: Bool
  /// Whether the stored record is that of an earlier change.
  var isPending = false
  /// Whether the stored record is that of a tombstone.
  var isDeletedInStore: Bool
}

extension DocumentWriter {
  /// Like `load`, but if the transaction has changed this document already, the nodes of `tree` may be in any order behind the
  /// current one. What needs them in order loads the document again.
  func loadUnordered(_ id: UnsafeRawBufferPointer) throws -> Stored? {
    guard let wide, wide.id.span.withUnsafeBytes({ compareBytes($0, id) }) == 0 else { return try load(id) }
    history = nil
    isWhole = true
    if tree.isOrdered { tree.beginUnordered() }
    return wide.stored
  }

  /// Keeps the document that was written last, if it has many leaves. `record` is its record.
  func keepWide(_ id: UnsafeRawBufferPointer, isPruned: Bool) throws {
    guard tree.nodes.count >= options.wideTree, tree.nodes[1].isLeaf, validations.isEmpty else { return }
    swap(&stored, &record)
    let record = try DocumentRecord(stored.bytes.bytes)
    guard record.history == nil else { return }
    let isDeleted = tree.nodes[0].isDeleted
    wide = WideDocument(
      id: Array(id),
      stored: Stored(
        isDeleted: isDeleted, sequence: record.sequence, keyCount: record.keyCount,
        bodyStart: stored.count - record.body.byteCount),
      isPruned: isPruned, isDeletedInStore: isDeleted)
  }

  /// The document whose nodes aren't in order, nil if the nodes of `tree` are.
  var unordered: WideDocument? { tree.isOrdered ? nil : wide }

  /// Notes a change of the document whose nodes aren't in order. Its record is written later. With `hasNewBody`, its current body has changed
  /// and is in `record`.
  func keepPending(_ sequence: UInt64, hasNewBody: Bool, keyCount: Int, isPruned: Bool) {
    guard var wide else { return }
    if hasNewBody {
      swap(&stored, &record)
      wide.stored.keyCount = keyCount
      wide.stored.bodyStart = bodyStart
    }
    wide.stored.isDeleted = tree.nodes[0].isDeleted
    wide.stored.sequence = sequence
    wide.isPruned = isPruned
    wide.isPending = true
    self.wide = wide
  }

  /// Writes the record that waits. Whoever reads documents from the store calls this first.
  @inline(__always)
  func writePending() throws {
    if wide != nil { try writeWide() }
  }

  @inline(never)
  private func writeWide() throws {
    guard let wide, wide.isPending else { return }
    // What follows a failure isn't stored.
    guard !hasFailed else { return forgetWide() }
    try mutating {
      _ = tree.sort(watching: 0)
      let flags = encodeTree()
      compose(
        flags: flags, wide.stored.sequence, keyCount: wide.stored.keyCount,
        body: UnsafeRawBufferPointer(rebasing: stored.bytes[wide.stored.bodyStart...]))
      var replaced = wide.stored
      replaced.isDeleted = wide.isDeletedInStore
      try wide.id.withUnsafeBytes { try putRecord($0, replacing: replaced) }
    }
    self.wide?.isPending = false
    self.wide?.isDeletedInStore = wide.stored.isDeleted
  }

  /// Puts the nodes of `tree` in order, and writes the record if it waits. `first` and `second` are nodes, and become their new indices; `second` may be
  /// -1.
  func putInOrder(_ first: inout Int, _ second: inout Int) throws {
    let nodes = (tree.nodes[first], second < 0 ? nil : tree.nodes[second])
    try writePending()
    if !tree.isOrdered { _ = tree.sort(watching: 0) }
    func index(of node: RevisionTree.Node) throws -> Int {
      let id = StoredRevisionID(generation: node.generation, suffix: tree.suffix(of: node))
      guard let index = tree.index(of: id) else { throw RevisionTree.damaged }
      return index
    }
    first = try index(of: nodes.0)
    if let node = nodes.1 { second = try index(of: node) }
  }

  /// Forgets the document, because `tree` and `stored` become those of another one.
  func forgetWide() { wide = nil }
}
