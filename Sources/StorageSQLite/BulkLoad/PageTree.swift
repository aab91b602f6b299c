// A B-tree of SQLite's file format (sqlite.org/fileformat2.html), integers big-endian:
//
//   page      := type:u8 0:u16 cells:u16 content:u16 0:u8 [last child:u32] (cell offset:u16)* gap cell*
//                type 13 a table's leaf, 5 its inner page, 10 an index's leaf, 2 its inner page; inner ones have the
//                last child. Cells fill a page from its end.
//   leaf cell := bytes:varint [row:varint] payload [first overflow page:u32]       row in tables
//   cell of an inner page of a table := child:u32 row:varint       the child's last row
//                         of an index := child:u32 and a leaf cell, an entry between that child and the next one
//   overflow  := next:u32 bytes
//
// A payload longer than a page's limit keeps so much in its cell that its last overflow page is full.

#if canImport(Glibc)
  import Glibc
#endif

/// Builds one tree from entries that come in order: pages fill from the left to the right, and each is written once.
final class PageTree {
  enum Kind {
    case table, index
  }

  /// The page that fills now, of each level; the leaf's is the first.
  private struct Level {
    let page: UnsafeMutableRawPointer
    var cells = 0
    /// Where the cells begin.
    var content: Int
    /// Where the cells before the last one begin.
    var contentBefore: Int
  }

  private let kind: Kind
  private let root: UInt32
  private let pages: PageWriter
  private let usable: Int
  private let maximumLocal: Int
  private let minimumLocal: Int
  @exclusivity(unchecked) private var levels: [Level] = []
  private let rowBytes = UnsafeMutableRawPointer.allocate(byteCount: 16, alignment: 16)
  /// Of a table, the last row of the leaf.
  @exclusivity(unchecked) private var lastRow: UInt64 = 0

  /// - Parameters:
  ///   - root: the page of the tree's root, which is an empty leaf so far.
  ///   - usable: bytes of a page that aren't reserved.
  init(_ kind: Kind, root: UInt32, pages: PageWriter, usable: Int) {
    self.kind = kind
    self.root = root
    self.pages = pages
    self.usable = usable
    maximumLocal = kind == .table ? usable - 35 : (usable - 12) * 64 / 255 - 23
    minimumLocal = (usable - 12) * 32 / 255 - 23
    addLevel()
  }

  deinit {
    rowBytes.deallocate()
    for level in levels {
      memset(level.page, 0, usable)
      level.page.deallocate()
    }
  }

  private func addLevel() {
    levels.append(
      Level(
        page: .allocate(byteCount: SQLiteLayout.pageBytes, alignment: 16), content: usable,
        contentBefore: usable))
  }

  /// Appends an entry; `row` is a table's.
  func append(_ payload: RecordPayload, row: UInt64 = 0) throws {
    let count = payload.count
    var local = count
    if count > maximumLocal {
      let fitting = minimumLocal + (count - minimumLocal) % (usable - 4)
      local = fitting <= maximumLocal ? fitting : minimumLocal
    }
    let prefix = Varint.count(UInt64(count)) + (kind == .table ? Varint.count(row) : 0)
    let size = prefix + local + (local < count ? 4 : 0)
    if !fits(size, 0) { try endLeaf() }
    var cell = addCell(size, 0)
    Varint.write(UInt64(count), to: &cell)
    if kind == .table {
      Varint.write(row, to: &cell)
      lastRow = row
    }
    var rest = payload
    rest.read(local, to: cell)
    if local < count {
      (cell + local).storeBytes(of: try writeOverflow(&rest).bigEndian, as: UInt32.self)
    }
  }

  private func writeOverflow(_ rest: inout RecordPayload) throws -> UInt32 {
    var first: UInt32 = 0
    while rest.count > 0 {
      let (page, number) = try pages.next()
      if first == 0 { first = number }
      let count = min(rest.count, usable - 4)
      rest.read(count, to: page + 4)
      memset(page + 4 + count, 0, SQLiteLayout.pageBytes - 4 - count)
      page.storeBytes(of: rest.count > 0 ? pages.following.bigEndian : 0, as: UInt32.self)
    }
    return first
  }

