import CISAL

/// The checksum of headers, nodes and records: the CRC-32 of zlib.
enum CRC32 {
  /// Continues a checksum with more bytes. The first call has no `value`.
  @inline(__always)
  static func of(_ bytes: UnsafeRawBufferPointer, after value: UInt32 = 0) -> UInt32 {
    guard let start = bytes.baseAddress, !bytes.isEmpty else { return value }
    return crc32_gzip_refl(value, start.assumingMemoryBound(to: UInt8.self), UInt64(bytes.count))
  }

  /// Whether a stored checksum is right. A fuzz target takes any as right, so that its inputs get past it.
  @inline(__always)
  static func isEqual(_ stored: UInt32, _ computed: @autoclosure () -> UInt32) -> Bool {
    #if FUZZING
      return true
    #else
      return stored == computed()
    #endif
  }
}
