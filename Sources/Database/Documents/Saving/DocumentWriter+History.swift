import Bytes
import Storage

/// Deep histories: the record of a document with one branch keeps the newest revisions, and blocks hold the
/// older ones (HistoryBlock.swift). Operations that create a second branch, or need all revisions, load the
/// blocks first. Then the tree is written into the record, because a tree with branches is stored whole.
extension DocumentWriter {
  /// Makes `tree` complete. Existing indices stay valid, because the added revisions are older than the
  /// others.
  func loadHistory(of id: UnsafeRawBufferPointer) throws {
    guard !isWhole, let history else { return }
    try tree.addHistory(of: id, history, transaction)
    isWhole = true
  }

  /// Makes `tree` complete if an older revision may have that generation. Returns false if none can. The
  /// revision must not be in `tree`.
  func addsOlder(_ generation: UInt64, of id: UnsafeRawBufferPointer) throws -> Bool {
    guard !isWhole, let history, generation < tree.oldestGeneration, generation >= history.lowestGeneration
    else { return false }
    try loadHistory(of: id)
    return true
  }

  /// Returns the sequences of older revisions outside `tree` that were stored with a body, newest first.
  func olderBodies(of id: UnsafeRawBufferPointer) throws -> [UInt64] {
    guard !isWhole, let history else { return [] }
    var sequences: [UInt64] = []
    try HistoryBlock.forEach(of: id, transaction) { revision, sequence, flags in
      if flags.contains(.hasBody), revision.generation >= history.lowestGeneration {
        sequences.append(sequence)
      }
    }
    return sequences
  }

  /// Decides which revisions the record keeps, after one was added to `tree` and the tree was pruned. Writes
  /// blocks of the others. Returns the record's information about them. `hasPruned`: pruning removed
  /// revisions from `tree`.
  func settleHistory(_ id: UnsafeRawBufferPointer, hasPruned: Bool) throws -> StoredHistory? {
    let size = max(1, options.revisionsPerBlock)
    guard history != nil || tree.nodes.count > 2 * size else { return nil }
    var newHistory: StoredHistory?
    var lowest = RevisionTree.lowestGeneration(below: tree.nodes[0].generation, depth: maximumTreeDepth)
    if let history {
      if isWhole {
        // The revisions that aren't pruned are in `tree`, with their bodies.
        _ = try dropHistory(of: id, bodiesBelow: history.lowestGeneration)
      } else {
        guard tree.isChain else { throw RevisionTree.damaged }
        lowest = max(lowest, history.lowestGeneration)
        if hasPruned || tree.oldestGeneration <= lowest {
          _ = try dropHistory(of: id)
        } else {
          newHistory = StoredHistory(lowestGeneration: lowest, count: history.count)
        }
      }
    }
    guard tree.nodes.count > 2 * size, tree.isChain else { return newHistory }
    let blocks = (tree.nodes.count - size - 1) / size
    let kept = tree.nodes.count - blocks * size
    let keyspace =
      try transaction.keyspace(named: HistoryBlock.keyspace)
      ?? transaction.createKeyspace(HistoryBlock.keyspace, shape: .entries)
    for start in stride(from: kept, to: tree.nodes.count, by: size) {
      other.removeAll()
      other.append(HistoryBlock.version)
      other.append(varint: UInt64(size))
      for node in tree.nodes[start..<(start + size)] {
        other.append(node.flags.rawValue)
        other.append(varint: node.sequence)
        StoredRevisionID(generation: node.generation, suffix: tree.suffix(of: node)).append(to: &other)
      }
      let key = HistoryBlock.key(id, tree.nodes[start].generation)
      try transaction.put(key.span.bytes, other.bytes.bytes, in: keyspace)
    }
    tree.removeOldest(blocks * size)
    var count = (newHistory?.count ?? 0) + UInt64(blocks * size)
    // These blocks contain pruned revisions only.
    count -= min(count, try dropHistory(of: id, below: lowest))
    return count > 0 ? StoredHistory(lowestGeneration: lowest, count: count) : nil
  }

  /// Removes the blocks whose revisions are all below a generation, or all blocks. Also removes the bodies of
  /// their revisions below the generation `bodiesBelow`, by default of all. Returns the number of removed
  /// revisions.
  func dropHistory(
    of id: UnsafeRawBufferPointer, below generation: UInt64? = nil, bodiesBelow: UInt64 = .max
  ) throws -> UInt64 {
    guard let keyspace = try transaction.keyspace(named: HistoryBlock.keyspace) else { return 0 }
    let range = HistoryBlock.range(of: id, below: generation)
    var count: UInt64 = 0
    var bodies: [UInt64] = []
    try transaction.scan(keyspace, range) { _, block in
      try HistoryBlock.forEach(in: block) { revision, sequence, flags in
        count += 1
        if flags.contains(.hasBody), revision.generation < bodiesBelow { bodies.append(sequence) }
      }
      return true
    }
    guard count > 0 else { return 0 }
    try transaction.deleteRange(range, in: keyspace)
    for sequence in bodies { try deleteBody(sequence, isLeaf: false) }
    return count
  }
}
