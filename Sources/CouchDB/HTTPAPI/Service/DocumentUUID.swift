import Bytes

/// Names that nobody guesses: of documents that get none from their clients, of boundaries.
enum DocumentUUID {
  /// 128 random bits from the system, as hexadecimal digits.
  static func make() -> String {
    var generator = SystemRandomNumberGenerator()
    return Hex.text((0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }
}
