import Bytes
import Storage

/// Checks that an inverted index has exactly the postings that the documents' texts give. One thread at a
/// time.
///
/// Each occurrence of a word has a number, made from the word, its document, its column and its position. The
/// sums of these numbers per document must be equal for the texts and for the index. Memory use is a few
/// bytes per document.
package final class InvertedIndexCheck {
  private let reader: InvertedIndexReader
  private let analyzer: TextAnalyzer
  private let pages: DocumentPages
  private let identifiers = DocumentIdentifiers()
  private var sums: [UInt64]
  private var isExpected: [Bool]
  private var documents: UInt64 = 0
  private var tokens: UInt64 = 0

  /// Creates a check of an index. The analyzer must have the options of the index.
  ///
  /// - Throws: `StorageError` with the code `damaged` if the index can't be read.
  package init(_ reader: InvertedIndexReader, analyzer: TextAnalyzer) throws {
    // Each number takes at least one byte in the pages of IDs. This bounds the memory that a wrong count can
    // ask for.
    var bytes = 0
    try reader.transaction.scan(
      reader.keyspaces.blocks, InvertedIndexFormat.range(ofList: InvertedIndexFormat.documentList)
    ) { _, value in
      bytes += value.byteCount
      return true
    }
    guard Int(reader.state.nextDocument) <= bytes else { throw InvertedIndexFormat.damaged }
    self.reader = reader
    self.analyzer = analyzer
    pages = DocumentPages(reader.keyspaces, reader.state, reader.transaction)
    sums = Array(repeating: 0, count: Int(reader.state.nextDocument))
    isExpected = Array(repeating: false, count: Int(reader.state.nextDocument))
  }

  private static func value(_ term: UInt64, _ column: Int, _ position: UInt64) -> UInt64 {
    var value = term ^ (UInt64(column) << 40 &+ position &+ 1) &* 0x9E37_79B9_7F4A_7C15
    value = (value ^ value >> 31) &* 0xBF58_476D_1CE4_E5B9
    return value ^ value >> 29
  }

  /// Adds a document and its texts. Call it once for each document. Returns a description of a fault, or nil.
  package func add(_ id: UnsafeRawBufferPointer, _ texts: [UnsafeRawBufferPointer]) throws -> String? {
    var sum: UInt64 = 0
    var length: UInt64 = 0
    for (column, text) in texts.enumerated() where text.count > 0 {
      analyzer.analyze(text) { term, token in
        sum &+= InvertedIndexCheck.value(
          ByteHash.of(term, 0), column, UInt64(truncatingIfNeeded: token.position))
        length += 1
      }
    }
    let number = try pages.number(of: id)
    if length == 0 { return number == nil ? nil : "has the document '\(id.text)', although it has no words" }
    guard let number else { return "doesn't have the document '\(id.text)'" }
    guard Int(number) < sums.count, !isExpected[Int(number)] else {
      return "has a wrong number for document '\(id.text)'"
    }
    isExpected[Int(number)] = true
    sums[Int(number)] = sum
    documents += 1
    tokens += length
    let isRight = compareBytes(try identifiers.id(of: number, in: reader), id) == 0
    if !isRight { return "has another document under the number of '\(id.text)'" }
    if try reader.length(of: number) != length { return "has a wrong length of document '\(id.text)'" }
    return nil
  }

  /// Finishes the check after all documents were added. Calls `report` with each fault.
  package func finish(_ report: (String) throws -> Void) throws {
    let (state, transaction) = (reader.state, reader.transaction)
    if documents != state.documents {
      try report("says it has \(state.documents) documents, but has \(documents)")
    }
    if tokens != state.tokens { try report("says it has \(state.tokens) words, but has \(tokens)") }
    var blocks = 0
    var last: [UInt8] = []
    try transaction.scan(reader.keyspaces.terms, .termPages) { key, value in
      // The key without its tag.
      let separator = key.extracting(droppingFirst: 1)
      try value.withUnsafeBytes { page in
        var entries = TermPageEntries(page)
        while let entry = try entries.next() {
          let term = entries.term.bytes
          let isOrdered = last.withUnsafeBytes { compareBytes($0, term) < 0 }
          let isBelow = separator.withUnsafeBytes { compareBytes(term, $0) < 0 }
          if !isOrdered || !isBelow { try report("has the word '\(term.text)' out of its place") }
          last = [UInt8](term)
          let count = try check(term, entry, &blocks, report)
          if count != Int(entry.documents) {
            try report("says it has \(entry.documents) documents with '\(term.text)', but has \(count)")
          }
        }
      }
      return true
    }
    try checkDocuments(&blocks, report)
    let stored = try transaction.count(of: reader.keyspaces.blocks)
    if stored != blocks { try report("has \(stored) blocks, but only \(blocks) are in use") }
    for number in sums.indices where sums[number] != 0 {
      let id = (try? identifiers.id(of: UInt32(number), in: reader))?.text
      try report(
        isExpected[number]
          ? "has wrong words of document '\(id ?? "?")'" : "has words of a document that doesn't exist")
    }
  }

  /// Subtracts the postings of a term from the sums. Returns the number of postings.
  private func check(
    _ term: UnsafeRawBufferPointer, _ entry: TermEntry, _ blocks: inout Int, _ report: (String) throws -> Void
  ) throws -> Int {
    let hash = ByteHash.of(term, 0)
    guard let list = entry.list else {
      var postings = try StoredPostings(
        list: entry.inline, count: Int(entry.documents), columns: reader.state.columns)
      var count = 0
      while let posting = try postings.next() {
        count += 1
        try take(posting, hash)
      }
      return count
    }
    var count = 0
    var floor: UInt64 = 0
    try reader.transaction.scan(reader.keyspaces.blocks, InvertedIndexFormat.range(ofList: list)) {
      key, value in
      let upper = try InvertedIndexFormat.number(ofKey: key) & 0xFFFF_FFFF
      try value.withUnsafeBytes { block in
        let header = try PostingBlockHeader(block)
        var postings = StoredPostings(block: header, columns: reader.state.columns)
        var isRight = true
        while let posting = try postings.next() {
          count += 1
          let number = posting.document
          if UInt64(number) > upper || UInt64(number) < floor || posting.frequency > header.maximumFrequency {
            isRight = false
          }
          try take(posting, hash)
          if number < reader.state.nextDocument, try reader.length(of: number) < header.shortest {
            try report("has a block of '\(term.text)' with a wrong bound of lengths")
          }
        }
        if !isRight { try report("has a block of '\(term.text)' with wrong bounds") }
      }
      floor = upper + 1
      blocks += 1
      return true
    }
    return count
  }

  private func take(_ posting: StoredPosting, _ hash: UInt64) throws {
    guard Int(posting.document) < sums.count else { throw InvertedIndexFormat.damaged }
    var details = ByteScanner(posting.details)
    var positions = ByteScanner(posting.positions)
    var sum: UInt64 = 0
    func run(_ column: Int, _ count: UInt32) throws {
      var position: UInt64 = 0
      for _ in 0..<count {
        position += UInt64(try positions.varint32())
        sum &+= InvertedIndexCheck.value(hash, column, position)
      }
    }
    if reader.state.columns == 1 {
      try run(0, posting.frequency)
    } else if posting.isSimple {
      try run(Int(try details.varint32()), 1)
    } else {
      for _ in 0..<(try details.varint32()) { try run(Int(try details.varint32()), try details.varint32()) }
    }
    sums[Int(posting.document)] &-= sum
  }

  /// Counts the pages of IDs and of lengths, and checks their numbers.
  private func checkDocuments(_ blocks: inout Int, _ report: (String) throws -> Void) throws {
    var number: UInt32 = 0
    var there: UInt64 = 0
    try reader.transaction.scan(
      reader.keyspaces.blocks, InvertedIndexFormat.range(ofList: InvertedIndexFormat.documentList)
    ) { key, value in
      blocks += 1
      try value.withUnsafeBytes { value in
        var page = try DocumentPage(value)
        if page.first != number { try report("has a page of documents out of its place") }
        var id = ByteBuffer(capacity: 64)
        while !page.isAtEnd { if try page.next(&id) { there += 1 } }
        number = page.nextNumber
      }
      return true
    }
    if number != reader.state.nextDocument {
      try report("has \(number) document numbers, but \(reader.state.nextDocument) were given out")
    }
    if there != reader.state.documents {
      try report("has the IDs of \(there) documents, but says it has \(reader.state.documents)")
    }
    try reader.transaction.scan(
      reader.keyspaces.blocks, InvertedIndexFormat.range(ofList: InvertedIndexFormat.lengthList)
    ) { _, value in
      blocks += 1
      _ = try value.withUnsafeBytes { try LengthPage($0) }
      return true
    }
  }
}

extension UnsafeRawBufferPointer {
  /// The text for messages, from at most 200 bytes.
  fileprivate var text: String { String(decoding: prefix(200), as: UTF8.self) }
}
