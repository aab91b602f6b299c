// The digest of a blob: the SHA-1 of its bytes.
//
//   text      := "sha1-" base64(20 bytes)      standard alphabet, padded: 33 characters, in documents
//   file name := base64(20 bytes) ".blob"      with "/" as "_": in the directory of a database without a key

/// Identifies a blob: the SHA-1 digest of its bytes.
public struct BlobDigest: Hashable, Sendable {
  /// The number of bytes of a digest.
  public static let byteCount = 20
  /// The number of characters of its text form.
  package static let textCount = 33
  /// The prefix of its text form.
  package static let textPrefix = "sha1-"

  // Stored inline: an array would need an allocation for each of a million references.
  private let first: UInt64
  private let second: UInt64
  private let third: UInt32

  /// Creates a digest from 20 bytes. Nil for any other number of bytes.
  public init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count == BlobDigest.byteCount else { return nil }
    first = bytes.loadUnaligned(as: UInt64.self)
    second = bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)
    third = bytes.loadUnaligned(fromByteOffset: 16, as: UInt32.self)
  }

  /// Parses the text form. Nil unless the text is `sha1-` and 28 characters of base64.
  public init?(_ text: String) {
    var text = text
    let digest = text.withUTF8 { BlobDigest(text: UnsafeRawBufferPointer($0)) }
    guard let digest else { return nil }
    self = digest
  }

  /// Parses the text form in UTF-8. Nil if it isn't valid.
  public init?(text: UnsafeRawBufferPointer) {
    guard text.count == BlobDigest.textCount, text.starts(with: BlobDigest.textPrefix.utf8),
      let digest = BlobDigest(base64: UnsafeRawBufferPointer(rebasing: text[5...]), slash: UInt8(ascii: "/"))
    else { return nil }
    self = digest
  }

  /// Parses the name of a blob's file. Nil if it isn't valid.
  init?(fileName: String) {
    let name = Array(fileName.utf8)
    guard name.count == 28 + BlobDigest.fileSuffix.utf8.count, fileName.hasSuffix(BlobDigest.fileSuffix),
      let digest = name.withUnsafeBytes({
        BlobDigest(base64: UnsafeRawBufferPointer(rebasing: $0[..<28]), slash: UInt8(ascii: "_"))
      })
    else { return nil }
    self = digest
  }

  private init?(base64 text: UnsafeRawBufferPointer, slash: UInt8) {
    guard text.count == 28, text[27] == UInt8(ascii: "=") else { return nil }
    var bytes: InlineArray<21, UInt8> = .init(repeating: 0)
    var bits: UInt32 = 0
    for index in 0..<27 {
      guard let value = base64Value(text[index], slash: slash) else { return nil }
      bits = bits << 6 | UInt32(value)
      if index & 3 == 3 {
        let start = index / 4 * 3
        bytes[start] = UInt8(truncatingIfNeeded: bits >> 16)
        bytes[start + 1] = UInt8(truncatingIfNeeded: bits >> 8)
        bytes[start + 2] = UInt8(truncatingIfNeeded: bits)
        bits = 0
      }
    }
    // The last three characters hold 18 bits, of which a digest uses 16. The other two must be 0, so each
    // digest has only one text.
    guard bits & 3 == 0 else { return nil }
    bytes[18] = UInt8(truncatingIfNeeded: bits >> 10)
    bytes[19] = UInt8(truncatingIfNeeded: bits >> 2)
    let digest = bytes.span.withUnsafeBytes { BlobDigest(UnsafeRawBufferPointer(rebasing: $0[..<20])) }
    guard let digest else { return nil }
    self = digest
  }

  /// The 20 bytes.
  public var bytes: [UInt8] {
    [UInt8](unsafeUninitializedCapacity: 20) { buffer, count in
      let raw = UnsafeMutableRawBufferPointer(buffer)
      raw.storeBytes(of: first, as: UInt64.self)
      raw.storeBytes(of: second, toByteOffset: 8, as: UInt64.self)
      raw.storeBytes(of: third, toByteOffset: 16, as: UInt32.self)
      count = 20
    }
  }

  /// The text form used in documents: `sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=`.
  public var text: String { BlobDigest.textPrefix + base64(bytes, slash: UInt8(ascii: "/"), padded: true) }

  static let fileSuffix = ".blob"

  /// The name of the blob's file in a database without encryption.
  var fileName: String { base64(bytes, slash: UInt8(ascii: "_"), padded: true) + BlobDigest.fileSuffix }
}

extension BlobDigest: CustomStringConvertible {
  /// The text form.
  public var description: String { text }
}

private let base64Characters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

/// Returns base64 text with other characters in place of "+" and "/".
package func base64(
  _ bytes: [UInt8], plus: UInt8 = UInt8(ascii: "+"), slash: UInt8 = UInt8(ascii: "/"), padded: Bool = true
) -> String {
  var text: [UInt8] = []
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let group = bytes[start..<min(start + 3, bytes.count)]
    var bits: UInt32 = 0
    for index in 0..<3 { bits = bits << 8 | (index < group.count ? UInt32(group[start + index]) : 0) }
    for index in 0..<4 {
      guard index <= group.count else {
        if padded { text.append(UInt8(ascii: "=")) }
        continue
      }
      let character = base64Characters[Int(bits >> UInt32(18 - 6 * index) & 63)]
      text.append(
        character == UInt8(ascii: "/") ? slash : character == UInt8(ascii: "+") ? plus : character)
    }
  }
  return String(decoding: text, as: UTF8.self)
}

private func base64Value(_ character: UInt8, slash: UInt8) -> UInt8? {
  switch character {
  case UInt8(ascii: "A")...UInt8(ascii: "Z"): character - UInt8(ascii: "A")
  case UInt8(ascii: "a")...UInt8(ascii: "z"): character - UInt8(ascii: "a") + 26
  case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0") + 52
  case UInt8(ascii: "+"): 62
  case slash: 63
  default: nil
  }
}
