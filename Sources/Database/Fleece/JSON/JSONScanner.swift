/// Finds the members of objects and the items of arrays in JSON text without reading their values, so that the parts of a large body
/// are parsed one by one. Only what it reads is checked: whoever takes a value parses it.
///
/// The text is lent to the closure in which the scanner is used.
package struct JSONScanner {
  /// A member of an object, before its value is read.
  package struct Member {
    /// Where the member begins: at the quote before its name.
    package var start: Int
    /// Where the name is, without its quotes.
    package var name: Range<Int>
    /// Whether the name has escapes.
    package var isEscaped: Bool
  }

  package let text: UnsafeRawBufferPointer
  package private(set) var index: Int
  private let end: Int
  /// What is thrown for what isn't JSON.
  private let invalid: any Error

  /// Begins to read the text, or a part of it. `invalid` is thrown for what isn't JSON.
  package init(_ text: UnsafeRawBufferPointer, _ range: Range<Int>?, invalid: any Error) {
    self.text = text
    self.invalid = invalid
    index = range?.lowerBound ?? 0
    end = range?.upperBound ?? text.count
  }

  /// The first byte of the value that comes next; 0 at the end.
  package var kind: UInt8 {
    mutating get {
      skipBlanks()
      return index < end ? text[index] : 0
    }
  }

  /// Reads an object, and calls `body` before the value of each member, which it has to read. Throws `invalid` if it isn't JSON.
  package mutating func object(_ body: (inout JSONScanner, Member) throws -> Void) throws {
    try take(UInt8(ascii: "{"))
    if kind == UInt8(ascii: "}") { return index += 1 }
    while true {
      skipBlanks()
      let start = index
      let (name, isEscaped) = try stringRange()
      try take(UInt8(ascii: ":"))
      try body(&self, Member(start: start, name: name, isEscaped: isEscaped))
      if try !goesOn(until: UInt8(ascii: "}")) { return }
    }
  }

  /// Reads an array, and calls `body` before each of its items, which it has to read. Throws `invalid` if it isn't JSON.
  package mutating func array(_ body: (inout JSONScanner) throws -> Void) throws {
    try take(UInt8(ascii: "["))
    if kind == UInt8(ascii: "]") { return index += 1 }
    while true {
      skipBlanks()
      try body(&self)
      if try !goesOn(until: UInt8(ascii: "]")) { return }
    }
  }

  /// Skips a value, and returns where it is. Throws `invalid` if it isn't JSON.
  package mutating func value() throws -> Range<Int> {
    skipBlanks()
    let start = index
    guard index < end else { throw invalid }
    switch text[index] {
    case UInt8(ascii: "\""): _ = try stringRange()
    case UInt8(ascii: "{"), UInt8(ascii: "["): try skipNested()
    default:
      while index < end, !Self.endsScalar(text[index]) { index += 1 }
      guard index > start else { throw invalid }
    }
    return start..<index
  }

  /// Throws `invalid` unless only blanks follow.
  package mutating func finish() throws {
    skipBlanks()
    guard index == end else { throw invalid }
  }

  // MARK: Pieces

  @inline(__always)
  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  private static func endsScalar(_ byte: UInt8) -> Bool {
    byte <= 0x20 || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "]") || byte == UInt8(ascii: "}")
  }

  @inline(__always)
  private mutating func skipBlanks() {
    while index < end, Self.isBlank(text[index]) { index &+= 1 }
  }

  private mutating func take(_ byte: UInt8) throws {
    skipBlanks()
    guard index < end, text[index] == byte else { throw invalid }
    index += 1
  }

  /// Whether a comma comes and not the end of the collection.
  private mutating func goesOn(until closing: UInt8) throws -> Bool {
    skipBlanks()
    guard index < end else { throw invalid }
    defer { index += 1 }
    if text[index] == UInt8(ascii: ",") { return true }
    guard text[index] == closing else { throw invalid }
    return false
  }

  /// Reads a string, and returns where it is without its quotes. Throws `invalid` if it isn't JSON.
  package mutating func stringRange() throws -> (Range<Int>, isEscaped: Bool) {
    guard index < end, text[index] == UInt8(ascii: "\"") else { throw invalid }
    let start = index + 1
    let isEscaped = try skipString()
    return (start..<index - 1, isEscaped)
  }

  /// Skips a string that begins here. Returns whether it has escapes.
  @inline(__always)
  private mutating func skipString() throws -> Bool {
    var isEscaped = false
    index &+= 1
    while index < end {
      let byte = text[index]
      index &+= 1
      if byte == UInt8(ascii: "\"") { return isEscaped }
      if byte == UInt8(ascii: "\\") {
        isEscaped = true
        index &+= 1
      }
    }
    throw invalid
  }

  private mutating func skipNested() throws {
    var depth = 0
    while index < end {
      switch text[index] {
      case UInt8(ascii: "\""):
        _ = try skipString()
        continue
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth &+= 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        depth &-= 1
        if depth == 0 { return index &+= 1 }
      default: break
      }
      index &+= 1
    }
    throw invalid
  }
}
