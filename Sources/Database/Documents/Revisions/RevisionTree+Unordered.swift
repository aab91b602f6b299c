// Many changes of a wide tree in a row.
//
// A document with thousands of leaves would have most of its nodes moved by each change that keeps them in order. So a transaction
// that changes such a document again and again begins to leave them where they are. Then
//
// - node 0 is the current revision, as always, and the others are in any order,
// - new nodes are added at the end, and removed ones stay as gaps with the generation 0,
// - a table finds nodes by their IDs, and a heap has the leaves besides the current one, the best of them first.
//
// Adding, replacing and removing a leaf takes a time in proportion to the length of its branch and to the logarithm of the number
// of leaves. `sort()` ends this: it removes the gaps and puts the nodes in order.

import Bytes

/// Finds nodes of a tree whose nodes aren't in order.
struct NodeLookup {
  /// A hash table with open addressing. A slot has the index of a node plus 1, 0 if it is free, and `removed` if its node is gone.
  var slots: ContiguousArray<Int32> = []
  /// How many slots aren't free.
  var usedSlots = 0
  /// The leaves except for node 0, as a binary heap with the best one first.
  var heap: ContiguousArray<Int32> = []
  /// The place of each node in the heap, -1 if it isn't there.
  var places: ContiguousArray<Int32> = []
  /// How many children each node has.
  var children: ContiguousArray<Int32> = []
  /// The number of leaves that aren't tombstones.
  var liveLeaves = 0
  /// The number of gaps.
  var gaps = 0

  static let removed: Int32 = -1
}

extension RevisionTree {
  /// Begins to leave nodes where they are. They are in order, and there are several leaves.
  func beginUnordered() {
    let count = nodes.count
    lookup.heap.removeAll(keepingCapacity: true)
    lookup.places = ContiguousArray(repeating: -1, count: count)
    lookup.children = ContiguousArray(repeating: 0, count: count)
    lookup.liveLeaves = 0
    lookup.gaps = 0
    isOrdered = false
    forgetEncoded()
    work += count
    makeTable()
    for index in nodes.indices {
      let node = nodes[index]
      if node.parent >= 0 { lookup.children[Int(node.parent)] += 1 }
      guard node.isLeaf else { continue }
      if !node.isDeleted { lookup.liveLeaves += 1 }
      guard index > 0 else { continue }
      // Leaves in order are a heap.
      lookup.places[index] = Int32(truncatingIfNeeded: lookup.heap.count)
      lookup.heap.append(Int32(truncatingIfNeeded: index))
    }
  }

  /// Removes the gaps. Returns the new index of `watched`.
  func endUnordered(watching watched: Int) -> Int {
    isOrdered = true
    guard lookup.gaps > 0 else { return watched }
    var places = ContiguousArray<Int32>(repeating: -1, count: nodes.count)
    var count = 0
    for index in nodes.indices where nodes[index].generation > 0 {
      places[index] = Int32(truncatingIfNeeded: count)
      nodes[count] = nodes[index]
      count += 1
    }
    nodes.removeLast(nodes.count - count)
    for index in nodes.indices where nodes[index].parent >= 0 {
      nodes[index].parent = places[Int(nodes[index].parent)]
    }
    return Int(places[watched])
  }

  /// The number of leaves of a tree whose nodes aren't in order.
  var unorderedLeaves: Int { lookup.heap.count + 1 }

  /// The number of children of a node of a tree whose nodes aren't in order.
  func children(of index: Int) -> Int { Int(lookup.children[index]) }

  // MARK: The table of IDs

  private func makeTable() {
    work += nodes.count
    var size = 64
    while size < nodes.count * 4 { size *= 2 }
    lookup.slots = ContiguousArray(repeating: 0, count: size)
    lookup.usedSlots = 0
    for index in nodes.indices where nodes[index].generation > 0 { addToTable(index) }
  }

