#if canImport(Glibc)
  import Glibc
#endif

extension String {
  /// The text whose UTF-8 bytes these are; nil when they are none.
  ///
  /// `String(validating:as:)` says the same, in some 900 instructions for a word: it isn't specialized. Decoding is, and repairs
  /// what is no UTF-8, which then shows in the bytes.
  init?(utf8 bytes: UnsafeRawBufferPointer) {
    var text = String(decoding: bytes, as: UTF8.self)
    let isSame = text.withUTF8 { decoded in
      guard decoded.count == bytes.count else { return false }
      guard let start = decoded.baseAddress, let other = bytes.baseAddress else { return true }
      return memcmp(start, other, decoded.count) == 0
    }
    guard isSame else { return nil }
    self = text
  }
}
