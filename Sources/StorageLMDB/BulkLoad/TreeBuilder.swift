// Pages and nodes as PageFile.swift has them. Nodes fill a page from its end, at even offsets; `lower` is where a page's
// offsets end and `upper` where its nodes begin. A value lies on pages of its own when its node, of 8 bytes and key and
// value, would be larger than 2,038: so that any two nodes fit a page. The first of those pages has a header, all have
// the value behind it.

import Glibc
import Storage

/// Builds one of LMDB's trees from entries that come in order: pages fill from the left to the right, and each is written
/// once.
final class TreeBuilder {
  static let pageBytes = RecordFormat.pageBytes
  private static let headerBytes = RecordFormat.pageHeaderBytes
  private static let nodeBytes = 8
  private static let maximumNodeBytes = (pageBytes - headerBytes) / 2 & ~1 - 2

  /// The page that fills now.
  private struct Level {
    let page: UnsafeMutableRawPointer
    var lower = headerBytes
    var upper = pageBytes
    /// Of a branch, whose first node has none: the first key below it.
    var firstKey: [UInt8] = []

    var count: Int { (lower - headerBytes) / 2 }
    var room: Int { upper - lower }

    init() { page = .allocate(byteCount: pageBytes, alignment: 16) }

    /// Where the node of an index begins.
    func node(_ index: Int) -> UnsafeMutableRawPointer {
      page + Int(page.load(fromByteOffset: headerBytes + 2 * index, as: UInt16.self))
    }

    func key(_ index: Int) -> UnsafeRawBufferPointer {
      let node = node(index)
      return UnsafeRawBufferPointer(
        start: node + nodeBytes, count: Int(node.load(fromByteOffset: 6, as: UInt16.self)))
    }

    /// A place for a node that fits, behind the others.
    @inline(__always)
    mutating func addNode(_ size: Int) -> UnsafeMutableRawPointer {
      upper -= size
      page.storeBytes(of: UInt16(truncatingIfNeeded: upper), toByteOffset: lower, as: UInt16.self)
      lower += 2
      return page + upper
    }

    static func childBytes(_ key: [UInt8]) -> Int { (nodeBytes + key.count + 1) & ~1 }

    mutating func addChild(_ key: [UInt8], _ number: UInt64) {
      let size = Self.childBytes(key)
      let node = addNode(size)
      node.storeBytes(of: UInt8(0), toByteOffset: size - 1, as: UInt8.self)
      node.storeBytes(of: number | UInt64(key.count) << 48, as: UInt64.self)
      key.withUnsafeBytes { key in
        if let start = key.baseAddress { memcpy(node + nodeBytes, start, key.count) }
      }
    }

    /// Takes the last child away.
    mutating func removeLastChild() -> (key: [UInt8], number: UInt64) {
      let key = [UInt8](key(count - 1))
      let number = node(count - 1).loadUnaligned(as: UInt64.self) & 0xFFFF_FFFF_FFFF
      lower -= 2
      upper += Self.childBytes(key)
      return (key, number)
    }

    mutating func empty() {
      lower = headerBytes
      upper = pageBytes
    }
  }

  private let pages: PageStream
  // The leaf, and the branches above it.
  @exclusivity(unchecked) private var leaf = Level()
  @exclusivity(unchecked) private var branches: [Level] = []
  @exclusivity(unchecked) private var branchPages: UInt64 = 0
  @exclusivity(unchecked) private var leafPages: UInt64 = 0
  @exclusivity(unchecked) private var overflowPages: UInt64 = 0
  @exclusivity(unchecked) private var entries: UInt64 = 0

  init(_ pages: PageStream) { self.pages = pages }

  deinit {
    leaf.page.deallocate()
    for branch in branches { branch.page.deallocate() }
  }

