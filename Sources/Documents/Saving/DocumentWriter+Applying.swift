import Storage

extension DocumentWriter {
  /// Adds a revision that another database created. Returns false, and changes nothing, if it is known already. `history` is ordered newest first and begins with the revision itself.
  func apply(
    _ id: UnsafeRawBufferPointer, _ body: EncodedBody, history: [String], deleted: Bool
  ) throws -> Bool {
    try checkWritable()
    let isStored = try load(id)
    if isStored == nil { tree.removeAll() }
    // The location of each history ID in `text`. New ones are added from there, oldest first.
    text.removeAll()
    var ids: [(generation: UInt64, start: Int, count: Int, isText: Bool)] = []
    ids.reserveCapacity(history.count)
    var ancestor = -1
    var last = UInt64.max
    for revision in history {
      guard let generation = appendSuffix(of: revision) else {
        throw DocumentError(.invalidRevisionID, "\"\(revision)\" isn't a revision ID", documentID: idText(id))
      }
      guard generation.value < last else {
        throw DocumentError(
          .invalidHistory, "the generations of the history don't descend at \"\(revision)\"",
          documentID: idText(id))
      }
      last = generation.value
      if isStored != nil {
        let wanted = suffix(generation.value, generation.start, generation.isText)
        var known = tree.index(of: wanted)
        if known == nil, try addsOlder(generation.value, of: id) { known = tree.index(of: wanted) }
        if let known {
          ancestor = known
          break
        }
      }
      ids.append((generation.value, generation.start, text.count - generation.start, generation.isText))
    }
    guard !history.isEmpty else {
      throw DocumentError(.invalidHistory, "the history of the revision is empty", documentID: idText(id))
    }
    // The revision itself is known.
    if ids.isEmpty { return false }
    // A branch needs the complete tree.
    if ancestor != 0 { try loadHistory(of: id) }
    let body = try settleBlobs(
      body, id, generation: ids[0].generation, deleted: deleted, ancestor: ancestor, stored: isStored)
    if ancestor < 0, ids.count > maximumTreeDepth {
      ids.removeLast(ids.count - maximumTreeDepth)
    }
    let sequence = try nextSequence()
    isFromSync = true
    defer { isFromSync = false }
    return try mutating {
      var parent = ancestor
      for (position, id) in ids.enumerated().reversed() {
        var flags: RevisionFlags = []
        if position == 0 {
          flags = [.leaf, .hasBody]
          if deleted { flags.insert(.deleted) }
        }
        let stored = StoredRevisionID(
          generation: id.generation,
          suffix: StoredSuffix(
            bytes: UnsafeRawBufferPointer(rebasing: text.bytes[id.start..<(id.start + id.count)]),
            isText: id.isText))
        parent = tree.addChild(stored, of: parent, sequence: sequence, flags: flags)
      }
      try write(id, body, stored: isStored, newRevision: parent, parent: ancestor, sequence)
      return true
    }
  }

  /// Parses a revision ID into `text`. Packs the suffix if it is lower-case hex of even length.
  private func appendSuffix(of revision: String) -> (value: UInt64, start: Int, isText: Bool)? {
    var revision = revision
    return revision.withUTF8 { utf8 in
      guard let (generation, suffix) = RevisionID.parse(UnsafeRawBufferPointer(utf8)) else { return nil }
      let start = text.count
      return (generation, start, text.append(suffix: suffix))
    }
  }

  /// Returns the revision ID with the suffix in `text` from `start` on.
  func suffix(_ generation: UInt64, _ start: Int, _ isText: Bool) -> StoredRevisionID {
    StoredRevisionID(
      generation: generation,
      suffix: StoredSuffix(
        bytes: UnsafeRawBufferPointer(rebasing: text.bytes[start...]), isText: isText))
  }
}
