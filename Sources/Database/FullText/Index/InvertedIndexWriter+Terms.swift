import Bytes
import Storage

extension InvertedIndexWriter {
  /// Writes the postings of all terms that documents have changed.
  func writeTerms(_ transaction: any WriteTransaction) throws {
    let session = try TermSession(self, transaction)
    try pending.forEachTerm { try session.apply($0, $1) }
    try session.finishPage()
    state.nextList = session.nextList
  }
}

/// One pass over the terms in byte order. It reads, changes and writes one term page after the other.
private final class TermSession {
  /// The change of a document's posting.
  private struct Change: BitwiseCopyable {
    var document: UInt32
    /// The start of the new occurrences. `count` is 0 if the posting is removed.
    var start: Int
    var count: Int
  }

  private struct Gathered: BitwiseCopyable {
    var term: (start: Int, count: Int)
    var documents: UInt32
    /// The number of the list, or 0 if the entry has none.
    var list: UInt32
    var inline: (start: Int, count: Int)
  }

  private let writer: InvertedIndexWriter
  private let transaction: any WriteTransaction
  private let keyspaces: InvertedIndexKeyspaces
  private let columns: Int
  private let isFresh: Bool
  private let lengths: DocumentLengths
  private let pages: any Cursor
  private let blocks: any Cursor
  private(set) var nextList: UInt32

  /// The key of the current page; empty if there is none.
  private var pageKey: [UInt8] = []
  @exclusivity(unchecked) private var page = PageCopy()
  /// The reader of the current page. `ahead` is the entry that was read last and isn't used yet.
  @exclusivity(unchecked) private var entries = TermPageEntries(UnsafeRawBufferPointer(start: nil, count: 0))
  private var ahead: TermEntry?
  private var isPageStored = false
  private var pageHasChanged = false

  // The entries of the changed page.
  @exclusivity(unchecked) private var gathered: [Gathered] = []
  @exclusivity(unchecked) private var termBytes = ByteBuffer(capacity: 4_096)
  @exclusivity(unchecked) private var inlineBytes = ByteBuffer(capacity: 4_096)

  @exclusivity(unchecked) private var changes: [Change] = []
  @exclusivity(unchecked) private var encoder: PostingEncoder
  @exclusivity(unchecked) private var block = PageCopy()
  @exclusivity(unchecked) private var encoded = ByteBuffer(capacity: 2_048)

  init(_ writer: InvertedIndexWriter, _ transaction: any WriteTransaction) throws {
    self.writer = writer
    self.transaction = transaction
    keyspaces = writer.keyspaces
    columns = writer.state.columns
    isFresh = writer.isFresh
    nextList = writer.state.nextList
    lengths = DocumentLengths(writer.documents)
    pages = try transaction.cursor(in: keyspaces.terms, .termPages)
    blocks = try transaction.cursor(in: keyspaces.blocks, .all)
    encoder = PostingEncoder(columns: columns)
  }

  // MARK: Terms

  func apply(_ term: UnsafeRawBufferPointer, _ occurrences: UnsafeBufferPointer<Occurrence>) throws {
    collectChanges(occurrences)
    guard !changes.isEmpty else { return }
    try turn(to: term)
    var old: TermEntry?
    while let entry = ahead {
      let order = compareBytes(entries.term.bytes, term)
      if order > 0 { break }
      if order == 0 { old = entry } else { gather(entries.term.bytes, entry) }
      ahead = try entries.next()
      if order == 0 { break }
    }
    pageHasChanged = true
    guard let old, let list = old.list else {
      let inline = old?.inline ?? UnsafeRawBufferPointer(start: nil, count: 0)
      return try mergeInline(term, inline, Int(old?.documents ?? 0), occurrences)
    }
    let documents = try mergeBlocks(list, Int(old.documents), occurrences)
    if documents > 0 { gather(term, TermEntry(documents: UInt32(documents), list: list)) }
  }

