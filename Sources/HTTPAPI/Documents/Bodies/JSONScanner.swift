import Bytes
import Fleece
import Views

/// Finds the members of objects and the items of arrays in JSON text without reading their values, so that the parts of a large body
/// are parsed one by one. Only what it reads is checked: whoever takes a value parses it.
///
/// The text is lent to the closure in which the scanner is used.
struct JSONScanner {
  /// A member of an object, before its value is read.
  struct Member {
    /// Where the member begins: at the quote before its name.
    var start: Int
    /// Where the name is, without its quotes.
    var name: Range<Int>
    /// Whether the name has escapes.
    var isEscaped: Bool
  }

  let text: UnsafeRawBufferPointer
  private(set) var index: Int
  private let end: Int

  /// Begins to read the text, or a part of it.
  init(_ text: UnsafeRawBufferPointer, _ range: Range<Int>? = nil) {
    self.text = text
    index = range?.lowerBound ?? 0
    end = range?.upperBound ?? text.count
  }

  /// The first byte of the value that comes next; 0 at the end.
  var kind: UInt8 {
    mutating get {
      skipBlanks()
      return index < end ? text[index] : 0
    }
  }

  /// Reads an object, and calls `body` before the value of each member, which it has to read. Throws 400 if it isn't JSON.
  mutating func object(_ body: (inout JSONScanner, Member) throws -> Void) throws {
    try take(UInt8(ascii: "{"))
    if kind == UInt8(ascii: "}") { return index += 1 }
    while true {
      skipBlanks()
      let start = index
      let (name, isEscaped) = try string()
      try take(UInt8(ascii: ":"))
      try body(&self, Member(start: start, name: name, isEscaped: isEscaped))
      if try !goesOn(until: UInt8(ascii: "}")) { return }
    }
  }

  /// Reads an array, and calls `body` before each of its items, which it has to read. Throws 400 if it isn't JSON.
  mutating func array(_ body: (inout JSONScanner) throws -> Void) throws {
    try take(UInt8(ascii: "["))
    if kind == UInt8(ascii: "]") { return index += 1 }
    while true {
      skipBlanks()
      try body(&self)
      if try !goesOn(until: UInt8(ascii: "]")) { return }
    }
  }

  /// Skips a value, and returns where it is. Throws 400 if it isn't JSON.
  mutating func value() throws -> Range<Int> {
    skipBlanks()
    let start = index
    guard index < end else { throw Self.invalid }
    switch text[index] {
    case UInt8(ascii: "\""): _ = try string()
    case UInt8(ascii: "{"), UInt8(ascii: "["): try skipNested()
    default:
      while index < end, !Self.endsScalar(text[index]) { index += 1 }
      guard index > start else { throw Self.invalid }
    }
    return start..<index
  }

  /// Throws 400 unless only blanks follow.
  mutating func finish() throws {
    skipBlanks()
    guard index == end else { throw Self.invalid }
  }

  // MARK: Pieces

  static let invalid = CouchDBError(400, "bad_request", "invalid UTF-8 JSON")

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
    guard index < end, text[index] == byte else { throw Self.invalid }
    index += 1
  }

  /// Whether a comma comes and not the end of the collection.
  private mutating func goesOn(until closing: UInt8) throws -> Bool {
    skipBlanks()
    guard index < end else { throw Self.invalid }
    defer { index += 1 }
    if text[index] == UInt8(ascii: ",") { return true }
    guard text[index] == closing else { throw Self.invalid }
    return false
  }

  /// Reads a string, and returns where it is without its quotes.
  private mutating func string() throws -> (Range<Int>, isEscaped: Bool) {
    guard index < end, text[index] == UInt8(ascii: "\"") else { throw Self.invalid }
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
    throw Self.invalid
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
    throw Self.invalid
  }
}

extension JSONScanner {
  /// Parses the value at `range`. Throws 400 if it isn't JSON.
  static func parse(_ range: Range<Int>, in text: UnsafeRawBufferPointer) throws -> JSONValue {
    do throws(FleeceError) { return try JSONValue(json: UnsafeRawBufferPointer(rebasing: text[range])) } catch
    {
      throw invalid
    }
  }

  /// The name of a member.
  static func name(_ member: Member, in text: UnsafeRawBufferPointer) throws -> String {
    let quoted = member.name.lowerBound - 1..<member.name.upperBound + 1
    guard let name = try parse(quoted, in: text).string else { throw invalid }
    return name
  }

  /// Whether a member has this name, which needs no escapes.
  static func isNamed(_ name: StaticString, _ member: Member, in text: UnsafeRawBufferPointer) throws -> Bool
  {
    if member.isEscaped { return try self.name(member, in: text).utf8.elementsEqual(name.description.utf8) }
    return member.name.count == name.utf8CodeUnitCount
      && name.withUTF8Buffer { $0.elementsEqual(text[member.name]) }
  }
}
