import Datasets
import Storage

/// The entries of the suite `endure`: keys of 24 digits in no order, and random bytes as values.
final class EndureData: @unchecked Sendable {
  // Never changes after `init`.
  static let keyBytes = 24
  private static let poolBytes = 1 << 20

  let valueBytes: Int
  private let pool: UnsafeMutableRawBufferPointer

  init(valueBytes: Int, seed: UInt64) {
    self.valueBytes = valueBytes
    pool = .allocate(byteCount: Self.poolBytes + valueBytes, alignment: 16)
    var random = SeededRandom(seed: seed)
    for index in pool.indices { pool[index] = UInt8(truncatingIfNeeded: random.next()) }
  }

  deinit { pool.deallocate() }

  /// The bytes of an entry.
  var entryBytes: Int { Self.keyBytes + valueBytes }

  /// A random value.
  func value(_ random: inout SeededRandom) -> UnsafeRawBufferPointer {
    let start = random.below(Self.poolBytes)
    return UnsafeRawBufferPointer(rebasing: pool[start..<start + valueBytes])
  }

  /// Writes the key of a number into a buffer of `keyBytes` bytes. Different numbers have different keys.
  static func writeKey(_ number: Int, into buffer: UnsafeMutableRawBufferPointer) {
    // Each state of the generator gives another number.
    var random = SeededRandom(seed: UInt64(number))
    var rest = random.next()
    for digit in buffer.indices.reversed() {
      buffer[digit] = 0x30 + UInt8(rest % 10)
      rest /= 10
    }
  }
}
