import CISAL
import Storage

/// CRC-32C (Castagnoli's polynomial; RFC 3720, appendix B.4), computed by Intel's ISA-L with the processor's
/// CRC instruction. It detects every single run of wrong bits up to 32 bits long. It misses other errors once
/// in 2^32.
struct CRC32C {
  private var register: UInt32 = .max

  /// Adds more bytes.
  @inline(__always)
  mutating func add(_ bytes: RawSpan) {
    register = bytes.withUnsafeBytes { CRC32C.advance(register, $0) }
  }

  /// The checksum of all added bytes.
  var value: UInt32 { ~register }

  /// The library takes lengths below 2^31 and doesn't write through its pointer.
  private static func advance(_ register: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
    var register = register
    var rest = bytes
    while let start = rest.baseAddress, rest.count > 0 {
      let count = min(rest.count, 1 << 30)
      register = crc32_iscsi(
        UnsafeMutablePointer(mutating: start.assumingMemoryBound(to: UInt8.self)), Int32(count), register)
      rest = UnsafeRawBufferPointer(rebasing: rest[count...])
    }
    return register
  }
}
