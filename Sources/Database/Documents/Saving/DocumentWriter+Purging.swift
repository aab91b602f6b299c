import Storage

extension DocumentWriter {
  /// Removes a leaf and its ancestors up to the first one that another branch needs. Returns the removed IDs,
  /// newest first. Purging the last branch removes the document.
  ///
  /// What is left is a change of the document with a new sequence, as in CouchDB: whoever follows the changes
  /// hears of the leaves that are left, and of another one that may be current now.
  func purge(_ id: UnsafeRawBufferPointer, branch leaf: RevisionID) throws -> [RevisionID] {
    try checkWritable()
    guard var old = try loadUnordered(id) else {
      throw DocumentError(
        .notFound, "there is no such document, so it can't be purged", documentID: idText(id))
    }
    guard var first = index(of: leaf), tree.nodes[first].isLeaf else {
      throw DocumentError(
        .notFound, "the revision \(leaf) isn't a leaf; only a branch with its leaf can be purged",
        documentID: idText(id))
    }
    if !tree.isOrdered {
      if tree.unorderedLeaves > 2 { return try purgeUnordered(id, first, stored: old) }
      guard let again = try load(id), let index = index(of: leaf) else { throw RevisionTree.damaged }
      (old, first) = (again, index)
    }
    try loadHistory(of: id)
    var children = ContiguousArray(repeating: 0, count: tree.nodes.count)
    for node in tree.nodes where node.parent >= 0 { children[Int(node.parent)] += 1 }
    var keeps = ContiguousArray(repeating: true, count: tree.nodes.count)
    var purged: [RevisionID] = []
    var index = first
    repeat {
      keeps[index] = false
      purged.append(tree.revisionID(of: index))
      index = Int(tree.nodes[index].parent)
    } while index >= 0 && children[index] == 1
    guard keeps.contains(true) else {
      _ = try purge(id)
      return purged
    }
    let sequence = try nextSequence()
    let leafSequence = tree.nodes[first].sequence
    let currentGoes = first == 0
    if currentGoes { removedBodies += 1 }
    try mutating {
      _ = try tree.keep(keeps) { sequence in
        // The current body is removed with the record. The body of another leaf is in `conflicts`.
        if sequence == leafSequence {
          if !currentGoes { try deleteBody(sequence, isLeaf: true) }
        } else {
          try deleteBody(sequence, isLeaf: false)
        }
      }
      try rewrite(id, stored: old, currentIsNew: currentGoes, sequence)
    }
    return purged
  }

  /// The same for a tree whose nodes aren't in order, of which several leaves stay. The record is written later.
  private func purgeUnordered(_ id: UnsafeRawBufferPointer, _ leaf: Int, stored old: Stored) throws
    -> [RevisionID]
  {
    let sequence = try nextSequence()
    let currentGoes = leaf == 0
    if currentGoes { removedBodies += 1 }
    var purged: [RevisionID] = []
    try mutating {
      var index = leaf
      repeat {
        let node = tree.nodes[index]
        purged.append(tree.revisionID(of: index))
        if node.flags.contains(.hasBody), index > 0 { try deleteBody(node.sequence, isLeaf: index == leaf) }
        index = Int(node.parent)
      } while index >= 0 && tree.children(of: index) == 1
      tree.removeBranch(leaf)
      let flags = flagsOfRecord
      treeBytes.removeAll()
      var keyCount = old.keyCount
      if currentGoes {
        keyCount = try composeFromConflict(tree.nodes[0].sequence, flags: flags, sequence)
      }
      try deleteChange(old.sequence)
      try addChange(id, flags: flags, sequence)
      if currentGoes { try updateIndexes(id, old: liveBody(old), new: liveBodyOfRecord) }
      // Ancestors may be too far from the leaves that are left.
      keepPending(sequence, hasNewBody: currentGoes, keyCount: keyCount, isPruned: false)
    }
    return purged
  }

  /// Writes the document after `tree` has lost revisions.
  private func rewrite(
    _ id: UnsafeRawBufferPointer, stored old: Stored, currentIsNew: Bool, _ sequence: UInt64
  ) throws {
    let flags = encodeTree()
    if currentIsNew {
      try composeFromConflict(tree.nodes[0].sequence, flags: flags, sequence)
    } else {
      compose(
        flags: flags, sequence, keyCount: old.keyCount,
        body: UnsafeRawBufferPointer(rebasing: stored.bytes[old.bodyStart...]))
    }
    try putRecord(id, replacing: old)
    try deleteChange(old.sequence)
    try addChange(id, flags: flags, sequence)
    if currentIsNew { try updateIndexes(id, old: liveBody(old), new: liveBodyOfRecord) }
    try keepWide(id, isPruned: false)
  }
}
