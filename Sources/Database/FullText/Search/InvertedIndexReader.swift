import Bytes
import Storage

/// Reads an inverted index in a transaction. One thread at a time. Don't use it after the transaction has
/// ended.
package final class InvertedIndexReader {
  let transaction: any ReadTransaction
  let keyspaces: InvertedIndexKeyspaces
  let state: InvertedIndexState
  @exclusivity(unchecked) private var pages: (any Cursor)?
  @exclusivity(unchecked) private var lengthGroup: UInt32 = .max
  @exclusivity(unchecked) private var lengthPage = LengthPage()
  /// Called before a search reads a block of postings or a page of terms for a prefix. An error that it
  /// throws ends the search.
  package var check: () throws -> Void = {}
  /// Called with the bytes of memory that a search takes for each term of a prefix and for each of the best
  /// documents. The search keeps this memory until it is released. An error that it throws ends the search.
  package var take: (_ bytes: Int) throws -> Void = { _ in }

  /// Opens an index.
  ///
  /// - Parameter name: the name of the first keyspace of the index.
  /// - Throws: `StorageError` with the code `damaged` if the index doesn't exist or can't be read.
  package init(named name: String, in transaction: any ReadTransaction) throws {
    self.transaction = transaction
    keyspaces = try InvertedIndexKeyspaces(named: name, in: transaction)
    state = try .load(keyspaces.terms, transaction)
  }

  /// The number of documents that have at least one term.
  package var documentCount: Int { Int(clamping: state.documents) }
  /// The version of the analysis that made the terms (see `AnalysisVersion`); empty if it isn't known.
  package var analysis: String { String(decoding: state.analysis, as: UTF8.self) }
  /// The number of columns.
  package var columns: Int { state.columns }
  var averageLength: Double { Double(state.tokens) / Double(max(1, state.documents)) }

  // MARK: Terms

  private func termPages() throws -> any Cursor {
    if let pages { return pages }
    let cursor = try transaction.cursor(in: keyspaces.terms, .termPages)
    pages = cursor
    return cursor
  }

  /// Returns the postings of a term, or nil if no document has the term.
  func postings(of term: UnsafeRawBufferPointer) throws -> TermPostings? {
    let pages = try termPages()
    let sought = TermPage.seekKey(term)
    guard try pages.seek(sought.span.bytes) else { return nil }
    return try pages.withEntry { _, page in
      try page.withUnsafeBytes { try TermPage.find(term, in: $0).map { TermPostings($0, self) } }
    }
  }

  /// Calls `body` with each term that begins with a prefix, in byte order, until `body` returns false. The
  /// term and the entry are valid until `body` returns. `body` must not look up terms.
  func forEachTerm(
    prefix: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer, TermEntry) throws -> Bool
  ) throws {
    let cursor = try termPages()
    // The page sought is the page of a term equal to the prefix. Longer terms with the prefix follow that
    // place.
    let sought = TermPage.seekKey(prefix)
    var goesOn = try cursor.seek(sought.span.bytes)
    while goesOn {
      try check()
      try cursor.lendEntry { _, page in
        try page.withUnsafeBytes { page in
          var entries = TermPageEntries(page)
          while goesOn, let entry = try entries.next() {
            let term = entries.term.bytes
            if term.count >= prefix.count, term.prefix(prefix.count).elementsEqual(prefix) {
              goesOn = try body(term, entry)
            } else if compareBytes(term, prefix) > 0 {
              goesOn = false
            }
          }
        }
      }
      if goesOn { goesOn = try cursor.next() }
    }
  }

  /// Returns the postings of each term that begins with a prefix.
  func postings(ofPrefix prefix: UnsafeRawBufferPointer) throws -> [TermPostings] {
    var found: [TermPostings] = []
    try forEachTerm(prefix: prefix) { _, entry in
      found.append(TermPostings(entry, self))
      try take(TermPostings.leastBytes + entry.inline.count)
      return true
    }
    return found
  }

  // MARK: Documents

  /// Returns the number of tokens in a document.
  func length(of document: UInt32) throws -> UInt32 {
    let size = InvertedIndexFormat.lengthsPerPage
    if document / size != lengthGroup {
      let key = InvertedIndexFormat.blockKey(InvertedIndexFormat.lengthList, document / size)
      guard let page = try transaction.withBlock(key, in: keyspaces.blocks, { try LengthPage($0) }) else {
        throw InvertedIndexFormat.damaged
      }
      lengthPage = page
      lengthGroup = document / size
    }
    return lengthPage[Int(document % size)]
  }
}
