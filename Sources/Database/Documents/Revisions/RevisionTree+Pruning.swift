// Pruning limits the revisions of a document ("Pruning" in docs/documents.md).

extension RevisionTree {
  /// Returns the lowest generation that a branch keeps when it is pruned to this depth.
  static func lowestGeneration(below highest: UInt64, depth: Int) -> UInt64 {
    highest > UInt64(depth) ? highest - UInt64(depth) + 1 : 1
  }

  /// Prunes each branch to `depth` (1 or more). A leaf is never removed. Calls `removed` with the sequence of
  /// each removed revision that had a body. Returns the new index of `watched`, and whether marked nodes were kept that
  /// would have been removed otherwise.
  ///
  /// With one leaf, nodes `depth` or more generations below the highest one are removed. With several leaves,
  /// each leaf keeps itself and its next `depth - 1` ancestors. A remaining node whose parent was removed has
  /// no parent. (This is the rule of 1.4.1.)
  ///
  /// The nodes `marked()`, which are asked for if something is to be removed, are kept too. They become the parents of the
  /// nearest nodes above them.
  func prune(
    depth: Int, keeping marked: () throws -> [Int], watching watched: Int,
    removed: (UInt64) throws -> Void
  ) rethrows -> (watched: Int, keptMarked: Bool) {
    var highest: UInt64 = 0
    var leaves = 0
    for index in nodes.indices {
      highest = max(highest, nodes[index].generation)
      if nodes[index].isLeaf { leaves += 1 }
    }
    guard nodes.count > 1, highest > UInt64(depth) else { return (watched, false) }
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
    guard keeps.contains(false) else { return (watched, false) }
    let marked = try marked().filter { !keeps[$0] }
    for index in marked { keeps[index] = true }
    return (try keep(keeps, joining: marked, watching: watched, removed: removed), !marked.isEmpty)
  }

  /// How many of the first revisions with these generations, newest first, pruning to `depth` would leave directly below a node.
  func room(for generations: [UInt64], below node: Int, depth: Int) -> Int {
    let leaves = nodes.indices.filter { nodes[$0].isLeaf }
    guard leaves.count > 1 else {
      let highest = nodes.map(\.generation).max() ?? 0
      let lowest = RevisionTree.lowestGeneration(below: highest, depth: depth)
      return generations.prefix { $0 >= lowest }.count
    }
    var room = 0
    for leaf in leaves {
      var length = 1
      var index = leaf
      while index != node, index >= 0, length < depth {
        index = Int(nodes[index].parent)
        length += 1
      }
      if index == node { room = max(room, depth - length) }
    }
    return min(room, generations.count)
  }
}
