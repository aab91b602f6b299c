import Bytes
import Storage

extension DocumentWriter {
  /// A document that was loaded.
  struct Stored {
    var isDeleted: Bool
    var sequence: UInt64
    var keyCount: Int
    /// The offset of the body in `stored`.
    var bodyStart: Int
  }

  /// Copies the stored document into `stored` and its tree into `tree`. Nil if there is none. For a deep
  /// history, `tree` has only the newest revisions until `loadHistory`.
  func load(_ id: UnsafeRawBufferPointer) throws -> Stored? {
    try writePending()
    forgetWide()
    history = nil
    isWhole = true
    stored.removeAll()
    let isDeleted = try !transaction.read(id.bytes, in: keyspaces.docs) { stored.append($0) }
    if isDeleted {
      guard mayHaveTombstones, try transaction.read(id.bytes, in: keyspaces.deleted, { stored.append($0) })
      else { return nil }
    }
    let record = try DocumentRecord(stored.bytes.bytes)
    if !isEncoded(record.tree) { try tree.decode(record.tree) }
    guard record.flags.contains(.deleted) == isDeleted, tree.nodes[0].isDeleted == isDeleted else {
      throw DocumentRecord.damaged
    }
    if let older = record.history {
      guard tree.isChain else { throw RevisionTree.damaged }
      history = older
      isWhole = false
    }
    return Stored(
      isDeleted: record.flags.contains(.deleted), sequence: record.sequence, keyCount: record.keyCount,
      bodyStart: stored.count - record.body.byteCount)
  }

  /// Whether `tree` is what these bytes say: it was encoded to them when it was written last. For a tree with thousands of leaves
  /// that takes a tenth of the time of decoding it.
  private func isEncoded(_ bytes: RawSpan) -> Bool {
    tree.isEncoded && bytes.byteCount == treeBytes.count && bytes.byteCount > 4096
      && bytes.withUnsafeBytes { compareBytes(treeBytes.bytes, $0) == 0 }
  }

  /// Writes the document after a revision was added to `tree`: moves bodies to their new places, writes the
  /// record and the change. `newRevision` is the index of the added revision, `parent` the former index of
  /// its parent. Without a body the revision was known with its body and only got a parent.
  func write(
    _ id: UnsafeRawBufferPointer, _ body: EncodedBody?, stored old: Stored?, newRevision: Int, parent: Int,
    _ sequence: UInt64
  ) throws {
    var replaced = Replaced()
    if old != nil { replaced.current = tree.nodes[0] }
    // (An ancestor without a body has the sequence of the revision that it arrived with.)
    if parent > 0, tree.nodes[parent].flags.contains(.hasBody) { replaced.parent = tree.nodes[parent] }
    if let old, body != nil, let excess = try excessOfUnordered(id, newRevision, parent) {
      return try writeUnordered(
        id, body, stored: old, newRevision: newRevision, parent: parent, excess, &replaced, sequence)
    }
    let wasDeletedInStore = wide?.isDeletedInStore
    forgetWide()
    var index = tree.sort(watching: newRevision)
    let unpruned = tree.nodes.count
    index = try prune(id, watching: index, &replaced)
    let history = try settleHistory(id, hasPruned: tree.nodes.count < unpruned)
    // The parent was a losing leaf and is replaced now, so its body moves from `conflicts` to `bodies`.
    if let node = replaced.parent { try moveToReplaced(node.sequence, keeps: !replaced.isParentPruned) }
    let flags = encodeTree()
    var keepsCurrent = false
    if index == 0, let body {
      // The new revision is current. The body of the old current revision moves out of the record.
      try keepOldCurrent(old, replaced, becameParent: parent == 0)
      compose(flags: flags, sequence, keyCount: body.sharedKeyCount, history: history, body: body.fleece)
    } else {
      if let body {
        try putBody(body.fleece, keyCount: body.sharedKeyCount, at: sequence, in: keyspaces.conflicts)
      }
      if let old, tree.nodes[0].sequence == replaced.current?.sequence, parent != 0 {
        // The current revision hasn't changed.
        keepsCurrent = true
        compose(
          flags: flags, sequence, keyCount: old.keyCount, history: history,
          body: UnsafeRawBufferPointer(rebasing: stored.bytes[old.bodyStart...]))
      } else {
        // The new revision ended the current branch, and another leaf becomes current.
        try keepOldCurrent(old, replaced, becameParent: true)
        try composeFromConflict(tree.nodes[0].sequence, flags: flags, sequence, history: history)
      }
    }
    var place = old
    if let wasDeletedInStore { place?.isDeleted = wasDeletedInStore }
    try putRecord(id, replacing: place)
    if let old { try deleteChange(old.sequence) }
    try addChange(id, flags: flags, sequence)
    if !keepsCurrent { try updateIndexes(id, old: liveBody(old), new: liveBodyOfRecord) }
    try keepWide(id, isPruned: !replaced.keptMarked)
  }

