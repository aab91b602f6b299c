/// Codes of airlines and airports. They look random but are computed from the index, so that different
/// indices have different codes.
enum TravelCodes {
  /// A code of three letters for the first 17,576 indices, then of four, five and six. `salt` selects a
  /// series of codes.
  static func letters(_ index: Int, salt: Int, _ body: (UInt8) -> Void) {
    var rest = index
    var length = 3
    var size = 26 * 26 * 26
    while rest >= size, length < 6 {
      rest -= size
      size *= 26
      length += 1
    }
    // 7,919 is prime and doesn't divide a power of 26, so this reaches every code once.
    var code = (rest % size * 7_919 + salt) % size
    for _ in 0..<length {
      body(0x41 + UInt8(code % 26))
      code /= 26
    }
  }

  /// A code of two letters or digits. More than 1,296 airlines share codes, as in reality.
  static func short(_ index: Int, _ body: (UInt8) -> Void) {
    var code = (index * 733 + 391) % 1_296
    for _ in 0..<2 {
      let digit = UInt8(code % 36)
      body(digit < 26 ? 0x41 + digit : 0x30 + digit - 26)
      code /= 36
    }
  }
}
