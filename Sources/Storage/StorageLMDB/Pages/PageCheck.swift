import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A check of a snapshot's pages in the file itself.
///
/// It finds page numbers that lead out of the file or to a page twice, invalid headers and nodes, keys out of
/// order, and wrong counts. LMDB has no check of its own. Following a bad page number through its map would
/// end the process.
struct PageCheck {
  enum Extent {
    /// The pages at the start: the whole main tree and catalog, and the roots of the other trees.
    case roots
    case everything
  }

  /// A named database of the main tree.
  struct NamedTree {
    let name: [UInt8]
    let record: TreeRecord
  }

  /// The maximum number of reported faults. Further ones are only counted.
  static let maximumFaults = 100
  /// LMDB's own limit of a tree's height.
  static let maximumDepth = 32

  let file: PageFile
  let meta: MetaPage
  /// The names of the trees whose keys are sequences.
  private let sequences: Set<[UInt8]>
  private(set) var faults: [String] = []
  private(set) var trees: [NamedTree] = []
  private var untold = 0
  private var used: PageSet
  private var free: PageSet

  init(file: PageFile, meta: MetaPage, sequences: Set<[UInt8]> = []) {
    self.file = file
    self.meta = meta
    self.sequences = sequences
    used = PageSet()
    free = PageSet()
  }

  mutating func run(_ extent: Extent) {
    check(tree: meta.main, name: "the main tree", kind: .main)
    checkFlags(meta.main, "the main tree")
    checkFlags(meta.free, "the free list", TreeFlags.integerKeys, ignoring: TreeFlags.noSubdirectory)
    for tree in trees { checkFlags(tree.record, Self.describe(tree.name)) }
    guard extent == .everything else {
      checkRoot(meta.free, "the free list")
      let catalog = Array(Catalog.databaseName.utf8)
      for tree in trees {
        if tree.name == catalog {
          check(tree: tree.record, name: "the catalog", kind: .entries)
        } else {
          checkRoot(tree.record, Self.describe(tree.name))
        }
      }
      return
    }
    for tree in trees {
      let kind: Kind = sequences.contains(tree.name) ? .sequences : .entries
      check(tree: tree.record, name: Self.describe(tree.name), kind: kind)
    }
    check(tree: meta.free, name: "the free list", kind: .freeList)
    for page in free.intersection(used) { report("page \(page) is in use, but also in the free list") }
    // A transaction may take pages and free them again without writing them. Only such pages may be missing.
    if file.pages <= meta.lastPage {
      let missing = Int(meta.lastPage - file.pages) + 1
      if free.count(from: file.pages) != missing {
        report("the file has \(file.pages) pages, but its last page should be \(meta.lastPage)")
      }
    }
    if untold > 0 { faults.append("and \(untold) more faults") }
  }

  /// The number of pages that are neither used nor free. They lose no data, but LMDB's compacting copy
  /// refuses such a file. Only valid after `run(.everything)`.
  var lostPages: Int { Int(meta.lastPage) - 1 - used.count - free.count }

  /// Whether the snapshot uses a page. Only valid after `run(.everything)`.
  func uses(_ page: UInt64) -> Bool { used.contains(page) }

  static func describe(_ name: [UInt8]) -> String {
    let text = String(decoding: name, as: UTF8.self)
    // A damaged page may contain any bytes as a name.
    return "keyspace \(name.allSatisfy { (0x21...0x7E).contains($0) } ? text : String(reflecting: text))"
  }

  mutating func report(_ fault: String) {
    if faults.count < Self.maximumFaults { faults.append(fault) } else { untold += 1 }
  }

  // MARK: - Trees

  private enum Kind {
    case main
    case entries
    case sequences
    case freeList
  }

  private struct Totals {
    var branchPages: UInt64 = 0
    var leafPages: UInt64 = 0
    var overflowPages: UInt64 = 0
    var entries: UInt64 = 0
  }

