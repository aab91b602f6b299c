import Bytes
import Storage

// A document may have less of its history than there is elsewhere: it came with a short history, or branches of it came without what
// they have in common. When a longer history arrives, what is missing is joined to the branch, also if the revision itself is known.
// What was a leaf and is in that history isn't one any more ("A revision from elsewhere" in docs/documents.md).

extension DocumentWriter {
  /// Whether a received history may have revisions that the branch of `ancestor` lacks, and that pruning leaves. It is asked before
  /// the revisions above `ancestor` are added, of which the highest generation is `newest`. Nil: there are none.
  func mayExtend(
    _ id: UnsafeRawBufferPointer, _ ancestor: Int, _ history: [String], newest: UInt64?
  ) throws -> Bool {
    guard ancestor >= 0, var last = history.last,
      let oldest = last.withUTF8({ RevisionID.parse(UnsafeRawBufferPointer($0))?.generation }),
      oldest < tree.nodes[ancestor].generation
    else { return false }
    let end = tree.endWithoutGap(of: ancestor)
    guard oldest < tree.nodes[end].generation else { return false }
    // With one branch there can't be a leaf in the history.
    guard newest == nil || ancestor == 0, tree.isChain else { return true }
    let lowest = RevisionTree.lowestGeneration(
      below: newest ?? tree.nodes[0].generation, depth: maximumTreeDepth)
    guard end == tree.nodes.count - 1 else { return tree.nodes[end].generation > lowest }
    let (generation, hasGap) = try oldestGeneration(of: id)
    return hasGap || oldest < generation && generation > lowest
  }

  /// The generation of the oldest revision of a document with one branch, which may be outside `tree`, and whether there is a gap
  /// outside of it.
  private func oldestGeneration(of id: UnsafeRawBufferPointer) throws -> (UInt64, hasGap: Bool) {
    guard !isWhole, let history else { return (tree.oldestGeneration, false) }
    guard let keyspace = try transaction.keyspace(named: HistoryBlock.keyspace) else {
      throw HistoryBlock.damaged
    }
    var oldest = tree.oldestGeneration
    var count = history.count
    // The first block is the oldest one. Not all of its revisions are pruned, and no others are.
    try transaction.scan(keyspace, HistoryBlock.range(of: id), order: .ascending, fetch: .entries) {
      _, block in
      try HistoryBlock.forEach(in: block) { revision, _, _ in
        if revision.generation >= history.lowestGeneration {
          oldest = revision.generation
        } else {
          count -= 1
        }
      }
      return false
    }
    return (oldest, tree.oldestGeneration - oldest != count)
  }

  /// Joins what a history has, and what the branch of its newest revision lacks, to the tree. That revision is stored. Each join is a
  /// change of its own, because it may end one leaf.
  func joinOlder(_ id: UnsafeRawBufferPointer, _ history: [String]) throws {
    // Each join begins at an older revision than the one before.
    for _ in history { guard try joinNext(id, history) else { return } }
  }

  /// A part of a history that the tree lacks.
  private struct Join {
    /// The revision that gets a parent.
    var child: Int
    /// The revisions that are added below it, newest first.
    var older: ArraySlice<ReceivedID>
    /// What is known of the history below those: the next known revision, and those that are on one line with it. Each is the parent of
    /// the one before.
    var line: [Int]
    /// The known revision, if there is one.
    var known: Int?
  }

  /// Makes the first join. Returns false if there is none.
  private func joinNext(_ id: UnsafeRawBufferPointer, _ history: [String]) throws -> Bool {
    guard var stored = try loadUnordered(id) else { return false }
    try loadHistory(of: id)
    let ids = parsed(history)
    guard var join = nextJoin(ids) else { return false }
    if !tree.isOrdered {
      // Only nodes in order can be joined.
      guard let again = try load(id), let next = nextJoin(ids) else { throw RevisionTree.damaged }
      (stored, join) = (again, next)
    }
    let sequence = try nextSequence()
    isFromSync = true
    defer { isFromSync = false }
    try mutating {
      var child = join.child
      for id in join.older {
        let parent = tree.add(storedID(id), parent: -1, sequence: sequence, flags: [])
        tree.join(child, to: parent)
        child = parent
      }
      for parent in join.line {
        tree.join(child, to: parent)
        child = parent
      }
      try write(
        id, nil, stored: stored, newRevision: join.child, parent: join.known ?? -1, sequence)
    }
    return true
  }

  /// Parses a history into `text`, as far as it is valid: what follows the first known revision wasn't looked at when the newest one was
  /// added.
  private func parsed(_ history: [String]) -> [ReceivedID] {
    text.removeAll()
    var ids: [ReceivedID] = []
    ids.reserveCapacity(history.count)
    for revision in history {
      guard let (generation, start, isText) = appendSuffix(of: revision),
        ids.last.map({ generation < $0.generation }) ?? true
      else { break }
      ids.append(ReceivedID(generation: generation, place: start..<text.count, isText: isText))
    }
    return ids
  }

  private func storedID(_ id: ReceivedID) -> StoredRevisionID {
    StoredRevisionID(
      generation: id.generation,
      suffix: StoredSuffix(
        bytes: UnsafeRawBufferPointer(rebasing: text.bytes[id.place]), isText: id.isText))
  }

  /// Goes down a history and the branch of its newest revision, to the first revision that the branch lacks and that can be joined. Where
  /// both have a revision of the same generation, that of the branch counts.
  private func nextJoin(_ ids: [ReceivedID]) -> Join? {
    guard let newest = ids.first, var child = tree.index(of: storedID(newest)) else { return nil }
    var position = 1
    while position < ids.count {
      let parent = Int(tree.nodes[child].parent)
      let floor = parent < 0 ? 0 : tree.nodes[parent].generation
      if floor >= ids[position].generation {
        if floor == ids[position].generation { position += 1 }
        child = parent
        continue
      }
      // The revisions above the parent, up to the next known one.
      var end = position
      var known: Int?
      while known == nil, end < ids.count, ids[end].generation > floor {
        known = tree.index(of: storedID(ids[end]))
        if known == nil { end += 1 }
      }
      let older = ids[position..<end]
      let kept =
        older.isEmpty ? 0 : tree.room(for: older.map(\.generation), below: child, depth: maximumTreeDepth)
      if let known {
        // A leaf that is in the history of another one is none, however far it is. A parent that another branch keeps is kept.
        if tree.nodes[known].isLeaf || older.isEmpty || kept > 0, let line = tree.line(of: known, and: parent)
        {
          return Join(child: child, older: older, line: line, known: known)
        }
        child = known
        position = end + 1
      } else if kept > 0 {
        return parent < 0
          ? Join(child: child, older: older.prefix(kept), line: [])
          : Join(child: child, older: older, line: [parent])
      } else {
        position = end
      }
    }
    return nil
  }
}
