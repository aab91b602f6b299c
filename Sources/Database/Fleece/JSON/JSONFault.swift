// Finds where and why a text isn't JSON. It only runs after the parser refused a text, to improve the error.

/// The first fault of a JSON text.
struct JSONFault {
  var offset: Int
  var reason: String

  /// Returns the first fault, or nil if the text is JSON after all.
  static func locate(in text: UnsafeRawBufferPointer) -> JSONFault? {
    var scanner = JSONFaultScanner(text: text)
    do {
      try scanner.scan()
      return nil
    } catch {
      return error
    }
  }
}

extension JSONFault: Error {}

/// A strict JSON scanner that builds no values. Open containers are a stack of their closing bytes.
private struct JSONFaultScanner {
  let text: UnsafeRawBufferPointer
  var index = 0
  var closers: [UInt8] = []

  init(text: UnsafeRawBufferPointer) { self.text = text }

  var byte: UInt8? { index < text.count ? text[index] : nil }

  func fault(_ reason: String, at offset: Int? = nil) -> JSONFault {
    JSONFault(offset: offset ?? index, reason: reason)
  }

  mutating func skipSpace() {
    while let byte, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
  }

  mutating func scan() throws(JSONFault) {
    skipSpace()
    if byte == nil { throw fault("the text is empty") }
    repeat {
      try scanValue()
      skipSpace()
      // After a value: read the closing bytes, then a comma or the end of the text.
      while let closer = closers.last, byte == closer {
        closers.removeLast()
        index += 1
        skipSpace()
      }
      guard let closer = closers.last else { break }
      guard byte == UInt8(ascii: ",") else {
        let ending = String(UnicodeScalar(closer))
        throw fault(byte == nil ? "the text ends before \"\(ending)\"" : "expected \",\" or \"\(ending)\"")
      }
      index += 1
      skipSpace()
      if closer == UInt8(ascii: "}") { try scanName() }
    } while true
    if byte != nil { throw fault("unexpected text after the value") }
  }

  mutating func scanName() throws(JSONFault) {
    guard byte == UInt8(ascii: "\"") else { throw fault("expected a property name") }
    try scanString()
    skipSpace()
    guard byte == UInt8(ascii: ":") else { throw fault("expected \":\"") }
    index += 1
    skipSpace()
  }

  /// Scans a scalar or an empty collection, or the openings down to the first scalar.
  mutating func scanValue() throws(JSONFault) {
    while true {
      skipSpace()
      switch byte {
      case UInt8(ascii: "{"):
        index += 1
        skipSpace()
        closers.append(UInt8(ascii: "}"))
        if byte == UInt8(ascii: "}") { return }
        try scanName()
      case UInt8(ascii: "["):
        index += 1
        skipSpace()
        closers.append(UInt8(ascii: "]"))
        if byte == UInt8(ascii: "]") { return }
      case UInt8(ascii: "\""): return try scanString()
      case UInt8(ascii: "t"): return try scanLiteral("true")
      case UInt8(ascii: "f"): return try scanLiteral("false")
      case UInt8(ascii: "n"): return try scanLiteral("null")
      case nil: throw fault("the text ends where a value is expected")
      case let byte? where byte == UInt8(ascii: "-") || byte &- UInt8(ascii: "0") < 10:
        return try scanNumber()
      default: throw fault("expected a value")
      }
    }
  }

  mutating func scanLiteral(_ literal: StaticString) throws(JSONFault) {
    let start = index
    for position in 0..<literal.utf8CodeUnitCount {
      guard byte == literal.utf8Start[position] else { throw fault("expected \(literal)", at: start) }
      index += 1
    }
  }

  mutating func scanDigits() throws(JSONFault) {
    let start = index
    while let byte, byte &- UInt8(ascii: "0") < 10 { index += 1 }
    if index == start { throw fault("expected a digit") }
  }

  mutating func scanNumber() throws(JSONFault) {
    let start = index
    if byte == UInt8(ascii: "-") { index += 1 }
    let first = index
    try scanDigits()
    if text[first] == UInt8(ascii: "0"), index > first + 1 {
      throw fault("a number can't start with 0", at: start)
    }
    if byte == UInt8(ascii: ".") {
      index += 1
      try scanDigits()
    }
    if byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E") {
      index += 1
      if byte == UInt8(ascii: "+") || byte == UInt8(ascii: "-") { index += 1 }
      try scanDigits()
    }
    let token = String(decoding: text[start..<index], as: UTF8.self)
    if let number = Double(token), !number.isFinite { throw fault("the number is out of range", at: start) }
  }

  mutating func scanString() throws(JSONFault) {
    let start = index
    index += 1
    var plain = index
    while let byte, byte != UInt8(ascii: "\"") {
      if byte < 0x20 { throw fault("unescaped control character in a string") }
      if byte != UInt8(ascii: "\\") {
        index += 1
        continue
      }
      try checkUTF8(plain..<index)
      try scanEscape()
      plain = index
    }
    try checkUTF8(plain..<index)
    if byte == nil { throw fault("the string has no closing quotation mark", at: start) }
    index += 1
  }

  func checkUTF8(_ range: Range<Int>) throws(JSONFault) {
    if String(validating: text[range], as: UTF8.self) != nil { return }
    var good = range.lowerBound
    var decoder = UTF8()
    var bytes = text[range].makeIterator()
    while case .scalarValue(let scalar) = decoder.decode(&bytes) { good += UTF8.width(scalar) }
    throw fault("invalid UTF-8", at: good)
  }

  mutating func scanEscape() throws(JSONFault) {
    let start = index
    index += 1
    guard let byte else { throw fault("the string has no closing quotation mark") }
    index += 1
    switch byte {
    case UInt8(ascii: "u"):
      let first = try scanHex(start)
      if first & 0xFC00 == 0xDC00 {
        throw fault("a low surrogate without a high surrogate before it", at: start)
      }
      guard first & 0xFC00 == 0xD800 else { return }
      guard index + 1 < text.count, text[index] == UInt8(ascii: "\\"), text[index + 1] == UInt8(ascii: "u")
      else { throw fault("a high surrogate without a low surrogate after it", at: start) }
      index += 2
      if try scanHex(start) & 0xFC00 != 0xDC00 {
        throw fault("a high surrogate without a low surrogate after it", at: start)
      }
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      return
    default: throw fault("unknown escape", at: start)
    }
  }

  mutating func scanHex(_ start: Int) throws(JSONFault) -> UInt32 {
    var unit: UInt32 = 0
    for _ in 0..<4 {
      guard let byte, let digit = Character(UnicodeScalar(byte)).hexDigitValue else {
        throw fault("expected four hexadecimal digits", at: start)
      }
      unit = unit << 4 | UInt32(digit)
      index += 1
    }
    return unit
  }
}
