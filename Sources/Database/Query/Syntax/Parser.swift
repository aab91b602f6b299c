// The grammar, in the form that the parser follows:
//
//   statement  = [EXPLAIN [ANALYZE]] query [";"]
//   query      = [with] term {set term} [ORDER BY ordering {"," ordering}]
//                [LIMIT expr [OFFSET expr] | OFFSET expr [LIMIT expr]]
//   with       = WITH [RECURSIVE] binding {"," binding}
//   binding    = name AS "(" (query | expr) ")" [OPTIONS object]
//   set        = (UNION | INTERSECT | EXCEPT) [ALL]
//   term       = select | "(" query ")"
//   select     = projection [from clauses] | from clauses projection
//   projection = SELECT [DISTINCT | ALL] (result {"," result} | (RAW | VALUE | ELEMENT) expr [[AS] name])
//                [EXCLUDE path {"," path}]
//   result     = expr [[AS] name]
//   from       = FROM source {join | nest | unnest | "," source}
//   clauses    = [LET name "=" expr {"," name "=" expr}] [WHERE expr]
//                [GROUP BY group {"," group} [GROUP AS name] [LETTING name "=" expr {"," …}] [HAVING expr]]
//   group      = expr [[AS] name]
//   source     = (name | "(" query ")" | expr) [[AS] name] {USE (KEYS expr | INDEX "(" name {"," name} ")")}
//   join       = [LEFT [OUTER] | RIGHT [OUTER] | FULL [OUTER] | INNER] JOIN source on | CROSS JOIN source
//   on         = ON expr | ON KEYS expr | ON KEY expr FOR name | USING "(" name {"," name} ")"
//   nest       = [LEFT [OUTER] | INNER] NEST source on
//   unnest     = [LEFT [OUTER] | INNER] UNNEST expr [[AS] name]
//   ordering   = expr [ASC | DESC]
//   expr       = or [COLLATE (collation | "(" collation {collation} ")")]
//   or         = and {OR and}
//   and        = not {AND not}
//   not        = NOT not | equality
//   equality   = relation { ("=" | "==" | "!=" | "<>" | IS [NOT]) relation
//                         | IS [NOT] (NULL | MISSING | VALUED) | NOT (NULL | MISSING | VALUED)
//                         | [NOT] IN ("(" [expr {"," expr}] ")" | relation)
//                         | [NOT] LIKE relation | [NOT] BETWEEN relation AND relation }
//   relation   = sum {("<" | "<=" | ">" | ">=") sum}
//   sum        = product {("+" | "-") product}
//   product    = join {("*" | "/" | "%") join}
//   join       = prefix {"||" prefix}
//   prefix     = ("-" | "+") prefix | NOT not | postfix
//   postfix    = primary {step}
//   step       = "." name | ".[" expr "]" | "[" (expr | "*" | [expr] ":" [expr]) "]"
//   primary    = literal | array | object | EXISTS "(" select ")" | case | anyEvery | parameter | call
//              | "*" | name "." "*" | name {step} | "(" expr ")"
//
// The depth of stack and tree is limited by `Parser.depthLimit` for every text. Chains are parsed by loops,
// and count with the depth of their trees. Long ANDs and ORs, which programs generate, are grouped in halves.

import Storage

/// Builds the syntax tree of a text.
struct Parser {
  /// The levels that a query inside a query counts for, beside its parenthesis: parsing it takes more of the stack.
  static let queryLevels = 3
  /// The maximum nesting of parentheses, and the maximum depth of a tree. It fits the 512 KB stack that
  /// threads have on some systems.
  static let depthLimit = 200

  private var lexer: Lexer
  /// The next token.
  private(set) var token: Token
  /// The end of the last token that was taken, as a byte offset.
  private(set) var endOfLast = 0
  /// The last two tokens that were taken, the last one first.
  private(set) var taken: (last: Token, other: Token)
  /// The number of expressions that are being parsed.
  var nesting = 0
  /// The depth of the tree of the last parsed expression.
  var height = 0
  /// The position of the last expression in parentheses, parentheses included.
  var lastParentheses = 0..<0
  /// The number of `?` so far.
  var positionals = 0
  /// The number of tokens that the parser may still look ahead, so that no text takes time in proportion to its
  /// square.
  var lookahead = 1 << 16
  /// The number of tokens that were taken.
  private var tokens = 0

  private init(_ bytes: UnsafeBufferPointer<UInt8>) throws(SyntaxFault) {
    lexer = Lexer(bytes)
    token = try lexer.next()
    let none = Token(kind: .end, start: 0, end: 0)
    taken = (none, none)
  }

  /// Parses a whole text.
  static func parse<Tree>(
    _ text: String, _ rule: (inout Parser) throws(SyntaxFault) -> Tree
  ) throws(QueryError) -> Tree {
    var contiguous = text
    let result = contiguous.withUTF8 { bytes in
      Result { () throws(SyntaxFault) in
        var parser = try Parser(bytes)
        return try rule(&parser)
      }
    }
    switch result {
    case .success(let tree): return tree
    case .failure(let fault):
      throw QueryError(fault.code, fault.message, at: SourcePosition(fault.offset), in: text)
    }
  }
}

// MARK: - Tokens

extension Parser {
  /// Advances to the next token.
  mutating func advance() throws(SyntaxFault) {
    tokens += 1
    if tokens > QuerySize.tokens {
      throw fault(
        .tooLarge, "a query has at most \(QuerySize.tokens) words and signs; give long lists by parameters")
    }
    endOfLast = token.end
    taken = (token, taken.last)
    token = try lexer.next()
  }