  /// Writes what is left; the root goes where it was.
  func finish() throws {
    guard levels[0].cells > 0 else { return }
    var child: UInt32 = 0
    for level in 0..<levels.count - 1 { child = try write(level, lastChild: child) }
    try pages.write(at: root) { fill($0, levels.count - 1, lastChild: child) }
  }

  // MARK: Pages

  private func headerBytes(_ level: Int) -> Int { level == 0 ? 8 : 12 }

  @inline(__always)
  private func fits(_ size: Int, _ level: Int) -> Bool {
    levels[level].content - size >= headerBytes(level) + 2 * (levels[level].cells + 1)
  }

  /// A place for a cell that fits.
  @inline(__always)
  private func addCell(_ size: Int, _ level: Int) -> UnsafeMutableRawPointer {
    var changed = levels[level]
    changed.contentBefore = changed.content
    changed.content -= size
    (changed.page + headerBytes(level) + 2 * changed.cells).storeBytes(
      of: UInt16(truncatingIfNeeded: changed.content).bigEndian, as: UInt16.self)
    changed.cells += 1
    levels[level] = changed
    return changed.page + changed.content
  }

  /// Takes the last cell out of a page that has more. Its bytes stay until the page has another cell.
  private func removeLastCell(_ level: Int) -> UnsafeRawBufferPointer {
    let full = levels[level]
    levels[level].content = full.contentBefore
    levels[level].cells -= 1
    return UnsafeRawBufferPointer(start: full.page + full.content, count: full.contentBefore - full.content)
  }

  /// Writes the leaf, which is full, and tells the level above.
  private func endLeaf() throws {
    switch kind {
    case .table:
      var end = rowBytes
      Varint.write(lastRow, to: &end)
      let number = try write(0, lastChild: 0)
      try addChild(number, UnsafeRawBufferPointer(start: rowBytes, count: end - rowBytes), to: 1)
    case .index:
      // Its last entry moves up: it parts the leaf from the next one.
      let last = removeLastCell(0)
      try addChild(try write(0, lastChild: 0), last, to: 1)
    }
  }

  /// Adds a child to an inner level, and the bytes that stand behind its number.
  private func addChild(_ child: UInt32, _ rest: UnsafeRawBufferPointer, to level: Int) throws {
    if level == levels.count { addLevel() }
    let size = 4 + rest.count
    if !fits(size, level) {
      // The last cell's child becomes the page's last one, and what is behind it moves up.
      let last = removeLastCell(level)
      let lastChild = UInt32(bigEndian: last.loadUnaligned(as: UInt32.self))
      let number = try write(level, lastChild: lastChild)
      try addChild(number, UnsafeRawBufferPointer(rebasing: last[4...]), to: level + 1)
    }
    let cell = addCell(size, level)
    cell.storeBytes(of: child.bigEndian, as: UInt32.self)
    if let bytes = rest.baseAddress { memcpy(cell + 4, bytes, rest.count) }
  }

  /// Writes a level's page and empties it. Returns the page's number.
  private func write(_ level: Int, lastChild: UInt32) throws -> UInt32 {
    let (page, number) = try pages.next()
    fill(page, level, lastChild: lastChild)
    levels[level].cells = 0
    levels[level].content = usable
    levels[level].contentBefore = usable
    return number
  }

  private func fill(_ page: UnsafeMutableRawPointer, _ level: Int, lastChild: UInt32) {
    let from = levels[level]
    let header = headerBytes(level)
    let offsetsEnd = header + 2 * from.cells
    memcpy(page, from.page, offsetsEnd)
    memset(page + offsetsEnd, 0, from.content - offsetsEnd)
    memcpy(page + from.content, from.page + from.content, usable - from.content)
    memset(page + usable, 0, SQLiteLayout.pageBytes - usable)
    let type: UInt8 = kind == .table ? (level == 0 ? 13 : 5) : (level == 0 ? 10 : 2)
    memset(page, 0, 8)
    page.storeBytes(of: type, as: UInt8.self)
    page.storeBytes(of: UInt16(from.cells).bigEndian, toByteOffset: 3, as: UInt16.self)
    page.storeBytes(of: UInt16(from.content).bigEndian, toByteOffset: 5, as: UInt16.self)
    if level > 0 { page.storeBytes(of: lastChild.bigEndian, toByteOffset: 8, as: UInt32.self) }
  }
}
