import Storage

/// An inverted index as a transaction has it. One thread at a time, and not beyond the transaction.
public final class InvertedIndexReader {
  let transaction: any ReadTransaction
  let keyspaces: InvertedIndexKeyspaces
  let state: InvertedIndexState
  /// Whether the engine's bytes stay until the transaction ends.
  let keepsBytes: Bool
  @exclusivity(unchecked) private var pages: (any UnsafeCursor)?
  @exclusivity(unchecked) private var lengthGroup: UInt32 = .max
  @exclusivity(unchecked) private var lengthPage = LengthPage()
  private let identifiers = DocumentIdentifiers()
  /// Called before each block of postings and each page of terms that a search reads. What it throws ends the search.
  public var check: () throws -> Void = {}

  /// Opens an index.
  ///
  /// - Parameter name: of its first keyspace.
  /// - Throws: `StorageError`: `damaged` when it isn't there or can't be read.
  public init(named name: String, in transaction: any ReadTransaction) throws {
    self.transaction = transaction
    keepsBytes = transaction.keepsBytes
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

  private func termPages() throws -> any UnsafeCursor {
    if let pages { return pages }
    let cursor = try transaction.unsafeCursor(in: keyspaces.terms, .termPages)
    pages = cursor
    return cursor
  }

  /// The postings of a term; nil when no document has it.
  func postings(of term: UnsafeRawBufferPointer) throws -> TermPostings? {
    guard let page = try TermPage.seekKey(term).withUnsafeBytes({ try termPages().seek($0) }),
      let entry = try TermPage.find(term, in: page.value)
    else { return nil }
    return TermPostings(entry, self)
  }

  /// Calls `body` with each term that begins with a prefix, in order, until it returns false.
  func forEachTerm(
    prefix: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer, TermEntry) throws -> Bool
  ) throws {
    let cursor = try termPages()
    // A term equal to the prefix is in the page that is sought, and so is what is behind it.
    var found = try TermPage.seekKey(prefix).withUnsafeBytes { try cursor.seek($0) }
    while let page = found {
      try check()
      var entries = TermPageEntries(page.value)
      while let entry = try entries.next() {
        let term = entries.term.bytes
        if term.count >= prefix.count, term.prefix(prefix.count).elementsEqual(prefix) {
          guard try body(term, entry) else { return }
        } else if TermPage.compare(term, prefix) > 0 {
          return
        }
      }
      found = try cursor.next()
    }
  }

  /// The postings of all terms that begin with a prefix.
  func postings(ofPrefix prefix: UnsafeRawBufferPointer) throws -> [TermPostings] {
    var found: [TermPostings] = []
    try forEachTerm(prefix: prefix) { _, entry in
      found.append(TermPostings(entry, self))
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
      lengthPage = try withUnsafeBytes(of: key.bigEndian) { key in
        guard let page = try transaction.get(key, in: keyspaces.blocks) else {
          throw InvertedIndexFormat.damaged
        }
        return try LengthPage(page)
      }
      lengthGroup = document / size
    }
    return lengthPage[Int(document % size)]
  }

  /// The ID of a document, valid until the next call. Cheap when numbers ascend.
  @inline(__always)
  func id(of document: UInt32) throws -> UnsafeRawBufferPointer {
    if identifiers.number != document { try identifiers.read(document, in: self) }
    return identifiers.id
  }
}
