import Bytes

// Pages of terms in byte order, with the postings of each term.
//
//   page   := entry*
//   entry  := shared:varint  restLength:varint  rest  kind:varint  body     term = shared bytes of the one before + rest
//   kind   := documents * 2 + (1 when the list has blocks)                  documents: how many have the term
//   body   := list:varint                  with blocks
//           | length:varint  list          in place (PostingBlock.swift)
//
// Terms are stored whole, of any length. The key of a page is a separator. It is above all terms of the page
// and not above the terms of the next page.

/// The entry of a term in a page.
struct TermEntry {
  /// The number of documents that have the term.
  var documents: UInt32
  /// The number of the list of blocks; nil if `inline` has the whole list.
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

  init(
    documents: UInt32, list: UInt32? = nil,
    inline: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
  ) {
    self.documents = documents
    self.list = list
    self.inline = inline
  }
}

/// Reads the entries of a page.
struct TermPageEntries: ~Copyable {
  private var scanner: ByteScanner
  /// The term of the last entry that was read.
  private(set) var term = ByteBuffer(capacity: 64)

  init(_ page: UnsafeRawBufferPointer) { scanner = ByteScanner(page) }

  /// Returns the next entry, or nil after the last one.
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
  /// Finds the entry of a term without building the other terms.
  static func find(_ term: UnsafeRawBufferPointer, in page: UnsafeRawBufferPointer) throws -> TermEntry? {
    var scanner = ByteScanner(page)
    // The number of bytes that the entry before has in common with the term. That entry is below the term.
    var common = 0
    while !scanner.isAtEnd {
      let shared = try scanner.length()
      let rest = try scanner.bytes(try scanner.length())
      // shared > common: the entry is below the term too. shared < common: the entry and all later ones are
      // above.
      if shared < common { return nil }
      if shared == common {
        let limit = min(rest.count, term.count - common)
        var index = 0
        while index < limit, rest[index] == term[common + index] { index += 1 }
        if index == limit {
          if rest.count == term.count - common { return try TermEntry(&scanner) }
          // An entry that begins with the term and is longer is above it.
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

  /// Returns the key to seek for a term. The first page key at or above it is the key of the term's page.
  static func seekKey(_ term: UnsafeRawBufferPointer) -> [UInt8] {
    var key: [UInt8] = []
    let length = min(term.count, InvertedIndexFormat.separatorBytes + 8)
    key.reserveCapacity(length + 2)
    key.append(InvertedIndexFormat.termPageTag)
    key.append(contentsOf: UnsafeRawBufferPointer(rebasing: term[..<length]))
    // The separator must be above the term. No key is between the term and the term with this byte.
    key.append(0)
    return key
  }

  /// Returns the shortest key that is above `last` and not above the next term, or nil if it would be too
  /// long.
  static func separator(after last: UnsafeRawBufferPointer, before next: UnsafeRawBufferPointer) -> [UInt8]? {
    var common = 0
    while common < last.count, common < next.count, last[common] == next[common] { common += 1 }
    guard common < InvertedIndexFormat.separatorBytes, common < next.count else { return nil }
    return [InvertedIndexFormat.termPageTag] + next[...common]
  }
}

/// Encodes a page of entries. Terms must ascend.
struct TermPageEncoder: ~Copyable {
  private(set) var page = ByteBuffer(capacity: 2_048)
  private(set) var last = ByteBuffer(capacity: 64)

  var isEmpty: Bool { page.count == 0 }
  var size: Int { page.count }

  mutating func removeAll() {
    page.removeAll()
    last.removeAll()
  }

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
