// Documents of one kind list their properties in the same order. The last sort order of such a list is tried
// first. The caller checks the result, so a hash collision only costs time.

/// A cache of permutations, by a hash of the names in their order.
struct ShapeCache: ~Copyable {
  /// The maximum number of members of an object in the cache.
  static let largest = 32
  private static let shapes = 64

  private let hashes: UnsafeMutablePointer<UInt64>
  private let counts: UnsafeMutablePointer<UInt8>
  private let orders: UnsafeMutablePointer<UInt8>

  init() {
    hashes = .allocate(capacity: ShapeCache.shapes)
    counts = .allocate(capacity: ShapeCache.shapes)
    orders = .allocate(capacity: ShapeCache.shapes * ShapeCache.largest)
    counts.initialize(repeating: 0, count: ShapeCache.shapes)
  }

  deinit {
    hashes.deallocate()
    counts.deallocate()
    orders.deallocate()
  }

  @inline(__always)
  private func entry(_ shape: UInt64) -> Int { Int(truncatingIfNeeded: shape &>> 58) }

  /// Copies members in the cached order. Returns false if no order is cached for this shape.
  func apply(
    _ shape: UInt64, _ source: UnsafeMutablePointer<Member>, into target: UnsafeMutablePointer<Member>,
    _ count: Int
  ) -> Bool {
    let entry = entry(shape)
    guard counts[entry] == count, hashes[entry] == shape else { return false }
    let order = orders + entry &* ShapeCache.largest
    for index in 0..<count { target[index] = source[Int(order[index])] }
    return true
  }

  /// Caches the order of sorted members. Their tape indexes give their original places.
  func record(_ shape: UInt64, _ sorted: UnsafeMutablePointer<Member>, _ count: Int) {
    let entry = entry(shape)
    let order = orders + entry * ShapeCache.largest
    for index in 0..<count {
      var rank: UInt8 = 0
      for other in 0..<count where sorted[other].value < sorted[index].value { rank += 1 }
      order[index] = rank
    }
    hashes[entry] = shape
    counts[entry] = UInt8(count)
  }
}
