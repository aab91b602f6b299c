/// A number of 64 bits for a row of entries: others give another, but by a chance of one in 2^63 or so. Its seed is drawn
/// anew for each process, so no data can be made to have the same.
struct EntryDigest {
  private static let seeds: (UInt64, UInt64) = (.random(in: 1...UInt64.max), .random(in: 1...UInt64.max))

  private(set) var value: UInt64 = EntryDigest.seeds.0
  private let seed = EntryDigest.seeds.1
  /// How many entries there were.
  private(set) var entries = 0
  /// Bytes of their keys and values.
  private(set) var bytes = 0

  mutating func add(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
    var digest = Self.mixed(self.value ^ UInt64(key.count), seed ^ UInt64(value.count))
    digest = Self.add(key, to: digest, seed)
    self.value = Self.add(value, to: digest, seed)
    entries += 1
    bytes += key.count + value.count
  }

  @inline(__always)
  private static func mixed(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }

  @inline(__always)
  private static func add(_ bytes: UnsafeRawBufferPointer, to digest: UInt64, _ seed: UInt64) -> UInt64 {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return digest }
    var digest = digest
    var index = 0
    while index + 16 <= bytes.count {
      digest = mixed(
        start.loadUnaligned(fromByteOffset: index, as: UInt64.self) ^ seed,
        start.loadUnaligned(fromByteOffset: index + 8, as: UInt64.self) ^ digest)
      index += 16
    }
    var rest: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &rest) {
      $0.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[index...]))
    }
    return mixed(rest.0 ^ seed, rest.1 ^ digest)
  }
}
