import Glibc
import Storage

/// What a put does with an existing entry.
enum PutMode {
  case replace
  case keep
  /// Requires that the key is greater than all others.
  case append
}

extension EncryptedWrite {
  /// The maximum size of a cell. Three such cells fit into a node, so a split always succeeds.
  private var maximumCellBytes: Int { (file.payloadBytes - Node.headerBytes) / 3 - 2 }

  /// Puts an entry into the tree at a place of the table. Returns false if `mode` kept an existing entry, or
  /// if the key can't be appended.
  func put(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ mode: PutMode, at place: Int
  ) throws -> Bool {
    try spillIfLarge()
    let tree = table[place]
    var isFound = false
    if mode == .append {
      try path.descendToLast(tree, reader)
      if path.leaf >= 0 {
        guard compareBytes(path.leafNode.leafKey(path.index), key) < 0 else { return false }
        path.index += 1
      }
    } else {
      isFound = try path.descend(tree, to: key, reader)
      if isFound, mode == .keep { return false }
    }
    // The key or value may be lent from the leaf that changes, so it is copied first.
    if path.leaf >= 0, path.leafNode.holds(key.baseAddress) || path.leafNode.holds(value.baseAddress) {
      let (key, value) = ([UInt8](key), [UInt8](value))
      try key.withUnsafeBytes { key in
        try value.withUnsafeBytes { try store(key, $0, at: place, isFound: isFound) }
      }
    } else {
      try store(key, value, at: place, isFound: isFound)
    }
    return true
  }

  /// Writes the cell at the path.
  private func store(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, at place: Int, isFound: Bool
  ) throws {
    noteChange()
    var large: Reference?
    var size = Node.leafCellBytes + key.count + value.count
    if size > maximumCellBytes {
      large = try writeLarge(value)
      size = Node.leafCellBytes + key.count + Reference.byteCount
    }
    if path.leaf < 0 {
      let root = try makeNode(level: 0)
      path.nodes[0] = root
      path.indexes[0] = 0
      path.leaf = 0
      table[place].root = root.reference
      table[place].height = 1
    }
    let leaf = try makeChangeable(path.leaf, at: place)
    if isFound {
      try removeValue(of: leaf, path.index, at: place)
      let cell = leaf.bytes + leaf.offset(path.index)
      if leaf.cellBytes(path.index) == size {
        return write(key, value, large, to: cell, at: place)
      }
      leaf.removeCell(at: path.index)
    } else {
      table[place].count += 1
    }
    let cell = try makeRoom(path.leaf, path.index, size, key, at: place)
    write(key, value, large, to: cell, at: place)
  }

  /// Frees the chunks of a value that is replaced or deleted.
  func removeValue(of leaf: Node, _ index: Int, at place: Int) throws {
    guard case .large(let reference, let count) = leaf.value(index) else { return }
    try freeLarge(reference, count: count)
    table[place].large -= 1
  }

  private func write(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, _ large: Reference?,
    to cell: UnsafeMutableRawPointer, at place: Int
  ) {
    cell.storeBytes(of: UInt16(truncatingIfNeeded: key.count).littleEndian, as: UInt16.self)
    var count = UInt32(truncatingIfNeeded: value.count)
    if large != nil { count |= Node.largeFlag }
    cell.storeBytes(of: count.littleEndian, toByteOffset: 2, as: UInt32.self)
    memcpy(cell + Node.leafCellBytes, key.baseAddress.unsafelyUnwrapped, key.count)
    let end = cell + Node.leafCellBytes + key.count
    if let large {
      large.write(to: end)
      table[place].large += 1
    } else if let start = value.baseAddress, value.count > 0 {
      memcpy(end, start, value.count)
    }
  }

  // MARK: Paths

  /// Returns the path's node at a depth in a form that this part may change. The parents get its new seal.
  @inline(__always)
  func makeChangeable(_ depth: Int, at place: Int) throws -> Node {
    let node = path.nodes[depth].unsafelyUnwrapped
    return node.epoch == epoch ? node : try copyPath(depth, at: place)
  }