  private struct Walk {
    let name: String
    let kind: Kind
    let depth: Int
    var totals = Totals()
    /// The key of the previous leaf node. All later keys must be greater.
    var previous: [UInt8]?
  }

  /// Checks the flags of a tree. With wrong flags LMDB would treat it as a tree of another kind and might end
  /// the process.
  private mutating func checkFlags(
    _ record: TreeRecord, _ name: String, _ wanted: UInt16 = 0, ignoring ignored: UInt16 = 0
  ) {
    guard record.flags & ~ignored != wanted else { return }
    report("\(name) has the flags \(record.flags) instead of \(wanted)")
  }

  /// Returns whether there is a tree to check. Reports wrong counts of an empty tree too, because LMDB trusts
  /// them.
  mutating func hasPages(_ record: TreeRecord, _ name: String) -> Bool {
    if record.isEmpty {
      if (record.branchPages, record.leafPages, record.overflowPages, record.entries) != (0, 0, 0, 0)
        || record.depth != 0
      {
        report("\(name) has no root, but its counts aren't zero")
      }
      return false
    }
    guard (1...Self.maximumDepth).contains(Int(record.depth)) else {
      report("\(name) has an impossible depth of \(record.depth)")
      return false
    }
    return true
  }

  private mutating func checkRoot(_ record: TreeRecord, _ name: String) {
    guard hasPages(record, name) else { return }
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: file.pageBytes, alignment: 8)
    defer { bytes.deallocate() }
    let isLeaf = record.depth == 1
    _ = load(record.root, isLeaf ? PageFlags.leaf : PageFlags.branch, name, bytes)
  }

  private mutating func check(tree record: TreeRecord, name: String, kind: Kind) {
    guard hasPages(record, name) else { return }
    var walk = Walk(name: name, kind: kind, depth: Int(record.depth))
    let before = faults.count + untold
    visit(record.root, level: 1, &walk, lower: nil, upper: nil)
    // If pages couldn't be read, wrong counts add no information.
    guard faults.count + untold == before else { return }
    let totals = walk.totals
    if totals.entries != record.entries {
      report("\(name) says it has \(record.entries) entries, but has \(totals.entries)")
    }
    if totals.branchPages != record.branchPages || totals.leafPages != record.leafPages
      || totals.overflowPages != record.overflowPages
    {
      report("\(name) has wrong counts of pages")
    }
  }

  /// Reads a page that another page refers to, and checks the header that all pages have.
  mutating func load(
    _ page: UInt64, _ flags: UInt16, _ name: String, _ bytes: UnsafeMutableRawBufferPointer
  ) -> Bool {
    guard page >= 2, page <= meta.lastPage else {
      report("\(name) refers to page \(page), but the last page is \(meta.lastPage)")
      return false
    }
    guard file.read(page, into: bytes) else {
      let reason =
        file.readFailure.map { String(cString: strerror($0)) } ?? "the file has \(file.pages) pages"
      report("\(name) refers to page \(page), which can't be read: \(reason)")
      return false
    }
    let number = bytes.loadUnaligned(as: UInt64.self)
    // All flags are compared. LMDB would write in its map to a page that is flagged as changed in memory. No
    // page of a sound file has this flag.
    let found = bytes.loadUnaligned(fromByteOffset: 10, as: UInt16.self)
    guard number == page, found == flags else {
      report("\(name): page \(page) has the header of page \(number) and flags \(found) instead of \(flags)")
      return false
    }
    return true
  }

  private mutating func visit(
    _ page: UInt64, level: Int, _ walk: inout Walk, lower: [UInt8]?, upper: [UInt8]?
  ) {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: file.pageBytes, alignment: 8)
    defer { bytes.deallocate() }
    let isLeaf = level == walk.depth
    guard load(page, isLeaf ? PageFlags.leaf : PageFlags.branch, walk.name, bytes) else { return }
    guard used.insert(page) else { return report("\(walk.name): page \(page) is used twice") }
    guard let nodes = nodes(of: page, isLeaf: isLeaf, UnsafeRawBufferPointer(bytes), walk.name) else {
      return
    }
    if isLeaf {
      walk.totals.leafPages += 1
      for node in nodes { check(leafNode: node, UnsafeRawBufferPointer(bytes), page, &walk, lower, upper) }
      return
    }
    walk.totals.branchPages += 1
    // LMDB leaves a branch with one child in the free list while it balances that tree. In other trees it
    // would stop with an assertion.
    if nodes.count < 2, walk.kind != .freeList { report("\(walk.name): branch page \(page) has one child") }
    var keys: [[UInt8]?] = []
    for (index, node) in nodes.enumerated() {
      guard node.end <= bytes.count else {
        return report("\(walk.name): page \(page) has a node past its end")
      }
      keys.append(index == 0 ? lower : [UInt8](bytes[(node.offset + 8)..<node.end]))
    }
    for (index, node) in nodes.enumerated() {
      let next = index + 1 < keys.count ? keys[index + 1] : upper
      if index > 0, let key = keys[index], let before = index > 1 ? keys[index - 1] : lower,
        !isOrdered(before, key, walk.kind, orEqual: index == 1)
      {
        return report("\(walk.name): branch page \(page) has keys out of order")
      }
      visit(node.child, level: level + 1, &walk, lower: keys[index], upper: next)
    }
  }

  // MARK: - Nodes

  private mutating func check(
    leafNode node: Node, _ bytes: UnsafeRawBufferPointer, _ page: UInt64, _ walk: inout Walk,
    _ lower: [UInt8]?, _ upper: [UInt8]?
  ) {
    let isOutside = node.flags & NodeFlags.overflow != 0
    let stored = isOutside ? 8 : node.valueBytes
    guard (1...StorageLimits.maximumKeyBytes).contains(node.keyBytes), node.end + stored <= bytes.count else {
      return report("\(walk.name): page \(page) has a node past its end")
    }
    walk.totals.entries += 1
    let key = [UInt8](bytes[(node.offset + 8)..<node.end])
    if walk.kind == .freeList {
      guard key.count == 8 else {
        return report("\(walk.name): page \(page) has a key of \(key.count) bytes")
      }
      // The key is the number of the transaction that freed the pages.
      let number = key.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
      guard number >= 1, number <= meta.transaction else {
        return report("\(walk.name): page \(page) has a record of transaction \(number)")
      }
      guard node.valueBytes % 8 == 0 else {
        return report("\(walk.name): page \(page) has a record of \(node.valueBytes) bytes")
      }
    }
    if walk.kind == .sequences, key.count != 8 || key[0] >= 0x80 {
      report("\(walk.name): page \(page) has a key of \(key.count) bytes that isn't a sequence")
    }
    if let previous = walk.previous, !isOrdered(previous, key, walk.kind, orEqual: false) {
      report("\(walk.name): page \(page) has keys out of order")
    } else if let lower, !isOrdered(lower, key, walk.kind, orEqual: true) {
      report("\(walk.name): page \(page) has a key below the range of its branch")
    } else if let upper, !isOrdered(key, upper, walk.kind, orEqual: false) {
      report("\(walk.name): page \(page) has a key above the range of its branch")
    }
    walk.previous = key
    var value: [UInt8]?
    if isOutside {
      let first = bytes.loadUnaligned(fromByteOffset: node.end, as: UInt64.self)
      value = checkOverflow(first, node.valueBytes, &walk)
    } else if walk.kind == .main || walk.kind == .freeList {
      value = [UInt8](bytes[node.end..<(node.end + node.valueBytes)])
    }
    let isTree = node.flags & NodeFlags.tree != 0
    if isTree != (walk.kind == .main) || node.flags & ~(NodeFlags.overflow | NodeFlags.tree) != 0 {
      return report("\(walk.name): page \(page) has a node with unexpected flags \(node.flags)")
    }
    guard let value else { return }
    if walk.kind == .main { addTree(key, value, page) }
    if walk.kind == .freeList { addFreePages(value, page) }
  }

  private mutating func addTree(_ name: [UInt8], _ value: [UInt8], _ page: UInt64) {
    guard value.count == TreeRecord.size else {
      return report("the main tree: page \(page) has a tree's record of \(value.count) bytes")
    }
    trees.append(NamedTree(name: name, record: value.withUnsafeBytes { TreeRecord($0) }))
  }

  /// Returns the number of pages of a value on overflow pages. Reports a fault and returns nil if the first
  /// page is invalid or the file doesn't have all pages. Reads the first page into `bytes`.
  mutating func overflowPages(
    _ first: UInt64, _ valueBytes: Int, _ name: String, _ bytes: UnsafeMutableRawBufferPointer
  ) -> (needed: UInt64, count: UInt64)? {
    guard load(first, PageFlags.overflow, name, bytes) else { return nil }
    let needed = (16 + UInt64(valueBytes) + UInt64(file.pageBytes) - 1) / UInt64(file.pageBytes)
    let count = UInt64(bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
    guard count >= needed, count <= meta.lastPage, first + count - 1 <= meta.lastPage,
      first + needed <= file.pages
    else {
      report("\(name): the value on page \(first) has \(valueBytes) bytes, but only \(count) pages")
      return nil
    }
    return (needed, count)
  }

  /// Checks the overflow pages of a value. Returns the value if it belongs to the free list.
  private mutating func checkOverflow(_ first: UInt64, _ valueBytes: Int, _ walk: inout Walk) -> [UInt8]? {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: file.pageBytes, alignment: 8)
    defer { bytes.deallocate() }
    guard let (needed, count) = overflowPages(first, valueBytes, walk.name, bytes) else { return nil }
    walk.totals.overflowPages += count
    for page in first..<(first + count) where !used.insert(page) {
      report("\(walk.name): page \(page) is used twice")
    }
    guard walk.kind == .freeList else { return nil }
    var value = [UInt8](bytes[16...].prefix(valueBytes))
    for page in (first + 1)..<(first + max(needed, 2)) where value.count < valueBytes {
      guard file.read(page, into: bytes) else {
        report("\(walk.name): page \(page) can't be read")
        return nil
      }
      value += bytes.prefix(valueBytes - value.count)
    }
    return value
  }

  /// Adds a record of the free list: the number of pages, then their numbers in descending order.
  private mutating func addFreePages(_ value: [UInt8], _ page: UInt64) {
    value.withUnsafeBytes { bytes in
      let count = bytes.count >= 8 ? bytes.loadUnaligned(as: UInt64.self) : .max
      guard count < UInt64(bytes.count / 8) else {
        return report("the free list: page \(page) has a record of \(bytes.count) bytes for \(count) pages")
      }
      var previous = UInt64.max
      for index in 0..<Int(count) {
        let number = bytes.loadUnaligned(fromByteOffset: 8 + 8 * index, as: UInt64.self)
        guard number >= 2, number <= meta.lastPage, number < previous else {
          return report("the free list: page \(page) has the impossible page \(number)")
        }
        previous = number
        if !free.insert(number) { report("the free list: page \(number) is in it twice") }
      }
    }
  }

  private func isOrdered(_ first: [UInt8], _ second: [UInt8], _ kind: Kind, orEqual: Bool) -> Bool {
    if kind == .freeList {
      // Transaction numbers in the machine's byte order.
      guard first.count == 8, second.count == 8 else { return false }
      let numbers = (
        first.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) },
        second.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) }
      )
      return numbers.0 < numbers.1 || (orEqual && numbers.0 == numbers.1)
    }
    return first.lexicographicallyPrecedes(second) || (orEqual && first == second)
  }
}
