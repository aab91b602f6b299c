import Bytes
import Storage

// A document may begin later than it does elsewhere: it came with a short history, or branches of it came without what they have in
// common. When a longer history arrives, its older part is joined to the root of the branch. What was a leaf and is in that part isn't
// one any more ("A revision from elsewhere" in docs/documents.md).

extension DocumentWriter {
  /// Whether a received history may have revisions that are older than the root of the branch of `ancestor`, and that pruning leaves. It
  /// is asked before the newest one, of generation `newest`, is added.
  func mayExtend(
    _ id: UnsafeRawBufferPointer, _ ancestor: Int, _ history: [String], newest: UInt64
  ) throws -> Bool {
    guard ancestor >= 0, var last = history.last,
      let oldest = last.withUTF8({ RevisionID.parse(UnsafeRawBufferPointer($0))?.generation })
    else { return false }
    let root = tree.root(of: ancestor)
    guard oldest < tree.nodes[root].generation else { return false }
    guard ancestor == 0, tree.isChain else { return true }
    let generation = try oldestGeneration(of: id)
    let lowest = RevisionTree.lowestGeneration(below: newest, depth: maximumTreeDepth)
    return oldest < generation && generation > lowest
  }

  /// The generation of the oldest revision of a document with one branch, which may be outside `tree`.
  private func oldestGeneration(of id: UnsafeRawBufferPointer) throws -> UInt64 {
    guard !isWhole, let history else { return tree.oldestGeneration }
    guard let keyspace = try transaction.keyspace(named: HistoryBlock.keyspace) else {
      throw HistoryBlock.damaged
    }
    var oldest = tree.oldestGeneration
    // The first block is the oldest one. Not all of its revisions are pruned.
    try transaction.scan(keyspace, HistoryBlock.range(of: id), order: .ascending, fetch: .entries) {
      _, block in
      try HistoryBlock.forEach(in: block) { revision, _, _ in
        if revision.generation >= history.lowestGeneration { oldest = revision.generation }
      }
      return false
    }
    return oldest
  }

  /// Joins the older part of the history of a stored revision to the tree. Each join is a change of its own.
  func joinOlder(_ id: UnsafeRawBufferPointer, _ history: [String]) throws {
    // Behind a revision that has begun a branch of its own there may be more.
    while try joinNext(id, history) {}
  }

  /// Joins up to the next known revision. Returns false if there is none.
  private func joinNext(_ id: UnsafeRawBufferPointer, _ history: [String]) throws -> Bool {
    guard let stored = try load(id) else { return false }
    try loadHistory(of: id)
    guard let (root, older, known) = olderPart(of: history) else { return false }
    let kept = tree.room(for: older.map(\.generation), below: root, depth: maximumTreeDepth)
    // A leaf that is in the history of another one is none, however far it is. A parent that another branch keeps is kept.
    let joins =
      known.map { tree.nodes[$0].isLeaf || older.isEmpty || kept > 0 } ?? (min(kept, older.count) > 0)
    guard joins else { return false }
    let sequence = try nextSequence()
    isFromSync = true
    defer { isFromSync = false }
    try mutating {
      var child = root
      for id in known == nil ? older.prefix(kept) : older[...] {
        let bytes = UnsafeRawBufferPointer(rebasing: text.bytes[id.place])
        let parent = tree.add(
          StoredRevisionID(
            generation: id.generation, suffix: StoredSuffix(bytes: bytes, isText: id.isText)),
          parent: -1, sequence: sequence, flags: [])
        tree.join(child, to: parent)
        child = parent
      }
      if let known { tree.join(child, to: known) }
      try write(id, nil, stored: stored, newRevision: root, parent: known ?? -1, sequence)
    }
    return known != nil
  }

  /// The root of the branch of a history's newest revision, what the history has behind it up to the next known revision, and that one,
  /// if there is one. Nil if the root isn't in the history. The suffixes are in `text`.
  private func olderPart(of history: [String]) -> (root: Int, older: [ReceivedID], known: Int?)? {
    text.removeAll()
    var root: Int?
    var isBehind = false
    var older: [ReceivedID] = []
    var last = UInt64.max
    for revision in history {
      // What follows wasn't looked at when the revision was added.
      guard let (generation, start, isText) = appendSuffix(of: revision), generation < last else { break }
      last = generation
      let found = tree.index(of: suffix(generation, start, isText))
      guard let root else {
        guard let found else { return nil }
        root = tree.root(of: found)
        isBehind = root == found
        continue
      }
      guard isBehind else {
        isBehind = found == root
        continue
      }
      if let found { return (root, older, found) }
      older.append(ReceivedID(generation: generation, place: start..<text.count, isText: isText))
    }
    guard let root, isBehind else { return nil }
    return (root, older, nil)
  }
}
