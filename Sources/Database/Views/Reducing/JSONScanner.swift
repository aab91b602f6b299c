import Bytes

/// Walks through JSON text that an encoder or a script wrote, without making values of it.
///
/// The text has to live as long as the scanner. A text that isn't JSON gives nil or `damaged`, never a read
/// past its end. It isn't a validator: what it skips may be anything between balanced brackets.
struct JSONScanner {
  /// The deepest nesting that is followed.
  static let maximumDepth = 256

  /// What begins at the scanner's place.
  enum Kind {
    case null, `true`, `false`, number, string, array, object
  }

  private let text: UnsafeRawBufferPointer
  private(set) var index = 0

  init(_ text: UnsafeRawBufferPointer) { self.text = text }

  private mutating func skipSpace() {
    while index < text.count, text[index] == 0x20 || text[index] &- 9 < 2 || text[index] == 13 { index += 1 }
  }

  /// The kind of the next value. Throws `damaged` if there is none.
  mutating func kind() throws -> Kind {
    skipSpace()
    guard index < text.count else { throw ViewReduceError.damaged }
    switch text[index] {
    case UInt8(ascii: "n"): return .null
    case UInt8(ascii: "t"): return .true
    case UInt8(ascii: "f"): return .false
    case UInt8(ascii: "\""): return .string
    case UInt8(ascii: "["): return .array
    case UInt8(ascii: "{"): return .object
    case UInt8(ascii: "-"), 48...57: return .number
    default: throw ViewReduceError.damaged
    }
  }

  /// The length of the number at the scanner's place; nil if it isn't JSON.
  func numberLength() -> Int? {
    var end = index
    func digits() -> Bool {
      let start = end
      while end < text.count, text[end] &- 48 < 10 { end += 1 }
      return end > start
    }
    if end < text.count, text[end] == UInt8(ascii: "-") { end += 1 }
    let first = end
    guard digits(), end - first == 1 || text[first] != 48 else { return nil }
    if end < text.count, text[end] == UInt8(ascii: ".") {
      end += 1
      guard digits() else { return nil }
    }
    if end < text.count, text[end] | 0x20 == UInt8(ascii: "e") {
      end += 1
      if end < text.count, text[end] == UInt8(ascii: "-") || text[end] == UInt8(ascii: "+") { end += 1 }
      guard digits() else { return nil }
    }
    return end - index
  }

  /// Reads a number.
  mutating func number() throws -> ReducedNumber {
    guard let length = numberLength(),
      let number = ReducedNumber(UnsafeRawBufferPointer(rebasing: text[index..<index + length]))
    else { throw ViewReduceError.damaged }
    index += length
    return number
  }

  /// Reads `null`, `true` or `false`.
  mutating func literal(_ length: Int) throws {
    guard text.count - index >= length else { throw ViewReduceError.damaged }
    index += length
  }

  /// Reads a string. Escapes of characters that don't exist become U+FFFD.
  mutating func string() throws -> [UInt8] {
    guard index < text.count, text[index] == UInt8(ascii: "\"") else { throw ViewReduceError.damaged }
    index += 1
    var bytes: [UInt8] = []
    while index < text.count {
      let byte = text[index]
      index += 1
      if byte == UInt8(ascii: "\"") { return bytes }
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        continue
      }
      guard index < text.count else { break }
      let escape = text[index]
      index += 1
      switch escape {
      case UInt8(ascii: "b"): bytes.append(8)
      case UInt8(ascii: "f"): bytes.append(12)
      case UInt8(ascii: "n"): bytes.append(10)
      case UInt8(ascii: "r"): bytes.append(13)
      case UInt8(ascii: "t"): bytes.append(9)
      case UInt8(ascii: "u"):
        var scalar = UInt32(try unit())
        if scalar & 0xFC00 == 0xD800, text.count - index >= 6, text[index] == UInt8(ascii: "\\"),
          text[index + 1] == UInt8(ascii: "u")
        {
          let start = index
          index += 2
          let low = UInt32(try unit())
          if low & 0xFC00 == 0xDC00 {
            scalar = 0x10000 + (scalar & 0x3FF) << 10 + low & 0x3FF
          } else {
            index = start
          }
        }
        bytes.append(contentsOf: String(Unicode.Scalar(scalar) ?? "\u{FFFD}").utf8)
      default: bytes.append(escape)
      }
    }
    throw ViewReduceError.damaged
  }

  private mutating func unit() throws -> UInt16 {
    guard text.count - index >= 4,
      let unit = UInt16(String(decoding: text[index..<index + 4], as: UTF8.self), radix: 16)
    else { throw ViewReduceError.damaged }
    index += 4
    return unit
  }

  /// Reads an array: `body` reads each item.
  mutating func array(_ body: (inout JSONScanner) throws -> Void) throws {
    index += 1
    skipSpace()
    if try isEnd(UInt8(ascii: "]")) { return }
    while true {
      try body(&self)
      skipSpace()
      if try isEnd(UInt8(ascii: "]")) { return }
      try expect(UInt8(ascii: ","))
    }
  }

  /// Reads an object: `body` reads each member's value.
  mutating func object(_ body: (_ name: [UInt8], inout JSONScanner) throws -> Void) throws {
    index += 1
    skipSpace()
    if try isEnd(UInt8(ascii: "}")) { return }
    while true {
      skipSpace()
      let name = try string()
      skipSpace()
      try expect(UInt8(ascii: ":"))
      try body(name, &self)
      skipSpace()
      if try isEnd(UInt8(ascii: "}")) { return }
      try expect(UInt8(ascii: ","))
    }
  }

  private mutating func isEnd(_ byte: UInt8) throws -> Bool {
    guard index < text.count else { throw ViewReduceError.damaged }
    guard text[index] == byte else { return false }
    index += 1
    return true
  }

  private mutating func expect(_ byte: UInt8) throws {
    guard try isEnd(byte) else { throw ViewReduceError.damaged }
  }

  /// Skips a value and returns its text.
  mutating func skip() throws -> UnsafeRawBufferPointer {
    let kind = try kind()
    let start = index
    switch kind {
    case .null, .true: try literal(4)
    case .false: try literal(5)
    case .number:
      guard let length = numberLength() else { throw ViewReduceError.damaged }
      index += length
    case .string: try skipString()
    case .array, .object:
      var depth = 0
      repeat {
        guard index < text.count else { throw ViewReduceError.damaged }
        switch text[index] {
        case UInt8(ascii: "\""):
          try skipString()
          continue
        case UInt8(ascii: "["), UInt8(ascii: "{"): depth += 1
        case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
        default: break
        }
        index += 1
      } while depth > 0
    }
    return UnsafeRawBufferPointer(rebasing: text[start..<index])
  }

  private mutating func skipString() throws {
    index += 1
    while index < text.count {
      let byte = text[index]
      index += byte == UInt8(ascii: "\\") ? 2 : 1
      if byte == UInt8(ascii: "\"") { return }
    }
    throw ViewReduceError.damaged
  }

  /// Throws `damaged` unless only space is left.
  mutating func end() throws {
    skipSpace()
    guard index == text.count else { throw ViewReduceError.damaged }
  }
}
