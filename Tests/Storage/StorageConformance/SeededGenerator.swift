/// A random generator (SplitMix64). The same seed gives the same numbers on every machine.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// Makes a generator with a seed.
  package init(seed: UInt64) { state = seed }

  /// Returns the next 64 bits.
  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Returns a number from 0 up to but not including `bound`, which is at least 1.
  package mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// Returns true once in `times` calls on average.
  package mutating func once(in times: Int) -> Bool { below(times) == 0 }

  /// Returns `count` random bytes.
  package mutating func bytes(_ count: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count)
    while result.count < count {
      var word = next()
      for _ in 0..<min(8, count - result.count) {
        result.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    return result
  }

  /// Returns one of the elements. There must be at least one.
  package mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }
}
