// The revisions of a document as they are stored.
//
//   tree   := count:varint node*
//   node   := flags:u8  parent:varint  sequence:varint  revision ID
//   parent := 0 none (a root, or cut off by pruning), else the parent's index minus this node's index
//
// Nodes stand in order of priority, the current revision first: leaves before others, live leaves before deleted
// ones, open before closed, higher revision ID first. So a parent always stands after its children, and the same
// set of revisions has the same bytes whatever order it arrived in. (The revision ID is in RevisionID.swift.)

/// What is known of a revision besides its ID.
struct RevisionFlags: OptionSet {
  let rawValue: UInt8
  static let deleted = RevisionFlags(rawValue: 0x01)
  static let leaf = RevisionFlags(rawValue: 0x02)
  /// The end of a branch that lost a conflict.
  static let closed = RevisionFlags(rawValue: 0x40)
  /// It came with a body. (An ancestor known by its ID alone didn't.)
  static let hasBody = RevisionFlags(rawValue: 0x80)
}

/// The tree of one document in memory: decoded into, changed, encoded, and used for the next document.
final class RevisionTree {
  struct Node {
    var generation: UInt64
    /// Of the change that brought it.
    var sequence: UInt64
    /// Index of the parent, -1 when there is none.
    var parent: Int32
    var suffixStart: Int32
    var suffixCount: UInt8
    var isText: Bool
    var flags: RevisionFlags

    var isLeaf: Bool { flags.contains(.leaf) }
    var isDeleted: Bool { flags.contains(.deleted) }
  }

  // Both are touched for every node: a check of exclusive access costs more than the rest of it.
  /// In order of priority, but for what was added since the last `sort()`.
  @exclusivity(unchecked) private(set) var nodes: ContiguousArray<Node> = []
  @exclusivity(unchecked) private var suffixes = ByteBuffer(capacity: 1024)

  func removeAll() {
    nodes.removeAll(keepingCapacity: true)
    suffixes.removeAll()
  }

  // MARK: Reading and writing

  func decode(_ bytes: RawSpan) throws {
    removeAll()
    var reader = ByteReader(bytes)
    // A node has at least 5 bytes.
    guard let count = reader.varint(), count > 0, count <= UInt64(bytes.byteCount / 5) else {
      throw RevisionTree.damaged
    }
    for index in 0..<Int(count) {
      guard let flags = reader.byte(), let distance = reader.varint(), let sequence = reader.varint(),
        distance < count - UInt64(index), sequence > 0, sequence <= maximumSequence,
        let id = StoredRevisionID(&reader)
      else { throw RevisionTree.damaged }
      add(
        id, parent: distance == 0 ? -1 : index + Int(distance), sequence: sequence,
        flags: RevisionFlags(rawValue: flags))
    }
    guard reader.rest.isEmpty, isSound else { throw RevisionTree.damaged }
  }

  /// Whether the nodes are in order, each once, leaves are leaves, and parents are older than their children:
  /// what all changes of a tree rely on.
  private var isSound: Bool {
    guard nodes[0].isLeaf else { return false }
    for index in 1..<max(nodes.count, 1) where !precedes(index - 1, index) { return false }
    // Leaves stand first, so a node that isn't one has to be met as a parent before.
    var next = nodes.firstIndex { !$0.isLeaf } ?? nodes.count
    guard next < nodes.count else { return nodes.allSatisfy { $0.parent < 0 } }
    // One branch, the common case: each node's parent is the next.
    if next == 1, nodes.indices.allSatisfy({ isChainLink($0) }) { return true }
    var isParent = ContiguousArray(repeating: false, count: nodes.count)
    for node in nodes where node.parent >= 0 {
      let parent = nodes[Int(node.parent)]
      guard !parent.isLeaf, parent.generation < node.generation else { return false }
      isParent[Int(node.parent)] = true
    }
    while next < nodes.count, isParent[next] { next += 1 }
    return next == nodes.count
  }

  /// Whether the node's parent is the next node and older, or it is the last and has none.
  @inline(__always)
  private func isChainLink(_ index: Int) -> Bool {
    let node = nodes[index]
    if index + 1 == nodes.count { return node.parent < 0 }
    return Int(node.parent) == index + 1 && nodes[index + 1].generation < node.generation
  }

  static let damaged = DocumentError(.damaged, "a revision tree can't be read")

  func encode(into buffer: inout ByteBuffer) {
    buffer.append(varint: UInt64(nodes.count))
    for index in nodes.indices {
      let node = nodes[index]
      buffer.append(node.flags.rawValue)
      buffer.append(varint: node.parent < 0 ? 0 : UInt64(Int(node.parent) - index))
      buffer.append(varint: node.sequence)
      StoredRevisionID(generation: node.generation, suffix: suffix(of: node)).append(to: &buffer)
    }
  }

