// Parses JSON text to a tape with simdjson. It also handles large integers and locates errors.

import CSimdjson

/// A reusable parser. For one thread at a time.
final class JSONParser {
  private let parser: OpaquePointer

  init() {
    guard let parser = json_parser_create() else { preconditionFailure("out of memory") }
    self.parser = parser
  }

  deinit { json_parser_destroy(parser) }

  /// Parses a text to a tape. The tape is valid until the next call.
  ///
  /// Integers beyond 64 bits become doubles.
  /// - Throws: `FleeceError.invalidJSON` with the offset of the fault, `.tooDeep`, `.tooLarge`,
  ///   `.outOfMemory`.
  func parse(_ text: UnsafeRawBufferPointer) throws(FleeceError) -> JSONTape {
    guard text.count <= FleeceLimits.text else { throw .tooLarge(limit: FleeceLimits.text) }
    var result = run(text)
    if result.error == JSON_ERROR_NUMBER, let widened = JSONParser.wideningIntegers(text) {
      result = widened.withUnsafeBytes { run($0) }
    }
    guard result.error == 0, let words = result.tape, let strings = result.strings else {
      switch result.error {
      case Int32(JSON_ERROR_MEMORY): throw .outOfMemory
      case Int32(JSON_ERROR_DEPTH): throw .tooDeep(limit: FleeceLimits.depth)
      default:
        if let fault = JSONFault.locate(in: text) {
          throw .invalidJSON(reason: fault.reason, offset: fault.offset)
        }
        throw .invalidJSON(reason: String(cString: json_error_message(result.error)), offset: nil)
      }
    }
    return JSONTape(words: words, strings: strings)
  }

  @inline(__always)
  private func run(_ text: UnsafeRawBufferPointer) -> json_parse_result {
    json_parser_parse(parser, text.baseAddress?.assumingMemoryBound(to: UInt8.self), text.count)
  }

  /// Returns the text with `e0` after every integer that doesn't fit in 64 bits, or nil if there is none.
  private static func wideningIntegers(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    var output: [UInt8] = []
    output.reserveCapacity(text.count + 64)
    var changed = false
    var inString = false
    var index = 0
    while index < text.count {
      let byte = text[index]
      if inString || !(byte == UInt8(ascii: "-") || isDigit(byte)) {
        if byte == UInt8(ascii: "\"") { inString.toggle() }
        output.append(byte)
        index += 1
        if inString, byte == UInt8(ascii: "\\"), index < text.count {
          output.append(text[index])
          index += 1
        }
        continue
      }
      var end = index + 1
      while end < text.count, isDigit(text[end]) { end += 1 }
      let token = text[index..<end]
      output.append(contentsOf: token)
      // A fraction or an exponent follows, so the number is already a double. It is copied as a whole.
      let isInteger = end == text.count || ![".", "e", "E"].contains(Unicode.Scalar(text[end]))
      if isInteger, end - index > 18 {
        let digits = String(decoding: token, as: UTF8.self)
        if Int64(digits) == nil, UInt64(digits) == nil {
          output.append(contentsOf: "e0".utf8)
          changed = true
        }
      }
      while end < text.count,
        isDigit(text[end]) || [".", "e", "E", "+", "-"].contains(Unicode.Scalar(text[end]))
      {
        output.append(text[end])
        end += 1
      }
      index = end
    }
    return changed ? output : nil
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }
}
