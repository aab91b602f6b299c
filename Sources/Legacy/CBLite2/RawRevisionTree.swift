// The revision tree of a document, as Couchbase Lite 2.x and 3.x store it (docs/cblite2.md):
//
//   tree     := revision* 0:u32 remote*                 all numbers big-endian
//   revision := size:u32 parent:u16 flags:u8 revIDLength:u8 revID sequence:varint body?
//   size     := of the whole revision, these 4 bytes included
//   parent   := place of the parent in the tree, from 0; FFFF: none
//   flags    := 01 deleted | 02 leaf | 08 has blobs | 10 keeps its body | 20 in conflict | 40 closed | 80 has a body
//   revID    := generation:varint digest                varint: little-endian base 128; digest: the hex of the ID
//   sequence := 0: the document's own
//   body     := Fleece, only with flag 80
//   remote   := remote:u16 revision:u16                 which revision that remote database has
//
// Revisions are in the order of priority: leaves before others, leaves without a conflict before those in
// conflict, live before deleted, open before closed, the higher ID first. The first one is the current
// revision.

import Bytes
import Documents

/// The flags of a revision in a 2.x tree.
struct RawRevisionFlags: OptionSet {
  let rawValue: UInt8
  static let deleted = RawRevisionFlags(rawValue: 0x01)
  static let leaf = RawRevisionFlags(rawValue: 0x02)
  static let hasBlobs = RawRevisionFlags(rawValue: 0x08)
  static let keepsBody = RawRevisionFlags(rawValue: 0x10)
  static let inConflict = RawRevisionFlags(rawValue: 0x20)
  static let closed = RawRevisionFlags(rawValue: 0x40)
  static let hasBody = RawRevisionFlags(rawValue: 0x80)
}

/// A decoded tree. It can be reused for other trees. Its revisions point into the decoded bytes.
struct RawRevisionTree {
  /// The reason why a document can't be imported.
  struct Fault: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
  }

  private(set) var revisions: ContiguousArray<ForeignRevision> = []
  /// The number of notes about revisions of remote databases.
  private(set) var remotes = 0
  static let noParent = 0xFFFF
  static let headerBytes = 8
  /// The maximum number of revisions in a tree.
  static let longestTree = 65_535

  /// Whether bytes are a tree. A 2.x row has a tree as its body; a 3.x row has Fleece.
  static func isTree(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var position = 0
    while bytes.count - position >= 4 {
      let size = Int(bigEndian32(bytes, position))
      if size == 0 { return position > 0 }
      guard size <= bytes.count - position, size > headerBytes,
        size > headerBytes + Int(bytes[position + 7])
      else { return false }
      position += size
    }
    return false
  }

  /// Decodes a tree. All bytes are checked.
  mutating func decode(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
    revisions.removeAll(keepingCapacity: true)
    remotes = 0
    var position = 0
    while position < bytes.count {
      guard bytes.count - position >= 4 else { throw Fault("the revision tree is cut off") }
      let size = Int(bigEndian32(bytes, position))
      guard size > 0 else {
        position += 4
        break
      }
      guard size > RawRevisionTree.headerBytes, size <= bytes.count - position else {
        throw Fault("a revision in the tree has the impossible size of \(size) bytes")
      }
      guard revisions.count < RawRevisionTree.longestTree else {
        throw Fault("the tree has too many revisions")
      }
      try append(UnsafeRawBufferPointer(rebasing: bytes[position..<(position + size)]))
      position += size
    }
    guard !revisions.isEmpty else { throw Fault("the revision tree is empty") }
    for (index, revision) in revisions.enumerated() where revision.parent >= 0 {
      guard revision.parent < revisions.count, revision.parent != index else {
        throw Fault("the parent of the revision \(revision.id) isn't in the tree")
      }
    }
    let rest = bytes.count - position
    guard rest & 3 == 0 else { throw Fault("the data after the revision tree can't be read") }
    while position < bytes.count {
      guard Int(bytes[position + 2]) << 8 | Int(bytes[position + 3]) < revisions.count else {
        throw Fault("a remote database has a revision that isn't in the tree")
      }
      remotes += 1
      position += 4
    }
  }

  private mutating func append(_ bytes: UnsafeRawBufferPointer) throws(Fault) {
    let parent = Int(bytes[4]) << 8 | Int(bytes[5])
    let flags = RawRevisionFlags(rawValue: bytes[6])
    let length = Int(bytes[7])
    guard RawRevisionTree.headerBytes + length < bytes.count else {
      throw Fault("a revision in the tree is shorter than its ID")
    }
    let id = UnsafeRawBufferPointer(
      rebasing: bytes[RawRevisionTree.headerBytes..<(RawRevisionTree.headerBytes + length)])
    let (generation, digest) = try RawRevisionTree.decodeID(id)
    var rest = UnsafeRawBufferPointer(rebasing: bytes[(RawRevisionTree.headerBytes + length)...])
    guard let sequence = rest.takeVarint(), sequence <= UInt64(Int64.max) else {
      throw Fault("a sequence in the revision tree can't be read")
    }
    revisions.append(
      ForeignRevision(
        generation: generation, suffix: digest, isText: false,
        parent: parent == RawRevisionTree.noParent ? -1 : parent, isDeleted: flags.contains(.deleted),
        isClosed: flags.contains(.closed), sequence: sequence,
        body: flags.contains(.hasBody) ? .fleece(rest) : .none))
  }

  /// Divides a binary revision ID into generation and digest.
  static func decodeID(_ id: UnsafeRawBufferPointer) throws(Fault) -> (
    generation: UInt64, digest: UnsafeRawBufferPointer
  ) {
    guard id.first != 0 else {
      throw Fault("its revision is a version vector, which only releases from 4.0 on write")
    }
    var rest = id
    guard let generation = rest.takeVarint(), generation > 0, !rest.isEmpty else {
      throw Fault("a revision ID can't be read")
    }
    return (generation, rest)
  }

  /// Makes a tree of a single revision, for a row without a tree.
  mutating func setSingle(
    id: UnsafeRawBufferPointer, isDeleted: Bool
  ) throws(Fault) {
    let (generation, digest) = try RawRevisionTree.decodeID(id)
    revisions.removeAll(keepingCapacity: true)
    remotes = 0
    revisions.append(
      ForeignRevision(
        generation: generation, suffix: digest, isText: false, parent: -1, isDeleted: isDeleted))
  }

  /// Sets the body of the current revision, which is stored outside the tree.
  mutating func setCurrentBody(_ body: UnsafeRawBufferPointer) { revisions[0].body = .fleece(body) }

  /// Whether the current revision's ID is `id`.
  func isCurrent(_ id: UnsafeRawBufferPointer) -> Bool {
    var rest = id
    guard let generation = rest.takeVarint() else { return false }
    return generation == revisions[0].generation && rest.elementsEqual(revisions[0].suffix)
  }
}

@inline(__always)
func bigEndian32(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
  UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
}