  /// Collects the change of each document. Documents whose occurrences stay the same are left out.
  private func collectChanges(_ occurrences: UnsafeBufferPointer<Occurrence>) {
    changes.removeAll(keepingCapacity: true)
    var index = 0
    while index < occurrences.count {
      let document = occurrences[index].document
      let start = index
      while index < occurrences.count, occurrences[index].document == document, occurrences[index].isOld {
        index += 1
      }
      let middle = index
      while index < occurrences.count, occurrences[index].document == document { index += 1 }
      if middle > start, middle - start == index - middle,
        occurrences[start].flags & Occurrence.isForced == 0
      {
        var isSame = true
        for offset in 0..<(middle - start) {
          let (old, new) = (occurrences[start + offset], occurrences[middle + offset])
          if old.position != new.position || old.column != new.column { isSame = false }
        }
        if isSame { continue }
      }
      changes.append(Change(document: document, start: middle, count: index - middle))
    }
  }

  // MARK: Pages

  /// Moves to the page that contains the term or would contain it.
  private func turn(to term: UnsafeRawBufferPointer) throws {
    if !pageKey.isEmpty {
      let isHere = pageKey.withUnsafeBytes { key in
        compareBytes(term, UnsafeRawBufferPointer(rebasing: key.dropFirst())) < 0
      }
      if isHere { return }
      try finishPage()
    }
    page.removeAll()
    pageKey = InvertedIndexFormat.lastTermPageKey
    isPageStored = false
    let sought = TermPage.seekKey(term)
    if !isFresh, try pages.seek(sought.span.bytes) {
      try pages.lendEntry { key, value in
        pageKey = [UInt8](copying: key)
        page.take(value)
      }
      isPageStored = true
    }
    entries = TermPageEntries(page.bytes)
    ahead = try entries.next()
    pageHasChanged = false
  }

  private func gather(_ term: UnsafeRawBufferPointer, _ entry: TermEntry) {
    let start = termBytes.count
    termBytes.append(term)
    let inlineStart = inlineBytes.count
    inlineBytes.append(entry.inline)
    gathered.append(
      Gathered(
        term: (start, term.count), documents: entry.documents, list: entry.list ?? 0,
        inline: (inlineStart, entry.inline.count)))
  }

  /// Writes the changed entries of the current page to as many pages as they need, or deletes the page if it
  /// is empty.
  func finishPage() throws {
    guard !pageKey.isEmpty, pageHasChanged else {
      pageKey = []
      return
    }
    while let entry = ahead {
      gather(entries.term.bytes, entry)
      ahead = try entries.next()
    }
    // The size of an entry is about its bytes plus a few more.
    let total = gathered.reduce(0) { $0 + $1.inline.count + 4 } + termBytes.count * 2 / 3
    let limit = InvertedIndexFormat.termPageBytes
    let pieces = max(1, (total + limit - 1) / limit)
    let target = isFresh || pieces == 1 ? limit : max(limit / 2, total / pieces)
    var output = TermPageEncoder()
    for item in gathered {
      let term = UnsafeRawBufferPointer(
        rebasing: termBytes.bytes[item.term.start..<(item.term.start + item.term.count)])
      if output.size >= target, let key = TermPage.separator(after: output.last.bytes, before: term) {
        try write(key, output.page.bytes)
        output.removeAll()
      }
      let inline = UnsafeRawBufferPointer(
        rebasing: inlineBytes.bytes[item.inline.start..<(item.inline.start + item.inline.count)])
      let entry = TermEntry(
        documents: item.documents, list: item.list == 0 ? nil : item.list, inline: inline)
      output.append(term, entry)
    }
    if !output.isEmpty {
      try write(pageKey, output.page.bytes)
    } else if isPageStored {
      let key = pageKey
      try transaction.delete(key.span.bytes, in: keyspaces.terms)
    }
    gathered.removeAll(keepingCapacity: true)
    termBytes.removeAll()
    inlineBytes.removeAll()
    pageKey = []
  }

