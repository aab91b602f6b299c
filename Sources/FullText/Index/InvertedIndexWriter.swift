import Storage

/// Writes an inverted index: takes documents' texts, old and new, and writes what they change when it is told to. One
/// thread at a time.
///
/// What it remembers between calls is as of the last commit: after a transaction that failed it is made anew.
public final class InvertedIndexWriter {
  /// What happens to a document.
  struct DocumentChange {
    var number: UInt32
    /// Nil of one that goes.
    var length: UInt32?
    /// The ID of one that comes.
    var newID: [UInt8]?
    /// The ID of one that goes.
    var oldID: [UInt8]?
  }

  let keyspaces: InvertedIndexKeyspaces
  @exclusivity(unchecked) var state: InvertedIndexState
  let pending = PendingPostings()
  @exclusivity(unchecked) var documents: [DocumentChange] = []
  private let analyzer: TextAnalyzer
  private var touched: Set<[UInt8]> = []
  /// Nothing is in the index yet: what comes in order is appended.
  var isFresh: Bool
  /// Memory for tokens, in bytes, after which they are written.
  @exclusivity(unchecked) public var memoryLimit = 128 << 20

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
  ///   - name: of its first keyspace, with which the others' names begin.
  ///   - analyzer: of the options that it was made with.
  /// - Throws: `StorageError`: `damaged` when it isn't there.
  public convenience init(
    named name: String, analyzer: TextAnalyzer, in transaction: any ReadTransaction
  ) throws {
    let keyspaces = try InvertedIndexKeyspaces(named: name, in: transaction)
    try self.init(
      keyspaces, .load(keyspaces.terms, transaction), analyzer, isFresh: false)
  }

  /// Makes an empty index of texts in so many columns, up to 32.
  public static func create(
    named name: String, columns: Int, analyzer: TextAnalyzer, in transaction: any WriteTransaction
  ) throws -> InvertedIndexWriter {
    let keyspaces = try InvertedIndexKeyspaces(creating: name, in: transaction)
    var state = InvertedIndexState(columns: columns)
    state.analysis = Array(AnalysisVersion.text(of: analyzer.options).utf8)
    try state.store(keyspaces.terms, transaction)
    return InvertedIndexWriter(keyspaces, state, analyzer, isFresh: true)
  }

  // MARK: Documents

  /// Adds a document to an index that is being made. IDs come in ascending order, each once; after the last one
  /// `finish` is called.
  public func append(
    _ id: UnsafeRawBufferPointer, _ texts: [UnsafeRawBufferPointer], in transaction: any WriteTransaction
  ) throws {
    let length = try analyze(texts, state.nextDocument, flags: 0)
    guard length > 0 else { return }
    documents.append(
      DocumentChange(number: state.nextDocument, length: length, newID: [UInt8](id), oldID: nil))
    try advanceNextDocument()
    state.sortedDocuments = state.nextDocument
  }

  /// Whether documents have changed that `finish` hasn't written.
  public var hasPendingChanges: Bool { !documents.isEmpty }

  /// Whether so much has been added that it should be written now.
  public var isFull: Bool { pending.usedBytes > memoryLimit }

  /// Takes out what a document's old texts gave and puts in what the new ones give. A document that isn't in the
  /// index has no old texts, one that goes no new ones.
  public func update(
    _ id: UnsafeRawBufferPointer, old: [UnsafeRawBufferPointer], new: [UnsafeRawBufferPointer],
    in transaction: any WriteTransaction
  ) throws {
    if old.count == new.count, zip(old, new).allSatisfy({ TermPage.compare($0, $1) == 0 }) { return }
    let key = [UInt8](id)
    // The second change of a document in a transaction: the first one is what it is made to.
    if touched.contains(key) || isFull { try finish(in: transaction) }
    let known = try number(of: id, transaction)
    let runs = pending.runCount
    var oldLength: UInt32 = 0
    if let known, !old.isEmpty { oldLength = try analyze(old, known, flags: Occurrence.isOld) }
    let number = known ?? state.nextDocument
    let newLength = try analyze(new, number, flags: 0)
    // What blocks say of lengths would be wrong.
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
        .valueTooLarge, "a full-text index has given all of its 2,147,483,647 numbers: make it anew")
    }
    state.nextDocument += 1
  }

  /// Takes the tokens of a document, and returns how many there are.
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

  /// Writes what documents have changed.
  public func finish(in transaction: any WriteTransaction) throws {
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
public struct InvertedIndexKeyspaces: Sendable {
  let terms: Keyspace
  let blocks: Keyspace

  /// Those of an index.
  public init(named name: String, in transaction: any ReadTransaction) throws {
    guard let terms = try transaction.keyspace(named: name),
      let blocks = try transaction.keyspace(named: name + ".blocks")
    else {
      throw StorageError(.damaged, "a full-text index has lost its keyspaces: delete it and make it anew")
    }
    self.terms = terms
    self.blocks = blocks
  }

  init(creating name: String, in transaction: any WriteTransaction) throws {
    terms = try transaction.createKeyspace(name, shape: .entries)
    blocks = try transaction.createKeyspace(name + ".blocks", shape: .sequences)
  }
}
