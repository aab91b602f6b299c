/// Hashes of bytes, for caches and tables of a process. Don't use them if an adversary can choose the bytes.
@usableFromInline
package enum ByteHash {
  /// Returns the hash of bytes, such as a key in the keyspace number `seed`. It stays the same for the life of
  /// the process. The bytes have to live until the call returns.
  @inlinable @inline(__always)
  package static func of(_ bytes: UnsafeRawBufferPointer, _ seed: Int) -> UInt64 {
    let multiplier: UInt64 = 0x9E37_79B9_7F4A_7C15
    var hash = UInt64(truncatingIfNeeded: seed) &* multiplier ^ UInt64(truncatingIfNeeded: bytes.count)
    guard let start = bytes.baseAddress else { return hash }
    @inline(__always)
    func mix(_ word: UInt64) {
      let product = (hash ^ word).multipliedFullWidth(by: multiplier)
      hash = product.high ^ product.low
    }
    var offset = 0
    while offset &+ 8 <= bytes.count {
      mix(start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset &+= 8
    }
    var last: UInt64 = 0
    while offset < bytes.count {
      last = last << 8 | UInt64(start.load(fromByteOffset: offset, as: UInt8.self))
      offset &+= 1
    }
    mix(last)
    mix(multiplier)
    return hash
  }
}
