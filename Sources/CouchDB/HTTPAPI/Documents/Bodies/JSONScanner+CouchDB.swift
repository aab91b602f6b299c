import Bytes
import Fleece
import Views

extension JSONScanner {
  static let invalid = CouchDBError(400, "bad_request", "invalid UTF-8 JSON")

  /// Begins to read the text, or a part of it. What isn't JSON gives 400.
  init(_ text: UnsafeRawBufferPointer, _ range: Range<Int>? = nil) {
    self.init(text, range, invalid: Self.invalid)
  }
}

extension JSONScanner {
  /// Parses the value at `range`, for which the memory is taken. Throws 400 if it isn't JSON.
  static func parse(_ range: Range<Int>, in text: UnsafeRawBufferPointer, _ memory: RequestMemory?) throws
    -> JSONValue
  {
    let text = UnsafeRawBufferPointer(rebasing: text[range])
    try memory?.hold(JSONValue.memory(of: text))
    do throws(FleeceError) { return try JSONValue(json: text) } catch { throw invalid }
  }

  /// The name of a member.
  static func name(_ member: Member, in text: UnsafeRawBufferPointer) throws -> String {
    let quoted = member.name.lowerBound - 1..<member.name.upperBound + 1
    guard let name = try parse(quoted, in: text, nil).string else { throw invalid }
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
