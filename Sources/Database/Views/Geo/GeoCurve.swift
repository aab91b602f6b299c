// A Z-curve over pairs of doubles: the bits of both coordinates in turn, those of y above those of x. Two coordinates that
// are near each other often have near places on the curve, so a box is read in a few pieces.

/// Places on the curve. All functions give the same on every machine.
enum GeoCurve {
  /// A coordinate as 32 bits, in the order of the coordinates: not exact, but never out of order.
  ///
  /// Near 0 they are even; further out they become coarser, as doubles do. At 64 degrees they are 3 m wide.
  static func coordinate(_ value: Double) -> UInt32 {
    // Below 2^31 for finite values; infinity takes the last place.
    let magnitude = min(((abs(value) + 1).bitPattern - (1.0).bitPattern) >> 31, (1 << 31) - 1)
    return value >= 0 ? 1 << 31 + UInt32(magnitude) : (1 << 31) - 1 - UInt32(magnitude)
  }

  /// The place of two coordinates.
  static func place(_ x: UInt32, _ y: UInt32) -> UInt64 { spread(x) | spread(y) << 1 }

  /// The coordinates of a place.
  static func coordinates(of place: UInt64) -> (x: UInt32, y: UInt32) { (gather(place), gather(place >> 1)) }

  private static func spread(_ value: UInt32) -> UInt64 {
    var bits = UInt64(value)
    bits = (bits | bits << 16) & 0x0000_FFFF_0000_FFFF
    bits = (bits | bits << 8) & 0x00FF_00FF_00FF_00FF
    bits = (bits | bits << 4) & 0x0F0F_0F0F_0F0F_0F0F
    bits = (bits | bits << 2) & 0x3333_3333_3333_3333
    return (bits | bits << 1) & 0x5555_5555_5555_5555
  }

  private static func gather(_ place: UInt64) -> UInt32 {
    var bits = place & 0x5555_5555_5555_5555
    bits = (bits | bits >> 1) & 0x3333_3333_3333_3333
    bits = (bits | bits >> 2) & 0x0F0F_0F0F_0F0F_0F0F
    bits = (bits | bits >> 4) & 0x00FF_00FF_00FF_00FF
    bits = (bits | bits >> 8) & 0x0000_FFFF_0000_FFFF
    return UInt32(truncatingIfNeeded: bits | bits >> 16)
  }

  /// The first place from `place` on that is in the box with the corners `lower` and `upper`; nil if there is none. (The
  /// BIGMIN of Tropf and Herzog, "Multidimensional range search in dynamically balanced trees", 1981.)
  static func next(from place: UInt64, lower: UInt64, upper: UInt64) -> UInt64? {
    var (low, high) = (lower, upper)
    var best: UInt64?
    for bit in (0..<64).reversed() {
      let mask: UInt64 = 1 << UInt64(bit)
      // The lower bits of the same coordinate.
      let rest = (bit & 1 == 0 ? 0x5555_5555_5555_5555 : 0xAAAA_AAAA_AAAA_AAAA) & (mask - 1)
      switch (place & mask != 0, low & mask != 0, high & mask != 0) {
      case (false, false, true):
        best = low & ~rest | mask
        high = high & ~mask | rest
      case (false, true, _): return low
      case (true, false, false): return best
      case (true, false, true): low = low & ~rest | mask
      default: break
      }
    }
    return place
  }
}
