import CLMDB
import Glibc
import Storage

/// A check, in the file itself, of the pages that LMDB reads on its way to a key, before LMDB follows them.
///
/// Used for the reads of an opening, which no complete check precedes. It holds the tree of one snapshot. The
/// snapshot must stay open meanwhile.
struct PagePath {
  private let file: PageFile
  private let meta: MetaPage
  private let tree: PageCheck.NamedTree

  /// Prepares the check of a named database in a snapshot. Nil if there is no database of that name. Throws
  /// `busy` as `PageFile.meta(of:)` does.
  init?(_ file: PageFile, _ transaction: OpaquePointer, databaseNamed name: String) throws {
    self.file = file
    meta = try file.meta(of: UInt64(mdb_txn_id(transaction)))
    var check = PageCheck(file: file, meta: meta)
    check.run(.roots)
    try Self.refuse(check, file)
    guard let tree = check.trees.first(where: { $0.name.elementsEqual(name.utf8) }) else { return nil }
    self.tree = tree
  }

  /// Throws `damaged` unless a search for `key` reads only sound pages. Nil searches for the tree's last
  /// entry.
  func check(_ key: [UInt8]?) throws {
    var check = PageCheck(file: file, meta: meta)
    check.followPath(in: tree, to: key)
    try Self.refuse(check, file)
  }

  private static func refuse(_ check: PageCheck, _ file: PageFile) throws {
    guard let fault = check.faults.first else { return }
    throw StorageError(.damaged, "the file is damaged or cut short: \(fault)", path: file.path)
  }
}

extension PageCheck {
  /// Checks the pages from a tree's root to the leaf of a key, or to the last leaf, and the first overflow
  /// page of its value.
  fileprivate mutating func followPath(in tree: NamedTree, to key: [UInt8]?) {
    let name = Self.describe(tree.name)
    guard hasPages(tree.record, name) else { return }
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: file.pageBytes, alignment: 8)
    defer { bytes.deallocate() }
    var bounds = Bounds()
    var page = tree.record.root
    let depth = Int(tree.record.depth)
    for level in 1...depth {
      let isLeaf = level == depth
      guard load(page, isLeaf ? PageFlags.leaf : PageFlags.branch, name, bytes),
        let nodes = nodes(of: page, isLeaf: isLeaf, UnsafeRawBufferPointer(bytes), name),
        let keys = keys(of: nodes, isLeaf: isLeaf, on: page, UnsafeRawBufferPointer(bytes), name, bounds)
      else { return }
      // The first node of a branch has no key. It covers all keys below the second node's key.
      let place = key.map { key in keys.lastIndex { !key.lexicographicallyPrecedes($0) } } ?? keys.count - 1
      if isLeaf {
        guard let place, key == nil || keys[place] == key else { return }
        return checkValue(of: nodes[place], on: page, UnsafeRawBufferPointer(bytes), name)
      }
      guard nodes.count > 1, let place else { return report("\(name): branch page \(page) has one child") }
      if place > 0 { bounds.lower = keys[place] }
      if place + 1 < keys.count { bounds.upper = keys[place + 1] }
      page = nodes[place].child
    }
  }

  /// The bounds that the branches above set for the keys of a page.
  private struct Bounds {
    var lower: [UInt8] = []
    var upper: [UInt8]?
  }

  /// Returns the keys of a page. Reports a fault and returns nil if they aren't in order and within the
  /// bounds. The first key of a branch is empty.
  private mutating func keys(
    of nodes: [Node], isLeaf: Bool, on page: UInt64, _ bytes: UnsafeRawBufferPointer, _ name: String,
    _ bounds: Bounds
  ) -> [[UInt8]]? {
    var keys: [[UInt8]] = []
    for (index, node) in nodes.enumerated() {
      guard node.offset + node.storedBytes(isLeaf: isLeaf) <= bytes.count,
        !isLeaf || (1...StorageLimits.maximumKeyBytes).contains(node.keyBytes)
      else {
        report("\(name): page \(page) has a node past its end")
        return nil
      }
      let key = !isLeaf && index == 0 ? [] : [UInt8](bytes[(node.offset + 8)..<node.end])
      let isInOrder = keys.last.map { $0.lexicographicallyPrecedes(key) } ?? true
      let isBelow = bounds.upper.map { key.lexicographicallyPrecedes($0) } ?? true
      let isAbove = (!isLeaf && index == 0) || !key.lexicographicallyPrecedes(bounds.lower)
      guard isInOrder, isBelow, isAbove else {
        report("\(name): page \(page) has keys out of order")
        return nil
      }
      keys.append(key)
    }
    return keys
  }

  private mutating func checkValue(
    of node: Node, on page: UInt64, _ bytes: UnsafeRawBufferPointer, _ name: String
  ) {
    guard node.flags & ~NodeFlags.overflow == 0 else {
      return report("\(name): page \(page) has a node with unexpected flags \(node.flags)")
    }
    guard node.flags & NodeFlags.overflow != 0 else { return }
    let first = bytes.loadUnaligned(fromByteOffset: node.end, as: UInt64.self)
    let header = UnsafeMutableRawBufferPointer.allocate(byteCount: file.pageBytes, alignment: 8)
    defer { header.deallocate() }
    _ = overflowPages(first, node.valueBytes, name, header)
  }
}
