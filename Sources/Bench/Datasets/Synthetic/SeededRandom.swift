/// A pseudorandom generator that depends only on its seed: SplitMix64 (Steele, Lea, Flood 2014). It gives the
/// same numbers on every machine.
@frozen
@usableFromInline package struct SeededRandom: Sendable {
  @usableFromInline
  var state: UInt64

  /// Starts the sequence of `seed`.
  @inlinable
  package init(seed: UInt64) { state = seed }

  /// A generator for one of many items, so that each item can be made without the ones before it.
  @inlinable
  package init(seed: UInt64, stream: UInt64, index: UInt64) {
    var mixed = SeededRandom(seed: seed ^ (stream &* 0xD6E8_FEB8_6659_FD93))
    let base = mixed.next()
    mixed = SeededRandom(seed: base ^ (index &* 0xA076_1D64_78BD_642F))
    state = mixed.next()
  }

  /// Returns the next 64 bits.
  @inlinable
  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Returns a number from 0 to `bound` - 1. `bound` is at least 1 and at most 2^32.
  @inlinable
  package mutating func below(_ bound: Int) -> Int {
    Int(((next() >> 32) &* UInt64(truncatingIfNeeded: bound)) >> 32)
  }

  /// Returns true in `percent` of 100 calls.
  @inlinable
  package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

  /// Returns a number from 0 to `bound` - 1. Small numbers are more frequent: it is a product of two uniform
  /// numbers.
  @inlinable
  package mutating func skewed(below bound: Int) -> Int {
    let product = ((next() >> 32) &* (next() >> 32)) >> 32
    return Int((product &* UInt64(truncatingIfNeeded: bound)) >> 32)
  }
}
