#if canImport(Glibc)
  import Glibc
#endif

/// Scans JSON text by its brackets and strings only. It stays within bounds for any input.
struct JSONScanner {
  private let bytes: UnsafeMutableRawBufferPointer
  private(set) var position = 0

  init(_ bytes: UnsafeMutableRawBufferPointer) { self.bytes = bytes }

  mutating func skipSpace() {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x09, 0x0A, 0x0D: position += 1
      default: return
      }
    }
  }

  /// Skips `byte` if it is next, and returns whether it was.
  mutating func take(_ byte: UInt8) -> Bool {
    guard position < bytes.count, bytes[position] == byte else { return false }
    position += 1
    return true
  }

  /// Skips a string and returns the range of its content, including escapes. Nil if there is no string or it
  /// has no end.
  mutating func takeString() -> Range<Int>? {
    guard let base = bytes.baseAddress, take(0x22) else { return nil }
    let start = position
    while position < bytes.count {
      guard let quote = memchr(base + position, 0x22, bytes.count - position) else { break }
      let end = UnsafeMutableRawPointer(quote) - base
      position = end + 1
      // The quote is escaped if the number of backslashes before it is odd.
      var backslashes = 0
      while end - backslashes > start, bytes[end - backslashes - 1] == 0x5C { backslashes += 1 }
      if backslashes & 1 == 0 { return start..<end }
    }
    position = bytes.count
    return nil
  }

  /// Skips a value, up to the comma or bracket after it. Returns false if the text ends inside it.
  mutating func skipValue() -> Bool {
    var depth = 0
    while position < bytes.count {
      switch bytes[position] {
      case 0x22:
        guard takeString() != nil else { return false }
        continue
      case 0x7B, 0x5B: depth += 1
      case 0x7D, 0x5D:
        if depth == 0 { return true }
        depth -= 1
      case 0x2C: if depth == 0 { return true }
      default: break
      }
      position += 1
    }
    return false
  }

  /// Appends the unescaped content of a JSON string. Returns false for an invalid escape.
  static func unescape(_ raw: UnsafeRawBufferPointer, into result: inout [UInt8]) -> Bool {
    var index = 0
    while index < raw.count {
      let byte = raw[index]
      index += 1
      guard byte == 0x5C else {
        result.append(byte)
        continue
      }
      guard index < raw.count else { return false }
      let escape = raw[index]
      index += 1
      switch escape {
      case 0x22, 0x2F, 0x5C: result.append(escape)
      case UInt8(ascii: "b"): result.append(0x08)
      case UInt8(ascii: "f"): result.append(0x0C)
      case UInt8(ascii: "n"): result.append(0x0A)
      case UInt8(ascii: "r"): result.append(0x0D)
      case UInt8(ascii: "t"): result.append(0x09)
      case UInt8(ascii: "u"):
        guard let scalar = takeUnicodeEscape(raw, &index) else { return false }
        result.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
      default: return false
      }
    }
    return true
  }

  /// Reads the digits of `\uXXXX`, and the second escape of a surrogate pair.
  private static func takeUnicodeEscape(
    _ raw: UnsafeRawBufferPointer, _ index: inout Int
  ) -> Unicode.Scalar? {
    guard let first = takeHex(raw, &index) else { return nil }
    guard (0xD800..<0xDC00).contains(first) else { return Unicode.Scalar(first) }
    guard index + 1 < raw.count, raw[index] == 0x5C, raw[index + 1] == UInt8(ascii: "u") else { return nil }
    index += 2
    guard let second = takeHex(raw, &index), (0xDC00..<0xE000).contains(second) else { return nil }
    return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
  }

  private static func takeHex(_ raw: UnsafeRawBufferPointer, _ index: inout Int) -> UInt32? {
    guard index + 4 <= raw.count else { return nil }
    var value: UInt32 = 0
    for _ in 0..<4 {
      let byte = raw[index]
      index += 1
      switch byte {
      case 0x30...0x39: value = value << 4 | UInt32(byte - 0x30)
      case 0x41...0x46: value = value << 4 | UInt32(byte - 0x37)
      case 0x61...0x66: value = value << 4 | UInt32(byte - 0x57)
      default: return nil
      }
    }
    return value
  }
}
