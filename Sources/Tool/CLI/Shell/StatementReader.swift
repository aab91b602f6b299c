/// A statement or a dot command of the shell, and its place in the input.
struct ShellStatement: Equatable {
  enum Kind: Equatable {
    case query
    /// A line that begins with a dot.
    case command
  }

  let kind: Kind
  let text: String
  /// The line that the text begins in, from 1.
  let line: Int
  /// The number of characters before the text in that line.
  let column: Int
}

/// Cuts lines into statements. A query ends with a semicolon, outside of strings, names in backticks and comments. A
/// line that begins with a dot, where no query has begun, is a command.
struct StatementReader {
  private enum State {
    case text, lineComment, blockComment
    /// Inside quotes. A doubled quote ends and begins again, which comes to the same.
    case quoted(UInt8)
  }

  private var state = State.text
  private var bytes: [UInt8] = []
  private var isBlank = true
  private var start = (line: 0, column: 0)
  /// Where the last comment of several lines has begun.
  private var comment = (line: 0, column: 0)
  private var line = 0

  /// Whether a query has begun and not ended.
  var isInside: Bool { !isBlank || isInsideComment }
  private var isInsideComment: Bool { if case .blockComment = state { true } else { false } }

  /// Adds a line without its newline, and returns the statements that it ends.
  mutating func add(_ text: String) -> [ShellStatement] {
    line += 1
    if !isInside, text.first == "." {
      return [ShellStatement(kind: .command, text: text, line: line, column: 0)]
    }
    var statements: [ShellStatement] = []
    let line = Array(text.utf8)
    var index = 0
    while index < line.count {
      let byte = line[index]
      let next = index + 1 < line.count ? line[index + 1] : 0
      switch state {
      case .text:
        switch (byte, next) {
        case (UInt8(ascii: ";"), _):
          if let statement = end() { statements.append(statement) }
          index += 1
          continue
        case (UInt8(ascii: "'"), _), (UInt8(ascii: "\""), _), (UInt8(ascii: "`"), _): state = .quoted(byte)
        case (UInt8(ascii: "-"), UInt8(ascii: "-")): state = .lineComment
        case (UInt8(ascii: "/"), UInt8(ascii: "*")):
          state = .blockComment
          comment = (self.line, String(decoding: line[..<index], as: UTF8.self).count)
          append(byte, at: index, of: line)
          index += 1
          append(next, at: index, of: line)
          index += 1
          continue
        default: break
        }
      case .quoted(let quote): if byte == quote { state = .text }
      case .blockComment:
        if byte == UInt8(ascii: "*"), next == UInt8(ascii: "/") {
          append(byte, at: index, of: line)
          index += 1
          state = .text
          append(next, at: index, of: line, isComment: true)
          index += 1
          continue
        }
      case .lineComment: break
      }
      append(byte, at: index, of: line)
      index += 1
    }
    if case .lineComment = state { state = .text }
    if !bytes.isEmpty { bytes.append(UInt8(ascii: "\n")) }
    return statements
  }

  /// Ends the query that has begun, if there is one: the input has ended. A comment without its end may hide statements, so it is
  /// one, which no parser accepts.
  mutating func end() -> ShellStatement? {
    defer { reset() }
    guard !isBlank else {
      return isInsideComment
        ? ShellStatement(kind: .query, text: "/*", line: comment.line, column: comment.column) : nil
    }
    while let last = bytes.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: " ") {
      bytes.removeLast()
    }
    return ShellStatement(
      kind: .query, text: String(decoding: bytes, as: UTF8.self), line: start.line, column: start.column)
  }

  /// Gives up the query that has begun.
  mutating func reset() {
    bytes = []
    isBlank = true
    state = .text
  }

  private mutating func append(_ byte: UInt8, at index: Int, of line: [UInt8], isComment: Bool = false) {
    let isSpace = byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
    if isBlank {
      var isText = !isSpace && !isComment
      switch state {
      case .lineComment, .blockComment: isText = false
      case .text, .quoted: break
      }
      // Blanks and comments before the first word aren't part of the statement.
      guard isText else { return }
      isBlank = false
      start = (self.line, String(decoding: line[..<index], as: UTF8.self).count)
    }
    bytes.append(byte)
  }
}