  /// What pruning removes after a revision was added to the tree whose nodes aren't in order. Nil if there is no such tree, or if the tree
  /// has to be pruned as a whole.
  private func excessOfUnordered(_ id: UnsafeRawBufferPointer, _ newRevision: Int, _ parent: Int) throws
    -> [Int]?
  {
    guard let unordered, unordered.isPruned,
      let excess = tree.excess(of: newRevision, on: parent, depth: maximumTreeDepth),
      try excess.isEmpty || markedRevisions(of: id).isEmpty
    else { return nil }
    return excess
  }

  /// The same as `write` for a tree whose nodes aren't in order. The record is written later.
  private func writeUnordered(
    _ id: UnsafeRawBufferPointer, _ body: EncodedBody?, stored old: Stored, newRevision: Int, parent: Int,
    _ excess: [Int], _ replaced: inout Replaced, _ sequence: UInt64
  ) throws {
    for index in excess where tree.nodes[index].flags.contains(.hasBody) {
      try deleteBody(tree.nodes[index].sequence, isLeaf: false)
    }
    tree.remove(excess, from: newRevision)
    let index = tree.placeWinner(added: newRevision)
    if let node = replaced.parent { try moveToReplaced(node.sequence, keeps: true) }
    let flags = flagsOfRecord
    treeBytes.removeAll()
    var keyCount = old.keyCount
    var keepsCurrent = false
    if index == 0, let body {
      try keepOldCurrent(old, replaced, becameParent: parent == 0)
      keyCount = body.sharedKeyCount
      compose(flags: flags, sequence, keyCount: keyCount, body: body.fleece)
    } else {
      if let body {
        try putBody(body.fleece, keyCount: body.sharedKeyCount, at: sequence, in: keyspaces.conflicts)
      }
      if tree.nodes[0].sequence == replaced.current?.sequence, parent != 0 {
        keepsCurrent = true
      } else {
        try keepOldCurrent(old, replaced, becameParent: true)
        keyCount = try composeFromConflict(tree.nodes[0].sequence, flags: flags, sequence)
      }
    }
    try deleteChange(old.sequence)
    try addChange(id, flags: flags, sequence)
    if !keepsCurrent { try updateIndexes(id, old: liveBody(old), new: liveBodyOfRecord) }
    keepPending(sequence, hasNewBody: !keepsCurrent, keyCount: keyCount, isPruned: true)
  }

  /// The revisions whose bodies a write may move, as they were before it. Their sequences identify them,
  /// because indices change.
  private struct Replaced {
    /// The current revision.
    var current: RevisionTree.Node?
    /// The parent of the new revision, if it was another leaf or a replaced revision with a body.
    var parent: RevisionTree.Node?
    var isCurrentPruned = false
    var isParentPruned = false
    /// Whether revisions were kept only because they are marked.
    var keptMarked = false
  }

  /// Prunes `tree`, and deletes the bodies of pruned revisions that don't have to be moved. Returns the new
  /// index of `watched`.
  private func prune(_ id: UnsafeRawBufferPointer, watching watched: Int, _ replaced: inout Replaced) throws
    -> Int
  {
    let (index, keptMarked) = try tree.prune(
      depth: maximumTreeDepth, keeping: { try markedRevisions(of: id) }, watching: watched
    ) { sequence in
      if sequence == replaced.current?.sequence {
        replaced.isCurrentPruned = true
      } else if sequence == replaced.parent?.sequence {
        // With a depth of 1: it was a leaf until now, so its body is in `conflicts`.
        replaced.isParentPruned = true
      } else {
        // Pruned revisions of a branch aren't leaves.
        try deleteBody(sequence, isLeaf: false)
      }
    }
    replaced.keptMarked = keptMarked
    return index
  }

