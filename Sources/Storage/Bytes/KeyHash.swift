/// Hashes of keys, for caches of where keys were found. Don't use them if an adversary can choose the keys.
public enum KeyHash {
  /// Returns the hash of a key in a keyspace. It stays the same for the life of the process.
  @inlinable @inline(__always)
  public static func of(_ key: UnsafeRawBufferPointer, _ keyspace: Int) -> UInt64 {
    let multiplier: UInt64 = 0x9E37_79B9_7F4A_7C15
    var hash = UInt64(truncatingIfNeeded: keyspace) &* multiplier ^ UInt64(truncatingIfNeeded: key.count)
    guard let start = key.baseAddress else { return hash }
    @inline(__always)
    func mix(_ word: UInt64) {
      let product = (hash ^ word).multipliedFullWidth(by: multiplier)
      hash = product.high ^ product.low
    }
    var offset = 0
    while offset &+ 8 <= key.count {
      mix(start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset &+= 8
    }
    var last: UInt64 = 0
    while offset < key.count {
      last = last << 8 | UInt64(start.load(fromByteOffset: offset, as: UInt8.self))
      offset &+= 1
    }
    mix(last)
    mix(multiplier)
    return hash
  }
}
