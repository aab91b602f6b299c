// A document is a record of the default store. Its key is the document ID, its body the revision tree:
//
//   for each revision: u32 size, with these 4 bytes     u16 index of the parent, FFFF for none     u8 flags
//                      u8 length of the ID, the ID      varint sequence, 0 for that of the record
//                      flag 80: JSON up to the size;    flag 40: varint offset of an older record with the body
//   u32 0, and nothing after it
//
//   flags     01 deleted     02 leaf     08 has attachments     40 body is in an older record     80 body follows
//   ID        varint generation, then the bytes of the digest; as text "generation-hexadecimal digits"

import Bytes

/// A revision in the body of a record.
package struct StoredRevision {
  /// The index of the parent, or -1. It is that of a revision.
  package var parent: Int
  var flags: UInt8
  /// The sequence.
  package var sequence: UInt64
  var id: Range<Int>
  /// The JSON, if the flags say so.
  var body: Range<Int>
  /// The offset of the record with the body; `nowhere` if there is none.
  var bodyOffset: UInt64

  /// Whether it is a tombstone.
  package var isDeleted: Bool { flags & 0x01 != 0 }
  /// Whether it has no children.
  package var isLeaf: Bool { flags & 0x02 != 0 }
  var isBodyHere: Bool { flags & 0x80 != 0 }
}

/// The revisions of a document. The array is used again for each.
struct StoredRevisions {
  private(set) var list: ContiguousArray<StoredRevision> = []

  /// Parents are numbers of 16 bits.
  static let maximumCount = 65_535

  /// Reads a revision tree. Returns what is wrong with it, or nil.
  mutating func read(_ body: UnsafeRawBufferPointer, sequence: UInt64) -> String? {
    list.removeAll(keepingCapacity: true)
    guard let bytes = body.baseAddress else { return "it is empty" }
    var offset = 0
    while true {
      guard offset + 4 <= body.count else { return "its revisions have no end" }
      let size = Int(bytes.integer(offset, as: UInt32.self))
      if size == 0 { break }
      let end = offset + size
      guard size >= 9, end <= body.count, list.count < Self.maximumCount else {
        return "the size of a revision is wrong"
      }
      let parent = bytes.integer(offset + 4, as: UInt16.self)
      let flags = bytes.load(fromByteOffset: offset + 6, as: UInt8.self)
      let idStart = offset + 8
      var place = idStart + Int(bytes.load(fromByteOffset: offset + 7, as: UInt8.self))
      guard place < end else { return "the ID of a revision is too long" }
      let id = idStart..<place
      let revision = UnsafeRawBufferPointer(rebasing: body[..<end])
      guard let said = revision.varint(at: &place) else { return "the sequence of a revision is wrong" }
      var found = StoredRevision(
        parent: parent == .max ? -1 : Int(parent), flags: flags, sequence: said == 0 ? sequence : said,
        id: id,
        body: place..<end, bodyOffset: nowhere)
      if flags & 0xC0 == 0x40 {
        guard let older = revision.varint(at: &place) else { return "the place of a body is wrong" }
        found.bodyOffset = older
      }
      list.append(found)
      offset = end
    }
    guard offset + 4 == body.count else { return "something follows its revisions" }
    guard !list.isEmpty else { return "it has no revisions" }
    guard list.allSatisfy({ $0.parent < list.count }) else { return "a parent doesn't exist" }
    return nil
  }

  /// Appends an ID as text. An invalid one gives a text that isn't a revision ID.
  static func append(_ id: UnsafeRawBufferPointer, to text: inout [UInt8]) {
    var offset = 0
    guard let generation = id.varint(at: &offset) else { return text.append(UInt8(ascii: "?")) }
    text.append(contentsOf: String(generation).utf8)
    text.append(UInt8(ascii: "-"))
    for byte in id[offset...] {
      text.append(Self.digits[Int(byte >> 4)])
      text.append(Self.digits[Int(byte & 15)])
    }
  }

  private static let digits = Array("0123456789abcdef".utf8)
}
