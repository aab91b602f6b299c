/// Codes of airlines and airports: letters that look drawn but are counted, so that no two indices have the same.
enum TravelCodes {
  /// A code of three letters for the first 17,576 indices, then of four, then of five. `salt` tells series of
  /// codes apart.
  static func letters(_ index: Int, salt: Int, _ body: (UInt8) -> Void) {
    var rest = index
    var length = 3
    var size = 26 * 26 * 26
    while rest >= size, length < 6 {
      rest -= size
      size *= 26
      length += 1
    }
    // 7,919 is prime and not of 26, so this goes through all codes once.
    var code = (rest % size * 7_919 + salt) % size
    for _ in 0..<length {
      body(0x41 + UInt8(code % 26))
      code /= 26
    }
  }

  /// Two letters or digits. More than 1,296 airlines share them, as real ones do.
  static func short(_ index: Int, _ body: (UInt8) -> Void) {
    var code = (index * 733 + 391) % 1_296
    for _ in 0..<2 {
      let digit = UInt8(code % 36)
      body(digit < 26 ? 0x41 + digit : 0x30 + digit - 26)
      code /= 36
    }
  }
}
