import Datasets

/// Standard input as a whole.
enum StandardInput {
  /// The bytes to its end.
  static func bytes() throws -> [UInt8] {
    let reader = LineReader(descriptor: 0, name: "standard input")
    var bytes: [UInt8] = []
    while let line = try reader.next() { bytes += line + [UInt8(ascii: "\n")] }
    return bytes
  }

  /// The text to its end. `what` says in the error what should have been there.
  static func text(_ what: String) throws -> String {
    guard let text = String(validating: try bytes(), as: UTF8.self) else {
      throw UsageError("\(what) on standard input isn't UTF-8")
    }
    guard !text.allSatisfy(\.isWhitespace) else {
      throw UsageError("\(what) is missing: standard input is empty")
    }
    return text
  }
}
