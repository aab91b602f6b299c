// The stored form of a document's revisions.
//
//   tree   := count:varint node*
//   node   := flags:u8  parent:varint  sequence:varint  revision ID
//   parent := 0 none (a root, or cut off by pruning), else the parent's index minus this node's index
//
// Nodes are ordered by priority, the current revision first (`precedes`). So a parent always follows its
// children, and the same set of revisions has the same bytes in whatever order it arrived. (RevisionID.swift
// defines the revision ID.)

import Bytes

/// The flags of a revision.
struct RevisionFlags: OptionSet {
  let rawValue: UInt8
  static let deleted = RevisionFlags(rawValue: 0x01)
  static let leaf = RevisionFlags(rawValue: 0x02)
  /// The end of a branch that lost a conflict.
  static let closed = RevisionFlags(rawValue: 0x40)
  /// It was stored with a body. (An ancestor known only by its ID wasn't.)
  static let hasBody = RevisionFlags(rawValue: 0x80)
}

/// The revision tree of one document in memory. It is decoded into, changed and encoded, then reused for the
/// next document.
final class RevisionTree {
  struct Node {
    var generation: UInt64
    /// The sequence of the change that added it.
    var sequence: UInt64
    /// The index of the parent, -1 if there is none.
    var parent: Int32
    var suffixStart: Int32
    var suffixCount: UInt8
    var isText: Bool
    var flags: RevisionFlags

    var isLeaf: Bool { flags.contains(.leaf) }
    var isDeleted: Bool { flags.contains(.deleted) }

    /// What comes first in the order of nodes: leaves before others, live ones before tombstones, open branches before closed ones.
    @inline(__always)
    var rank: Int {
      isLeaf ? (isDeleted ? 2 : 0) + (flags.contains(.closed) ? 1 : 0) : Self.lastRank
    }
    static let lastRank = 4
  }

  // Both are used for every node. Checking exclusive access would cost more than all else done for a node.
  /// In order of priority, except for nodes added since the last `sort()`, or while `isOrdered` is false. Only this type changes it.
  @exclusivity(unchecked) var nodes: ContiguousArray<Node> = []
  @exclusivity(unchecked) private var suffixes = ByteBuffer(capacity: 1024)
  /// False from `beginUnordered()` until the next `sort()` (RevisionTree+Unordered.swift).
  @exclusivity(unchecked) var isOrdered = true
  /// What finds nodes while they aren't in order.
  @exclusivity(unchecked) var lookup = NodeLookup()
  /// Whether all nodes are known to be in order.
  @exclusivity(unchecked) private var isSorted = false
  /// Whether the tree is still what `encode` has written last.
  @exclusivity(unchecked) private(set) var isEncoded = false
  /// How many nodes have been decoded, sorted and encoded, and looked at in the table and the heap. For tests.
  @exclusivity(unchecked) var work = 0

  func removeAll() {
    nodes.removeAll(keepingCapacity: true)
    suffixes.removeAll()
    isOrdered = true
    hasChanged()
  }

  /// Notes that nodes may not be in order any more.
  @inline(__always)
  private func hasChanged() {
    isSorted = false
    isEncoded = false
  }

