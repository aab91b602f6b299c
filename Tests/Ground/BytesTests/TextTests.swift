import Bytes
import Expectations
import Testing

@Suite("Hexadecimal digits") struct HexTests {
  static let all = (0...255).map { UInt8($0) }

  @Test("each byte has two digits, in both cases") func bytes() {
    for byte in Self.all {
      let digits = (byte < 16 ? "0" : "") + String(byte, radix: 16)
      expect(Hex.text([byte]), equals: digits)
      expect(Hex.text([byte], isUpper: true), equals: digits.uppercased())
    }
    expect(Hex.text([]), equals: "")
    expect(Hex.text([0x00, 0xAB, 0xFF]), equals: "00abff")
  }

  @Test("digits are read back in both cases") func readBack() {
    expect(Hex.bytes(Hex.text(Self.all).utf8), equals: Self.all)
    expect(Hex.bytes(Hex.text(Self.all, isUpper: true).utf8), equals: Self.all)
    expect(Hex.bytes("".utf8), equals: [])
  }

  @Test(
    "other text isn't digits",
    arguments: ["a", "abc", "0g", "g0", " 1", "+1", "-1", "0x", "\u{10}0", "1\u{11}", "@0", "`0", "\u{E9}"])
  func bad(_ text: String) {
    expect(Hex.bytes(text.utf8) == nil)
    var buffer = ByteBuffer()
    expect(!Array(text.utf8).withUnsafeBytes { buffer.append(hex: $0) })
    expect(buffer.count, equals: 0)
  }

  @Test("every byte that is no digit is refused") func everyByte() {
    let digits = Set("0123456789abcdefABCDEF".utf8)
    for byte in Self.all {
      expect((Hex.bytes([0x30, byte]) != nil), equals: digits.contains(byte))
      expect((Hex.bytes([byte, 0x30]) != nil), equals: digits.contains(byte))
      expect(
        (Hex.value(ofLower: byte) != nil), equals: (digits.contains(byte) && !(0x41...0x46).contains(byte)))
    }
  }

  @Test("a buffer packs lower-case digits alone") func packing() {
    var buffer = ByteBuffer(capacity: 0)
    buffer.append(1)
    expect(Array("00abff".utf8).withUnsafeBytes { buffer.append(hex: $0) })
    expect(!Array("00abfF".utf8).withUnsafeBytes { buffer.append(hex: $0) })
    expect([UInt8](buffer.bytes), equals: [1, 0x00, 0xAB, 0xFF])
    var digits = ByteBuffer()
    Hex.write(buffer.bytes, to: digits.appendUninitialized(buffer.count * 2))
    expect(String(decoding: digits.bytes, as: UTF8.self), equals: "0100abff")
  }

  @Test("numbers are padded, never cut") func numbers() {
    expect(Hex.text(0, digits: 4), equals: "0000")
    expect(Hex.text(0xABC, digits: 4), equals: "0abc")
    expect(Hex.text(0xABCDE, digits: 4), equals: "abcde")
    expect(Hex.text(.max, digits: 16), equals: "ffffffffffffffff")
    expect(Hex.text(1, digits: 0), equals: "1")
  }
}

@Suite("Escapes") struct EscapingTests {
  private func escaped(_ bytes: [UInt8]) -> String {
    var buffer = ByteBuffer(capacity: 0)
    bytes.withUnsafeBytes { buffer.append(jsonEscaped: $0) }
    return String(decoding: buffer.bytes, as: UTF8.self)
  }

  @Test("every control character of a JSON string is escaped") func controls() {
    for byte in UInt8(0)..<0x20 {
      let short: [UInt8: String] = [0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"]
      let digits = (byte < 16 ? "0" : "") + String(byte, radix: 16)
      expect(escaped([byte]), equals: short[byte] ?? "\\u00\(digits)")
    }
    expect(escaped([0x7F]), equals: "\\u007f")
  }

  @Test("quotes and backslashes are escaped, nothing else") func others() {
    expect(escaped(Array("\"\\".utf8)), equals: "\\\"\\\\")
    let plain = (0x20...0x7E).map { UInt8($0) }.filter { $0 != 0x22 && $0 != 0x5C }
    expect(escaped(plain), equals: String(decoding: plain, as: UTF8.self))
    expect(escaped(Array("é漢😀/\u{2028}".utf8)), equals: "é漢😀/\u{2028}")
    expect(escaped([]), equals: "")
  }

  @Test("bytes that aren't UTF-8 are copied") func notUTF8() {
    var buffer = ByteBuffer()
    [UInt8]([0x80, 0xFF, 0xC3]).withUnsafeBytes { buffer.append(jsonEscaped: $0) }
    expect([UInt8](buffer.bytes), equals: [0x80, 0xFF, 0xC3])
  }

  @Test("long texts grow the buffer", arguments: [63, 64, 65, 128, 1_000]) func long(_ count: Int) {
    expect(escaped([UInt8](repeating: 1, count: count)), equals: String(repeating: "\\u0001", count: count))
    expect(
      escaped([UInt8](repeating: 0x61, count: count) + [0x22]),
      equals: String(repeating: "a", count: count)
        + "\\\"")
  }

  @Test("a CSV field is quoted when it must be") func csv() {
    expect("".csvField, equals: "")
    expect("plain text".csvField, equals: "plain text")
    expect("a,b".csvField, equals: "\"a,b\"")
    expect("a\"b\"".csvField, equals: "\"a\"\"b\"\"\"")
    expect("a\r\nb".csvField, equals: "\"a\r\nb\"")
    expect("a\nb".csvField, equals: "\"a\nb\"")
    expect("a\rb".csvField, equals: "\"a\rb\"")
  }
}

@Suite("Characters at the ends of a text") struct TrimmingTests {
  @Test(
    "blanks, tabs and line ends are taken from both ends, and from nowhere else",
    arguments: [
      ("", ""), (" ", ""), ("a", "a"), (" a", "a"), ("a\n", "a"), ("\t a b \r\n", "a b"),
      ("\u{A0}é\u{2028}", "é"),
    ])
  func blanks(_ text: String, _ trimmed: String) {
    expect(String(text.trimming()), equals: trimmed)
    expect(String(Substring(text).trimming()), equals: trimmed)
  }

  @Test("or the characters that are asked for") func others() {
    expect(String("\"a \"b\"".trimming { $0 == "\"" }), equals: "a \"b")
    expect(String(";; \t;".trimming { "; \t".contains($0) }), equals: "")
  }
}
