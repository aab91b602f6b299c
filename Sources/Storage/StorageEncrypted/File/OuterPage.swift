import Storage
import StorageLMDB

/// A test that separates LMDB's own pages of an encrypted file from the pages with records. LMDB's own pages
/// hold numbers and no data.
///
/// Use it to judge a file by its bytes. A page counts as LMDB's only if its entire content is what LMDB
/// stores there for this engine.
enum OuterPage {
  /// The maximum size of values in the outer trees that aren't records. The longest are the file's header and
  /// the tree records.
  private static let maximumInlineBytes = 128
  /// The maximum size of keys: numbers of records, and the names of the two named databases.
  private static let maximumKeyBytes = 8
  /// A page of encrypted bytes has as many printable characters in a row once in a billion.
  private static let maximumTextBytes = 24
  /// A limit above every page number and transaction number.
  private static let maximumNumber: UInt64 = 1 << 40

  /// Returns whether the page at an offset of the file is LMDB's.
  static func isStructure(_ page: UnsafeRawBufferPointer, at offset: Int) -> Bool {
    guard page.count == RecordFormat.pageBytes else { return false }
    if areNumbers(page[...]) { return true }
    guard page.loadUnaligned(as: UInt64.self) == UInt64(offset / RecordFormat.pageBytes) else { return false }
    switch word(page, 10) {
    case Int(PageFlags.meta):
      return offset < 2 * RecordFormat.pageBytes && page[MetaPage.size...].allSatisfy { $0 == 0 }
    case Int(PageFlags.leaf): return areNodes(page, isLeaf: true)
    case Int(PageFlags.branch): return areNodes(page, isLeaf: false)
    // A long list of free pages, with its length in front. LMDB doesn't clear what is behind it on its last page: remains of
    // other pages, which may be numbers and encrypted bytes.
    case Int(PageFlags.overflow):
      let numbers = page[RecordFormat.pageHeaderBytes...]
      let count = page.loadUnaligned(fromByteOffset: RecordFormat.pageHeaderBytes, as: UInt64.self)
      guard count < UInt64(numbers.count / 8) else { return areNumbers(numbers) }
      let list = numbers.prefix(8 * (Int(count) + 1))
      return areNumbers(list) && !hasText(numbers[list.endIndex...])
    default: return false
    }
  }

  private static func word(_ page: UnsafeRawBufferPointer, _ offset: Int) -> Int {
    Int(page.loadUnaligned(fromByteOffset: offset, as: UInt16.self))
  }

  private static func areNumbers(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
    let bytes = UnsafeRawBufferPointer(rebasing: bytes)
    for offset in stride(from: 0, to: bytes.count - 7, by: 8)
    where bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) >= maximumNumber { return false }
    return true
  }

  /// Whether there are so many printable characters in a row as encrypted bytes don't have by chance.
  private static func hasText(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
    var length = 0
    for byte in bytes {
      length = byte >= 0x20 && byte < 0x7F ? length + 1 : 0
      if length == maximumTextBytes { return true }
    }
    return false
  }

  private static func areNodes(_ page: UnsafeRawBufferPointer, isLeaf: Bool) -> Bool {
    let (lower, upper) = (word(page, 12), word(page, 14))
    guard lower >= RecordFormat.pageHeaderBytes, lower <= upper, upper <= page.count else { return false }
    for position in stride(from: RecordFormat.pageHeaderBytes, to: lower - 1, by: 2) {
      let node = word(page, position)
      guard node >= upper, node + 8 <= page.count else { return false }
      let keyBytes = word(page, node + 6)
      guard keyBytes <= maximumKeyBytes, node + 8 + keyBytes <= page.count else { return false }
      let isOutside = UInt16(word(page, node + 4)) & NodeFlags.overflow != 0
      guard isLeaf, !isOutside else { continue }
      let start = node + 8 + keyBytes
      let count = Int(page.loadUnaligned(fromByteOffset: node, as: UInt32.self))
      guard start + count <= page.count else { return false }
      let isRoot = keyBytes == 8 && count == RootRecord.byteCount
      guard isRoot || count <= maximumInlineBytes || areNumbers(page[start..<(start + count)]) else {
        return false
      }
    }
    return true
  }
}