  /// Encodes `tree` into `treeBytes`. Returns the flags of a record with this tree.
  func encodeTree() -> DocumentRecord.Flags {
    treeBytes.removeAll()
    tree.encode(into: &treeBytes)
    return flagsOfRecord
  }

  /// The flags of a record with `tree`.
  var flagsOfRecord: DocumentRecord.Flags {
    var flags: DocumentRecord.Flags = tree.nodes[0].isDeleted ? .deleted : []
    if tree.isConflicted { flags.insert(.conflicted) }
    return flags
  }

  /// Stores the composed record of `tree` in the keyspace where it belongs.
  func putRecord(_ id: UnsafeRawBufferPointer, replacing old: Stored?) throws {
    let isDeleted = tree.nodes[0].isDeleted
    if isDeleted { mayHaveTombstones = true }
    if let old, old.isDeleted != isDeleted {
      try transaction.delete(id, in: old.isDeleted ? keyspaces.deleted : keyspaces.docs)
    }
    try transaction.put(id, record.bytes, in: isDeleted ? keyspaces.deleted : keyspaces.docs)
  }

  /// Returns the live current body from before the write. Valid until the next document is loaded.
  func liveBody(_ old: Stored?) -> UnsafeRawBufferPointer? {
    guard let old, !old.isDeleted else { return nil }
    return UnsafeRawBufferPointer(rebasing: stored.bytes[old.bodyStart...])
  }

  /// The body of the composed record of `tree`, nil if its current revision is a tombstone. Valid until the
  /// next record is composed.
  var liveBodyOfRecord: UnsafeRawBufferPointer? {
    tree.nodes[0].isDeleted ? nil : UnsafeRawBufferPointer(rebasing: record.bytes[bodyStart...])
  }

  /// Composes the record from `treeBytes` and a body.
  func compose(
    flags: DocumentRecord.Flags, _ sequence: UInt64, keyCount: Int, history: StoredHistory? = nil,
    body: UnsafeRawBufferPointer
  ) {
    record.removeAll()
    record.reserve(body.count + treeBytes.count + 32)
    record.append(history == nil ? DocumentRecord.version : DocumentRecord.versionWithHistory)
    record.append(flags.rawValue)
    record.append(varint: sequence)
    record.append(varint: UInt64(keyCount))
    if let history {
      record.append(varint: history.lowestGeneration)
      record.append(varint: history.count)
    }
    record.append(varint: UInt64(treeBytes.count))
    record.append(treeBytes.bytes)
    bodyStart = record.count
    record.append(body)
  }

  /// Composes the record with the body of a leaf that becomes current, and removes that body from
  /// `conflicts`. Returns how many shared keys it needs.
  @discardableResult
  func composeFromConflict(
    _ leaf: UInt64, flags: DocumentRecord.Flags, _ sequence: UInt64, history: StoredHistory? = nil
  ) throws -> Int {
    try withSequenceKey(leaf) { key in
      var keyCount = 0
      let found = try transaction.read(key.bytes, in: keyspaces.conflicts) { bytes in
        let body = try BodyRecord(bytes)
        keyCount = body.keyCount
        body.body.withUnsafeBytes {
          compose(flags: flags, sequence, keyCount: body.keyCount, history: history, body: $0)
        }
      }
      guard found else {
        throw DocumentError(.damaged, "the body of a conflicting revision is missing (sequence \(leaf))")
      }
      try transaction.delete(key.bytes, in: keyspaces.conflicts)
      return keyCount
    }
  }

  /// Stores the body of the revision that was current, which the record no longer has.
  private func keepOldCurrent(_ old: Stored?, _ replaced: Replaced, becameParent: Bool) throws {
    guard let old, let node = replaced.current, node.flags.contains(.hasBody), !replaced.isCurrentPruned
    else { return }
    guard !becameParent || options.keepsReplacedBodies else {
      removedBodies += 1
      return
    }
    try putBody(
      UnsafeRawBufferPointer(rebasing: stored.bytes[old.bodyStart...]), keyCount: old.keyCount,
      at: node.sequence, in: becameParent ? keyspaces.bodies : keyspaces.conflicts)
  }

  private func moveToReplaced(_ sequence: UInt64, keeps: Bool) throws {
    try withSequenceKey(sequence) { key in
      other.removeAll()
      if keeps, options.keepsReplacedBodies,
        try transaction.read(key.bytes, in: keyspaces.conflicts, { other.append($0) })
      {
        try transaction.put(key.bytes, other.bytes.bytes, in: keyspaces.bodies)
      }
      if try transaction.delete(key.bytes, in: keyspaces.conflicts), !options.keepsReplacedBodies {
        removedBodies += 1
      }
      if !keeps { try transaction.delete(key.bytes, in: keyspaces.bodies) }
    }
  }

