import Bytes
import Fleece

// Reads a JSON text and encodes its values as they come. It is strict (RFC 8259), but for half of a surrogate pair, which
// JavaScript writes: it is U+FFFD.

extension ViewKeyEncoder {
  /// Appends the value of a text. Arrays and objects that are open are on a stack of their own.
  func read(_ json: UnsafeRawBufferPointer, to key: inout ByteBuffer) throws {
    var reader = JSONKeyReader(text: json)
    closers.removeAll(keepingCapacity: true)
    values: while true {
      reader.skipSpace()
      guard let byte = reader.byte else { throw reader.fault("a value is expected") }
      switch byte {
      case UInt8(ascii: "\""): try append(text: reader.string(into: &text), to: &key)
      case UInt8(ascii: "["):
        try open(UInt8(ascii: "]"))
        reader.index += 1
        key.append(codes.array)
        reader.skipSpace()
        if reader.byte != UInt8(ascii: "]") { continue values }
      case UInt8(ascii: "{"):
        try open(UInt8(ascii: "}"))
        reader.index += 1
        key.append(codes.object)
        reader.skipSpace()
        if reader.byte != UInt8(ascii: "}") {
          try readName(&reader, to: &key)
          continue values
        }
      case UInt8(ascii: "t"):
        try reader.literal("true")
        key.append(codes.true)
      case UInt8(ascii: "f"):
        try reader.literal("false")
        key.append(codes.false)
      case UInt8(ascii: "n"):
        try reader.literal("null")
        key.append(codes.null)
      default:
        switch try reader.number() {
        case .int(let value): append(value, to: &key)
        case .uint(let value): append(value, to: &key)
        case .double(let value): try append(value, to: &key)
        }
      }
      try checkStep(key)
      // What ends here, and what goes on.
      while true {
        reader.skipSpace()
        guard let closer = closers.last else {
          if reader.byte != nil { throw reader.fault("there is text behind the value") }
          return
        }
        if reader.byte == closer {
          reader.index += 1
          closers.removeLast()
          key.append(ViewKeyCodes.end)
          continue
        }
        guard reader.byte == UInt8(ascii: ",") else {
          throw reader.fault("\",\" or \"\(Character(UnicodeScalar(closer)))\" is expected")
        }
        reader.index += 1
        if closer == UInt8(ascii: "}") {
          reader.skipSpace()
          try readName(&reader, to: &key)
        }
        continue values
      }
    }
  }

  private func open(_ closer: UInt8) throws {
    guard closers.count < FleeceLimits.depth else { throw ViewKeyError.tooDeep(limit: FleeceLimits.depth) }
    closers.append(closer)
  }

  private func readName(_ reader: inout JSONKeyReader, to key: inout ByteBuffer) throws {
    guard reader.byte == UInt8(ascii: "\"") else { throw reader.fault("a name is expected") }
    try append(text: reader.string(into: &text), to: &key)
    reader.skipSpace()
    guard reader.byte == UInt8(ascii: ":") else { throw reader.fault("\":\" is expected") }
    reader.index += 1
  }
}

/// Reads the parts of a JSON text.
private struct JSONKeyReader {
  let text: UnsafeRawBufferPointer
  var index = 0

  init(text: UnsafeRawBufferPointer) { self.text = text }

  /// The next byte, or nil at the end.
  var byte: UInt8? { index < text.count ? text[index] : nil }

  func fault(_ reason: String) -> ViewKeyError { .invalidJSON(reason: reason, offset: index) }

  mutating func skipSpace() {
    while let byte, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
  }

  mutating func literal(_ literal: StaticString) throws {
    let count = literal.utf8CodeUnitCount
    guard text.count - index >= count,
      equalBytes(
        UnsafeRawBufferPointer(rebasing: text[index..<index + count]),
        UnsafeRawBufferPointer(start: literal.utf8Start, count: count))
    else { throw fault("\(literal) is expected") }
    index += count
  }

  // MARK: Numbers

  enum Number {
    case int(Int64)
    case uint(UInt64)
    case double(Double)
  }