  @inline(never)
  private func copyPath(_ depth: Int, at place: Int) throws -> Node {
    let node = path.nodes[depth].unsafelyUnwrapped
    let parent = depth > 0 ? try makeChangeable(depth - 1, at: place) : nil
    let copy = try changeable(node)
    path.nodes[depth] = copy
    if let parent {
      parent.setChild(path.indexes[depth - 1], copy.reference)
    } else {
      table[place].root = copy.reference
    }
    return copy
  }

  // MARK: Splitting nodes

  /// Makes room for a cell in the path's node at a depth. The node must be changeable. A full node is split.
  func makeRoom(
    _ depth: Int, _ index: Int, _ size: Int, _ key: UnsafeRawBufferPointer, at place: Int
  ) throws -> UnsafeMutableRawPointer {
    let node = path.nodes[depth].unsafelyUnwrapped
    if node.fits(size) { return node.insertCell(at: index, size) }
    let split = splitPoint(
      of: node, inserting: size, at: index, isLast: index == node.count && isLastNode(depth))
    // Before anything moves: a new root becomes the parent of the split node.
    if depth == 0 { try growRoot(at: place) }
    let depth = depth == 0 ? 1 : depth
    let right = try makeNode(level: node.level)
    // The new cell goes left if its place is before the split. The left half then already counts it.
    let goesLeft = index < split
    node.moveCells(from: goesLeft ? split - 1 : split, to: right)
    let separator = separator(left: node, right: right, key, goesLeft: goesLeft, index, split)
    _ = try makeChangeable(depth - 1, at: place)
    try separator.withUnsafeBytes { separator in
      let cell = try makeRoom(
        depth - 1, path.indexes[depth - 1] + 1, Node.branchCellBytes + separator.count, separator, at: place)
      Node.writeBranchCell(cell, separator, right.reference)
    }
    return goesLeft ? node.insertCell(at: index, size) : right.insertCell(at: index - split, size)
  }

  /// Returns the number of cells that go left, including the new cell.
  private func splitPoint(of node: Node, inserting size: Int, at index: Int, isLast: Bool) -> Int {
    let count = node.count + 1
    // Inserts at the end fill the nodes completely.
    if isLast { return count - 1 }
    func bytes(_ position: Int) -> Int {
      if position == index { return size + 2 }
      return node.cellBytes(position < index ? position : position - 1) + 2
    }
    let total = node.usedBytes + size + 2
    var left = 0
    var best = (point: 1, larger: Int.max)
    for position in 0..<(count - 1) {
      left += bytes(position)
      let larger = max(left, total - left)
      if larger < best.larger { best = (position + 1, larger) }
    }
    return best.point
  }

  private func isLastNode(_ depth: Int) -> Bool {
    for above in 0..<depth {
      guard let node = path.nodes[above], path.indexes[above] == node.count - 1 else { return false }
    }
    return true
  }

  /// Returns the key that separates two halves. For leaves it is the shortest possible one; for branches it
  /// is the first key of the right half.
  private func separator(
    left: Node, right: Node, _ key: UnsafeRawBufferPointer, goesLeft: Bool, _ index: Int, _ split: Int
  ) -> [UInt8] {
    let first = !goesLeft && index == split ? key : right.key(0)
    guard left.level == 0 else { return [UInt8](first) }
    let last = goesLeft && index == split - 1 ? key : left.leafKey(left.count - 1)
    var common = 0
    while common < min(first.count, last.count), first[common] == last[common] { common += 1 }
    return [UInt8](first[..<min(first.count, common + 1)])
  }

  /// Adds a new root. The old root is its only child so far.
  private func growRoot(at place: Int) throws {
    guard table[place].height < TreePath.maximumHeight, let old = path.nodes[0] else {
      throw file.error(.engineFailure, "a tree of the encrypted file has too many levels")
    }
    let root = try makeNode(level: old.level + 1)
    root.insertChild(at: 0, UnsafeRawBufferPointer(start: nil, count: 0), old.reference)
    for depth in stride(from: path.leaf, through: 0, by: -1) {
      path.nodes[depth + 1] = path.nodes[depth]
      path.indexes[depth + 1] = path.indexes[depth]
    }
    path.nodes[0] = root
    path.indexes[0] = 0
    path.leaf += 1
    table[place].root = root.reference
    table[place].height += 1
  }
}
