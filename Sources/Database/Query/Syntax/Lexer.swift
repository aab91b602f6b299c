// Splits a query's text into tokens. It works on the bytes:
//
//   name      = letter_ { letter_ | digit | "$" }  |  "`" { char | "``" } "`"
//   parameter = ("$" | "@") { letter_ | digit | "$" }
//   string    = "'" { char | "''" } "'"  |  '"' { char | '""' } '"'
//   integer   = digits
//   float     = "." digits [exponent] | digits "." [digits] [exponent] | digits exponent
//   exponent  = ("e" | "E") ["+" | "-"] digits
//   comment   = "--" to the end of the line  |  "/*" … "*/"
//
// Letters and digits are those of ASCII. The text is valid UTF-8, because it comes from a String.

/// Reads one token after the other. The bytes must stay valid while the lexer is used.
struct Lexer {
  let bytes: UnsafeBufferPointer<UInt8>
  private(set) var position = 0

  init(_ bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  @inline(__always)
  static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

  @inline(__always)
  static func isNameStart(_ byte: UInt8) -> Bool {
    (byte | 0x20) &- UInt8(ascii: "a") < 26 || byte == UInt8(ascii: "_")
  }

  @inline(__always)
  static func isNamePart(_ byte: UInt8) -> Bool {
    isNameStart(byte) || isDigit(byte) || byte == UInt8(ascii: "$")
  }

  /// The byte at a distance from the current position. 0 beyond the end.
  @inline(__always)
  private func byte(_ ahead: Int = 0) -> UInt8 {
    position + ahead < bytes.count ? bytes[position + ahead] : 0
  }

  /// The next token. At the end of the text, each call returns `.end`.
  mutating func next() throws(SyntaxFault) -> Token {
    try skipBlanks()
    let start = position
    guard start < bytes.count else { return Token(kind: .end, start: start, end: start) }
    let first = bytes[start]
    if Self.isNameStart(first) {
      skipNameParts()
      let kind = ReservedWords.kind(of: bytes, from: start, to: position)
      return Token(kind: kind, start: start, end: position)
    }
    if Self.isDigit(first) || first == UInt8(ascii: ".") && Self.isDigit(byte(1)) { return try number() }
    switch first {
    case UInt8(ascii: "'"), UInt8(ascii: "\""): return try quoted(.string, "string")
    case UInt8(ascii: "`"): return try quoted(.quotedName, "name in backticks")
    case UInt8(ascii: "$"), UInt8(ascii: "@"):
      position += 1
      skipNameParts()
      guard position > start + 1 else {
        let sign = first == UInt8(ascii: "$") ? "$" : "@"
        throw SyntaxFault(
          code: .syntax, message: "expected a parameter's name after \"\(sign)\"", offset: start)
      }
      return Token(kind: .parameter, start: start, end: position)
    default: return try sign(first)
    }
  }

  private mutating func skipNameParts() {
    while position < bytes.count, Self.isNamePart(bytes[position]) { position += 1 }
  }

  private mutating func skipDigits() {
    while position < bytes.count, Self.isDigit(bytes[position]) { position += 1 }
  }

  private mutating func skipBlanks() throws(SyntaxFault) {
    while position < bytes.count {
      switch bytes[position] {
      case 0x20, 0x09...0x0D: position += 1
      case UInt8(ascii: "-") where byte(1) == UInt8(ascii: "-"):
        while position < bytes.count, bytes[position] != 0x0A { position += 1 }
      case UInt8(ascii: "/") where byte(1) == UInt8(ascii: "*"):
        let start = position
        position += 2
        while byte() != UInt8(ascii: "*") || byte(1) != UInt8(ascii: "/") {
          position += 1
          guard position < bytes.count else {
            throw SyntaxFault(
              code: .syntax, message: "the comment has no end; expected \"*/\"", offset: start)
          }
        }
        position += 2
      default: return
      }
    }
  }

  private mutating func number() throws(SyntaxFault) -> Token {
    let start = position
    var kind = TokenKind.integer
    skipDigits()
    if byte() == UInt8(ascii: ".") {
      kind = .float
      position += 1
      skipDigits()
    }
    if byte() | 0x20 == UInt8(ascii: "e") {
      let sign = byte(1) == UInt8(ascii: "+") || byte(1) == UInt8(ascii: "-") ? 1 : 0
      if Self.isDigit(byte(1 + sign)) {
        kind = .float
        position += 1 + sign
        skipDigits()
      }
    }
    if position < bytes.count, Self.isNameStart(bytes[position]) {
      skipNameParts()
      let text = String(decoding: bytes[start..<min(position, start + 40)], as: UTF8.self)
      throw SyntaxFault(
        code: .syntax, message: "\"\(text)\" is neither a number nor a name; a name begins with a letter",
        offset: start)
    }
    return Token(kind: kind, start: start, end: position)
  }

  private mutating func quoted(_ kind: TokenKind, _ what: String) throws(SyntaxFault) -> Token {
    let start = position
    let quote = bytes[start]
    var token = Token(kind: kind, start: start, end: start)
    position += 1
    while position < bytes.count {
      if bytes[position] == quote {
        guard byte(1) == quote else {
          position += 1
          token.end = position
          return token
        }
        token.hasEscapes = true
        position += 1
      }
      position += 1
    }
    let character = Character(Unicode.Scalar(quote))
    throw SyntaxFault(code: .syntax, message: "the \(what) has no end; expected \(character)", offset: start)
  }

  private mutating func sign(_ first: UInt8) throws(SyntaxFault) -> Token {
    let second = byte(1)
    let isPair: Bool
    let kind: TokenKind
    switch (first, second) {
    case (UInt8(ascii: "="), UInt8(ascii: "=")): (kind, isPair) = (.equal, true)
    case (UInt8(ascii: "!"), UInt8(ascii: "=")), (UInt8(ascii: "<"), UInt8(ascii: ">")):
      (kind, isPair) = (.notEqual, true)
    case (UInt8(ascii: "<"), UInt8(ascii: "=")): (kind, isPair) = (.lessOrEqual, true)
    case (UInt8(ascii: ">"), UInt8(ascii: "=")): (kind, isPair) = (.greaterOrEqual, true)
    case (UInt8(ascii: "|"), UInt8(ascii: "|")): (kind, isPair) = (.concatenate, true)
    case (UInt8(ascii: "<"), UInt8(ascii: "<")), (UInt8(ascii: ">"), UInt8(ascii: ">")):
      (kind, isPair) = (.bitOperator, true)
    default:
      isPair = false
      switch first {
      case UInt8(ascii: "("): kind = .leftParenthesis
      case UInt8(ascii: ")"): kind = .rightParenthesis
      case UInt8(ascii: "["): kind = .leftBracket
      case UInt8(ascii: "]"): kind = .rightBracket
      case UInt8(ascii: "{"): kind = .leftBrace
      case UInt8(ascii: "}"): kind = .rightBrace
      case UInt8(ascii: ","): kind = .comma
      case UInt8(ascii: ":"): kind = .colon
      case UInt8(ascii: ";"): kind = .semicolon
      case UInt8(ascii: "."): kind = .dot
      case UInt8(ascii: "?"): kind = .question
      case UInt8(ascii: "+"): kind = .plus
      case UInt8(ascii: "-"): kind = .minus
      case UInt8(ascii: "*"): kind = .star
      case UInt8(ascii: "/"): kind = .slash
      case UInt8(ascii: "%"): kind = .percent
      case UInt8(ascii: "="): kind = .equal
      case UInt8(ascii: "<"): kind = .less
      case UInt8(ascii: ">"): kind = .greater
      case UInt8(ascii: "&"), UInt8(ascii: "|"): kind = .bitOperator
      default: throw stranger()
      }
    }
    let start = position
    position += isPair ? 2 : 1
    return Token(kind: kind, start: start, end: position)
  }

  /// The error for a character that can't begin a token.
  private func stranger() -> SyntaxFault {
    let rest = String(decoding: bytes[position..<min(position + 64, bytes.count)], as: UTF8.self)
    guard let character = rest.first else {
      return SyntaxFault(code: .syntax, message: "unexpected end", offset: position)
    }
    let shown =
      character.unicodeScalars.first.map { $0.value < 0x20 || $0.value == 0x7F } == true
      ? "a control character" : "\"\(character)\""
    let advice =
      character.isLetter
      ? "; put names with letters other than ASCII in backticks"
      : "“”„‘’‚".contains(character) ? "; put strings in ' or \"" : ""
    return SyntaxFault(code: .syntax, message: "unexpected \(shown)\(advice)", offset: position)
  }
}
