/// Base64 of keys and tokens (RFC 4648): both alphabets, read strictly.
enum StrictBase64 {
  /// The bytes of base64 for URLs, without padding; nil for anything else.
  static func urlBytes(_ text: some Sequence<UInt8>) -> [UInt8]? {
    bytes(text, UInt8(ascii: "-"), UInt8(ascii: "_"))
  }

  /// The bytes of base64 with or without padding; nil for anything else.
  static func plainBytes(_ text: some BidirectionalCollection<UInt8>) -> [UInt8]? {
    var rest = text[...]
    var padding = 0
    while padding < 2, rest.last == UInt8(ascii: "=") {
      rest = rest.dropLast()
      padding += 1
    }
    guard padding == 0 || (rest.count + padding) % 4 == 0 else { return nil }
    return bytes(rest, UInt8(ascii: "+"), UInt8(ascii: "/"))
  }

  private static func bytes(_ text: some Sequence<UInt8>, _ sixtyTwo: UInt8, _ sixtyThree: UInt8) -> [UInt8]?
  {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(text.underestimatedCount * 3 / 4)
    var (bits, count): (UInt32, Int) = (0, 0)
    for character in text {
      let value: UInt8
      switch character {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = character - UInt8(ascii: "A")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): value = character - UInt8(ascii: "a") + 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = character - UInt8(ascii: "0") + 52
      case sixtyTwo: value = 62
      case sixtyThree: value = 63
      default: return nil
      }
      bits = bits << 6 | UInt32(value)
      count += 6
      guard count >= 8 else { continue }
      count -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
    }
    // One character alone is no byte, and the bits behind the last byte are 0: each text stands for other bytes.
    guard count < 6, bits & (1 << UInt32(count) - 1) == 0 else { return nil }
    return bytes
  }
}
