import Storage

// The stored form of the inverted index: two keyspaces of an engine. docs/fulltext-index.md describes it in
// full.
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

/// The keys, limits and errors of the inverted index.
enum InvertedIndexFormat {
  /// The first byte of `InvertedIndexState`.
  static let version: UInt8 = 1

  static let stateKey: [UInt8] = [0]
  static let termPageTag: UInt8 = 1
  static let documentTag: UInt8 = 2
  /// A key above every term: UTF-8 never has this byte.
  static let lastTermPageKey: [UInt8] = [termPageTag, 0xFF]

  static let documentList: UInt32 = 0
  static let lengthList: UInt32 = 1
  static let firstPostingList: UInt32 = 2
  /// The number in the key of a list's last block.
  static let lastDocument: UInt32 = 0x7FFF_FFFF

  /// A term page ends with the entry that brings it to this size in bytes. Five term pages fit on a page of
  /// 4,096 bytes in every engine.
  static let termPageBytes = 770
  /// The maximum size in bytes of a block or a page of IDs, unless a single item is larger. Two fit on a page
  /// of every engine.
  static let blockBytes = 1_980
  /// The maximum number of postings in a block.
  static let blockPostings = 1_024
  /// Lists of up to this many bytes are stored in the term page.
  static let inlineBytes = 200
  /// The maximum length of a separator in bytes.
  static let separatorBytes = 480
  static let lengthsPerPage: UInt32 = 256
  /// The maximum number of columns of an index. Columns are bits of a 32-bit number.
  static let maximumColumns = 32

  static var damaged: StorageError {
    StorageError(.damaged, "a full-text index is damaged; delete it and make it again")
  }

  @inline(__always)
  static func blockKey(_ list: UInt32, _ document: UInt32) -> UInt64 {
    UInt64(list) << 32 | UInt64(document)
  }

  /// Decodes a key of `blocks`. Throws `damaged` if the key isn't 8 bytes.
  @inline(__always)
  static func number(ofKey key: RawSpan) throws -> UInt64 {
    guard key.byteCount == 8 else { throw damaged }
    return UInt64(bigEndian: key.unsafeLoadUnaligned(as: UInt64.self))
  }

  /// The keys of the blocks of one list.
  static func range(ofList list: UInt32) -> KeyRange {
    KeyRange(
      lower: .inclusive(bytes(blockKey(list, 0))), upper: .inclusive(bytes(blockKey(list, lastDocument))))
  }

  static func bytes(_ key: UInt64) -> [UInt8] { withUnsafeBytes(of: key.bigEndian) { [UInt8]($0) } }

  static func documentKey(_ id: UnsafeRawBufferPointer) -> [UInt8] { [documentTag] + id }
}

extension KeyRange {
  /// The keys of the term pages.
  static var termPages: KeyRange {
    KeyRange(
      lower: .inclusive([InvertedIndexFormat.termPageTag]),
      upper: .inclusive(InvertedIndexFormat.lastTermPageKey))
  }
}

extension WriteTransaction {
  /// Stores a value under a key of `blocks`.
  @inline(__always)
  func put(_ key: UInt64, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    try withUnsafeBytes(of: key.bigEndian) { try put($0.bytes, value.bytes, in: keyspace) }
  }

  /// Appends a value under a key of `blocks`.
  @inline(__always)
  func append(_ key: UInt64, _ value: UnsafeRawBufferPointer, in keyspace: Keyspace) throws {
    try withUnsafeBytes(of: key.bigEndian) { try append($0.bytes, value.bytes, in: keyspace) }
  }

  /// Deletes a key of `blocks`. Throws `damaged` if the key doesn't exist.
  func remove(_ key: UInt64, in keyspace: Keyspace) throws {
    let isDeleted = try withUnsafeBytes(of: key.bigEndian) { try delete($0.bytes, in: keyspace) }
    guard isDeleted else { throw InvertedIndexFormat.damaged }
  }
}

extension ReadTransaction {
  /// Calls `body` with the value of a key of `blocks` and returns its result, or nil if the key doesn't
  /// exist. The bytes are valid until `body` returns.
  @inline(__always)
  func withBlock<Result>(
    _ key: UInt64, in keyspace: Keyspace, _ body: (UnsafeRawBufferPointer) throws -> Result
  ) throws -> Result? {
    try lentBlock(of: self, key, in: keyspace, body)
  }
}

/// A free function, so that its closures can be specialized. Closures of a member are generic over the
/// transaction's type.
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
  /// Moves to the first entry at or above a key of `blocks`.
  @inline(__always)
  func seek(_ key: UInt64) throws -> Bool {
    try withUnsafeBytes(of: key.bigEndian) { try seek($0.bytes) }
  }
}
