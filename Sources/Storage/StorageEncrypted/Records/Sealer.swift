/// Hands out seals, each only once. Only the current writer uses it.
final class Sealer {
  /// The maximum number of records sealed in a session. Then a new session begins.
  private static let maximumSeals: UInt64 = 1 << 40

  private var next: Seal?
  private var left: UInt64 = 0

  /// Returns the first of `count` consecutive seals.
  func take(_ count: Int = 1) throws -> Seal {
    if let seal = next, left >= UInt64(count) {
      next = seal.advanced(by: count)
      left -= UInt64(count)
      return seal
    }
    var random: (UInt64, UInt64, UInt64) = (0, 0, 0)
    try withUnsafeMutableBytes(of: &random) { try RecordCipher.fillRandomly($0) }
    let seal = Seal(session: random.0, middle: random.1, nonce: random.2)
    next = seal.advanced(by: count)
    left = Self.maximumSeals - UInt64(count)
    return seal
  }
}
