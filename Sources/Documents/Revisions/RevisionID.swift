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
    guard let dash = text.utf8.firstIndex(of: UInt8(ascii: "-")) else { return nil }
    let digits = text.utf8[..<dash]
    guard let first = digits.first, first != UInt8(ascii: "0"), digits.count <= 19,
      digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let generation = UInt64(text[..<dash]),
      generation <= RevisionID.maximumGeneration
    else { return nil }
    let suffix = text[text.utf8.index(after: dash)...]
    guard RevisionID.isValid(suffix: suffix.utf8) else { return nil }
    self.generation = generation
    self.suffix = String(suffix)
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