  /// Valid until a node is added.
  func suffix(of node: Node) -> StoredSuffix {
    let all = suffixes.bytes
    let start = Int(node.suffixStart)
    return StoredSuffix(
      bytes: UnsafeRawBufferPointer(rebasing: all[start..<(start + Int(node.suffixCount))]),
      isText: node.isText)
  }

  func revisionID(of index: Int) -> RevisionID {
    RevisionID(generation: nodes[index].generation, suffix: suffix(of: nodes[index]).text)
  }

  // MARK: Changing

  /// Adds a node at the end, where the next `sort()` finds it. Its parent's leaf flag is the caller's.
  @discardableResult
  func add(_ id: StoredRevisionID, parent: Int, sequence: UInt64, flags: RevisionFlags) -> Int {
    let start = suffixes.count
    suffixes.append(id.suffix.bytes)
    nodes.append(
      Node(
        generation: id.generation, sequence: sequence, parent: Int32(truncatingIfNeeded: parent),
        suffixStart: Int32(truncatingIfNeeded: start), suffixCount: UInt8(id.suffix.bytes.count),
        isText: id.suffix.isText, flags: flags))
    return nodes.count - 1
  }

  /// Adds a node on top of `parent`, which is no leaf from then on.
  @discardableResult
  func addChild(_ id: StoredRevisionID, of parent: Int, sequence: UInt64, flags: RevisionFlags) -> Int {
    if parent >= 0 { nodes[parent].flags.remove(.leaf) }
    return add(id, parent: parent, sequence: sequence, flags: flags)
  }

  /// Makes `parent`, a leaf of a lower generation, the parent of a node that had none.
  func join(_ node: Int, to parent: Int) {
    nodes[node].parent = Int32(parent)
    nodes[parent].flags.remove(.leaf)
  }

  /// Says which change brought a node.
  func setSequence(_ sequence: UInt64, of index: Int) { nodes[index].sequence = sequence }

  func index(of id: StoredRevisionID) -> Int? {
    for index in nodes.indices {
      let node = nodes[index]
      if node.generation == id.generation, node.isText == id.suffix.isText,
        Int(node.suffixCount) == id.suffix.bytes.count,
        compareBytes(suffix(of: node).bytes, id.suffix.bytes) == 0
      {
        return index
      }
    }
    return nil
  }

  // MARK: One branch

  /// Whether there is one branch: each node's parent is the next.
  var isChain: Bool {
    guard !nodes.isEmpty, nodes[0].isLeaf else { return false }
    return nodes.indices.allSatisfy { isChainLink($0) && ($0 == 0 || !nodes[$0].isLeaf) }
  }

  /// The generation of the last node: of a chain the lowest.
  var oldestGeneration: UInt64 { nodes.last?.generation ?? 0 }

  /// Adds a parent to the last node of a chain.
  func addOlder(_ id: StoredRevisionID, sequence: UInt64, flags: RevisionFlags) {
    let index = add(id, parent: -1, sequence: sequence, flags: flags)
    if index > 0 { nodes[index - 1].parent = Int32(truncatingIfNeeded: index) }
  }

  /// Cuts the oldest nodes of a chain off: what is left has a root of its own.
  func removeOldest(_ count: Int) {
    nodes.removeLast(count)
    if !nodes.isEmpty { nodes[nodes.count - 1].parent = -1 }
  }

  /// Below which generation one branch is pruned to that depth.
  static func lowestGeneration(below highest: UInt64, depth: Int) -> UInt64 {
    highest > UInt64(depth) ? highest - UInt64(depth) + 1 : 1
  }

  // MARK: Order and pruning

  /// Puts the nodes into order of priority. Indices change; where `watched` went is returned.
  func sort(watching watched: Int) -> Int {
    let count = nodes.count
    // The common case: one branch, its new leaf last.
    if watched == count - 1, nodes[watched].isLeaf, count == 1 || isSorted(count - 1, excluding: watched) {
      let node = nodes.removeLast()
      for index in nodes.indices where nodes[index].parent >= 0 { nodes[index].parent += 1 }
      nodes.insert(node, at: 0)
      if node.parent >= 0 { nodes[0].parent = node.parent + 1 }
      return 0
    }
    let order = nodes.indices.sorted { precedes($0, $1) }
    var places = [Int32](repeating: 0, count: count)
    for (place, index) in order.enumerated() { places[index] = Int32(place) }
    let before = nodes
    for (place, index) in order.enumerated() {
      nodes[place] = before[index]
      if before[index].parent >= 0 { nodes[place].parent = places[Int(before[index].parent)] }
    }
    return Int(places[watched])
  }

  /// Whether the first `count` nodes are in order and `leaf` precedes them all.
  private func isSorted(_ count: Int, excluding leaf: Int) -> Bool {
    guard precedes(leaf, 0) else { return false }
    for index in 1..<max(count, 1) where !precedes(index - 1, index) { return false }
    return true
  }