  private func write(_ key: [UInt8], _ page: UnsafeRawBufferPointer) throws {
    if isFresh {
      try transaction.append(key.span.bytes, page.bytes, in: keyspaces.terms)
    } else {
      try transaction.put(key.span.bytes, page.bytes, in: keyspaces.terms)
    }
  }

  // MARK: Lists

  private func part(
    _ change: Change, _ occurrences: UnsafeBufferPointer<Occurrence>
  ) -> UnsafeBufferPointer<Occurrence> {
    UnsafeBufferPointer(rebasing: occurrences[change.start..<(change.start + change.count)])
  }

  private func mergeInline(
    _ term: UnsafeRawBufferPointer, _ list: UnsafeRawBufferPointer, _ count: Int,
    _ occurrences: UnsafeBufferPointer<Occurrence>
  ) throws {
    // This many postings can't be inline: each takes at least two bytes.
    if count == 0, changes.count > InvertedIndexFormat.inlineBytes / 2 {
      return try writeNewList(term, occurrences)
    }
    encoder.removeAll()
    var stored = try StoredPostings(list: list, count: count, columns: columns)
    try merge(&stored, changes.indices, occurrences)
    guard encoder.count > 0 else { return }
    if encoder.size <= InvertedIndexFormat.inlineBytes {
      encoded.removeAll()
      encoder.write(listTo: &encoded)
      return gather(term, TermEntry(documents: UInt32(encoder.count), inline: encoded.bytes))
    }
    if count == 0 { return try writeNewList(term, occurrences) }
    // A list that has become too long for the term page moves to blocks.
    let number = try takeList()
    let documents = encoder.count
    // The bytes of the list may end when something is written.
    try [UInt8](list).withUnsafeBytes { copy in
      var stored = try StoredPostings(list: copy, count: count, columns: columns)
      encoder.removeAll()
      try merge(
        &stored, changes.indices, occurrences,
        into: Blocks(
          list: number, upper: InvertedIndexFormat.lastDocument, target: InvertedIndexFormat.blockBytes))
    }
    gather(term, TermEntry(documents: UInt32(documents), list: number))
  }

  private func takeList() throws -> UInt32 {
    guard nextList < InvertedIndexFormat.lastDocument else {
      throw StorageError(
        .valueTooLarge, "a full-text index has used all list numbers; delete it and make it again")
    }
    defer { nextList += 1 }
    return nextList
  }

  /// Writes the first postings of a term if they may be too many for the term page.
  private func writeNewList(
    _ term: UnsafeRawBufferPointer, _ occurrences: UnsafeBufferPointer<Occurrence>
  ) throws {
    encoder.removeAll()
    let documents = changes.count { $0.count > 0 }
    guard documents > 0 else { return }
    let number = try takeList()
    for change in changes where change.count > 0 {
      encoder.append(part(change, occurrences), length: lengths[change.document])
      if isOverfull(InvertedIndexFormat.blockBytes) {
        encoder.removeLast()
        try writeBlock(number, encoder.lastDocument)
        encoder.removeAll()
        encoder.append(part(change, occurrences), length: lengths[change.document])
      }
    }
    try writeBlock(number, InvertedIndexFormat.lastDocument)
    gather(term, TermEntry(documents: UInt32(documents), list: number))
  }

  /// Whether the last posting made the block too large.
  private func isOverfull(_ target: Int) -> Bool {
    encoder.count > 1
      && (encoder.size > target || encoder.count > InvertedIndexFormat.blockPostings)
  }

  private func writeBlock(_ list: UInt32, _ upper: UInt32) throws {
    guard encoder.count > 0 else { return }
    encoded.removeAll()
    encoder.write(blockTo: &encoded)
    let key = InvertedIndexFormat.blockKey(list, upper)
    if isFresh {
      try transaction.append(key, encoded.bytes, in: keyspaces.blocks)
    } else {
      try transaction.put(key, encoded.bytes, in: keyspaces.blocks)
    }
  }

