import Storage

//   state := version:u8=1  columns:varint  next:varint  sorted:varint  documents:varint  tokens:varint
//            list:varint  length:varint  analysis

/// What there is one of in an index: the counts that ranks are made of, and the numbers that are given next.
struct InvertedIndexState: Equatable {
  /// How many columns texts have.
  var columns: Int
  /// The number that the next new document gets. Numbers begin at 0 and aren't given twice.
  var nextDocument: UInt32 = 0
  /// Documents below this number are in the order of their IDs.
  var sortedDocuments: UInt32 = 0
  /// How many documents there are: those with a word at least.
  var documents: UInt64 = 0
  /// How many tokens they have, all columns together.
  var tokens: UInt64 = 0
  /// The number that the next list gets.
  var nextList: UInt32 = InvertedIndexFormat.firstPostingList
  /// By what the words were made: text of `AnalysisVersion`.
  var analysis: [UInt8] = []

  init(columns: Int) { self.columns = columns }

  var encoded: [UInt8] {
    var bytes = GrowingBytes()
    bytes.append(InvertedIndexFormat.version)
    bytes.append(varint: UInt64(columns))
    bytes.append(varint: nextDocument)
    bytes.append(varint: sortedDocuments)
    bytes.append(varint: documents)
    bytes.append(varint: tokens)
    bytes.append(varint: nextList)
    bytes.append(varint: UInt64(analysis.count))
    analysis.withUnsafeBytes { bytes.append($0) }
    return [UInt8](bytes.bytes)
  }

  init(_ bytes: UnsafeRawBufferPointer) throws {
    var scanner = ByteScanner(bytes)
    let version = try scanner.byte()
    guard version == InvertedIndexFormat.version else {
      throw StorageError(
        .unsupportedVersion, "a full-text index is of format \(version), which this release doesn't know")
    }
    columns = try scanner.length()
    nextDocument = try scanner.varint32()
    sortedDocuments = try scanner.varint32()
    documents = try scanner.varint64()
    tokens = try scanner.varint64()
    nextList = try scanner.varint32()
    analysis = [UInt8](try scanner.bytes(try scanner.length()))
    guard (1...InvertedIndexFormat.maximumColumns).contains(columns), sortedDocuments <= nextDocument,
      nextDocument <= InvertedIndexFormat.lastDocument, documents <= UInt64(nextDocument),
      nextList >= InvertedIndexFormat.firstPostingList, scanner.isAtEnd
    else { throw InvertedIndexFormat.damaged }
  }

  static func load(_ terms: Keyspace, _ transaction: any ReadTransaction) throws -> InvertedIndexState {
    let found = try transaction.withValue(at: InvertedIndexFormat.stateKey, in: terms) { value in
      try value.withUnsafeBytes { try InvertedIndexState($0) }
    }
    guard let found else { throw InvertedIndexFormat.damaged }
    return found
  }

  func store(_ terms: Keyspace, _ transaction: any WriteTransaction) throws {
    try transaction.put(InvertedIndexFormat.stateKey, encoded, in: terms)
  }
}
