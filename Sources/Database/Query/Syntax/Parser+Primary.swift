import Storage

// Parses primaries: literals, properties, calls, CASE, ANY and EVERY.

extension Parser {
  /// Parses a primary and the steps after it.
  mutating func postfix() throws(SyntaxFault) -> QueryExpression {
    let operand =
      token.kind == .name || token.kind == .quotedName
      ? try nameOrCall() : try withSteps(token.kind == .leftParenthesis ? try parenthesized() : try primary())
    return token.kind == .colon ? try converted(operand) : operand
  }

  /// Parses an expression or a query in parentheses. With a frame of its own, which is small: the deepest nesting has two hundred.
  @inline(never)
  private mutating func parenthesized() throws(SyntaxFault) -> QueryExpression {
    height = 0
    let start = token.start
    try advance()
    let expression = try beginsQuery() ? subquery() : expressionOrSets()
    try expect(.rightParenthesis, "an operator or \")\"")
    lastParentheses = start..<endOfLast
    return expression
  }

  @inline(never)
  private mutating func primary() throws(SyntaxFault) -> QueryExpression {
    let first = token
    height = 0
    switch first.kind {
    case .integer, .float:
      let literal = try number(first, isNegative: false)
      try advance()
      return .literal(literal)
    case .string:
      try advance()
      return .literal(.string(unquoted(first)))
    case .true, .false:
      try advance()
      return .literal(.bool(first.kind == .true))
    case .null:
      try advance()
      return .literal(.null)
    case .missing:
      try advance()
      return .literal(.missing)
    case .parameter:
      try advance()
      var name = first
      name.start += 1
      return .parameter(bytes(name))
    case .question:
      try advance()
      positionals += 1
      return .parameter(ByteString("\(positionals)"))
    case .star:
      try advance()
      return .star(source: nil)
    case .leftBracket:
      try advance()
      let items = try expressions(until: .rightBracket)
      try expect(.rightBracket, "\",\" or \"]\"")
      try raise()
      return .array(items)
    case .leftBrace: return try object()
    case .case: return try conditional()
    case .any, .every:
      try advance()
      return try quantified(isAny: first.kind == .any)
    case .left, .right:
      // The functions LEFT and RIGHT. Otherwise the words belong to joins.
      guard try peek().kind == .leftParenthesis else { throw unexpected("an expression") }
      try advance()
      return try call(first)
    case .select: throw nestedQuery()
    default: throw unexpected("an expression")
    }
  }

  // MARK: Numbers

  private func number(_ token: Token, isNegative: Bool) throws(SyntaxFault) -> Literal {
    let digits = text(token)
    let signed = isNegative ? "-" + digits : digits
    if token.kind == .integer {
      if let value = Int64(signed) { return .int(value) }
      if let value = UInt64(signed) { return .uint(value) }
    }
    // `5.` and `.5` are valid numbers here, but not for Swift's parser of doubles.
    guard let value = Double(digits.hasPrefix(".") ? "0" + digits : digits.replacingBareDot()) else {
      throw fault("\"\(digits.prefix(40))\" isn't a number", at: token.start)
    }
    guard value.isFinite else { throw fault("the number is out of range", at: token.start) }
    return .double(isNegative ? -value : value)
  }

  /// Parses a negative number literal. A minus directly before digits is part of the number.
  mutating func negativeNumber() throws(SyntaxFault) -> QueryExpression? {
    let following = try peek()
    guard following.start == token.end, following.kind == .integer || following.kind == .float else {
      return nil
    }
    let literal = try number(following, isNegative: true)
    try advance()
    try advance()
    height = 0
    guard token.kind == .dot || token.kind == .leftBracket else { return .literal(literal) }
    throw unexpected("an operator")
  }

  // MARK: Names

  /// Parses a property or a function call.
  private mutating func nameOrCall() throws(SyntaxFault) -> QueryExpression {
    let first = token
    try advance()
    height = 0
    if first.kind == .name {
      if let collected = try collecting(first) { return collected }
      if token.kind == .leftParenthesis { return try call(first) }
      if let quantified = try some(first) { return quantified }
    }
    let name = first.kind == .name ? bytes(first) : unquoted(first)
    var path = PropertyReference([.name(name)], position: SourcePosition(first.start))
    while token.kind == .dot || token.kind == .leftBracket {
      if token.kind == .dot, try peek().kind == .star {
        try advance()
        try advance()
        // What a path leads to is the same with and without a star. A name alone may be a source.
        if path.steps.count > 1 { return .property(path) }
        return .star(source: SourceName(name, position: path.position))
      }
      guard let step = try step() else { break }
      guard case .fixed(let fixed) = step else { return try withSteps(.property(path), after: step) }
      path.steps.append(fixed)
    }
    return .property(path)
  }

  // MARK: CASE, ANY and EVERY

  @inline(never)
  private mutating func conditional() throws(SyntaxFault) -> QueryExpression {
    try advance()
    var deepest = 0
    var operand: QueryExpression?
    if token.kind != .when { operand = try expression(&deepest) }
    guard token.kind == .when else { throw unexpected("WHEN") }
    var branches: [ConditionalBranch] = []
    while try take(.when) {
      let condition = try expression(&deepest)
      try expect(.then, "THEN")
      branches.append(ConditionalBranch(when: condition, then: try expression(&deepest)))
    }
    var otherwise: QueryExpression?
    if try take(.else) { otherwise = try expression(&deepest) }
    try expect(.endWord, otherwise == nil ? "WHEN, ELSE or END" : "END")
    height = deepest
    try raise()
    return .conditional(operand: operand, branches: branches, otherwise: otherwise)
  }

  /// SOME isn't a reserved word. It means ANY before a variable or before AND EVERY.
  private mutating func some(_ first: Token) throws(SyntaxFault) -> QueryExpression? {
    guard token.kind == .name || token.kind == .quotedName || token.kind == .and else { return nil }
    guard first.end - first.start == 4, upperCase(first) == "SOME" else { return nil }
    let following = try peek()
    guard
      token.kind == .and
        ? following.kind == .every
        : following.kind == .in || following.kind == .colon || isWord("WITHIN", following)
    else { return nil }
    return try quantified(isAny: true)
  }

  @inline(never)
  private mutating func quantified(isAny: Bool) throws(SyntaxFault) -> QueryExpression {
    var quantifier: Quantifier = isAny ? .any : .every
    if isAny, try take(.and) {
      try expect(.every, "EVERY")
      quantifier = .anyAndEvery
    }
    var deepest = 0
    let bindings = try loopBindings(&deepest)
    try expect(.satisfies, "SATISFIES")
    let condition = try expression(&deepest)
    try expect(.endWord, "an operator or END")
    height = deepest
    try raise()
    if bindings.count == 1, bindings[0].position == nil, !bindings[0].isDeep {
      return .quantified(
        quantifier, variable: bindings[0].variable, in: bindings[0].collection, satisfies: condition)
    }
    let kind: Iteration.Kind =
      switch quantifier {
      case .any: .any
      case .every: .every
      case .anyAndEvery: .anyAndEvery
      }
    return .iteration(Iteration(kind, over: bindings, condition: condition))
  }
}

extension String {
  /// Writes `5.` as `5.0`, and `5.e3` as `5.0e3`.
  fileprivate func replacingBareDot() -> String {
    guard let dot = firstIndex(of: ".") else { return self }
    let after = index(after: dot)
    if after < endIndex, self[after].isNumber { return self }
    return self[..<after] + "0" + self[after...]
  }
}
