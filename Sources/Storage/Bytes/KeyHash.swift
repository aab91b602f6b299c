/// Hashes of keys, for what remembers where they were found. Not for data that an adversary chooses keys of.
public enum KeyHash {
  /// The hash of a key of a keyspace, the same for the life of a process.
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