  private func addToTable(_ index: Int) {
    if (lookup.usedSlots + 1) * 2 > lookup.slots.count {
      // This adds the node too.
      return makeTable()
    }
    let node = nodes[index]
    var slot = firstSlot(node.generation, suffix(of: node).bytes)
    while lookup.slots[slot] > 0 { slot = (slot + 1) & (lookup.slots.count - 1) }
    if lookup.slots[slot] == 0 { lookup.usedSlots += 1 }
    lookup.slots[slot] = Int32(truncatingIfNeeded: index + 1)
  }

  /// Peers choose revision IDs, so the hash is one that can't be foreseen.
  private func firstSlot(_ generation: UInt64, _ suffix: UnsafeRawBufferPointer) -> Int {
    var hasher = Hasher()
    hasher.combine(generation)
    hasher.combine(bytes: suffix)
    return hasher.finalize() & (lookup.slots.count - 1)
  }

  private func slot(of id: StoredRevisionID) -> Int? {
    var slot = firstSlot(id.generation, id.suffix.bytes)
    while lookup.slots[slot] != 0 {
      let index = Int(lookup.slots[slot]) - 1
      if index >= 0, hasID(id, index) { return slot }
      work += 1
      slot = (slot + 1) & (lookup.slots.count - 1)
    }
    return nil
  }

  func unorderedIndex(of id: StoredRevisionID) -> Int? { slot(of: id).map { Int(lookup.slots[$0]) - 1 } }

  private func slot(of index: Int) -> Int? {
    let node = nodes[index]
    return slot(of: StoredRevisionID(generation: node.generation, suffix: suffix(of: node)))
  }

  /// Changes what the table says of the node at `index`, which isn't moved yet.
  private func setTable(_ index: Int, to value: Int32) {
    if let slot = slot(of: index) { lookup.slots[slot] = value }
  }

  // MARK: Changes

  /// A node was added at the end.
  func noteAdded(_ index: Int) {
    let node = nodes[index]
    lookup.places.append(-1)
    lookup.children.append(0)
    if node.parent >= 0 { lookup.children[Int(node.parent)] += 1 }
    addToTable(index)
    guard node.isLeaf else { return }
    if !node.isDeleted { lookup.liveLeaves += 1 }
    addToHeap(index)
  }

  /// A leaf got a child. Its flag says so already.
  func noteReplaced(_ index: Int) {
    if !nodes[index].isDeleted { lookup.liveLeaves -= 1 }
    if lookup.places[index] >= 0 { removeFromHeap(index) }
  }

  /// Makes the winner node 0, after the branch of the leaf `added` was added. If that is on top of the former winner, no other node is
  /// its child. Returns the new index of `added`.
  func placeWinner(added: Int) -> Int {
    guard let first = lookup.heap.first else { return added }
    let best = Int(first)
    let wasReplaced = !nodes[0].isLeaf
    guard wasReplaced || precedes(best, 0) else { return added }
    if wasReplaced {
      var child = added
      while nodes[child].parent > 0 { child = Int(nodes[child].parent) }
      nodes[child].parent = first
    }
    if let slot = slot(of: 0), let other = self.slot(of: best) { lookup.slots.swapAt(slot, other) }
    nodes.swapAt(0, best)
    lookup.children.swapAt(0, best)
    if wasReplaced { removeFromHeap(best) } else { sink(0) }
    return added == best ? 0 : added
  }

  /// What pruning to `depth` removes after `added` was added on top of `parent`: revisions of that branch that no other one needs, newest first.
  /// The tree was pruned before. Returns nil if more than that has to be removed.
  func excess(of added: Int, on parent: Int, depth: Int) -> [Int]? {
    var length = 1
    var index = added
    while index != parent {
      index = Int(nodes[index].parent)
      guard index >= 0 || parent < 0 else { return nil }
      if index < 0 || index == parent { break }
      length += 1
    }
    // Without children before, the parent was a leaf, and its branch has become longer by `length`.
    guard parent >= 0, lookup.children[parent] == 1 else { return length <= depth ? [] : nil }
    guard length < depth else { return nil }
    /// Whether another leaf keeps a node. As many leaves mostly do, asking them from anywhere on finds one soon.
    func isNeeded(_ node: Int) -> Bool {
      let start = work % nodes.count
      for leaf in [start..<nodes.count, 0..<start].joined() where leaf != added && nodes[leaf].isLeaf {
        var next = leaf
        for _ in 1..<depth where next >= 0 && next != node {
          work += 1
          next = Int(nodes[next].parent)
        }
        if next == node { return true }
      }
      return false
    }
    var removed: [Int] = []
    var isShared = false
    for distance in length...(depth + length) {
      guard index >= 0 else { break }
      if lookup.children[index] > 1 { isShared = true }
      if distance >= depth {
        if !isShared {
          // The branch ended before the last of these, so something else has kept it.
          guard distance < depth + length else { return nil }
          removed.append(index)
        } else if distance < depth + length, !isNeeded(index) {
          return nil
        }
      }
      index = Int(nodes[index].parent)
    }
    return removed
  }