  /// Says that the bytes that were encoded last are gone.
  func forgetEncoded() { isEncoded = false }

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
    work += nodes.count
    guard reader.rest.isEmpty, isSound else { throw RevisionTree.damaged }
    isSorted = true
  }

  /// Whether the nodes are ordered and unique, the leaf flags are right, and parents are older than their
  /// children. All changes of a tree rely on this.
  private var isSound: Bool {
    guard nodes[0].isLeaf else { return false }
    for index in 1..<max(nodes.count, 1) where !precedes(index - 1, index) { return false }
    // Leaves come first, so each other node must be the parent of an earlier node.
    var next = nodes.firstIndex { !$0.isLeaf } ?? nodes.count
    guard next < nodes.count else { return nodes.allSatisfy { $0.parent < 0 } }
    // The common case is one branch: each node's parent is the next node.
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

  /// Returns whether the node's parent is the next node and older, or the node is the last and has no parent.
  @inline(__always)
  private func isChainLink(_ index: Int) -> Bool {
    let node = nodes[index]
    if index + 1 == nodes.count { return node.parent < 0 }
    return Int(node.parent) == index + 1 && nodes[index + 1].generation < node.generation
  }

  static let damaged = DocumentError(.damaged, "a revision tree can't be read")

  /// Appends the stored form. The nodes have to be in order.
  func encode(into buffer: inout ByteBuffer) {
    assert(isOrdered)
    isEncoded = true
    work += nodes.count
    buffer.append(varint: UInt64(nodes.count))
    for index in nodes.indices {
      let node = nodes[index]
      buffer.append(node.flags.rawValue)
      buffer.append(varint: node.parent < 0 ? 0 : UInt64(Int(node.parent) - index))
      buffer.append(varint: node.sequence)
      StoredRevisionID(generation: node.generation, suffix: suffix(of: node)).append(to: &buffer)
    }
  }

  /// Valid until a node is added. Sorting and removing nodes doesn't change it.
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

  /// Adds a node at the end, to be placed by the next `sort()`. The caller maintains the parent's leaf flag.
  @discardableResult
  func add(_ id: StoredRevisionID, parent: Int, sequence: UInt64, flags: RevisionFlags) -> Int {
    hasChanged()
    let start = suffixes.count
    suffixes.append(id.suffix.bytes)
    nodes.append(
      Node(
        generation: id.generation, sequence: sequence, parent: Int32(truncatingIfNeeded: parent),
        suffixStart: Int32(truncatingIfNeeded: start), suffixCount: UInt8(id.suffix.bytes.count),
        isText: id.suffix.isText, flags: flags))
    if !isOrdered { noteAdded(nodes.count - 1) }
    return nodes.count - 1
  }

  /// Adds a node on top of `parent`, which stops being a leaf.
  @discardableResult
  func addChild(_ id: StoredRevisionID, of parent: Int, sequence: UInt64, flags: RevisionFlags) -> Int {
    if parent >= 0, nodes[parent].isLeaf {
      nodes[parent].flags.remove(.leaf)
      if !isOrdered { noteReplaced(parent) }
    }
    return add(id, parent: parent, sequence: sequence, flags: flags)
  }

  /// Makes `parent`, which has a lower generation, the parent of a node. It is no leaf then. The nodes have to be in order.
  func join(_ node: Int, to parent: Int) {
    assert(isOrdered)
    hasChanged()
    nodes[node].parent = Int32(parent)
    nodes[parent].flags.remove(.leaf)
  }

  /// Sets the sequence of the change that added a node.
  func setSequence(_ sequence: UInt64, of index: Int) {
    isEncoded = false
    nodes[index].sequence = sequence
  }

  func index(of id: StoredRevisionID) -> Int? {
    guard isOrdered else { return unorderedIndex(of: id) }
    // A binary search of each rank takes as long as looking at about 30 nodes.
    if isSorted, nodes.count > 32 { return sortedIndex(of: id) }
    return nodes.indices.first { hasID(id, $0) }
  }

  /// The same for an ID as text. The stored form of its suffix is put into `packed`.
  func index(of revision: RevisionID, _ packed: inout ByteBuffer) -> Int? {
    packed.removeAll()
    var suffix = revision.suffix
    let isText = suffix.withUTF8 { packed.append(suffix: UnsafeRawBufferPointer($0)) }
    return index(
      of: StoredRevisionID(
        generation: revision.generation, suffix: StoredSuffix(bytes: packed.bytes, isText: isText)))
  }

  /// Whether a node has this ID.
  @inline(__always)
  func hasID(_ id: StoredRevisionID, _ index: Int) -> Bool {
    let node = nodes[index]
    return node.generation == id.generation && node.isText == id.suffix.isText
      && Int(node.suffixCount) == id.suffix.bytes.count
      && compareBytes(suffix(of: node).bytes, id.suffix.bytes) == 0
  }

  /// The same for nodes in order.
  private func sortedIndex(of id: StoredRevisionID) -> Int? {
    for rank in 0...Node.lastRank {
      let index = partition { node in
        if node.rank != rank { return node.rank < rank }
        if node.generation != id.generation { return node.generation > id.generation }
        return suffix(of: node).compare(id.suffix) > 0
      }
      if index < nodes.count, hasID(id, index) { return index }
    }
    return nil
  }

  /// The number of nodes for which `isBefore` is true. They are the first ones.
  private func partition(_ isBefore: (Node) -> Bool) -> Int {
    var (low, high) = (0, nodes.count)
    while low < high {
      let middle = (low + high) / 2
      if isBefore(nodes[middle]) { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The oldest ancestor of a node of whose branch no generation is missing between the two.
  func endWithoutGap(of index: Int) -> Int {
    var index = index
    while nodes[index].parent >= 0 {
      let parent = Int(nodes[index].parent)
      guard nodes[parent].generation + 1 == nodes[index].generation else { break }
      index = parent
    }
    return index
  }

  /// The two nodes and their ancestors as one branch, the highest generation first, up to the first node from which on they have the
  /// same ancestors or only one has any. Nil if they can't be one branch: two of one generation differ. `b` may be -1, which is none.
  func line(of a: Int, and b: Int) -> [Int]? {
    var (a, b) = (a, b)
    var line: [Int] = []
    while a >= 0, b >= 0, a != b {
      let (left, right) = (nodes[a], nodes[b])
      guard left.generation != right.generation else { return nil }
      if left.generation > right.generation {
        line.append(a)
        a = Int(left.parent)
      } else {
        line.append(b)
        b = Int(right.parent)
      }
    }
    line.append(max(a, b))
    return line
  }

  // MARK: One branch

  /// Whether there is only one branch: each node's parent is the next node.
  var isChain: Bool {
    guard !nodes.isEmpty, nodes[0].isLeaf else { return false }
    return nodes.indices.allSatisfy { isChainLink($0) && ($0 == 0 || !nodes[$0].isLeaf) }
  }

  /// The generation of the last node. In a chain it is the lowest.
  var oldestGeneration: UInt64 { nodes.last?.generation ?? 0 }

  /// Adds a parent to the last node of a chain.
  func addOlder(_ id: StoredRevisionID, sequence: UInt64, flags: RevisionFlags) {
    let index = add(id, parent: -1, sequence: sequence, flags: flags)
    if index > 0 { nodes[index - 1].parent = Int32(truncatingIfNeeded: index) }
  }

  /// Removes the oldest nodes of a chain. The last remaining node becomes the root.
  func removeOldest(_ count: Int) {
    isEncoded = false
    nodes.removeLast(count)
    if !nodes.isEmpty { nodes[nodes.count - 1].parent = -1 }
  }

  // MARK: Order

  /// Sorts the nodes by priority, which changes indices. Returns the new index of `watched`.
  ///
  /// Takes time in proportion to the nodes if few of them are out of place, and n log n otherwise.
  func sort(watching watched: Int) -> Int {
    let watched = isOrdered ? watched : endUnordered(watching: watched)
    defer { isSorted = true }
    let count = nodes.count
    // The common case is one branch with its new leaf at the end.
    if watched == count - 1, nodes[watched].isLeaf, count == 1 || isInOrder(count - 1, behind: watched) {
      isEncoded = false
      let node = nodes.removeLast()
      for index in nodes.indices where nodes[index].parent >= 0 { nodes[index].parent += 1 }
      nodes.insert(node, at: 0)
      if node.parent >= 0 { nodes[0].parent = node.parent + 1 }
      return 0
    }
    guard let order = orderOfNodes() else { return watched }
    isEncoded = false
    var places = [Int32](repeating: 0, count: count)
    for (place, index) in order.enumerated() { places[Int(index)] = Int32(truncatingIfNeeded: place) }
    let before = nodes
    for (place, index) in order.enumerated() {
      var node = before[Int(index)]
      if node.parent >= 0 { node.parent = places[Int(node.parent)] }
      nodes[place] = node
    }
    return Int(places[watched])
  }

  /// Returns whether the first `count` nodes are in order and `leaf` precedes them all.
  private func isInOrder(_ count: Int, behind leaf: Int) -> Bool {
    guard precedes(leaf, 0) else { return false }
    for index in 1..<max(count, 1) where !precedes(index - 1, index) { return false }
    return true
  }

  /// Returns the indices of the nodes in their order, nil if they are in order.
  private func orderOfNodes() -> ContiguousArray<Int32>? {
    work += nodes.count
    // Most nodes are where they were: in order. Those that aren't are sorted and put between them.
    var kept: ContiguousArray<Int32> = []
    kept.reserveCapacity(nodes.count)
    var moved: ContiguousArray<Int32> = []
    for index in nodes.indices {
      if let last = kept.last, !precedes(Int(last), index) {
        // Either this node is too high here, or the last one is too low.
        if kept.count > 1, !precedes(Int(kept[kept.count - 2]), index) {
          moved.append(Int32(truncatingIfNeeded: index))
          continue
        }
        kept.removeLast()
        moved.append(last)
      }
      kept.append(Int32(truncatingIfNeeded: index))
    }
    guard !moved.isEmpty else { return nil }
    moved.sort { precedes(Int($0), Int($1)) }
    var order: ContiguousArray<Int32> = []
    order.reserveCapacity(nodes.count)
    // Where few were moved, their places are searched for.
    let isSearched = moved.count < kept.count / 16
    var next = 0
    for node in moved {
      var end = next
      if isSearched {
        var high = kept.count
        while end < high {
          let middle = (end + high) / 2
          if precedes(Int(kept[middle]), Int(node)) { end = middle + 1 } else { high = middle }
        }
      } else {
        while end < kept.count, precedes(Int(kept[end]), Int(node)) { end += 1 }
      }
      order.append(contentsOf: kept[next..<end])
      order.append(node)
      next = end
    }
    order.append(contentsOf: kept[next...])
    return order
  }

  /// The order of nodes. Its first node is the winner of a conflict, by this rule ("The winner" in
  /// docs/conflicts.md): a leaf before other nodes, a live leaf before a tombstone, an open branch before a
  /// closed one, a higher generation, a higher suffix. Every database chooses the same winner.
  @inline(__always)
  func precedes(_ a: Int, _ b: Int) -> Bool {
    let left = nodes[a]
    let right = nodes[b]
    if left.rank != right.rank { return left.rank < right.rank }
    return isHigher(left, right)
  }

  /// Whether the ID of a node is higher than that of another one.
  private func isHigher(_ left: Node, _ right: Node) -> Bool {
    if left.generation != right.generation { return left.generation > right.generation }
    return suffix(of: left).compare(suffix(of: right)) > 0
  }

  /// The leaves, the current revision first. The others are in the order of CouchDB, which doesn't know of closed branches: live
  /// ones before tombstones, and higher IDs first.
  var leaves: [Int] {
    let leaves = nodes.indices.prefix { nodes[$0].isLeaf }
    guard leaves.dropFirst().contains(where: { nodes[$0].flags.contains(.closed) }) else {
      return Array(leaves)
    }
    return [0]
      + leaves.dropFirst().sorted {
        let (left, right) = (nodes[$0], nodes[$1])
        return left.isDeleted != right.isDeleted ? right.isDeleted : isHigher(left, right)
      }
  }

  // MARK: Removing

  /// Removes the nodes for which `keeps` is false, in the same way as `prune`. It doesn't set the leaf flag
  /// of a node that loses its last child. The caller does that. Nodes whose next remaining ancestor is in `joined` get it as
  /// their parent.
  func keep(
    _ keeps: ContiguousArray<Bool>, joining joined: [Int] = [], watching watched: Int = 0,
    removed: (UInt64) throws -> Void
  ) rethrows -> Int {
    assert(isOrdered)
    isEncoded = false
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
      var parent = Int(node.parent)
      if !joined.isEmpty, parent >= 0, !keeps[parent] {
        // Parents come later, so they are still in their old places.
        while parent >= 0, !keeps[parent] { parent = Int(nodes[parent].parent) }
        if !joined.contains(parent) { parent = -1 }
      }
      nodes[place].parent = parent < 0 ? -1 : places[parent]
    }
    nodes.removeLast(nodes.count - Int(kept))
    return Int(places[watched])
  }

  /// Whether there is more than one live leaf.
  var isConflicted: Bool {
    guard isOrdered else { return lookup.liveLeaves > 1 }
    return nodes.count > 1 && nodes[1].isLeaf && !nodes[1].isDeleted && !nodes[0].isDeleted
  }
}
