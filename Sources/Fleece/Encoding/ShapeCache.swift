// Documents of one kind list their properties in one order. The order that sorted them last time is tried first;
// whoever applies it checks the result, so a collision costs time and nothing else.

/// Remembered permutations by a hash of the names in their order. Whoever holds it calls `free()`.
struct ShapeCache {
  /// Members of the largest object that is remembered.
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

  func free() {
    hashes.deallocate()
    counts.deallocate()
    orders.deallocate()
  }

  @inline(__always)
  private func entry(_ shape: UInt64) -> Int { Int(truncatingIfNeeded: shape &>> 58) }

  /// Copies members in the remembered order; false when none is remembered for this shape.
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

  /// Remembers the order of sorted members, whose tape indexes tell where they stood.
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