  /// Integers beyond 64 bits are doubles.
  mutating func number() throws -> Number {
    let start = index
    let isNegative = byte == UInt8(ascii: "-")
    if isNegative { index += 1 }
    var magnitude: UInt64 = 0
    var fits = true
    let first = index
    try digits { digit in
      let (product, overflow) = magnitude.multipliedReportingOverflow(by: 10)
      let (sum, carry) = product.addingReportingOverflow(UInt64(digit))
      if overflow || carry { fits = false }
      magnitude = sum
    }
    guard index == first + 1 || text[first] != UInt8(ascii: "0") else {
      index = start
      throw fault("a number can't begin with 0")
    }
    var isInteger = true
    if byte == UInt8(ascii: ".") {
      isInteger = false
      index += 1
      try digits { _ in }
    }
    if byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E") {
      isInteger = false
      index += 1
      if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { index += 1 }
      try digits { _ in }
    }
    if isInteger, fits {
      if !isNegative { return .uint(magnitude) }
      if magnitude <= 1 << 63 { return .int(Int64(truncatingIfNeeded: 0 &- magnitude)) }
    }
    let digits = String(decoding: text[start..<index], as: UTF8.self)
    guard let double = Double(digits), double.isFinite else {
      index = start
      throw fault("a number is out of range")
    }
    return .double(double)
  }

  /// Reads one digit or more.
  private mutating func digits(_ each: (UInt8) -> Void) throws {
    let start = index
    while let byte, byte &- UInt8(ascii: "0") < 10 {
      each(byte &- UInt8(ascii: "0"))
      index += 1
    }
    if index == start {
      throw fault(start == 0 || text.count == start ? "a value is expected" : "a digit is expected")
    }
  }

  // MARK: Strings

  /// Reads a string, at whose opening mark the reader is: in place, or with its escapes decoded in `buffer`. Valid until the
  /// text ends or the buffer changes.
  mutating func string(into buffer: inout ByteBuffer) throws -> UnsafeRawBufferPointer {
    index += 1
    let start = index
    buffer.removeAll()
    var plain = start
    var hasEscapes = false
    while let byte {
      switch byte {
      case UInt8(ascii: "\""):
        let rest = UnsafeRawBufferPointer(rebasing: text[plain..<index])
        index += 1
        guard hasEscapes else { return rest }
        buffer.append(rest)
        return buffer.bytes
      case UInt8(ascii: "\\"):
        buffer.append(UnsafeRawBufferPointer(rebasing: text[plain..<index]))
        hasEscapes = true
        try escape(into: &buffer)
        plain = index
      case 0..<0x20: throw fault("a string has a control character")
      default: index += 1
      }
    }
    throw fault("a string has no end")
  }

  private mutating func escape(into buffer: inout ByteBuffer) throws {
    index += 1
    guard let byte else { throw fault("a string has no end") }
    let decoded: UInt8
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): decoded = byte
    case UInt8(ascii: "b"): decoded = 0x08
    case UInt8(ascii: "f"): decoded = 0x0C
    case UInt8(ascii: "n"): decoded = 0x0A
    case UInt8(ascii: "r"): decoded = 0x0D
    case UInt8(ascii: "t"): decoded = 0x09
    case UInt8(ascii: "u"):
      index += 1
      return try unicodeEscape(into: &buffer)
    default: throw fault("an escape is unknown")
    }
    buffer.append(decoded)
    index += 1
  }

  private mutating func unicodeEscape(into buffer: inout ByteBuffer) throws {
    let first = try unit()
    var scalar = first
    if first & 0xFC00 == 0xD800, index + 1 < text.count, text[index] == UInt8(ascii: "\\"),
      text[index + 1] == UInt8(ascii: "u")
    {
      let behind = index
      index += 2
      let second = try unit()
      if second & 0xFC00 == 0xDC00 {
        scalar = 0x10000 + (first & 0x3FF) << 10 + (second & 0x3FF)
      } else {
        // The second escape stands for itself.
        index = behind
      }
    }
    for byte in UTF8.encode(Unicode.Scalar(scalar) ?? "\u{FFFD}") ?? UTF8.encodedReplacementCharacter {
      buffer.append(byte)
    }
  }

  private mutating func unit() throws -> UInt32 {
    var unit: UInt32 = 0
    for _ in 0..<4 {
      guard let byte, let digit = Hex.value(ofLower: byte >= 0x41 ? byte | 0x20 : byte) else {
        throw fault("four hexadecimal digits are expected")
      }
      unit = unit << 4 | UInt32(digit)
      index += 1
    }
    return unit
  }
}
