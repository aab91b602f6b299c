/// Numbers that look random and depend on the seed alone: SplitMix64 (Steele, Lea, Flood 2014), the same on
/// every machine.
@frozen
public struct SeededRandom: Sendable {
  @usableFromInline
  var state: UInt64

  /// Begins the sequence of `seed`.
  @inlinable
  public init(seed: UInt64) { state = seed }

  /// A generator for one thing of many, so that each can be made without those before it.
  @inlinable
  public init(seed: UInt64, stream: UInt64, index: UInt64) {
    var mixed = SeededRandom(seed: seed ^ (stream &* 0xD6E8_FEB8_6659_FD93))
    let base = mixed.next()
    mixed = SeededRandom(seed: base ^ (index &* 0xA076_1D64_78BD_642F))
    state = mixed.next()
  }

  /// The next 64 bits.
  @inlinable
  public mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// A number from 0 to `bound` - 1; `bound` is at least 1 and at most 2^32.
  @inlinable
  public mutating func below(_ bound: Int) -> Int {
    Int(((next() >> 32) &* UInt64(truncatingIfNeeded: bound)) >> 32)
  }

  /// True in `percent` of 100 calls.
  @inlinable
  public mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

  /// A number from 0 to `bound` - 1 where small ones are much more frequent: the product of two uniform ones.
  @inlinable
  public mutating func skewed(below bound: Int) -> Int {
    let product = ((next() >> 32) &* (next() >> 32)) >> 32
    return Int((product &* UInt64(truncatingIfNeeded: bound)) >> 32)
  }
}
