import Storage

extension DocumentWriter {
  /// Removes a leaf and its ancestors up to the first one that another branch needs. Returns the removed IDs,
  /// newest first. Purging the last branch removes the document.
  ///
  /// It takes no sequence. The document keeps the sequence of its latest change, even when another leaf
  /// becomes current.
  func purge(_ id: UnsafeRawBufferPointer, branch leaf: RevisionID) throws -> [RevisionID] {
    try checkWritable()
    guard let old = try load(id) else {
      throw DocumentError(
        .notFound, "there is no such document, so it can't be purged", documentID: idText(id))
    }
    guard let first = index(of: leaf), tree.nodes[first].isLeaf else {
      throw DocumentError(
        .notFound, "the revision \(leaf) isn't a leaf; only a branch with its leaf can be purged",
        documentID: idText(id))
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
      try rewrite(id, stored: old, currentIsNew: currentGoes)
    }
    return purged
  }

  /// Rewrites the record under its sequence, after `tree` has lost revisions.
  private func rewrite(_ id: UnsafeRawBufferPointer, stored old: Stored, currentIsNew: Bool) throws {
    var flags = encodeTree()
    if currentIsNew {
      try composeFromConflict(tree.nodes[0].sequence, flags: flags, old.sequence)
    } else {
      compose(
        flags: flags, old.sequence, keyCount: old.keyCount,
        body: UnsafeRawBufferPointer(rebasing: stored.bytes[old.bodyStart...]))
    }
    try putRecord(id, replacing: old)
    try withSequenceKey(old.sequence) { key in
      // Keep the origin of the latest change.
      let before = try transaction.withValue(at: key.bytes, in: keyspaces.changes) {
        try StoredChange($0).flags
      }
      if before?.contains(.fromSync) == true { flags.insert(.fromSync) }
      other.removeAll()
      other.append(flags.rawValue)
      other.append(id)
      try transaction.put(key, other.bytes, in: keyspaces.changes)
    }
    if currentIsNew {
      hasUnsequencedChanges = true
      try updateIndexes(id, old: liveBody(old), new: liveBodyOfRecord)
    }
    try recordPurge(id, .branch)
    if notes.isCollecting {
      try notes.addUnsequenced(id, flags: flags, old.sequence, record: record.bytes)
    }
  }
}
