import CLMDB
import Storage
import StorageLMDB

extension EncryptedWrite {
  /// Removes an entry of the tree at a place of the table. Returns false if there is none.
  func delete(_ key: UnsafeRawBufferPointer, at place: Int) throws -> Bool {
    try spillIfLarge()
    guard try path.descend(table[place], to: key, reader) else { return false }
    noteChange()
    try removeEntries(path.index..<(path.index + 1), at: place)
    return true
  }

  /// Removes all entries between two bounds and returns their number.
  func deleteRange(_ lower: KeyBound, _ upper: KeyBound, at place: Int) throws -> Int {
    var count = 0
    while true {
      try spillIfLarge()
      guard try path.moveToFirst(table[place], from: lower, reader) else { return count }
      let leaf = path.leafNode
      let start = path.index
      var end = start
      while end < leaf.count, !upper.isBelow(MDB_val(leaf.leafKey(end))) { end += 1 }
      if start == end { return count }
      noteChange()
      count += end - start
      try removeEntries(start..<end, at: place)
    }
  }

  /// Removes the whole tree.
  func clear(at place: Int) throws {
    let tree = table[place]
    guard tree.height > 0 else { return }
    noteChange()
    path.clear()
    try freeNodes(below: tree.root, level: tree.height - 1, tree)
    table[place] = Tree()
  }

  private func freeNodes(below reference: Reference, level: Int, _ tree: Tree) throws {
    // If the tree has no large values, its unchanged leaves needn't be read.
    if level == 0, tree.large == 0, changed.nodes[reference.number] == nil {
      return try free(stored: reference)
    }
    let node = try reader.node(reference, level: level)
    for index in 0..<node.count {
      if level > 0 {
        try freeNodes(below: node.child(index), level: level - 1, tree)
      } else if case .large(let value, let count) = node.value(index) {
        try freeLarge(value, count: count)
      }
    }
    try free(node)
  }

  /// Removes entries of the path's leaf.
  private func removeEntries(_ range: Range<Int>, at place: Int) throws {
    let depth = path.leaf
    if range.count == path.leafNode.count {
      let leaf = path.leafNode
      for index in range { try removeValue(of: leaf, index, at: place) }
      table[place].count -= range.count
      return try removeNode(depth, at: place)
    }
    let leaf = try makeChangeable(depth, at: place)
    for index in range.reversed() {
      try removeValue(of: leaf, index, at: place)
      leaf.removeCell(at: index)
    }
    table[place].count -= range.count
    try balance(depth, at: place)
  }

  /// Removes the path's node at a depth from the tree. The node is empty or is about to be.
  private func removeNode(_ depth: Int, at place: Int) throws {
    let node = path.nodes[depth].unsafelyUnwrapped
    guard depth > 0 else {
      try free(node)
      let tree = table[place]
      table[place] = Tree(count: tree.count, large: tree.large)
      return
    }
    let parent = path.nodes[depth - 1].unsafelyUnwrapped
    if parent.count == 1 {
      try free(node)
      return try removeNode(depth - 1, at: place)
    }
    let changeable = try makeChangeable(depth - 1, at: place)
    try free(node)
    changeable.removeCell(at: path.indexes[depth - 1])
    try balance(depth - 1, at: place)
  }

  /// Joins the path's node at a depth with a sibling if it has become small. Also removes roots with one
  /// child.
  private func balance(_ depth: Int, at place: Int) throws {
    let node = path.nodes[depth].unsafelyUnwrapped
    guard depth > 0 else { return try shrinkRoot(at: place) }
    guard node.usedBytes * 4 < node.usableBytes else { return }
    let parent = path.nodes[depth - 1].unsafelyUnwrapped
    let index = path.indexes[depth - 1]
    for leftIndex in [index - 1, index] where leftIndex >= 0 && leftIndex + 1 < parent.count {
      if try join(depth, leftIndex, at: place) { return try balance(depth - 1, at: place) }
    }
  }

  /// Moves the cells of a child into the one before it, if they fit and leave some room. The path's node is
  /// one of the two.
  private func join(_ depth: Int, _ leftIndex: Int, at place: Int) throws -> Bool {
    let parent = path.nodes[depth - 1].unsafelyUnwrapped
    let own = path.indexes[depth - 1]
    let node = path.nodes[depth].unsafelyUnwrapped
    let sibling = try reader.node(
      parent.child(own == leftIndex ? leftIndex + 1 : leftIndex), level: node.level)
    let (left, right) = own == leftIndex ? (node, sibling) : (sibling, node)
    // The first cell of the right node gets the key that separates the two nodes.
    let separator = parent.branchKey(leftIndex + 1)
    let extra = right.level > 0 ? separator.count - right.branchKey(0).count : 0
    guard left.usedBytes + right.usedBytes + extra <= left.usableBytes * 9 / 10 else { return false }
    let changeableParent = try makeChangeable(depth - 1, at: place)
    path.indexes[depth - 1] = leftIndex
    path.nodes[depth] = left
    let target = try makeChangeable(depth, at: place)
    if right.level > 0 {
      target.insertChild(at: target.count, changeableParent.branchKey(leftIndex + 1), right.child(0))
      target.appendCells(of: right, from: 1)
    } else {
      target.appendCells(of: right, from: 0)
    }
    changeableParent.removeCell(at: leftIndex + 1)
    try free(right)
    return true
  }

  private func shrinkRoot(at place: Int) throws {
    while table[place].height > 1 {
      let root = try reader.node(table[place].root, level: table[place].height - 1)
      guard root.count == 1 else { return }
      table[place].root = root.child(0)
      table[place].height -= 1
      try free(root)
    }
  }
}
