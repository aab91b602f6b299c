import CLMDB
import Storage
import StorageLMDB

/// The changes of a write transaction in memory: nodes, keyspaces, and the next numbers.
///
/// A changed node gets its new seal at once, and the seal is written into its parent. So the nodes can be
/// encrypted in any order at the end. A part of the transaction that can be undone alone is an epoch. It
/// copies nodes that older parts have changed before it changes them.
final class EncryptedWrite {
  let file: EncryptedFile
  let base: FileState
  let changed = ChangedNodes()
  let reader: NodeRecordReader
  /// LMDB's transaction, or its child while a member's part runs.
  @exclusivity(unchecked) private(set) var outer: LMDBWriteTransaction
  private let leader: LMDBWriteTransaction
  @exclusivity(unchecked) var table: KeyspaceTable
  @exclusivity(unchecked) private(set) var nextNumber: UInt64
  @exclusivity(unchecked) var nextKeyspace: Int
  /// The number of changes and possible changes. Each makes all cursor positions invalid.
  @exclusivity(unchecked) private(set) var changes = 0
  let path = TreePath()

  @exclusivity(unchecked) private(set) var epoch = 0
  private var lastEpoch = 0
  /// What the current part must restore: the earlier node of a number, or nil if there was none.
  private var undo: [(number: UInt64, node: Node?)] = []
  /// The number of nodes that the current part has changed since it last wrote its nodes.
  @exclusivity(unchecked) private var changedInPart = 0
  private var saved: (table: KeyspaceTable, nextNumber: UInt64, nextKeyspace: Int, hasChanged: Bool)?
  private(set) var hasChanged = false
  /// The references of nodes that this transaction replaces. They are removed from the cache after the
  /// commit.
  private var replaced: [Reference] = []
  private var written: [Node] = []

  init(_ file: EncryptedFile, _ outer: LMDBWriteTransaction) throws {
    self.file = file
    self.outer = outer
    leader = outer
    reader = NodeRecordReader(file, changed: changed)
    reader.begin(outer.transaction)
    base = try file.state(of: outer.transaction, isWriting: true, reader)
    table = base.table
    nextNumber = base.nextNumber
    nextKeyspace = base.nextKeyspace
  }

  /// Prepares a change. Even a change without effect may write nodes early.
  @inline(__always)
  func beginChange() { changes &+= 1 }

  @inline(__always)
  func noteChange() {
    changes &+= 1
    hasChanged = true
  }

  // MARK: Parts that can be undone

  func beginPart(_ child: LMDBWriteTransaction) {
    lastEpoch += 1
    epoch = lastEpoch
    undo.removeAll(keepingCapacity: true)
    changedInPart = 0
    saved = (table, nextNumber, nextKeyspace, hasChanged)
    outer = child
    reader.forget()
    reader.begin(child.transaction)
  }

  func keepPart() {
    undo.removeAll(keepingCapacity: true)
    endPart()
  }

  func undoPart() {
    for (number, node) in undo.reversed() { changed.nodes[number] = node }
    if let saved { (table, nextNumber, nextKeyspace, hasChanged) = saved }
    undo.removeAll(keepingCapacity: true)
    endPart()
  }

  private func endPart() {
    saved = nil
    changes += 1
    epoch = 0
    outer = leader
    path.clear()
    reader.forget()
    reader.begin(leader.transaction)
  }

  // MARK: Nodes

  private func remember(_ number: UInt64, _ node: Node?) {
    guard epoch > 0 else { return }
    undo.append((number, node))
    changedInPart &+= 1
  }

  func makeNode(level: Int) throws -> Node {
    let reference = Reference(number: nextNumber, seal: try file.sealer.take())
    nextNumber += 1
    let node = Node(capacity: file.payloadBytes, reference: reference, level: level)
    node.epoch = epoch
    remember(reference.number, nil)
    changed.nodes[reference.number] = node
    return node
  }

  /// Returns a copy of a node that this part may change. The copy has a new seal, and the caller must tell
  /// its parent. Both versions may be written, if this part writes nodes early and is undone.
  func changeable(_ node: Node) throws -> Node {
    let copy = node.copy()
    copy.epoch = epoch
    copy.reference.seal = try file.sealer.take()
    if node.isClean {
      copy.stored = node.reference
      remember(node.reference.number, nil)
    } else {
      remember(node.reference.number, node)
    }
    changed.nodes[node.reference.number] = copy
    return copy
  }

  /// Frees a node, changed or not.
  func free(_ node: Node) throws {
    if node.isClean {
      try free(stored: node.reference)
    } else {
      remember(node.reference.number, node)
      changed.nodes[node.reference.number] = nil
      if let stored = node.stored { try free(stored: stored) }
    }
  }

  /// Removes the record of a node.
  func free(stored reference: Reference) throws {
    replaced.append(reference)
    try outer.remove(reference.number, in: file.records)
  }

  // MARK: Large values

