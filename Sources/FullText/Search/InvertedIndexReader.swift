import Storage

/// An inverted index as a transaction has it. One thread at a time, and not beyond the transaction.
public final class InvertedIndexReader {
  let transaction: any ReadTransaction
  let keyspaces: InvertedIndexKeyspaces
  let state: InvertedIndexState
  @exclusivity(unchecked) private var pages: (any Cursor)?
  @exclusivity(unchecked) private var lengthGroup: UInt32 = .max
  @exclusivity(unchecked) private var lengthPage = LengthPage()
  /// Called before each block of postings and each page of terms that a search reads. What it throws ends the search.
  public var check: () throws -> Void = {}
  /// Told how many bytes a search takes of what may be many, until it goes: each term of a prefix, each of the best
  /// documents. What it throws ends the search.
  public var take: (_ bytes: Int) throws -> Void = { _ in }

  /// Opens an index.
  ///
  /// - Parameter name: of its first keyspace.
  /// - Throws: `StorageError`: `damaged` when it isn't there or can't be read.
  public init(named name: String, in transaction: any ReadTransaction) throws {
    self.transaction = transaction
    keyspaces = try InvertedIndexKeyspaces(named: name, in: transaction)
    state = try .load(keyspaces.terms, transaction)
  }

  /// How many documents have at least one term.
  public var documentCount: Int { Int(clamping: state.documents) }
  /// By what its words were made, as `AnalysisVersion` has it; empty when that wasn't noted.
  public var analysis: String { String(decoding: state.analysis, as: UTF8.self) }
  /// How many columns texts have.
  public var columns: Int { state.columns }
  var averageLength: Double { Double(state.tokens) / Double(max(1, state.documents)) }

  // MARK: Terms

  private func termPages() throws -> any Cursor {
    if let pages { return pages }
    let cursor = try transaction.cursor(in: keyspaces.terms, .termPages)
    pages = cursor
    return cursor
  }

  /// The postings of a term; nil when no document has it.
  func postings(of term: UnsafeRawBufferPointer) throws -> TermPostings? {
    let pages = try termPages()
    let sought = TermPage.seekKey(term)
    guard try pages.seek(sought.span.bytes) else { return nil }
    return try pages.withEntry { _, page in
      try page.withUnsafeBytes { try TermPage.find(term, in: $0).map { TermPostings($0, self) } }
    }
  }

  /// Calls `body` with each term that begins with a prefix, in order, until it returns false. What it is handed lasts
  /// until it returns; it must not look for terms itself.
  func forEachTerm(
    prefix: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer, TermEntry) throws -> Bool
  ) throws {
    let cursor = try termPages()
    // A term equal to the prefix is in the page that is sought, and so is what is behind it.
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
            } else if TermPage.compare(term, prefix) > 0 {
              goesOn = false
            }
          }
        }
      }
      if goesOn { goesOn = try cursor.next() }
    }
  }

  /// The postings of all terms that begin with a prefix.
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

  /// How many tokens a document has.
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
