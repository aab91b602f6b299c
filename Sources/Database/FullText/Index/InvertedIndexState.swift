import Bytes
import Storage

//   state := version:u8=1  columns:varint  next:varint  sorted:varint  documents:varint  tokens:varint
//            list:varint  length:varint  analysis

/// The state of an index: the counts for ranking, and the next document and list numbers.
struct InvertedIndexState: Equatable {
  /// The number of columns.
  var columns: Int
  /// The number of the next new document. Numbers begin at 0 and are never used again.
  var nextDocument: UInt32 = 0
  /// Documents with a number below this one are in the order of their IDs.
  var sortedDocuments: UInt32 = 0
  /// The number of documents that have at least one word.
  var documents: UInt64 = 0
  /// The number of tokens in these documents, over all columns.
  var tokens: UInt64 = 0
  /// The number of the next list.
  var nextList: UInt32 = InvertedIndexFormat.firstPostingList
  /// The version of the text analysis, as UTF-8 (see `AnalysisVersion`).
  var analysis: [UInt8] = []

  init(columns: Int) { self.columns = columns }

  var encoded: [UInt8] {
    var bytes = ByteBuffer()
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
        .unsupportedVersion, "a full-text index has format \(version), which this release doesn't support")
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