  /// Writes a value in chunks at once.
  func writeLarge(_ value: UnsafeRawBufferPointer) throws -> Reference {
    let chunks = ChunkLayout(count: value.count, payloadBytes: file.payloadBytes)
    let first = Reference(number: nextNumber, seal: try file.sealer.take(chunks.count))
    nextNumber += UInt64(chunks.count)
    guard let start = value.baseAddress else { return first }
    let padded = UnsafeMutableRawPointer.allocate(byteCount: file.payloadBytes, alignment: 16)
    defer { wipe(padded, file.payloadBytes) }
    for index in 0..<chunks.count {
      let size = chunks.bytes(of: index)
      let offset = index * file.payloadBytes
      let chunk = Reference(number: first.number + UInt64(index), seal: first.seal.advanced(by: index))
      var from = start + offset
      if value.count - offset < size {
        padded.initializeMemory(as: UInt8.self, repeating: 0, count: size)
        padded.copyMemory(from: from, byteCount: value.count - offset)
        from = UnsafeRawPointer(padded)
      }
      let place = try outer.reserve(chunk.number, size + RecordFormat.tagBytes, in: file.records)
      try reader.cipher.seal(from, count: size, chunk, .chunk, into: place)
    }
    return first
  }

  func freeLarge(_ reference: Reference, count: Int) throws {
    let chunks = ChunkLayout(count: count, payloadBytes: file.payloadBytes)
    for index in 0..<chunks.count { try outer.remove(reference.number + UInt64(index), in: file.records) }
  }

  private func wipe(_ memory: UnsafeMutableRawPointer, _ count: Int) {
    memory.initializeMemory(as: UInt8.self, repeating: 0, count: count)
    memory.deallocate()
  }

  // MARK: Writing to the file

  /// Writes changed nodes early if there are many. A part that may be undone writes only its own nodes, into
  /// LMDB's child transaction. Nodes changed by older parts stay in memory.
  @inline(__always)
  func spillIfLarge() throws {
    let count = epoch > 0 ? changedInPart : changed.nodes.count
    if count &* file.payloadBytes >= file.spillBytes { try spill() }
  }

  @inline(never)
  private func spill() throws {
    try writeNodes()
    changedInPart = 0
    path.clear()
    reader.forget()
    for node in written { file.cache.insert(node) }
    written = []
  }

  /// Encrypts the changed nodes into LMDB's transaction: all, or those of the current part. They are clean
  /// afterwards.
  private func writeNodes() throws {
    for number in changed.nodes.keys.sorted() {
      guard let node = changed.nodes[number], epoch == 0 || node.epoch == epoch else { continue }
      let place = try outer.reserve(number, file.payloadBytes + RecordFormat.tagBytes, in: file.records)
      try reader.cipher.seal(node.bytes, count: file.payloadBytes, node.reference, .node, into: place)
      if let stored = node.stored { replaced.append(stored) }
      node.stored = nil
      node.epoch = Node.clean
      written.append(node)
      if epoch > 0 { changed.nodes[number] = nil }
    }
    if epoch == 0 { changed.nodes.removeAll(keepingCapacity: true) }
  }

  /// Encrypts all changes, and the root at last. Returns nil if there is nothing to write.
  func finish() throws -> FileState? {
    guard hasChanged else { return nil }
    let list = try writeKeyspaces()
    try writeNodes()
    let state = FileState(
      transaction: base.transaction + 1, nextNumber: nextNumber, nextKeyspace: nextKeyspace, table: table,
      list: nil)
    let place = try outer.reserve(RecordFormat.rootNumber, RootRecord.byteCount, in: file.records)
    try RootRecord.write(state, list: list, to: place, reader.cipher, file.sealer)
    return state
  }

  /// Updates the tree of keyspaces in memory. If the keyspaces fit into the root, there is no such tree, and
  /// the list for the root is returned.
  private func writeKeyspaces() throws -> [UInt8] {
    if let list = base.list { try freeLarge(list.reference, count: list.count) }
    let place = KeyspaceTable.directoryPlace
    if table.items.count <= RootRecord.maximumInlineKeyspaces {
      let list = RootRecord.encode(table)
      if list.count <= RootRecord.maximumInlineBytes {
        try clear(at: place)
        return list
      }
    }
    // Both lists are sorted by number.
    var old = (table.directory.height > 0 ? base.table.items : [])[...]
    for item in table.items {
      while let before = old.first, before.keyspace.number < item.keyspace.number {
        try remove(old.removeFirst())
      }
      if let before = old.first, before.keyspace.number == item.keyspace.number {
        old.removeFirst()
        if before.tree == item.tree { continue }
      }
      try RecordFormat.key(of: UInt64(item.keyspace.number)).withUnsafeBytes { key in
        try RootRecord.encode(item).withUnsafeBytes { _ = try put(key, $0, .replace, at: place) }
      }
    }
    for item in old { try remove(item) }
    return []
  }

  private func remove(_ item: KeyspaceTable.Item) throws {
    let key = RecordFormat.key(of: UInt64(item.keyspace.number))
    _ = try key.withUnsafeBytes { try delete($0, at: KeyspaceTable.directoryPlace) }
  }

  /// Updates the cache after the commit. The written nodes are likely to be read next.
  func keepInCache() {
    for reference in replaced { file.cache.remove(reference) }
    for node in written { file.cache.insert(node) }
  }
}
