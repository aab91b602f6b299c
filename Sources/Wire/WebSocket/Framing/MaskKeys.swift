import CSockets

#if canImport(Glibc)
  import Glibc
#endif

/// Random bytes for masks, from the kernel. They are fetched for many frames at a time.
struct MaskKeys {
  private static let capacity = 1024

  private var bytes = [UInt8](repeating: 0, count: capacity)
  private var next = capacity

  /// Fills `count` bytes, at most 1024. Returns false if the kernel has none, which happens only while it boots.
  mutating func fill(_ target: UnsafeMutablePointer<UInt8>, _ count: Int) -> Bool {
    if next + count > Self.capacity {
      guard refill() else { return false }
    }
    bytes.withUnsafeBufferPointer { bytes in
      for index in 0..<count { target[index] = bytes[next + index] }
    }
    next += count
    return true
  }

  private mutating func refill() -> Bool {
    var filled = 0
    while filled < Self.capacity {
      let count = bytes.withUnsafeMutableBytes { bytes in
        getrandom(bytes.baseAddress.map { $0 + filled }, Self.capacity - filled, 0)
      }
      if count < 0, errno != EINTR { return false }
      filled += max(0, count)
    }
    next = 0
    return true
  }
}
