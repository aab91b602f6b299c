// Strings of up to 16 bytes in two registers, for fast hashing and comparison.

/// A string of at most 16 bytes in memory order, padded with zeros.
struct ShortName: BitwiseCopyable {
  var low: UInt64
  var high: UInt64

  /// Loads `length` bytes (0...16). 16 bytes must be readable.
  @inline(__always)
  init(overreading bytes: UnsafePointer<UInt8>, length: Int) {
    let raw = UnsafeRawPointer(bytes)
    let bits = UInt64(truncatingIfNeeded: length &* 8)
    // A shift by 64 or more gives 0, so full words get a mask of ones.
    let lowMask = ((1 as UInt64) << bits) &- 1
    let highMask = ((1 as UInt64) << (max(bits, 64) &- 64)) &- 1
    low = raw.loadUnaligned(as: UInt64.self) & lowMask
    high = raw.loadUnaligned(fromByteOffset: 8, as: UInt64.self) & highMask
  }

  /// Loads a string of at most 16 bytes. Doesn't read past its end.
  init(exactly bytes: UnsafeBufferPointer<UInt8>) {
    low = 0
    high = 0
    for (index, byte) in bytes.enumerated() {
      if index < 8 {
        low |= UInt64(byte) << UInt64(index * 8)
      } else {
        high |= UInt64(byte) << UInt64((index - 8) * 8)
      }
    }
  }

  @inline(__always)
  init(low: UInt64, high: UInt64) {
    self.low = low
    self.high = high
  }

  @inline(__always)
  var hash: UInt64 {
    (low ^ (high << 29 | high >> 35)) &* 0x9E37_79B9_7F4A_7C15
  }
}