  /// Writes the changes to the blocks of a list. Returns the new number of documents in the list.
  private func mergeBlocks(
    _ list: UInt32, _ documents: Int, _ occurrences: UnsafeBufferPointer<Occurrence>
  ) throws -> Int {
    var documents = documents
    var index = 0
    while index < changes.count {
      block.removeAll()
      var upper = InvertedIndexFormat.lastDocument
      var isStored = false
      if try blocks.seek(InvertedIndexFormat.blockKey(list, changes[index].document)) {
        try blocks.lendEntry { key, value in
          let key = try InvertedIndexFormat.number(ofKey: key)
          guard UInt32(truncatingIfNeeded: key >> 32) == list else { return }
          upper = UInt32(truncatingIfNeeded: key)
          block.take(value)
          isStored = true
        }
      }
      var end = index
      while end < changes.count, changes[end].document <= upper { end += 1 }
      let header = isStored ? try PostingBlockHeader(block.bytes) : nil
      let before = header?.count ?? 0
      let shortest = header?.shortest ?? .max
      let empty = UnsafeRawBufferPointer(start: nil, count: 0)
      func pass(_ target: Int) throws -> Int {
        var stored =
          try header.map { StoredPostings(block: $0, columns: columns) }
          ?? StoredPostings(list: empty, count: 0, columns: columns)
        encoder.removeAll()
        return try merge(
          &stored, index..<end, occurrences, into: Blocks(list: list, upper: upper, target: target),
          length: shortest)
      }
      // A full block in the middle is divided. A full last block is filled and continues in a new block.
      let limit = InvertedIndexFormat.blockBytes
      let growth = changes[index..<end].reduce(0) { $0 + $1.count * 4 + 8 }
      var target = limit
      let isFull = block.bytes.count + growth > limit
      if upper != InvertedIndexFormat.lastDocument, isFull { target = limit * 3 / 5 }
      let after = try pass(target)
      if after == 0, isStored {
        try transaction.remove(InvertedIndexFormat.blockKey(list, upper), in: keyspaces.blocks)
      }
      documents += after - before
      index = end
    }
    return documents
  }

  /// The blocks of a list, up to a document. Each is written when it has about `target` bytes.
  private struct Blocks {
    let list: UInt32
    let upper: UInt32
    let target: Int
  }

  /// Merges stored postings with some of the changes. They are written to blocks, or all of them stay in the
  /// encoder. Returns the number of postings.
  @discardableResult
  private func merge(
    _ stored: inout StoredPostings, _ range: Range<Int>, _ occurrences: UnsafeBufferPointer<Occurrence>,
    into blocks: Blocks? = nil, length: UInt32 = 0
  ) throws -> Int {
    var next = try stored.next()
    var index = range.lowerBound
    let end = range.upperBound
    var count = 0
    while true {
      let posting: StoredPosting?
      var change: Change?
      if let candidate = next, index == end || candidate.document < changes[index].document {
        posting = candidate
        next = try stored.next()
      } else {
        guard index < end else { break }
        if let candidate = next, candidate.document == changes[index].document { next = try stored.next() }
        posting = nil
        change = changes[index]
        index += 1
        if change?.count == 0 { continue }
      }
      func add() {
        if let posting { return encoder.append(posting, length: length) }
        if let change { encoder.append(part(change, occurrences), length: lengths[change.document]) }
      }
      add()
      count += 1
      if let blocks, isOverfull(blocks.target) {
        encoder.removeLast()
        try writeBlock(blocks.list, encoder.lastDocument)
        encoder.removeAll()
        add()
      }
    }
    if let blocks { try writeBlock(blocks.list, blocks.upper) }
    return count
  }
}