  private func precedes(_ a: Int, _ b: Int) -> Bool {
    let left = nodes[a]
    let right = nodes[b]
    if left.isLeaf != right.isLeaf { return left.isLeaf }
    if left.isLeaf {
      if left.isDeleted != right.isDeleted { return right.isDeleted }
      let leftClosed = left.flags.contains(.closed)
      if leftClosed != right.flags.contains(.closed) { return !leftClosed }
    }
    if left.generation != right.generation { return left.generation > right.generation }
    return suffix(of: left).compare(suffix(of: right)) > 0
  }

  /// Removes what is deeper than `depth` (1 or more), each branch by itself; a leaf is never removed.
  /// Calls `removed` with the sequence of each revision that had a body. Returns where `watched` is then.
  ///
  /// With one leaf, what is `depth` or more generations below the highest one goes; with several, each
  /// leaf keeps itself and its next `depth - 1` ancestors. A survivor whose parent went has none.
  /// (The rule of 1.4.1.)
  func prune(depth: Int, watching watched: Int, removed: (UInt64) throws -> Void) rethrows -> Int {
    var highest: UInt64 = 0
    var leaves = 0
    for index in nodes.indices {
      highest = max(highest, nodes[index].generation)
      if nodes[index].isLeaf { leaves += 1 }
    }
    guard nodes.count > 1, highest > UInt64(depth) else { return watched }
    var keeps = ContiguousArray(repeating: false, count: nodes.count)
    if leaves <= 1 {
      let lowest = RevisionTree.lowestGeneration(below: highest, depth: depth)
      for index in nodes.indices { keeps[index] = nodes[index].isLeaf || nodes[index].generation >= lowest }
    } else {
      for leaf in nodes.indices where nodes[leaf].isLeaf {
        var index = leaf
        for _ in 0..<depth {
          keeps[index] = true
          guard nodes[index].parent >= 0 else { break }
          index = Int(nodes[index].parent)
        }
      }
    }
    guard keeps.contains(false) else { return watched }
    return try keep(keeps, watching: watched, removed: removed)
  }

  /// Removes the nodes that `keeps` says no for, as `prune` does. A node that loses its last child stays no leaf:
  /// that is the caller's.
  func keep(
    _ keeps: ContiguousArray<Bool>, watching watched: Int = 0, removed: (UInt64) throws -> Void
  ) rethrows -> Int {
    var places = ContiguousArray<Int32>(repeating: -1, count: nodes.count)
    var kept: Int32 = 0
    for index in nodes.indices where keeps[index] {
      places[index] = kept
      kept += 1
    }
    for index in nodes.indices {
      let node = nodes[index]
      guard keeps[index] else {
        if node.flags.contains(.hasBody) { try removed(node.sequence) }
        continue
      }
      let place = Int(places[index])
      nodes[place] = node
      nodes[place].parent = node.parent < 0 ? -1 : places[Int(node.parent)]
    }
    nodes.removeLast(nodes.count - Int(kept))
    return Int(places[watched])
  }

  /// More than one live leaf.
  var isConflicted: Bool {
    nodes.count > 1 && nodes[1].isLeaf && !nodes[1].isDeleted && !nodes[0].isDeleted
  }
}

/// A revision ID where it lies. The compiler doesn't watch its lifetime: it is made of bytes that the caller holds, in a
/// closure that they are lent to or in a buffer of its own, and used up before that one ends or changes.
struct StoredRevisionID {
  var generation: UInt64
  var suffix: StoredSuffix

  init(generation: UInt64, suffix: StoredSuffix) {
    self.generation = generation
    self.suffix = suffix
  }

  /// Nil when the bytes are no stored revision ID.
  init?(_ reader: inout ByteReader) {
    guard let generation = reader.varint(), generation > 0, generation <= RevisionID.maximumGeneration,
      let length = reader.varint(), length >= 2, length <= UInt64(RevisionID.maximumSuffixBytes) << 1 | 1,
      let bytes = reader.bytes(Int(length >> 1))
    else { return nil }
    self.generation = generation
    suffix = StoredSuffix(bytes: bytes.withUnsafeBytes { $0 }, isText: length & 1 == 1)
  }

  func append(to buffer: inout ByteBuffer) {
    buffer.append(varint: generation)
    buffer.append(varint: UInt64(suffix.bytes.count) << 1 | (suffix.isText ? 1 : 0))
    buffer.append(suffix.bytes)
  }

  /// The ID as text, into a buffer.
  func appendText(to buffer: inout ByteBuffer) {
    var digits: UInt64 = 1
    while generation / digits >= 10 { digits *= 10 }
    while digits > 0 {
      buffer.append(UInt8(0x30 + generation / digits % 10))
      digits /= 10
    }
    buffer.append(UInt8(ascii: "-"))
    if suffix.isText {
      buffer.append(suffix.bytes)
    } else {
      buffer.reserve(suffix.bytes.count * 2)
      hex(suffix.bytes, into: buffer.appendUninitialized(suffix.bytes.count * 2))
    }
  }
}
