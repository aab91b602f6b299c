import Storage

/// A check, in the file itself, of the pages that LMDB reads on its way to a key, before LMDB follows them.
///
/// Used for the reads of an opening, which no complete check precedes. It is valid for one snapshot, which
/// must stay open meanwhile, because later commits write over the pages of earlier ones.
package final class SearchPathCheck {
  private let file: PageFile
  private let meta: MetaPage
  private let tree: PageCheck.NamedTree
  /// The pages that a check has found sound.
  private var sound: [UInt64: SoundPage] = [:]

  /// Prepares the check of a named database in a snapshot. Nil if there is no database of that name.
  init?(_ file: PageFile, _ checked: CheckedTrees, databaseNamed name: String) {
    guard let tree = checked.trees.first(where: { $0.name.elementsEqual(name.utf8) }) else { return nil }
    self.file = file
    self.tree = tree
    meta = checked.meta
  }

  /// Throws `damaged` unless a search for `key` reads only sound pages. Nil searches for the tree's last
  /// entry.
  package func check(_ key: [UInt8]?) throws {
    var check = PageCheck(file: file, meta: meta)
    check.followPath(in: tree, to: key, &sound)
    try check.throwFirstFault()
  }
}

/// The keys that the branches above allow on a page.
private struct PageBounds: Equatable {
  var lower: [UInt8] = []
  var upper: [UInt8]?
}

/// A page whose header, nodes and keys were found sound where a search came upon it.
private struct SoundPage {
  let bytes: [UInt8]
  let nodes: [PageCheck.Node]
  let isLeaf: Bool
  let bounds: PageBounds

  /// The key of a node. The first key of a branch is empty, because LMDB ignores it.
  func key(_ index: Int) -> ArraySlice<UInt8> {
    let node = nodes[index]
    return !isLeaf && index == 0 ? [] : bytes[(node.offset + 8)..<node.end]
  }

  /// Returns the index of the last node whose key is `key` or less, or nil. Nil as a key finds the last node.
  func index(of key: [UInt8]?) -> Int? {
    guard let key else { return nodes.count - 1 }
    return nodes.indices.last { !key.lexicographicallyPrecedes(self.key($0)) }
  }
}

extension PageCheck {
  /// Checks the pages from a tree's root to the leaf of a key, or to the last leaf, and the first overflow
  /// page of its value. Skips what is known to be sound.
  fileprivate mutating func followPath(
    in tree: NamedTree, to key: [UInt8]?, _ sound: inout [UInt64: SoundPage]
  ) {
    let name = Self.describe(tree.name)
    guard hasPages(tree.record, name) else { return }
    var bounds = PageBounds()
    var page = tree.record.root
    let depth = Int(tree.record.depth)
    for level in 1...depth {
      let isLeaf = level == depth
      guard let found = soundPage(page, isLeaf: isLeaf, bounds, name, &sound) else { return }
      let index = found.index(of: key)
      if isLeaf {
        guard let index, key == nil || found.key(index).elementsEqual(key ?? []) else { return }
        return checkValue(of: found.nodes[index], on: page, found, name)
      }
      guard found.nodes.count > 1, let index else {
        return report("\(name): branch page \(page) has one child")
      }
      if index > 0 { bounds.lower = Array(found.key(index)) }
      if index + 1 < found.nodes.count { bounds.upper = Array(found.key(index + 1)) }
      page = found.nodes[index].child
    }
  }

  /// Reads a page and checks it. Reports a fault and returns nil if it isn't sound.
  private mutating func soundPage(
    _ page: UInt64, isLeaf: Bool, _ bounds: PageBounds, _ name: String, _ sound: inout [UInt64: SoundPage]
  ) -> SoundPage? {
    if let known = sound[page], known.isLeaf == isLeaf, known.bounds == bounds { return known }
    var bytes = [UInt8](repeating: 0, count: file.pageBytes)
    let nodes = bytes.withUnsafeMutableBytes { bytes -> [Node]? in
      guard load(page, isLeaf ? PageFlags.leaf : PageFlags.branch, name, bytes),
        let nodes = self.nodes(of: page, isLeaf: isLeaf, UnsafeRawBufferPointer(bytes), name),
        hasSoundKeys(nodes, isLeaf: isLeaf, on: page, UnsafeRawBufferPointer(bytes), name, bounds)
      else { return nil }
      return nodes
    }
    guard let nodes else { return nil }
    let found = SoundPage(bytes: bytes, nodes: nodes, isLeaf: isLeaf, bounds: bounds)
    sound[page] = found
    return found
  }

  /// Returns whether the keys of a page are in order and within the bounds. Reports a fault otherwise.
  private mutating func hasSoundKeys(
    _ nodes: [Node], isLeaf: Bool, on page: UInt64, _ bytes: UnsafeRawBufferPointer, _ name: String,
    _ bounds: PageBounds
  ) -> Bool {
    var previous: UnsafeRawBufferPointer?
    for (index, node) in nodes.enumerated() {
      guard node.offset + node.storedBytes(isLeaf: isLeaf) <= bytes.count,
        !isLeaf || (1...StorageLimits.maximumKeyBytes).contains(node.keyBytes)
      else {
        report("\(name): page \(page) has a node past its end")
        return false
      }
      let isFirstOfBranch = !isLeaf && index == 0
      let range = isFirstOfBranch ? node.offset..<node.offset : (node.offset + 8)..<node.end
      let key = UnsafeRawBufferPointer(rebasing: bytes[range])
      let isInOrder = previous.map { compareBytes($0, key) < 0 } ?? true
      let isBelow = bounds.upper.map { $0.withUnsafeBytes { compareBytes(key, $0) < 0 } } ?? true
      let isAbove = isFirstOfBranch || bounds.lower.withUnsafeBytes { compareBytes(key, $0) >= 0 }
      guard isInOrder, isBelow, isAbove else {
        report("\(name): page \(page) has keys out of order")
        return false
      }
      previous = key
    }
    return true
  }

  private mutating func checkValue(of node: Node, on page: UInt64, _ found: SoundPage, _ name: String) {
    guard node.flags & ~NodeFlags.overflow == 0 else {
      return report("\(name): page \(page) has a node with unexpected flags \(node.flags)")
    }
    guard node.flags & NodeFlags.overflow != 0 else { return }
    let first = found.bytes.withUnsafeBytes {
      $0.loadUnaligned(fromByteOffset: node.end, as: UInt64.self)
    }
    let header = UnsafeMutableRawBufferPointer.allocate(byteCount: file.pageBytes, alignment: 8)
    defer { header.deallocate() }
    _ = overflowPages(first, node.valueBytes, name, header)
  }
}
