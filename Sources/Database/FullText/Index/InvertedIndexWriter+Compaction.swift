import Bytes
import Storage

extension InvertedIndexWriter {
  /// Packs lists and pages that changes have left partly empty.
  ///
  /// The blocks of a list are written again if that saves a block. Short lists move into their term pages.
  /// Term pages are filled. Packed lists and pages aren't written.
  package func compact(in transaction: any WriteTransaction) throws {
    try finish(in: transaction)
    var packer = ListPacker(keyspaces, columns: state.columns, transaction)
    var isChanged = false
    var pages = 0
    var bytes = 0
    var next: [UInt8]? = [InvertedIndexFormat.termPageTag]
    let cursor = try transaction.cursor(in: keyspaces.terms, .termPages)
    // Lists come first. The pages are written again only if a list has moved into its page or if they have
    // much free space.
    while let key = next {
      guard try cursor.seek(key.span.bytes) else { break }
      let (pageKey, page) = try cursor.withEntry { ([UInt8](copying: $0), [UInt8](copying: $1)) }
      next = pageKey + [0]
      pages += 1
      bytes += page.count
      if let packed = try packer.pack(page) {
        isChanged = true
        bytes += packed.count - page.count
        try transaction.put(pageKey, packed, in: keyspaces.terms)
      }
    }
    if isChanged || bytes < pages * InvertedIndexFormat.termPageBytes * 3 / 4 { try packPages(transaction) }
  }

  /// Writes all term pages again, filled.
  private func packPages(_ transaction: any WriteTransaction) throws {
    var output = TermPageEncoder()
    var isBegun = false
    let cursor = try transaction.cursor(in: keyspaces.terms, .termPages)
    // Each page is deleted after it was read. New pages have keys below the pages that are still unread.
    var sought: [UInt8] = [InvertedIndexFormat.termPageTag]
    while try cursor.seek(sought.span.bytes) {
      let (key, page) = try cursor.withEntry { ([UInt8](copying: $0), [UInt8](copying: $1)) }
      try transaction.delete(key.span.bytes, in: keyspaces.terms)
      try page.withUnsafeBytes { page in
        var entries = TermPageEntries(page)
        while let entry = try entries.next() {
          let term = entries.term.bytes
          if output.size >= InvertedIndexFormat.termPageBytes,
            let separator = TermPage.separator(after: output.last.bytes, before: term)
          {
            try transaction.put(separator.span.bytes, output.page.bytes.bytes, in: keyspaces.terms)
            output.removeAll()
          }
          output.append(term, entry)
          isBegun = true
        }
      }
      sought = key + [0]
    }
    guard isBegun, !output.isEmpty else { return }
    let last = InvertedIndexFormat.lastTermPageKey
    try transaction.put(last.span.bytes, output.page.bytes.bytes, in: keyspaces.terms)
  }
}

/// Packs the posting lists of a term page.
private struct ListPacker: ~Copyable {
  private let keyspaces: InvertedIndexKeyspaces
  private let columns: Int
  private let transaction: any WriteTransaction
  private var encoder: PostingEncoder
  private var encoded = ByteBuffer(capacity: 2_048)

  init(_ keyspaces: InvertedIndexKeyspaces, columns: Int, _ transaction: any WriteTransaction) {
    self.keyspaces = keyspaces
    self.columns = columns
    self.transaction = transaction
    encoder = PostingEncoder(columns: columns)
  }

  /// Packs the lists of a page. Returns the new page, or nil if the page doesn't change.
  mutating func pack(_ page: [UInt8]) throws -> [UInt8]? {
    var output = TermPageEncoder()
    var isChanged = false
    try page.withUnsafeBytes { page in
      var entries = TermPageEntries(page)
      while let entry = try entries.next() {
        var packed = entry
        if let list = entry.list, try pack(list) {
          isChanged = true
          packed.list = nil
          packed.inline = encoded.bytes
        }
        output.append(entries.term.bytes, packed)
      }
    }
    return isChanged ? [UInt8](output.page.bytes) : nil
  }

  /// Packs a list. Returns true if the list is short enough for its term page. Then `encoded` has the list,
  /// and its blocks are deleted.
  private mutating func pack(_ list: UInt32) throws -> Bool {
    var blocks: [(key: UInt64, value: [UInt8])] = []
    var bytes = 0
    try transaction.scan(keyspaces.blocks, InvertedIndexFormat.range(ofList: list)) { key, value in
      blocks.append((try InvertedIndexFormat.number(ofKey: key), [UInt8](copying: value)))
      bytes += value.byteCount
      return true
    }
    let isShort = bytes <= InvertedIndexFormat.inlineBytes
    // Packing is worthwhile when it saves a block. The last block is seldom full.
    guard isShort || bytes <= (blocks.count - 1) * InvertedIndexFormat.blockBytes * 9 / 10 else {
      return false
    }
    for block in blocks { try transaction.remove(block.key, in: keyspaces.blocks) }
    encoder.removeAll()
    for block in blocks {
      try block.value.withUnsafeBytes { bytes in
        let header = try PostingBlockHeader(bytes)
        var postings = StoredPostings(block: header, columns: columns)
        while let posting = try postings.next() {
          encoder.append(posting, length: header.shortest)
          guard !isShort, encoder.count > 1,
            encoder.size > InvertedIndexFormat.blockBytes
              || encoder.count > InvertedIndexFormat.blockPostings
          else { continue }
          encoder.removeLast()
          try write(list, upper: encoder.lastDocument)
          encoder.removeAll()
          encoder.append(posting, length: header.shortest)
        }
      }
    }
    guard isShort else {
      try write(list, upper: InvertedIndexFormat.lastDocument)
      return false
    }
    encoded.removeAll()
    encoder.write(listTo: &encoded)
    return true
  }

  private mutating func write(_ list: UInt32, upper: UInt32) throws {
    encoded.removeAll()
    encoder.write(blockTo: &encoded)
    try transaction.put(
      InvertedIndexFormat.blockKey(list, upper), encoded.bytes, in: keyspaces.blocks)
  }
}