  func putBody(
    _ body: UnsafeRawBufferPointer, keyCount: Int, at sequence: UInt64, in keyspace: Keyspace
  ) throws {
    other.removeAll()
    other.append(varint: UInt64(keyCount))
    other.append(body)
    try withSequenceKey(sequence) { try transaction.put($0, other.bytes, in: keyspace) }
  }

  func deleteBody(_ sequence: UInt64, isLeaf: Bool) throws {
    removedBodies += 1
    try deleteSequence(sequence, in: isLeaf ? keyspaces.conflicts : keyspaces.bodies)
  }

  /// Stores the change that makes `tree` the document's.
  func addChange(_ id: UnsafeRawBufferPointer, flags: DocumentRecord.Flags, _ sequence: UInt64) throws {
    let current = tree.nodes[0]
    try addChange(
      id, flags: flags, sequence,
      current: StoredRevisionID(generation: current.generation, suffix: tree.suffix(of: current)))
  }

  func addChange(
    _ id: UnsafeRawBufferPointer, flags: DocumentRecord.Flags, _ sequence: UInt64, current: StoredRevisionID
  ) throws {
    let flags = isFromSync ? flags.union(.fromSync) : flags
    other.removeAll()
    other.append(flags.rawValue)
    other.append(id)
    try appendChange(sequence)
    if notes.isCollecting { notes.add(id, flags: flags, sequence, current) }
  }

  func deleteSequence(_ sequence: UInt64, in keyspace: Keyspace) throws {
    _ = try withSequenceKey(sequence) { try transaction.delete($0, in: keyspace) }
  }

  /// Removes the document and all its revisions, without a tombstone or a change. Returns false if there was
  /// none.
  func purge(_ id: UnsafeRawBufferPointer, isExpired: Bool = false) throws -> Bool {
    try checkWritable()
    guard let old = try load(id) else { return false }
    return try mutating {
      for (index, node) in tree.nodes.enumerated() where index > 0 && node.flags.contains(.hasBody) {
        try deleteBody(node.sequence, isLeaf: node.isLeaf)
      }
      if history != nil { _ = try dropHistory(of: id) }
      try transaction.delete(id, in: old.isDeleted ? keyspaces.deleted : keyspaces.docs)
      try deleteChange(old.sequence)
      try updateIndexes(id, old: liveBody(old), new: nil)
      try removeExpiration(of: id)
      try removeMarks(of: id)
      notes.addPurge(id, isExpired: isExpired)
      try recordPurge(id, isExpired ? .expired : .document)
      removedBodies += 1
      return true
    }
  }

  /// Removes the bodies of all replaced revisions. Returns their number.
  func dropReplacedBodies() throws -> Int {
    try checkWritable()
    return try mutating {
      let count = try transaction.deleteRange(.all, in: keyspaces.bodies)
      removedBodies += count
      return count
    }
  }
}

extension DocumentWriter {
  /// Removes bodies of replaced revisions whose sequences are at most `end`, the oldest first, at most
  /// `limit`. Returns their number.
  func dropReplacedBodies(upTo end: UInt64, limit: Int) throws -> Int {
    try checkWritable()
    var last: [UInt8] = []
    var count = 0
    let upper = withSequenceKey(min(end, maximumSequence)) { KeyRange.Bound.inclusive(Array($0)) }
    try transaction.scan(keyspaces.bodies, KeyRange(upper: upper), order: .ascending, fetch: .keys) {
      key, _ in
      last = [UInt8](copying: key)
      count += 1
      return count < limit
    }
    guard count > 0 else { return 0 }
    return try mutating {
      let count = try transaction.deleteRange(KeyRange(upper: .inclusive(last)), in: keyspaces.bodies)
      removedBodies += count
      return count
    }
  }
}

/// Calls `body` with the key of a sequence: 8 bytes, big-endian.
@inline(__always)
func withSequenceKey<Result>(_ sequence: UInt64, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
  -> Result
{
  var bigEndian = sequence.bigEndian
  return try withUnsafeBytes(of: &bigEndian) { try body($0) }
}
