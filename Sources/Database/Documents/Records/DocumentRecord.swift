// A document as it is stored in the keyspaces `docs` (live) and `deleted` (tombstones), under its ID.
//
//   record := version:u8  flags:u8  sequence:varint  keyCount:varint  [history]  treeLength:varint  tree  body
//   history := lowest:varint  outside:varint
//
//   version   1; 2 with a history: a single branch of more revisions than a record keeps
//   flags     1 deleted, 2 conflicted: of the document as a whole
//   sequence  of the latest change to the document
//   keyCount  how many shared keys a reader has to know for this body
//   lowest    generation: revisions of lower generations are pruned
//   outside   how many older revisions are stored in the keyspace `history` (HistoryBlock.swift)
//   tree      RevisionTree.swift; its first node is the current revision
//   body      Fleece of the current revision, an object; to the end of the record
//
// Bodies of other revisions are in the keyspaces `conflicts` (of leaves that lost) and `bodies` (of replaced
// revisions, until compaction), under the revision's sequence:
//
//   body of another revision := keyCount:varint  body

import Bytes

/// The maximum sequence. Keys of a keyspace of sequences are below 2^63.
let maximumSequence = UInt64(Int64.max)

/// A record's information about the document's older revisions, which are in the keyspace `history`.
@usableFromInline
struct StoredHistory {
  /// Revisions of a lower generation are pruned, though they may still be stored.
  @usableFromInline var lowestGeneration: UInt64
  /// The number of stored older revisions.
  @usableFromInline var count: UInt64
}

/// A stored document in place. It can't outlive its bytes.
@usableFromInline
struct DocumentRecord: ~Escapable {
  @inlinable static var version: UInt8 { 1 }
  static let versionWithHistory: UInt8 = 2

  @usableFromInline
  struct Flags: OptionSet, Sendable {
    @usableFromInline let rawValue: UInt8
    @inlinable
    init(rawValue: UInt8) { self.rawValue = rawValue }
    @inlinable static var isDeleted: UInt8 { 1 }
    static let deleted = Flags(rawValue: 1)
    static let conflicted = Flags(rawValue: 2)
    /// A flag of changes, not of records: sync brought the change from another database.
    static let fromSync = Flags(rawValue: 4)
  }

  @usableFromInline let flags: Flags
  @usableFromInline let sequence: UInt64
  @usableFromInline let keyCount: Int
  /// Nil if all revisions are in `tree`.
  @usableFromInline let history: StoredHistory?
  @usableFromInline let tree: RawSpan
  @usableFromInline let body: RawSpan

  @inlinable @inline(__always)
  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) throws {
    // The fast path: numbers of at most three bytes, all within the record's first 16 bytes.
    var offset = 2
    guard bytes.byteCount >= 16, bytes.unsafeLoad(as: UInt8.self) == Self.version,
      let sequence = Self.shortVarint(bytes, &offset), let keyCount = Self.shortVarint(bytes, &offset),
      let treeLength = Self.shortVarint(bytes, &offset), sequence > 0, keyCount <= 2048,
      treeLength <= bytes.byteCount &- offset
    else {
      self = try DocumentRecord(checking: bytes)
      return
    }
    flags = Flags(rawValue: bytes.unsafeLoad(fromByteOffset: 1, as: UInt8.self))
    self.sequence = UInt64(truncatingIfNeeded: sequence)
    self.keyCount = keyCount
    history = nil
    tree = bytes.extracting(unchecked: offset..<(offset &+ treeLength))
    body = bytes.extracting(unchecked: (offset &+ treeLength)..<bytes.byteCount)
  }

  /// Reads a varint of at most three bytes; nil for a longer one. It reads without bounds checks: the record
  /// has 16 bytes, and three such numbers end before that.
  @inlinable @inline(__always)
  static func shortVarint(_ bytes: RawSpan, _ offset: inout Int) -> Int? {
    var value = Int(bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self))
    offset &+= 1
    if value < 0x80 { return value }
    var byte = Int(bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self))
    offset &+= 1
    value = value & 0x7F | (byte & 0x7F) &<< 7
    if byte < 0x80 { return value }
    byte = Int(bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self))
    offset &+= 1
    return byte < 0x80 ? value | byte &<< 14 : nil
  }

  /// Decodes any record, with bounds checks.
  @usableFromInline @inline(never)
  @_lifetime(copy bytes)
  init(checking bytes: RawSpan) throws {
    var reader = ByteReader(bytes)
    guard let version = reader.byte(), let flags = reader.byte(), let sequence = reader.varint(),
      sequence > 0, sequence <= maximumSequence, let keyCount = reader.varint(), keyCount <= 2048
    else { throw DocumentRecord.unreadable(bytes) }
    history = version == DocumentRecord.version ? nil : try DocumentRecord.history(version, &reader)
    guard let treeLength = reader.varint(),
      treeLength <= UInt64(bytes.byteCount), let tree = reader.bytes(Int(treeLength))
    else { throw DocumentRecord.unreadable(bytes) }
    self.flags = Flags(rawValue: flags)
    self.sequence = sequence
    self.keyCount = Int(keyCount)
    self.tree = tree
    body = reader.rest
  }

  private static func history(_ version: UInt8, _ reader: inout ByteReader) throws -> StoredHistory {
    guard version == versionWithHistory else { throw unsupported }
    guard let lowest = reader.varint(), lowest > 0, lowest <= RevisionID.maximumGeneration,
      let count = reader.varint(), count > 0, count <= maximumSequence
    else { throw damaged }
    return StoredHistory(lowestGeneration: lowest, count: count)
  }

  /// Returns why bytes aren't a record. Those of a later version may not have this layout at all.
  private static func unreadable(_ bytes: RawSpan) -> DocumentError {
    bytes.byteCount > 0 && bytes.unsafeLoad(as: UInt8.self) > versionWithHistory ? unsupported : damaged
  }

  static let damaged = DocumentError(.damaged, "a stored document can't be read")
  static let unsupported = DocumentError(
    .unsupportedVersion, "a stored document has a format that this release doesn't support")

  /// The ID of the current revision.
  func currentRevisionID() throws -> RevisionID {
    let id = try currentRevision()
    return RevisionID(generation: id.generation, suffix: id.suffix.text)
  }

  /// Whether the tree has more than one leaf. Reads its first two nodes only.
  var hasOtherLeaves: Bool {
    get throws {
      var reader = ByteReader(tree)
      guard let count = reader.varint(), reader.byte() != nil, reader.varint() != nil,
        reader.varint() != nil, StoredRevisionID(&reader) != nil
      else { throw RevisionTree.damaged }
      guard count > 1 else { return false }
      // Leaves come first.
      guard let flags = reader.byte() else { throw RevisionTree.damaged }
      return RevisionFlags(rawValue: flags).contains(.leaf)
    }
  }

  /// The ID of the current revision, read from the first node of the tree only. Valid as long as the record.
  func currentRevision() throws -> StoredRevisionID {
    var reader = ByteReader(tree)
    guard reader.varint() != nil, reader.byte() != nil, reader.varint() != nil, reader.varint() != nil,
      let id = StoredRevisionID(&reader)
    else { throw RevisionTree.damaged }
    return id
  }
}

/// The body of a revision that isn't the current one, in place.
struct BodyRecord: ~Escapable {
  let keyCount: Int
  let body: RawSpan

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) throws {
    var reader = ByteReader(bytes)
    guard let keyCount = reader.varint(), keyCount <= 2048 else { throw DocumentRecord.damaged }
    self.keyCount = Int(keyCount)
    body = reader.rest
  }
}