  /// Appends an entry; its key is greater than all others.
  func append(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws {
    var size = Self.nodeBytes + key.count + value.count
    let isOutside = size > Self.maximumNodeBytes
    if isOutside { size = Self.nodeBytes + key.count + 8 }
    size = (size + 1) & ~1
    if leaf.room < size + 2 { try endLeaf() }
    let node = leaf.addNode(size)
    node.storeBytes(of: UInt32(truncatingIfNeeded: value.count), as: UInt32.self)
    node.storeBytes(of: isOutside ? NodeFlags.overflow : UInt16(0), toByteOffset: 4, as: UInt16.self)
    node.storeBytes(of: UInt16(truncatingIfNeeded: key.count), toByteOffset: 6, as: UInt16.self)
    // The byte that makes it even.
    node.storeBytes(of: UInt8(0), toByteOffset: size - 1, as: UInt8.self)
    var place = node + Self.nodeBytes
    if let start = key.baseAddress { memcpy(place, start, key.count) }
    place += key.count
    if isOutside {
      place.storeBytes(of: try appendPages(of: value), as: UInt64.self)
    } else if let start = value.baseAddress {
      memcpy(place, start, value.count)
    }
    entries += 1
  }

  /// Writes a value on pages of its own, and gives the first one's number.
  private func appendPages(of value: UnsafeRawBufferPointer) throws -> UInt64 {
    let number = pages.following
    let count = (Self.headerBytes + value.count + Self.pageBytes - 1) / Self.pageBytes
    var left = value
    for index in 0..<count {
      let page = try pages.next()
      var offset = 0
      if index == 0 {
        Self.writeHeader(page, number, PageFlags.overflow)
        page.storeBytes(of: UInt32(count), toByteOffset: 12, as: UInt32.self)
        offset = Self.headerBytes
      }
      let taken = min(left.count, Self.pageBytes - offset)
      if let start = left.baseAddress { memcpy(page + offset, start, taken) }
      memset(page + offset + taken, 0, Self.pageBytes - offset - taken)
      left = UnsafeRawBufferPointer(rebasing: left[taken...])
    }
    overflowPages += UInt64(count)
    return number
  }

  /// Writes what is left, and gives the tree's record.
  func finish() throws -> TreeRecord {
    guard entries > 0 else { return record(root: .max) }
    var number = try write(leaf, PageFlags.leaf)
    leafPages += 1
    var first = [UInt8](leaf.key(0))
    var level = 0
    while level < branches.count {
      try addChild(first, number, at: level)
      number = try writeBranch(level)
      first = branches[level].firstKey
      level += 1
    }
    return record(root: number)
  }

  private func record(root: UInt64) -> TreeRecord {
    TreeRecord(
      depth: entries > 0 ? UInt16(branches.count + 1) : 0, branchPages: branchPages, leafPages: leafPages,
      overflowPages: overflowPages, entries: entries, root: root)
  }

  // MARK: Pages

  /// Writes the leaf, which is full, and begins another one.
  private func endLeaf() throws {
    let number = try write(leaf, PageFlags.leaf)
    leafPages += 1
    try addChild([UInt8](leaf.key(0)), number, at: 0)
    leaf.empty()
  }

  /// Names a page in the branch of a level. When that is full it is written but for its last child, which begins the
  /// next one with the new child: LMDB has no branch of one child.
  private func addChild(_ key: [UInt8], _ number: UInt64, at level: Int) throws {
    if level == branches.count { branches.append(Level()) }
    if branches[level].count == 0 {
      branches[level].firstKey = key
      branches[level].addChild([], number)
    } else if branches[level].room >= Level.childBytes(key) + 2 {
      branches[level].addChild(key, number)
    } else {
      let last = branches[level].removeLastChild()
      let written = try writeBranch(level)
      try addChild(branches[level].firstKey, written, at: level + 1)
      branches[level].empty()
      branches[level].firstKey = last.key
      branches[level].addChild([], last.number)
      branches[level].addChild(key, number)
    }
  }

  private func writeBranch(_ level: Int) throws -> UInt64 {
    branchPages += 1
    return try write(branches[level], PageFlags.branch)
  }

  private func write(_ level: Level, _ flags: UInt16) throws -> UInt64 {
    let number = pages.following
    let page = try pages.next()
    Self.writeHeader(page, number, flags)
    page.storeBytes(of: UInt16(level.lower), toByteOffset: 12, as: UInt16.self)
    page.storeBytes(of: UInt16(level.upper), toByteOffset: 14, as: UInt16.self)
    memcpy(page + Self.headerBytes, level.page + Self.headerBytes, level.lower - Self.headerBytes)
    memset(page + level.lower, 0, level.room)
    memcpy(page + level.upper, level.page + level.upper, Self.pageBytes - level.upper)
    return number
  }

  private static func writeHeader(_ page: UnsafeMutableRawPointer, _ number: UInt64, _ flags: UInt16) {
    page.storeBytes(of: number, as: UInt64.self)
    page.storeBytes(of: UInt16(0), toByteOffset: 8, as: UInt16.self)
    page.storeBytes(of: flags, toByteOffset: 10, as: UInt16.self)
  }
}
