// Parses forms that stand for calls of functions. None has a node of its own:
//
//   CAST "(" expr AS type ")"  |  postfix "::" type         TOSTRING(expr) …
//   relation [NOT] REGEXP relation                          REGEXP_LIKE(relation, relation)
//   relation [NOT] ILIKE relation                           LIKE, which ignores case
//   (STRING_AGG | GROUP_CONCAT) "(" [DISTINCT] expr ["," expr] ")"   CONCAT2 of an ARRAY_AGG

import Storage

/// The names of types, and what converts to them.
private enum ConversionType {
  static let functions: [String: String] = {
    var all: [String: String] = [:]
    for name in ["STRING", "TEXT", "VARCHAR", "CHAR"] { all[name] = "TOSTRING" }
    for name in ["NUMBER", "DOUBLE", "FLOAT", "REAL", "DECIMAL", "NUMERIC"] { all[name] = "TONUMBER" }
    for name in ["INTEGER", "INT", "BIGINT", "SMALLINT", "TINYINT"] { all[name] = "IDIV" }
    for name in ["BOOLEAN", "BOOL"] { all[name] = "TOBOOLEAN" }
    for name in ["ARRAY", "OBJECT", "ATOM"] { all[name] = "TO\(name)" }
    return all
  }()

  /// The value as that type. Nil for a name that isn't one.
  static func converted(_ value: QueryExpression, to name: String) -> QueryExpression? {
    guard let function = functions[name] else { return nil }
    guard function == "IDIV" else { return .call(FunctionCall(function, [value])) }
    return .call(FunctionCall("IDIV", [.call(FunctionCall("TONUMBER", [value])), .literal(.int(1))]))
  }
}

extension Parser {
  // None of these is inlined, so that the frames of the functions that call each other stay small.

  /// Parses `::type` after an operand, as often as it follows.
  @inline(never)
  mutating func converted(_ operand: QueryExpression) throws(SyntaxFault) -> QueryExpression {
    var expression = operand
    while token.kind == .colon {
      let (second, type) = try peekTwo()
      guard second.kind == .colon, second.start == token.end, type.kind == .name,
        let conversion = ConversionType.converted(expression, to: upperCase(type))
      else { break }
      for _ in 0..<3 { try advance() }
      try raise()
      try raise()
      expression = conversion
    }
    return expression
  }

  /// Parses `CAST(expr AS type)`. The current token is the parenthesis.
  @inline(never)
  mutating func cast() throws(SyntaxFault) -> QueryExpression {
    try advance()
    let value = try expression()
    try expect(.as, "an operator, or AS and a type")
    guard token.kind == .name, let conversion = ConversionType.converted(value, to: upperCase(token)) else {
      throw unexpected("a type: STRING, NUMBER, INTEGER, BOOLEAN, ARRAY, OBJECT or ATOM")
    }
    try advance()
    try expect(.rightParenthesis, "\")\"")
    try raise()
    try raise()
    return try withSteps(conversion)
  }

  /// Whether the next word is an operator: WITHIN, ILIKE or REGEXP. It may also be an alias.
  func isWordOperator() throws(SyntaxFault) -> Bool {
    if try isWithin() { return true }
    guard isWord("ILIKE") || isWord("REGEXP") else { return false }
    let following = try peek()
    switch following.kind {
    case .left, .right: return try peekTwo().second.kind == .leftParenthesis
    case .name: return try !beginsClause(after: following)
    default: return beginsOperand(following, after: token)
    }
  }

  /// Parses the rest of `left REGEXP pattern`.
  @inline(never)
  mutating func regexp(_ left: QueryExpression, _ isNegated: Bool) throws(SyntaxFault) -> QueryExpression {
    let leftHeight = height
    try advance()
    let pattern = try binary(.relation)
    try raise(over: leftHeight)
    let test = QueryExpression.call(FunctionCall("REGEXP_LIKE", [left, pattern]))
    guard isNegated else { return test }
    try raise()
    return .unary(.not, test)
  }

  /// Parses STRING_AGG or GROUP_CONCAT. The current token is the parenthesis. Values that have no text are left out.
  @inline(never)
  mutating func joinedTexts(_ name: Token) throws(SyntaxFault) -> QueryExpression {
    let word = upperCase(name)
    let position = SourcePosition(name.start)
    try advance()
    let isDistinct = try take(.distinct)
    var deepest = 0
    let text = QueryExpression.call(FunctionCall("TOSTRING", [try expression(&deepest)]))
    var separator = QueryExpression.literal(.string(","))
    if try take(.comma) {
      separator = try expression(&deepest)
    } else if word == "STRING_AGG" {
      throw fault(.argumentCount, "STRING_AGG takes 2 arguments: a value, and what is between two of them")
    }
    try expect(.rightParenthesis, "\",\" or \")\"")
    guard let signature = QueryFunction.named("ARRAY_AGG") else { throw unexpected("an expression") }
    var call = FunctionCall("ARRAY_AGG", [text], isDistinct: isDistinct, position: position)
    height = deepest
    try tail(of: &call, signature)
    let hasText = QueryExpression.test(text, .valued, negated: false)
    call.filter = call.filter.map { .binary(.and, $0, hasText) } ?? hasText
    for _ in 0..<4 { try raise() }
    return try withSteps(.call(FunctionCall("CONCAT2", [separator, .call(call)], position: position)))
  }
}
