import Bytes
import Storage

/// Writes an inverted index. One thread at a time.
///
/// It collects changes of documents in memory. `finish` writes them. Its state is that of the last commit:
/// after a failed transaction, create a new writer.
package final class InvertedIndexWriter {
  /// The change of a document.
  struct DocumentChange {
    var number: UInt32
    /// The new length; nil for a removed document.
    var length: UInt32?
    /// The ID of an added document.
    var newID: [UInt8]?
    /// The ID of a removed document.
    var oldID: [UInt8]?
  }

  let keyspaces: InvertedIndexKeyspaces
  @exclusivity(unchecked) var state: InvertedIndexState
  let pending = PendingPostings()
  @exclusivity(unchecked) var documents: [DocumentChange] = []
  private let analyzer: TextAnalyzer
  private var touched: Set<[UInt8]> = []
  /// Whether the index is still empty. Then entries in ascending order are appended.
  var isFresh: Bool
  /// The memory for pending tokens, in bytes. `isFull` is true above this limit.
  @exclusivity(unchecked) package var memoryLimit = 128 << 20

  private init(
    _ keyspaces: InvertedIndexKeyspaces, _ state: InvertedIndexState, _ analyzer: TextAnalyzer,
    isFresh: Bool
  ) {
    self.keyspaces = keyspaces
    self.state = state
    self.analyzer = analyzer
    self.isFresh = isFresh
  }

  /// Opens an index.
  ///
  /// - Parameters:
  ///   - name: the name of the first keyspace. The names of the other keyspaces begin with it.
  ///   - analyzer: an analyzer with the options of the index.
  /// - Throws: `StorageError` with the code `damaged` if the keyspaces or the state are missing.
  package convenience init(
    named name: String, analyzer: TextAnalyzer, in transaction: any ReadTransaction
  ) throws {
    let keyspaces = try InvertedIndexKeyspaces(named: name, in: transaction)
    try self.init(
      keyspaces, .load(keyspaces.terms, transaction), analyzer, isFresh: false)
  }

  /// Creates an empty index for documents with 1 to 32 columns.
  package static func create(
    named name: String, columns: Int, analyzer: TextAnalyzer, in transaction: any WriteTransaction
  ) throws -> InvertedIndexWriter {
    let keyspaces = try InvertedIndexKeyspaces(creating: name, in: transaction)
    var state = InvertedIndexState(columns: columns)
    state.analysis = Array(AnalysisVersion.text(of: analyzer.options).utf8)
    try state.store(keyspaces.terms, transaction)
    return InvertedIndexWriter(keyspaces, state, analyzer, isFresh: true)
  }

  // MARK: Documents

  /// Adds a document to an index that is being built. IDs must ascend, each once. Call `finish` after the
  /// last document.
  package func append(
    _ id: UnsafeRawBufferPointer, _ texts: [UnsafeRawBufferPointer], in transaction: any WriteTransaction
  ) throws {
    let length = try analyze(texts, state.nextDocument, flags: 0)
    guard length > 0 else { return }
    documents.append(
      DocumentChange(number: state.nextDocument, length: length, newID: [UInt8](id), oldID: nil))
    try advanceNextDocument()
    state.sortedDocuments = state.nextDocument
  }

  /// Whether there are changes that `finish` hasn't written yet.
  package var hasPendingChanges: Bool { !documents.isEmpty }

  /// Whether the pending changes take more than `memoryLimit`. Then call `finish`.
  package var isFull: Bool { pending.usedBytes > memoryLimit }

  /// Replaces the postings of a document's old texts by those of its new texts.
  ///
  /// `old` is empty for a document that isn't in the index. `new` is empty for a document that is removed.
  /// Unchanged texts are ignored. `update` first calls `finish` if the document already has a pending change
  /// or if `isFull` is true.
  package func update(
    _ id: UnsafeRawBufferPointer, old: [UnsafeRawBufferPointer], new: [UnsafeRawBufferPointer],
    in transaction: any WriteTransaction
  ) throws {
    if old.count == new.count, zip(old, new).allSatisfy({ compareBytes($0, $1) == 0 }) { return }
    let key = [UInt8](id)
    // For a second change of a document, the first change must be written first.
    if touched.contains(key) || isFull { try finish(in: transaction) }
    let known = try number(of: id, transaction)
    let runs = pending.runCount
    var oldLength: UInt32 = 0
    if let known, !old.isEmpty { oldLength = try analyze(old, known, flags: Occurrence.isOld) }
    let number = known ?? state.nextDocument
    let newLength = try analyze(new, number, flags: 0)
    // Unchanged postings are written too, because the length bounds in their blocks would be wrong.
    if PostingBlockHeader.lengthBound(newLength) < PostingBlockHeader.lengthBound(oldLength) {
      pending.mark(runsFrom: runs, Occurrence.isForced)
    }
    var change = DocumentChange(number: number, length: newLength, newID: nil, oldID: nil)
    if known == nil {
      if newLength == 0 { return }
      change.newID = key
      try advanceNextDocument()
    } else if newLength == 0 {
      change.length = nil
      change.oldID = key
    }
    touched.insert(key)
    documents.append(change)
  }

  private func advanceNextDocument() throws {
    guard state.nextDocument + 1 < InvertedIndexFormat.lastDocument else {
      throw StorageError(
        .valueTooLarge,
        "a full-text index has used all of its 2,147,483,647 document numbers; delete it and make it again")
    }
    state.nextDocument += 1
  }

  /// Adds the tokens of a document's texts. Returns the number of tokens.
  private func analyze(_ texts: [UnsafeRawBufferPointer], _ number: UInt32, flags: UInt16) throws -> UInt32 {
    var length = 0
    let pending = pending
    for (column, text) in texts.enumerated() where text.count > 0 {
      pending.begin(number, column: column, flags: flags)
      let before = pending.tokenCount
      analyzer.analyze(text) { term, token in pending.add(term, position: token.position) }
      if pending.end() { length += pending.tokenCount - before }
    }
    return UInt32(clamping: length)
  }

  // MARK: Writing

  /// Writes the pending changes.
  package func finish(in transaction: any WriteTransaction) throws {
    guard !documents.isEmpty else { return }
    documents.sort { $0.number < $1.number }
    try writeDocuments(transaction)
    try writeTerms(transaction)
    try state.store(keyspaces.terms, transaction)
    documents.removeAll(keepingCapacity: true)
    pending.removeAll()
    touched.removeAll(keepingCapacity: true)
    isFresh = false
  }

  func put(_ key: UInt64, _ value: UnsafeRawBufferPointer, _ transaction: any WriteTransaction) throws {
    if isFresh {
      try transaction.append(key, value, in: keyspaces.blocks)
    } else {
      try transaction.put(key, value, in: keyspaces.blocks)
    }
  }
}

/// The keyspaces of an inverted index.
package struct InvertedIndexKeyspaces: Sendable {
  let terms: Keyspace
  let blocks: Keyspace

  /// Opens the keyspaces of an index. Throws `damaged` if one is missing.
  package init(named name: String, in transaction: any ReadTransaction) throws {
    guard let terms = try transaction.keyspace(named: name),
      let blocks = try transaction.keyspace(named: name + ".blocks")
    else {
      throw StorageError(
        .damaged, "the keyspaces of a full-text index are missing; delete it and make it again")
    }
    self.terms = terms
    self.blocks = blocks
  }

  init(creating name: String, in transaction: any WriteTransaction) throws {
    terms = try transaction.createKeyspace(name, shape: .entries)
    blocks = try transaction.createKeyspace(name + ".blocks", shape: .sequences)
  }
}
