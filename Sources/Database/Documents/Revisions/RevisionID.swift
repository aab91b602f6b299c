// The ID of a revision, as text and as it is stored.
//
//   text   := generation "-" suffix          generation: decimal, 1 or more, no leading zero
//   stored := generation:varint  length:varint  suffix
//   length := bytes << 1 | isText            isText 0: lower-case hex of even length, two digits a byte
//
// varint is little-endian base 128, the high bit meaning that more follows.

import Bytes

/// The ID of a revision: `generation-suffix`, such as `2-448bebaeae6f31e130bfc0477a807910781a688c`.
///
/// A suffix of 1 to 250 bytes of visible ASCII is kept unchanged, so that the IDs of 1.x databases (`3-foo`,
/// UUIDs) are preserved. IDs are ordered by generation, then by the bytes of the suffix.
public struct RevisionID: Hashable, Sendable, Comparable, LosslessStringConvertible {
  /// The maximum length of a suffix, in bytes.
  public static let maximumSuffixBytes = 250

  /// The highest generation: 2^63 - 1. A local save on top of it is rejected.
  public static let maximumGeneration = UInt64(Int64.max)

  /// The number of revisions up to this one, including it. 1 for the first revision of a document.
  public let generation: UInt64
  /// Distinguishes revisions of the same generation. 40 lower-case hex digits for a revision saved in this
  /// database.
  public let suffix: String

  /// Parses the text form. Nil if the text isn't a revision ID.
  public init?(_ text: String) {
    var text = text
    let parsed = text.withUTF8 { utf8 in
      RevisionID.parse(UnsafeRawBufferPointer(utf8)).map {
        RevisionID(generation: $0.generation, suffix: String(decoding: $0.suffix, as: UTF8.self))
      }
    }
    guard let parsed else { return nil }
    self = parsed
  }

  /// Parses the text form in place. Nil if it isn't a revision ID that can be stored.
  static func parse(
    _ text: UnsafeRawBufferPointer
  ) -> (generation: UInt64, suffix: UnsafeRawBufferPointer)? {
    var generation: UInt64 = 0
    var index = 0
    while index < text.count, text[index] != UInt8(ascii: "-") {
      let digit = text[index] &- 0x30
      // 19 digits fit in 64 bits.
      guard digit < 10, index < 19, index > 0 || digit > 0 else { return nil }
      generation = generation * 10 + UInt64(digit)
      index += 1
    }
    guard index > 0, index < text.count, generation <= RevisionID.maximumGeneration else { return nil }
    let suffix = UnsafeRawBufferPointer(rebasing: text[(index + 1)...])
    guard RevisionID.isValid(suffix: suffix) else { return nil }
    return (generation, suffix)
  }

  init(generation: UInt64, suffix: String) {
    self.generation = generation
    self.suffix = suffix
  }

  static func isValid(suffix: some Collection<UInt8>) -> Bool {
    !suffix.isEmpty && suffix.count <= maximumSuffixBytes && suffix.allSatisfy { $0 > 0x20 && $0 < 0x7F }
  }

  /// The text form: `generation-suffix`.
  public var description: String { "\(generation)-\(suffix)" }

  /// Orders IDs by generation, then by the bytes of the suffix. The winning revision is chosen in this order.
  public static func < (a: RevisionID, b: RevisionID) -> Bool {
    if a.generation != b.generation { return a.generation < b.generation }
    return a.suffix.utf8.lexicographicallyPrecedes(b.suffix.utf8)
  }
}

extension ByteBuffer {
  /// Appends the stored form of a suffix. Returns whether it is text.
  mutating func append(suffix: UnsafeRawBufferPointer) -> Bool {
    if append(hex: suffix) { return false }
    append(suffix)
    return true
  }
}

/// A revision ID in place. The compiler doesn't check its lifetime. The caller keeps the bytes: they are lent
/// to its closure or are in its own buffer, and the ID is used only until that closure ends or that buffer
/// changes.
struct StoredRevisionID {
  var generation: UInt64
  var suffix: StoredSuffix

  init(generation: UInt64, suffix: StoredSuffix) {
    self.generation = generation
    self.suffix = suffix
  }

  /// That of a new revision: it has the first bytes of the digest.
  init(generation: UInt64, digest: UnsafeRawBufferPointer, byteCount: Int) {
    self.generation = generation
    suffix = StoredSuffix(bytes: UnsafeRawBufferPointer(rebasing: digest[..<byteCount]), isText: false)
  }

  /// Nil if the bytes aren't a stored revision ID.
  init?(_ reader: inout ByteReader) {
    guard let generation = reader.varint(), generation > 0, generation <= RevisionID.maximumGeneration,
      let length = reader.varint(), length >= 2, length <= UInt64(RevisionID.maximumSuffixBytes) << 1 | 1,
      let bytes = reader.bytes(Int(length >> 1))
    else { return nil }
    self.generation = generation
    suffix = StoredSuffix(bytes: bytes.withUnsafeBytes { $0 }, isText: length & 1 == 1)
  }

  func append(to buffer: inout ByteBuffer) {
    buffer.append(varint: generation)
    buffer.append(varint: UInt64(suffix.bytes.count) << 1 | (suffix.isText ? 1 : 0))
    buffer.append(suffix.bytes)
  }

  /// Appends the ID's text form to a buffer.
  func appendText(to buffer: inout ByteBuffer) {
    var digits: UInt64 = 1
    while generation / digits >= 10 { digits *= 10 }
    while digits > 0 {
      buffer.append(UInt8(0x30 + generation / digits % 10))
      digits /= 10
    }
    buffer.append(UInt8(ascii: "-"))
    if suffix.isText {
      buffer.append(suffix.bytes)
    } else {
      buffer.reserve(suffix.bytes.count * 2)
      Hex.write(suffix.bytes, to: buffer.appendUninitialized(suffix.bytes.count * 2))
    }
  }
}

/// A suffix in place.
struct StoredSuffix {
  let bytes: UnsafeRawBufferPointer
  let isText: Bool

  var text: String {
    if isText { return String(decoding: bytes, as: UTF8.self) }
    return String(unsafeUninitializedCapacity: bytes.count * 2) { buffer in
      guard let start = buffer.baseAddress else { return 0 }
      Hex.write(bytes, to: UnsafeMutableRawPointer(start))
      return bytes.count * 2
    }
  }

  /// Compares the text forms. Packed hex compares by its bytes, which gives the same order.
  func compare(_ other: StoredSuffix) -> Int {
    if isText == other.isText { return compareBytes(bytes, other.bytes) }
    return Array(text.utf8).withUnsafeBytes { left in
      Array(other.text.utf8).withUnsafeBytes { compareBytes(left, $0) }
    }
  }
}
