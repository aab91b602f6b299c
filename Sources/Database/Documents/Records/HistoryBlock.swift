// Older revisions of a document with a deep history and a single branch, in the keyspace `history`. The
// newest revisions are in the document's record, of version 2 (DocumentRecord.swift). So a save reads and
// writes only a few revisions, however many are kept.
//
//   key   := document ID  00  generation:u64 big-endian, of the block's newest revision
//   block := version:u8 = 1  count:varint  node*           newest first, each the parent of the one before it
//   node  := flags:u8  sequence:varint  revision ID        (flags as in RevisionTree.swift, RevisionID.swift)
//
// The first block's newest revision is the parent of the oldest one in the record. A document ID has no byte
// 00. A block isn't changed until all of its revisions are pruned. Revisions below the record's lowest
// generation are pruned, though they may still be stored.

import Bytes
import Storage

/// Reads a block of older revisions in place.
enum HistoryBlock {
  static let version: UInt8 = 1
  static let keyspace = "history"

  static let damaged = DocumentError(.damaged, "the older revisions of a document can't be read")

  /// Returns the range of keys of a document's blocks whose newest revision has a lower generation. Without a
  /// generation, it is the range of all its blocks.
  static func range(of id: UnsafeRawBufferPointer, below generation: UInt64? = nil) -> KeyRange {
    let prefix = Array(id) + [0]
    guard let generation else { return .prefix(prefix) }
    return KeyRange(lower: .inclusive(prefix), upper: .exclusive(key(id, generation)))
  }

  static func key(_ id: UnsafeRawBufferPointer, _ generation: UInt64) -> [UInt8] {
    Array(id) + [0] + (0..<8).map { UInt8(truncatingIfNeeded: generation >> UInt64(56 - 8 * $0)) }
  }

  /// Returns the document ID in the key of a block, nil if the key is invalid.
  @_lifetime(copy key)
  static func documentID(in key: RawSpan) -> RawSpan? {
    guard key.byteCount > 9, key.unsafeLoad(fromByteOffset: key.byteCount - 9, as: UInt8.self) == 0 else {
      return nil
    }
    return key.extracting(droppingLast: 9)
  }

  /// Calls `body` with each revision of a block, newest first.
  static func forEach(
    in block: RawSpan,
    _ body: (_ id: StoredRevisionID, _ sequence: UInt64, _ flags: RevisionFlags) throws -> Void
  ) throws {
    var reader = ByteReader(block)
    guard let version = reader.byte() else { throw damaged }
    guard version == HistoryBlock.version else { throw DocumentRecord.unsupported }
    guard let count = reader.varint(), count > 0, count <= UInt64(block.byteCount) else { throw damaged }
    for _ in 0..<count {
      guard let flags = reader.byte().map({ RevisionFlags(rawValue: $0) }), !flags.contains(.leaf),
        let sequence = reader.varint(), sequence > 0, sequence <= maximumSequence,
        let id = StoredRevisionID(&reader)
      else { throw damaged }
      try body(id, sequence, flags)
    }
    guard reader.rest.isEmpty else { throw damaged }
  }

  /// Calls `body` with each revision in the document's blocks, newest first, including pruned ones.
  static func forEach(
    of id: UnsafeRawBufferPointer, _ transaction: any ReadTransaction,
    _ body: (_ id: StoredRevisionID, _ sequence: UInt64, _ flags: RevisionFlags) throws -> Void
  ) throws {
    guard let keyspace = try transaction.keyspace(named: keyspace) else { throw damaged }
    try transaction.scan(keyspace, range(of: id), order: .descending, fetch: .entries) { _, block in
      try forEach(in: block, body)
      return true
    }
  }
}

extension RevisionTree {
  /// Adds the document's older revisions below the oldest node. This makes the tree complete. With
  /// `includingPruned`, it also adds pruned revisions that are still stored.
  func addHistory(
    of id: UnsafeRawBufferPointer, _ history: StoredHistory, _ transaction: any ReadTransaction,
    includingPruned: Bool = false
  ) throws {
    guard isChain else { throw HistoryBlock.damaged }
    var count: UInt64 = 0
    var last = oldestGeneration
    try HistoryBlock.forEach(of: id, transaction) { revision, sequence, flags in
      guard revision.generation < last else { throw HistoryBlock.damaged }
      last = revision.generation
      count += 1
      guard includingPruned || revision.generation >= history.lowestGeneration else { return }
      addOlder(revision, sequence: sequence, flags: flags)
    }
    guard count == history.count else { throw HistoryBlock.damaged }
  }
}
