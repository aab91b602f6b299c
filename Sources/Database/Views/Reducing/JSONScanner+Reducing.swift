import Fleece

/// Walks through JSON text that an encoder or a script wrote. A text that isn't JSON gives `damaged`, never a read past its
/// end. It isn't a validator: what it skips may be anything between balanced brackets.
extension JSONScanner {
  /// The deepest nesting that is followed.
  static let maximumDepth = 256

  private static let damaged: any Error = ViewReduceError.damaged

  /// Begins to read a text, which has to live as long as the scanner.
  init(_ text: UnsafeRawBufferPointer) { self.init(text, nil, invalid: Self.damaged) }

  /// What comes next.
  enum Kind {
    case null, `true`, `false`, number, string, array, object
  }

  /// The kind of the next value. Throws `damaged` if there is none.
  mutating func next() throws -> Kind {
    switch kind {
    case UInt8(ascii: "n"): .null
    case UInt8(ascii: "t"): .true
    case UInt8(ascii: "f"): .false
    case UInt8(ascii: "\""): .string
    case UInt8(ascii: "["): .array
    case UInt8(ascii: "{"): .object
    case UInt8(ascii: "-"), 48...57: .number
    default: throw ViewReduceError.damaged
    }
  }

  /// Skips a value and returns its text.
  mutating func skip() throws -> UnsafeRawBufferPointer {
    let range = try value()
    return UnsafeRawBufferPointer(rebasing: text[range])
  }

  /// Reads `null`, `true` or `false`, of this length.
  mutating func literal(_ length: Int) throws {
    guard try value().count == length else { throw ViewReduceError.damaged }
  }

  /// Reads a number.
  mutating func number() throws -> ReducedNumber {
    guard let number = ReducedNumber(try skip()) else { throw ViewReduceError.damaged }
    return number
  }

  /// Reads a string. Escapes of characters that don't exist become U+FFFD.
  mutating func string() throws -> [UInt8] {
    let (range, isEscaped) = try stringRange()
    return try Self.string(UnsafeRawBufferPointer(rebasing: text[range]), isEscaped)
  }

  /// Reads an object: `body` reads each member's value.
  mutating func members(_ body: (_ name: [UInt8], inout JSONScanner) throws -> Void) throws {
    try object { scanner, member in
      let name = UnsafeRawBufferPointer(rebasing: scanner.text[member.name])
      try body(try Self.string(name, member.isEscaped), &scanner)
    }
  }

  private static func string(_ text: UnsafeRawBufferPointer, _ isEscaped: Bool) throws -> [UInt8] {
    guard isEscaped else { return [UInt8](text) }
    var bytes: [UInt8] = []
    var index = 0
    while index < text.count {
      let byte = text[index]
      index += 1
      guard byte == UInt8(ascii: "\\") else {
        bytes.append(byte)
        continue
      }
      guard index < text.count else { throw ViewReduceError.damaged }
      let escape = text[index]
      index += 1
      switch escape {
      case UInt8(ascii: "b"): bytes.append(8)
      case UInt8(ascii: "f"): bytes.append(12)
      case UInt8(ascii: "n"): bytes.append(10)
      case UInt8(ascii: "r"): bytes.append(13)
      case UInt8(ascii: "t"): bytes.append(9)
      case UInt8(ascii: "u"): bytes.append(contentsOf: try character(in: text, &index))
      default: bytes.append(escape)
      }
    }
    return bytes
  }

  /// Reads the digits of an escaped character, and the second escape of a pair.
  private static func character(in text: UnsafeRawBufferPointer, _ index: inout Int) throws -> String.UTF8View
  {
    func unit(at start: Int) throws -> UInt32 {
      guard text.count - start >= 4,
        let unit = UInt16(String(decoding: text[start..<start + 4], as: UTF8.self), radix: 16)
      else { throw ViewReduceError.damaged }
      return UInt32(unit)
    }
    var scalar = try unit(at: index)
    index += 4
    if scalar & 0xFC00 == 0xD800, text.count - index >= 6, text[index] == UInt8(ascii: "\\"),
      text[index + 1] == UInt8(ascii: "u")
    {
      let low = try unit(at: index + 2)
      if low & 0xFC00 == 0xDC00 {
        scalar = 0x10000 + (scalar & 0x3FF) << 10 + low & 0x3FF
        index += 6
      }
    }
    return String(Unicode.Scalar(scalar) ?? "\u{FFFD}").utf8
  }
}
