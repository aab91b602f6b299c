// Parses primaries: literals, properties, calls, CASE, ANY and EVERY.

extension Parser {
  /// Parses a primary and the steps after it.
  mutating func postfix() throws(SyntaxFault) -> QueryExpression {
    if token.kind == .name || token.kind == .quotedName { return try nameOrCall() }
    return try withSteps(token.kind == .leftParenthesis ? try parenthesized() : try primary())
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

  // MARK: Paths

  /// Parses any number of steps: `.name` and `[0]`.
  mutating func steps() throws(SyntaxFault) -> [PathStep] {
    var steps: [PathStep] = []
    while let step = try step() { steps.append(step) }
    return steps
  }

  private mutating func step() throws(SyntaxFault) -> PathStep? {
    if try take(.dot) {
      // Only a name can follow a dot, so reserved words need no backticks there.
      if token.kind.isReservedWord {
        let name = bytes(token)
        try advance()
        return .name(name)
      }
      return .name(try name("a property's name after the dot"))
    }
    guard try take(.leftBracket) else { return nil }
    let isNegative = try take(.minus)
    guard token.kind == .integer else { throw unexpected("the index of an array's item, a number") }
    guard let index = Int(text(token)) else { throw fault("the index is out of range") }
    try advance()
    try expect(.rightBracket, "\"]\"")
    return .index(isNegative ? -index : index)
  }

  /// Parses a property or a function call.
  private mutating func nameOrCall() throws(SyntaxFault) -> QueryExpression {
    let first = token
    try advance()
    height = 0
    if first.kind == .name {
      if token.kind == .leftParenthesis { return try call(first) }
      if let quantified = try some(first) { return quantified }
    }
    let name = first.kind == .name ? bytes(first) : unquoted(first)
    var steps: [PathStep] = [.name(name)]
    while token.kind == .dot || token.kind == .leftBracket {
      if steps.count == 1, token.kind == .dot, try peek().kind == .star {
        try advance()
        try advance()
        return .star(source: SourceName(name, position: SourcePosition(first.start)))
      }
      if let step = try step() { steps.append(step) }
    }
    return .property(PropertyReference(steps, position: SourcePosition(first.start)))
  }

  // MARK: Objects

  private mutating func object() throws(SyntaxFault) -> QueryExpression {
    try advance()
    var members: [ObjectMember] = []
    var deepest = 0
    if token.kind != .rightBrace {
      repeat {
        guard token.kind == .string else { throw unexpected("a member's name as a string") }
        let name = unquoted(token)
        try advance()
        try expect(.colon, "\":\"")
        members.append(ObjectMember(name, try expression(&deepest)))
      } while try take(.comma)
    }
    try expect(.rightBrace, "\",\" or \"}\"")
    height = deepest
    try raise()
    return .object(members)
  }

  // MARK: CASE, ANY and EVERY

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
    let following = try peek().kind
    guard following == (token.kind == .and ? .every : .in) else { return nil }
    return try quantified(isAny: true)
  }

  private mutating func quantified(isAny: Bool) throws(SyntaxFault) -> QueryExpression {
    var quantifier: Quantifier = isAny ? .any : .every
    if isAny, try take(.and) {
      try expect(.every, "EVERY")
      quantifier = .anyAndEvery
    }
    let variable = try name("a variable's name")
    try expect(.in, "IN")
    let collection = try expression()
    let deepest = height
    try expect(.satisfies, "SATISFIES")
    let condition = try expression()
    try expect(.endWord, "an operator or END")
    try raise(over: deepest)
    return .quantified(quantifier, variable: variable, in: collection, satisfies: condition)
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
