// A valid file may end before its last page. LMDB never writes pages that one transaction takes and frees
// again. These pages have the greatest numbers and are all in the free list. So if the free list contains all
// missing pages, the short file has lost no page in use. This check therefore reads only the free list.

import Storage

extension PageCheck {
  /// The maximum number of free-list pages that are read: 16 MB. Such a list covers some 8 GB of free space.
  /// If it hasn't named all missing pages by then, the file is trusted. This keeps the cost of opening
  /// constant.
  static let maximumListPages = 4_096

  /// Reports a file that ends before pages that may be in use. Reads the newest records of the free list
  /// first, because unwritten pages were mostly freed recently.
  mutating func checkMissingPages() {
    guard file.pages <= meta.lastPage else { return }
    var search = Search(first: file.pages, missing: Int(meta.lastPage - file.pages) + 1)
    let before = faults.count
    if !meta.free.isEmpty { visitFreeList(meta.free.root, level: 1, &search) }
    guard faults.count == before, search.missing > 0, search.pagesLeft > 0 else { return }
    report("the file has \(file.pages) pages, but its last page should be \(meta.lastPage)")
  }

  private struct Search {
    /// The first page that the file lacks.
    let first: UInt64
    /// The number of missing pages not found in the list so far.
    var missing: Int
    var found = PageSet()
    var pagesLeft = PageCheck.maximumListPages

    init(first: UInt64, missing: Int) {
      self.first = first
      self.missing = missing
    }

    var goesOn: Bool { missing > 0 && pagesLeft > 0 }
  }

  private mutating func visitFreeList(_ page: UInt64, level: Int, _ search: inout Search) {
    guard search.goesOn else { return }
    search.pagesLeft -= 1
    let name = "the free list"
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: file.pageBytes, alignment: 8)
    defer { bytes.deallocate() }
    let depth = Int(meta.free.depth)
    guard depth <= Self.maximumDepth else { return report("\(name) has an impossible depth of \(depth)") }
    let isLeaf = level == depth
    guard load(page, isLeaf ? PageFlags.leaf : PageFlags.branch, name, bytes),
      let nodes = nodes(of: page, isLeaf: isLeaf, UnsafeRawBufferPointer(bytes), name)
    else { return }
    for node in nodes.reversed() where search.goesOn {
      if !isLeaf {
        visitFreeList(node.child, level: level + 1, &search)
        continue
      }
      let isOutside = node.flags & NodeFlags.overflow != 0
      guard node.end + (isOutside ? 8 : node.valueBytes) <= bytes.count, node.valueBytes >= 8 else {
        return report("\(name): page \(page) has a node past its end")
      }
      if isOutside {
        let first = bytes.loadUnaligned(fromByteOffset: node.end, as: UInt64.self)
        readRecord(onPages: first, node.valueBytes, &search)
      } else {
        let value = UnsafeRawBufferPointer(rebasing: bytes[node.end..<(node.end + node.valueBytes)])
        var left = min(Int(clamping: value.loadUnaligned(as: UInt64.self)), value.count / 8 - 1)
        _ = take(UnsafeRawBufferPointer(rebasing: value[8...]), &left, &search)
      }
    }
  }

  /// Reads a record on overflow pages. Its page numbers descend, so reading stops at the first page that the
  /// file has.
  private mutating func readRecord(onPages first: UInt64, _ valueBytes: Int, _ search: inout Search) {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: file.pageBytes, alignment: 8)
    defer { bytes.deallocate() }
    guard load(first, PageFlags.overflow, "the free list", bytes) else { return }
    var left = min(
      Int(clamping: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self)), valueBytes / 8 - 1)
    var start = 24
    var page = first
    while search.goesOn, take(UnsafeRawBufferPointer(rebasing: bytes[start...]), &left, &search) {
      search.pagesLeft -= 1
      page += 1
      start = 0
      guard page <= meta.lastPage, file.read(page, into: bytes) else {
        return report("the free list: page \(page) can't be read")
      }
    }
  }

  /// Notes the numbers of missing pages. Returns true if more may follow on the next page.
  private mutating func take(_ bytes: UnsafeRawBufferPointer, _ left: inout Int, _ search: inout Search)
    -> Bool
  {
    var offset = 0
    while left > 0, offset + 8 <= bytes.count {
      let number = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      guard number >= search.first, number <= meta.lastPage else { return false }
      if search.found.insert(number - search.first) { search.missing -= 1 }
      offset += 8
      left -= 1
    }
    return left > 0
  }
}
