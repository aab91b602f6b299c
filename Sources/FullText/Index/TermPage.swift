#if canImport(Glibc)
  import Glibc
#endif

// Terms in order, by which their postings are found.
//
//   page   := entry*
//   entry  := shared:varint  restLength:varint  rest  kind:varint  body     term = shared bytes of the one before + rest
//   kind   := documents * 2 + (1 when the list has blocks)                  documents: how many have the term
//   body   := list:varint                  with blocks
//           | length:varint  list          in place (PostingBlock.swift)
//
// Terms are whole, of any length. A page's key is a separator, above all of its terms and not above the next page's.

/// What a page has of a term.
struct TermEntry {
  /// How many documents have it.
  var documents: UInt32
  /// The number of its list of blocks; nil when `inline` is all of it.
  var list: UInt32?
  var inline: UnsafeRawBufferPointer

  @inline(__always)
  init(_ scanner: inout ByteScanner) throws {
    let kind = try scanner.varint64()
    guard let documents = UInt32(exactly: kind >> 1), documents > 0 else { throw InvertedIndexFormat.damaged }
    self.documents = documents
    if kind & 1 == 1 {
      let list = try scanner.varint32()
      guard list >= InvertedIndexFormat.firstPostingList else { throw InvertedIndexFormat.damaged }
      self.list = list
      inline = UnsafeRawBufferPointer(start: nil, count: 0)
    } else {
      inline = try scanner.bytes(try scanner.length())
      guard Int(documents) <= inline.count else { throw InvertedIndexFormat.damaged }
    }
  }

  init(documents: UInt32, list: UInt32) {
    self.documents = documents
    self.list = list
    inline = UnsafeRawBufferPointer(start: nil, count: 0)
  }
}

/// Goes through the entries of a page.
struct TermPageEntries: ~Copyable {
  private var scanner: ByteScanner
  /// The term of the entry that was read last.
  private(set) var term = GrowingBytes(capacity: 64)

  init(_ page: UnsafeRawBufferPointer) { scanner = ByteScanner(page) }

  /// The next entry; nil behind the last.
  mutating func next() throws -> TermEntry? {
    if scanner.isAtEnd { return nil }
    let shared = try scanner.length()
    let rest = try scanner.bytes(try scanner.length())
    guard shared <= term.count else { throw InvertedIndexFormat.damaged }
    term.truncate(to: shared)
    term.append(rest)
    return try TermEntry(&scanner)
  }
}

enum TermPage {
  /// The entry of a term, without making the terms before it.
  static func find(_ term: UnsafeRawBufferPointer, in page: UnsafeRawBufferPointer) throws -> TermEntry? {
    var scanner = ByteScanner(page)
    // How many bytes the entry before has in common with the term, below which it is.
    var common = 0
    while !scanner.isAtEnd {
      let shared = try scanner.length()
      let rest = try scanner.bytes(try scanner.length())
      // Alike to the one before beyond where that differs: below as well. Less alike: above, and so all behind it.
      if shared < common { return nil }
      if shared == common {
        let limit = min(rest.count, term.count - common)
        var index = 0
        while index < limit, rest[index] == term[common + index] { index += 1 }
        if index == limit {
          if rest.count == term.count - common { return try TermEntry(&scanner) }
          // A term that begins with the one that is looked for is above it.
          if index == term.count - common { return nil }
        } else if rest[index] > term[common + index] {
          return nil
        }
        common += index
      }
      _ = try TermEntry(&scanner)
    }
    return nil
  }

  /// The key under which the page lies, or would lie, that has a term: the first key at or above this.
  static func seekKey(_ term: UnsafeRawBufferPointer) -> [UInt8] {
    var key: [UInt8] = []
    let length = min(term.count, InvertedIndexFormat.separatorBytes + 8)
    key.reserveCapacity(length + 2)
    key.append(InvertedIndexFormat.termPageTag)
    key.append(contentsOf: UnsafeRawBufferPointer(rebasing: term[..<length]))
    // The separator has to be above the term, and nothing is between a term and this.
    key.append(0)
    return key
  }

  /// A key above `last` and not above `next`, which is behind it; nil when it would be too long.
  static func separator(after last: UnsafeRawBufferPointer, before next: UnsafeRawBufferPointer) -> [UInt8]? {
    var common = 0
    while common < last.count, common < next.count, last[common] == next[common] { common += 1 }
    guard common < InvertedIndexFormat.separatorBytes, common < next.count else { return nil }
    return [InvertedIndexFormat.termPageTag] + next[...common]
  }

  /// Below, at or above 0, as engines compare keys.
  @inline(__always)
  static func compare(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
    let shorter = min(left.count, right.count)
    if shorter > 0, let first = left.baseAddress, let second = right.baseAddress {
      let order = memcmp(first, second, shorter)
      if order != 0 { return Int(order) }
    }
    return left.count - right.count
  }
}

/// Makes a page of entries that come in order.
struct TermPageEncoder: ~Copyable {
  private(set) var page = GrowingBytes(capacity: 2_048)
  private(set) var last = GrowingBytes(capacity: 64)

  var isEmpty: Bool { page.count == 0 }
  var size: Int { page.count }

  mutating func removeAll() {
    page.removeAll()
    last.removeAll()
  }

  /// Adds an entry.
  mutating func append(_ term: UnsafeRawBufferPointer, _ entry: TermEntry) {
    var shared = 0
    let old = last.bytes
    while shared < old.count, shared < term.count, old[shared] == term[shared] { shared += 1 }
    let rest = UnsafeRawBufferPointer(rebasing: term[shared...])
    page.append(varint: UInt64(shared))
    page.append(varint: UInt64(rest.count))
    page.append(rest)
    if let list = entry.list {
      page.append(varint: UInt64(entry.documents) << 1 | 1)
      page.append(varint: list)
    } else {
      page.append(varint: UInt64(entry.documents) << 1)
      page.append(varint: UInt64(entry.inline.count))
      page.append(entry.inline)
    }
    last.truncate(to: shared)
    last.append(rest)
  }
}
