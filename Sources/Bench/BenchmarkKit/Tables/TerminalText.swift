/// Text that comes from elsewhere, such as names and values of documents, and may be shown on a terminal. A terminal obeys control
/// characters: whoever wrote the document could set its title, overwrite lines or have it type.
package enum TerminalText {
  /// What this program itself sends to style text.
  private static let styles = ["\u{1B}[1m", "\u{1B}[1;31m", "\u{1B}[m"].map { Array($0.utf8) }

  /// UTF-8 with its control characters (C0, DEL, C1) written as JSON writes them, `\u001B`, but for tabs, the ends of lines, and the
  /// sequences that style text.
  package static func escaped(_ bytes: [UInt8]) -> [UInt8] {
    func mayBeControl(_ byte: UInt8) -> Bool {
      byte < 0x20 && byte != newline && byte != tab || byte == 0x7F || byte == 0xC2
    }
    guard bytes.contains(where: mayBeControl) else { return bytes }
    var result: [UInt8] = []
    result.reserveCapacity(bytes.count + 64)
    var rest = bytes[...]
    while let byte = rest.first {
      if byte == escape, let style = styles.first(where: { rest.starts(with: $0) }) {
        result += style
        rest = rest.dropFirst(style.count)
        continue
      }
      rest = rest.dropFirst()
      switch (byte, rest.first) {
      case (newline, _), (tab, _), (return_, newline): result.append(byte)
      case (..<0x20, _), (0x7F, _): result += "\\u\(hexadecimal(byte))".utf8
      case (0xC2, .some(0x80...0x9F)): result += "\\u\(hexadecimal(rest.removeFirst()))".utf8
      default: result.append(byte)
      }
    }
    return result
  }

  /// A text with all its control characters escaped, ends of lines too.
  package static func escapedLine(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      if isControl(scalar) {
        result += "\\u\(hexadecimal(UInt8(scalar.value)))"
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  private static let newline = UInt8(ascii: "\n")
  private static let tab = UInt8(ascii: "\t")
  private static let return_ = UInt8(ascii: "\r")
  private static let escape: UInt8 = 0x1B

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    scalar.value < 0x20 || 0x7F...0x9F ~= scalar.value
  }

  private static func hexadecimal(_ byte: UInt8) -> String {
    (byte < 16 ? "000" : "00") + String(byte, radix: 16, uppercase: true)
  }
}
