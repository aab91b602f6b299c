/// Decodes base64 that stands between the quotes of a JSON string, in pieces. It takes the standard alphabet, padded, with escaped
/// slashes and line ends.
struct Base64Decoder {
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 0xFF, count: 256)
    for (value, byte) in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8.enumerated()
    {
      values[Int(byte)] = UInt8(value)
    }
    return values
  }()

  /// Calls `body` with the decoded bytes, piece by piece. Returns false if the text isn't base64.
  static func decode(_ text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) rethrows
    -> Bool
  {
    var piece: [UInt8] = []
    piece.reserveCapacity(48 << 10)
    var bits: UInt32 = 0
    var digits = 0
    var padding = 0
    var index = 0
    while index < text.count {
      var byte = text[index]
      index += 1
      if byte == UInt8(ascii: "\\") {
        guard index < text.count else { return false }
        byte = text[index]
        index += 1
        if byte == UInt8(ascii: "n") || byte == UInt8(ascii: "r") || byte == UInt8(ascii: "t") { continue }
        guard byte == UInt8(ascii: "/") else { return false }
      }
      if byte == UInt8(ascii: "=") {
        padding += 1
        continue
      }
      if byte == 0x20 { continue }
      let value = values[Int(byte)]
      guard value < 64, padding == 0 else { return false }
      bits = bits << 6 | UInt32(value)
      digits += 1
      if digits & 3 == 0 {
        piece.append(UInt8(truncatingIfNeeded: bits >> 16))
        piece.append(UInt8(truncatingIfNeeded: bits >> 8))
        piece.append(UInt8(truncatingIfNeeded: bits))
        if piece.count >= 48_000 {
          try piece.withUnsafeBytes { try body($0) }
          piece.removeAll(keepingCapacity: true)
        }
      }
    }
    guard (digits + padding) & 3 == 0, padding <= 2 else { return false }
    switch digits & 3 {
    case 0: if padding > 0 { return false }
    case 2: piece.append(UInt8(truncatingIfNeeded: bits >> 4))
    case 3:
      piece.append(UInt8(truncatingIfNeeded: bits >> 10))
      piece.append(UInt8(truncatingIfNeeded: bits >> 2))
    default: return false
    }
    if !piece.isEmpty { try piece.withUnsafeBytes { try body($0) } }
    return true
  }

  /// Appends bytes as base64 text, padded only if their number isn't a multiple of three.
  static func encode(_ bytes: UnsafeRawBufferPointer, to text: inout [UInt8]) {
    let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    text.reserveCapacity(text.count + (bytes.count + 2) / 3 * 4)
    var index = 0
    while index < bytes.count {
      let left = min(bytes.count - index, 3)
      var group = UInt32(bytes[index]) << 16
      if left > 1 { group |= UInt32(bytes[index + 1]) << 8 }
      if left > 2 { group |= UInt32(bytes[index + 2]) }
      for digit in 0..<4 {
        text.append(
          digit <= left ? alphabet.utf8Start[Int(group >> UInt32(18 - 6 * digit)) & 63] : UInt8(ascii: "="))
      }
      index += 3
    }
  }
}
