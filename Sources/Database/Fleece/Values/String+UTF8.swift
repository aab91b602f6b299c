#if canImport(Glibc)
  import Glibc
#endif

extension String {
  /// Creates a string from UTF-8 bytes. The result is nil if the bytes aren't UTF-8.
  ///
  /// `String(validating:as:)` does the same, but isn't specialized and takes some 900 instructions for a
  /// word. `String(decoding:as:)` is specialized. It repairs invalid bytes, so the result then differs from
  /// the input.
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