  /// Takes the next token if it is of this kind.
  mutating func take(_ kind: TokenKind) throws(SyntaxFault) -> Bool {
    guard token.kind == kind else { return false }
    try advance()
    return true
  }

  /// Takes the next token if it is this word, which isn't reserved.
  mutating func take(word: StaticString) throws(SyntaxFault) -> Bool {
    guard isWord(word) else { return false }
    try advance()
    return true
  }

  mutating func expect(_ kind: TokenKind, _ expected: String) throws(SyntaxFault) {
    guard try take(kind) else { throw unexpected(expected) }
  }

  /// The token after the next one.
  func peek() throws(SyntaxFault) -> Token {
    var ahead = lexer
    return try ahead.next()
  }

  /// The tokens after the next one, as far as `body` wants them. It also ends at a malformed token.
  mutating func scanAhead(_ body: (Token) -> Bool) {
    var ahead = lexer
    while lookahead > 0, let token = try? ahead.next(), body(token), token.kind != .end { lookahead -= 1 }
  }

  /// The two tokens after the next one.
  func peekTwo() throws(SyntaxFault) -> (first: Token, second: Token) {
    var ahead = lexer
    let first = try ahead.next()
    return (first, try ahead.next())
  }

  /// Whether something follows a token without a space between them.
  func followsDirectly(_ token: Token) -> Bool {
    token.end < lexer.bytes.count && lexer.bytes[token.end] > UInt8(ascii: " ")
  }

  /// Whether the next token is this word, in any case. The word isn't reserved.
  func isWord(_ word: StaticString) -> Bool { isWord(word, token) }

  /// Takes the next token if it is this word. The word isn't reserved.
  mutating func takeWord(_ word: StaticString) throws(SyntaxFault) -> Bool {
    guard isWord(word) else { return false }
    try advance()
    return true
  }

  /// The same for another token.
  func isWord(_ word: StaticString, _ token: Token) -> Bool {
    guard token.kind == .name, token.end - token.start == word.utf8CodeUnitCount else { return false }
    for index in 0..<word.utf8CodeUnitCount
    where lexer.bytes[token.start + index] & 0xDF != word.utf8Start[index] {
      return false
    }
    return true
  }

  /// The text of a token.
  func text(_ token: Token) -> String {
    String(decoding: lexer.bytes[token.start..<token.end], as: UTF8.self)
  }

  /// The text of a name in upper case.
  func upperCase(_ token: Token) -> String {
    String(unsafeUninitializedCapacity: token.end - token.start) { buffer in
      for index in token.start..<token.end {
        let byte = lexer.bytes[index]
        buffer[index - token.start] = byte &- UInt8(ascii: "a") < 26 ? byte - 0x20 : byte
      }
      return token.end - token.start
    }
  }

  /// The bytes of a token.
  func bytes(_ token: Token) -> ByteString { ByteString(lexer.bytes[token.start..<token.end]) }

  /// The content of a quoted token, with doubled quotes made single.
  func unquoted(_ token: Token) -> ByteString {
    let inside = lexer.bytes[(token.start + 1)..<(token.end - 1)]
    guard token.hasEscapes else { return ByteString(inside) }
    let quote = lexer.bytes[token.start]
    var bytes: [UInt8] = []
    bytes.reserveCapacity(inside.count)
    var index = inside.startIndex
    while index < inside.endIndex {
      bytes.append(inside[index])
      index += inside[index] == quote ? 2 : 1
    }
    return ByteString(bytes)
  }

  /// Takes a name: a source, an alias, a variable.
  mutating func name(_ expected: String) throws(SyntaxFault) -> ByteString {
    let name: ByteString
    switch token.kind {
    case .name: name = bytes(token)
    case .quotedName: name = unquoted(token)
    default: throw unexpected(expected)
    }
    try advance()
    return name
  }
}

// MARK: - Faults

extension Parser {
  func fault(_ message: String, at offset: Int? = nil) -> SyntaxFault { fault(.syntax, message, at: offset) }

  /// An error at the next token, or at an offset.
  func fault(_ code: QueryError.Code, _ message: String, at offset: Int? = nil) -> SyntaxFault {
    SyntaxFault(code: code, message: message, offset: offset ?? token.start)
  }

  /// The error for a next token that isn't what was expected.
  func unexpected(_ expected: String) -> SyntaxFault {
    if let fault = unsupportedWord() { return fault }
    let found: String
    switch token.kind {
    case .end: found = "the end"
    case .bitOperator:
      return fault(.unsupported, "bitwise operators aren't supported: unexpected \"\(text(token))\"")
    default:
      let all = lexer.bytes[token.start..<min(token.end, token.start + 40)]
      let shown = String(decoding: all, as: UTF8.self)
      found = "\"\(shown)\(all.count < token.end - token.start ? "…" : "")\""
    }
    let advice =
      token.kind.isReservedWord && (expected.contains("name") || expected.contains("expression"))
      ? ", a reserved word; put it in backticks to use it as a name" : ""
    return fault(.syntax, "expected \(expected), found \(found)\(advice)")
  }

  func tooDeep() -> SyntaxFault { fault(.tooDeep, "nested deeper than \(Self.depthLimit) levels") }

  func nestedQuery() -> SyntaxFault {
    fault(.syntax, "a query inside an expression needs parentheses of its own: (SELECT …)")
  }

  /// Adds one level to the tree of the last expression.
  mutating func raise(over other: Int = 0) throws(SyntaxFault) {
    height = max(height, other) + 1
    if height > Self.depthLimit { throw tooDeep() }
  }
}