  /// Removes the nodes `excess`, each of which is the parent of the one before it, from the branch of the leaf `added`.
  func remove(_ excess: [Int], from added: Int) {
    guard let first = excess.first, let last = excess.last else { return }
    var child = added
    while Int(nodes[child].parent) != first { child = Int(nodes[child].parent) }
    nodes[child].parent = -1
    let parent = Int(nodes[last].parent)
    if parent >= 0 { lookup.children[parent] -= 1 }
    for index in excess { removeNode(index) }
  }

  /// Removes a leaf and its ancestors up to the first one that another branch needs. Another leaf is there. If the leaf was the winner, another
  /// one becomes node 0.
  func removeBranch(_ leaf: Int) {
    if !nodes[leaf].isDeleted { lookup.liveLeaves -= 1 }
    if leaf > 0 { removeFromHeap(leaf) }
    var next = leaf
    repeat {
      let index = next
      next = Int(nodes[index].parent)
      removeNode(index)
      if next >= 0 { lookup.children[next] -= 1 }
    } while next >= 0 && lookup.children[next] == 0
    guard leaf == 0, let first = lookup.heap.first else { return }
    let best = Int(first)
    removeFromHeap(best)
    setTable(best, to: 1)
    nodes[0] = nodes[best]
    lookup.children[0] = 0
    clear(best)
  }

  private func removeNode(_ index: Int) {
    setTable(index, to: NodeLookup.removed)
    clear(index)
    lookup.gaps += 1
  }

  private func clear(_ index: Int) {
    nodes[index].generation = 0
    nodes[index].flags = []
    nodes[index].parent = -1
    lookup.children[index] = 0
  }

  // MARK: The heap of leaves

  private func addToHeap(_ index: Int) {
    lookup.places[index] = Int32(truncatingIfNeeded: lookup.heap.count)
    lookup.heap.append(Int32(truncatingIfNeeded: index))
    rise(lookup.heap.count - 1)
  }

  private func removeFromHeap(_ index: Int) {
    let place = Int(lookup.places[index])
    lookup.places[index] = -1
    let last = lookup.heap.removeLast()
    guard Int(last) != index else { return }
    lookup.heap[place] = last
    lookup.places[Int(last)] = Int32(truncatingIfNeeded: place)
    rise(place)
    sink(Int(lookup.places[Int(last)]))
  }

  private func rise(_ place: Int) {
    var place = place
    while place > 0 {
      let above = (place - 1) / 2
      work += 1
      guard precedes(Int(lookup.heap[place]), Int(lookup.heap[above])) else { return }
      exchange(place, above)
      place = above
    }
  }

  private func sink(_ place: Int) {
    var place = place
    while true {
      var best = 2 * place + 1
      guard best < lookup.heap.count else { return }
      work += 1
      if best + 1 < lookup.heap.count, precedes(Int(lookup.heap[best + 1]), Int(lookup.heap[best])) {
        best += 1
      }
      guard precedes(Int(lookup.heap[best]), Int(lookup.heap[place])) else { return }
      exchange(place, best)
      place = best
    }
  }

  private func exchange(_ a: Int, _ b: Int) {
    lookup.heap.swapAt(a, b)
    lookup.places[Int(lookup.heap[a])] = Int32(truncatingIfNeeded: a)
    lookup.places[Int(lookup.heap[b])] = Int32(truncatingIfNeeded: b)
  }
}
