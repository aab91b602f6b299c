import Storage
import StorageLMDB

/// A path from a tree's root to a leaf: the nodes and the index taken in each. It keeps the nodes alive.
final class TreePath {
  static let maximumHeight = 24

  let nodes: UnsafeMutablePointer<Node?>
  let indexes: UnsafeMutablePointer<Int>
  /// The depth of the leaf, or -1 in an empty tree.
  @exclusivity(unchecked) var leaf = -1

  init() {
    nodes = .allocate(capacity: Self.maximumHeight + 1)
    nodes.initialize(repeating: nil, count: Self.maximumHeight + 1)
    indexes = .allocate(capacity: Self.maximumHeight + 1)
    indexes.initialize(repeating: 0, count: Self.maximumHeight + 1)
  }

  deinit {
    nodes.deinitialize(count: Self.maximumHeight + 1)
    nodes.deallocate()
    indexes.deallocate()
  }

  /// Releases all nodes.
  func clear() {
    for depth in 0...Self.maximumHeight where nodes[depth] != nil { nodes[depth] = nil }
    leaf = -1
  }

  @inline(__always) var leafNode: Node { nodes[leaf].unsafelyUnwrapped }
  @inline(__always) var index: Int {
    get { indexes[leaf] }
    set { indexes[leaf] = newValue }
  }

  /// Whether the path ends at an entry.
  @inline(__always) var isOnEntry: Bool { leaf >= 0 && indexes[leaf] >= 0 && indexes[leaf] < leafNode.count }

  // MARK: Descending

  /// Goes to the first entry whose key is `key` or greater, or past the last entry of its leaf. Returns
  /// whether the key is equal.
  @inline(__always)
  func descend(_ tree: Tree, to key: UnsafeRawBufferPointer, _ reader: NodeRecordReader) throws -> Bool {
    guard tree.height > 0 else {
      leaf = -1
      return false
    }
    var reference = tree.root
    var level = tree.height &- 1
    var depth = 0
    leaf = -1
    while true {
      let node = try reader.node(reference, level: level)
      nodes[depth] = node
      if level == 0 {
        let (index, isFound) = node.find(key)
        indexes[depth] = index
        leaf = depth
        return isFound
      }
      let index = node.findChild(key)
      indexes[depth] = index
      reference = node.child(index)
      level &-= 1
      depth &+= 1
    }
  }

  /// Goes to the first or last entry below `reference`, which belongs at a depth.
  private func descend(
    _ start: Reference, level: Int, depth: Int, toLast: Bool, _ reader: NodeRecordReader
  ) throws {
    var reference = start
    var level = level
    var depth = depth
    leaf = -1
    while true {
      let node = try reader.node(reference, level: level)
      nodes[depth] = node
      let index = toLast ? node.count - 1 : 0
      indexes[depth] = index
      if level == 0 {
        leaf = depth
        return
      }
      reference = node.child(index)
      level -= 1
      depth += 1
    }
  }

  func descendToFirst(_ tree: Tree, _ reader: NodeRecordReader) throws {
    leaf = -1
    if tree.height > 0 { try descend(tree.root, level: tree.height - 1, depth: 0, toLast: false, reader) }
  }

  func descendToLast(_ tree: Tree, _ reader: NodeRecordReader) throws {
    leaf = -1
    if tree.height > 0 { try descend(tree.root, level: tree.height - 1, depth: 0, toLast: true, reader) }
  }

  // MARK: Moving between leaves

  /// Moves to the first entry of the next leaf. Returns false if there is none.
  @inline(never)
  func moveToNextLeaf(_ reader: NodeRecordReader) throws -> Bool {
    try moveToLeaf(reader, by: 1)
  }

  /// Moves to the last entry of the previous leaf. Returns false if there is none.
  @inline(never)
  func moveToPreviousLeaf(_ reader: NodeRecordReader) throws -> Bool {
    try moveToLeaf(reader, by: -1)
  }

  private func moveToLeaf(_ reader: NodeRecordReader, by step: Int) throws -> Bool {
    var depth = leaf - 1
    while depth >= 0 {
      guard let node = nodes[depth] else { return false }
      let index = indexes[depth] + step
      if index >= 0, index < node.count {
        indexes[depth] = index
        let bottom = leaf
        try descend(
          node.child(index), level: bottom - depth - 1, depth: depth + 1, toLast: step < 0, reader)
        return true
      }
      depth -= 1
    }
    return false
  }

  // MARK: Places in a range

  /// Goes to the first entry within `lower`. Returns false if there is none.
  func moveToFirst(_ tree: Tree, from lower: KeyBound, _ reader: NodeRecordReader) throws -> Bool {
    if let bytes = lower.bytes, lower.count > 0 {
      let key = UnsafeRawBufferPointer(start: bytes, count: lower.count)
      if try descend(tree, to: key, reader), !lower.isInclusive { index += 1 }
    } else {
      try descendToFirst(tree, reader)
    }
    guard leaf >= 0 else { return false }
    return index < leafNode.count ? true : try moveToNextLeaf(reader)
  }

  /// Goes to the last entry within `upper`. Returns false if there is none.
  func moveToLast(_ tree: Tree, to upper: KeyBound, _ reader: NodeRecordReader) throws -> Bool {
    if let bytes = upper.bytes {
      guard upper.count > 0 else { return false }
      let key = UnsafeRawBufferPointer(start: bytes, count: upper.count)
      let isFound = try descend(tree, to: key, reader)
      guard leaf >= 0 else { return false }
      if !isFound || !upper.isInclusive { index -= 1 }
    } else {
      try descendToLast(tree, reader)
      guard leaf >= 0 else { return false }
    }
    return index >= 0 ? true : try moveToPreviousLeaf(reader)
  }
}
