import Storage

// The inverted index: two keyspaces of an engine. The whole of it is told in docs/fulltext-index.md.
//
//   terms, shape `entries`:
//     00                    state       (InvertedIndexState)
//     01 separator          term page   (TermPage): the terms below the separator and not below that of the page before
//     02 document ID        number:u32be, of documents that aren't among the sorted ones
//   blocks, shape `sequences`, keys list:u32be document:u32be:
//     list 0                pages of document IDs (DocumentPages), by the highest number in them
//     list 1                pages of document lengths (DocumentPages), by number / 256
//     list 2 and above      blocks of postings (PostingBlock), by the highest document number that belongs in them;
//                           the last block of a list has 7FFFFFFF

/// Keys, limits and errors of the inverted index.
enum InvertedIndexFormat {
  /// Of what `InvertedIndexState` begins with.
  static let version: UInt8 = 1

  static let stateKey: [UInt8] = [0]
  static let termPageTag: UInt8 = 1
  static let documentTag: UInt8 = 2
  /// Above every term: no UTF-8 has this byte.
  static let lastTermPageKey: [UInt8] = [termPageTag, 0xFF]

  static let documentList: UInt32 = 0
  static let lengthList: UInt32 = 1
  static let firstPostingList: UInt32 = 2
  /// The number in the key of a list's last block.
  static let lastDocument: UInt32 = 0x7FFF_FFFF

  /// A term page ends with the entry that takes it to this size: five lie on a page of 4,096 bytes of every engine.
  static let termPageBytes = 770
  /// What a block or a page of IDs has at most, unless one item takes more: two lie on a page of every engine.
  static let blockBytes = 1_980
  /// Postings of a block at most.
  static let blockPostings = 1_024
  /// Lists up to this many bytes lie in the term page.
  static let inlineBytes = 200
  /// What a separator has at most.
  static let separatorBytes = 480
  static let lengthsPerPage: UInt32 = 256
  /// Properties of an index at most: columns are bits of 32.
  static let maximumColumns = 32

  static var damaged: StorageError {
    StorageError(.damaged, "a full-text index can't be read: delete it and make it anew")
  }

  @inline(__always)
  static func blockKey(_ list: UInt32, _ document: UInt32) -> UInt64 {
    UInt64(list) << 32 | UInt64(document)
  }

  /// The number in a key of blocks.
  @inline(__always)
  static func number(ofKey key: RawSpan) throws -> UInt64 {
    guard key.byteCount == 8 else { throw damaged }
    return UInt64(bigEndian: key.unsafeLoadUnaligned(as: UInt64.self))
  }

  /// The blocks of one list.
  static func range(ofList list: UInt32) -> KeyRange {
    KeyRange(
      lower: .inclusive(bytes(blockKey(list, 0))), upper: .inclusive(bytes(blockKey(list, lastDocument))))
  }

  static func bytes(_ key: UInt64) -> [UInt8] { withUnsafeBytes(of: key.bigEndian) { [UInt8]($0) } }

  static func documentKey(_ id: UnsafeRawBufferPointer) -> [UInt8] { [documentTag] + id }
}

extension KeyRange {
  /// The term pages.
  static var termPages: KeyRange {
    KeyRange(
      lower: .inclusive([InvertedIndexFormat.termPageTag]),
      upper: .inclusive(InvertedIndexFormat.lastTermPageKey))
  }
}

extension WriteTransaction {
  /// `put` under a key of blocks.
  @inline(__always)
  func put(_ key: UInt64, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    try withUnsafeBytes(of: key.bigEndian) { try put($0.bytes, value.bytes, in: keyspace) }
  }

  /// `append` under a key of blocks.
  @inline(__always)
  func append(_ key: UInt64, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    try withUnsafeBytes(of: key.bigEndian) { try append($0.bytes, value.bytes, in: keyspace) }
  }

  /// `delete` of a key of blocks, which is there.
  func remove(_ key: UInt64, in keyspace: Keyspace) throws {
    let isDeleted = try withUnsafeBytes(of: key.bigEndian) { try delete($0.bytes, in: keyspace) }
    guard isDeleted else { throw InvertedIndexFormat.damaged }
  }
}

extension ReadTransaction {
  /// Lends the value under a key of blocks, and returns what `body` returns; nil when there is none.
  @inline(__always)
  func withBlock<Result>(
    _ key: UInt64, in keyspace: Keyspace, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result? {
    try lentBlock(of: self, key, in: keyspace, body)
  }
}

/// Not a member, so that its closures can be specialised: those of a member are generic over the transaction's type.
@inline(__always)
private func lentBlock<Result>(
  of transaction: any ReadTransaction, _ key: UInt64, in keyspace: Keyspace,
  _ body: (UnsafeRawBufferPointer) throws -> Result
) throws -> Result? {
  try withUnsafeBytes(of: key.bigEndian) { key in
    try transaction.withValue(at: key.bytes, in: keyspace) { try $0.withUnsafeBytes(body) }
  }
}

extension Cursor {
  /// Moves to the first entry at or above a key of blocks.
  @inline(__always)
  func seek(_ key: UInt64) throws -> Bool {
    try withUnsafeBytes(of: key.bigEndian) { try seek($0.bytes) }
  }
}
