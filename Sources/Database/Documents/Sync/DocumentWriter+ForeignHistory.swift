import Storage

// A revision that was made elsewhere comes with its history. The revision is put on the newest of its ancestors that is known here,
// and those between the two are added without bodies. If none is known, it becomes a branch of its own. `DocumentWriter+Joining.swift`
// adds what is missing below a known ancestor.

extension DocumentWriter {
  /// What `apply` did.
  enum Applied { case added, known, conflict }

  /// Adds a revision that another database created. Returns false if it is known already; then only its history may be joined.
  /// `history` is ordered newest first and begins with the revision itself.
  func apply(
    _ id: UnsafeRawBufferPointer, _ body: EncodedBody, history: [String], deleted: Bool
  ) throws -> Bool {
    try apply(id, body, history: history, deleted: deleted, .allow) == .added
  }

  /// The same with a rule for a revision that doesn't descend from the current one.
  func apply(
    _ id: UnsafeRawBufferPointer, _ body: EncodedBody, history: [String], deleted: Bool,
    _ rule: SyncConflictRule
  ) throws -> Applied {
    try checkWritable()
    let isStored = try loadUnordered(id)
    if isStored == nil { tree.removeAll() }
    var (ids, ancestor) = try unknownRevisions(of: history, in: id, isStored: isStored != nil)
    // The revision itself is known.
    guard let newest = ids.first else {
      if try mayExtend(id, ancestor, history, newest: nil) { try joinOlder(id, history) }
      return .known
    }
    if let isStored, ancestor != 0, !joinsCurrent(ancestor, history) {
      switch rule {
      case .allow: break
      case .report: return .conflict
      case .reportUnlessDeleted: if !isStored.isDeleted { return .conflict }
      case .reportUnlessNew:
        let isNew = ancestor < 0 ? ids.last?.generation == 1 : tree.nodes[ancestor].isLeaf
        if !isStored.isDeleted || !isNew { return .conflict }
      }
    }
    // A branch needs the complete tree.
    if ancestor != 0 { try loadHistory(of: id) }
    let body = try settleBlobs(
      body, id, generation: newest.generation, deleted: deleted, ancestor: ancestor, stored: isStored)
    try validate(id, body, deleted: deleted, parent: ancestor, stored: isStored)
    if ancestor < 0, ids.count > maximumTreeDepth { ids.removeLast(ids.count - maximumTreeDepth) }
    let extends = try mayExtend(id, ancestor, history, newest: newest.generation)
    let sequence = try nextSequence()
    isFromSync = true
    defer { isFromSync = false }
    return try mutating {
      let index = addToTree(ids, on: ancestor, sequence, deleted: deleted)
      try write(id, body, stored: isStored, newRevision: index, parent: ancestor, sequence)
      if extends { try joinOlder(id, history) }
      return .added
    }
  }

  /// Whether the current revision is in a history, below a revision of another branch that has turned out to descend from it.
  private func joinsCurrent(_ ancestor: Int, _ history: [String]) -> Bool {
    guard ancestor > 0,
      tree.nodes[tree.endWithoutGap(of: ancestor)].generation > tree.nodes[0].generation
    else { return false }
    let current = tree.revisionID(of: 0).description
    return history.contains { $0.hasSameBytes(as: current) }
  }

  /// A revision ID of a received history. Its suffix is in `text`.
  struct ReceivedID {
    var generation: UInt64
    var place: Range<Int>
    var isText: Bool
  }

  /// Parses a history into `text`, up to the newest revision that the document has. Returns the IDs before
  /// it, newest first, and its index in `tree`, -1 if there is none.
  private func unknownRevisions(
    of history: [String], in id: UnsafeRawBufferPointer, isStored: Bool
  ) throws -> ([ReceivedID], ancestor: Int) {
    guard !history.isEmpty else {
      throw DocumentError(.invalidHistory, "the history of the revision is empty", documentID: idText(id))
    }
    text.removeAll()
    var ids: [ReceivedID] = []
    ids.reserveCapacity(history.count)
    var last = UInt64.max
    for revision in history {
      guard let (generation, start, isText) = appendSuffix(of: revision) else {
        throw DocumentError(.invalidRevisionID, "\"\(revision)\" isn't a revision ID", documentID: idText(id))
      }
      guard generation < last else {
        throw DocumentError(
          .invalidHistory, "the generations of the history don't descend at \"\(revision)\"",
          documentID: idText(id))
      }
      last = generation
      if isStored {
        let wanted = suffix(generation, start, isText)
        var known = tree.index(of: wanted)
        if known == nil, try addsOlder(generation, of: id) { known = tree.index(of: wanted) }
        if let known { return (ids, known) }
      }
      ids.append(ReceivedID(generation: generation, place: start..<text.count, isText: isText))
    }
    return (ids, -1)
  }

  /// Adds the received revisions to `tree`, oldest first. Only the newest has a body. Returns its index.
  private func addToTree(_ ids: [ReceivedID], on ancestor: Int, _ sequence: UInt64, deleted: Bool) -> Int {
    var parent = ancestor
    for (position, id) in ids.enumerated().reversed() {
      var flags: RevisionFlags = []
      if position == 0 {
        flags = [.leaf, .hasBody]
        if deleted { flags.insert(.deleted) }
      }
      let bytes = UnsafeRawBufferPointer(rebasing: text.bytes[id.place])
      parent = tree.addChild(
        StoredRevisionID(
          generation: id.generation, suffix: StoredSuffix(bytes: bytes, isText: id.isText)),
        of: parent, sequence: sequence, flags: flags)
    }
    return parent
  }

  /// Parses a revision ID into `text`. Packs the suffix if it is lower-case hex of even length.
  func appendSuffix(of revision: String) -> (generation: UInt64, start: Int, isText: Bool)? {
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
