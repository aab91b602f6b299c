// Parses what may follow an expression, objects, and loops over collections. The words ARRAY, FIRST, OBJECT, FOR
// and WITHIN aren't reserved. They are recognized by what follows.

import Storage

extension Parser {
  /// What follows a dot, or stands in brackets.
  enum Step {
    case fixed(PathStep)
    case computed(Subscript)
    /// `[*]`: an object of arrays.
    case star
  }

  /// Parses `.name`, `.[name]`, `[0]`, `[index]`, `[start:end]` or `[*]`, if there is one. The height is that of what
  /// stands in brackets.
  mutating func step() throws(SyntaxFault) -> Step? {
    height = 0
    if try take(.dot) {
      // Only a name can follow a dot, so reserved words need no backticks there.
      if token.kind.isReservedWord {
        let name = bytes(token)
        try advance()
        return .fixed(.name(name))
      }
      guard try take(.leftBracket) else { return .fixed(.name(try name("a property's name after the dot"))) }
      return try bracketed { .field($0) }
    }
    guard try take(.leftBracket) else { return nil }
    if token.kind == .star, try peek().kind == .rightBracket {
      try advance()
      try advance()
      return .star
    }
    if token.kind == .colon { return try slice(from: nil, 0) }
    return try bracketed { .element($0) }
  }

  /// Parses an expression and its bracket. A literal alone is a fixed step.
  private mutating func bracketed(_ make: (QueryExpression) -> Subscript) throws(SyntaxFault) -> Step {
    let first = token.kind
    let inside = try expression()
    let subscripted = make(inside)
    if token.kind == .colon, case .element = subscripted { return try slice(from: inside, height) }
    try expect(.rightBracket, "an operator or \"]\"")
    switch (inside, subscripted) {
    case (.literal(.int(let value)), .element) where first == .integer || first == .minus:
      return .fixed(.index(Int(value)))
    case (.literal(.uint), .element) where first == .integer:
      throw fault("the index is out of range", at: endOfLast - 1)
    case (.literal(.string(let name)), _) where first == .string: return .fixed(.name(name))
    default: return .computed(subscripted)
    }
  }

  private mutating func slice(from start: QueryExpression?, _ startHeight: Int) throws(SyntaxFault) -> Step {
    try advance()
    height = 0
    var end: QueryExpression?
    if token.kind != .rightBracket { end = try expression() }
    height = max(height, startHeight)
    try expect(.rightBracket, "an operator or \"]\"")
    return .computed(.slice(from: start, to: end))
  }

  /// Parses the steps that may follow an expression, after one that was parsed already.
  mutating func withSteps(_ expression: QueryExpression, after parsed: Step? = nil) throws(SyntaxFault)
    -> QueryExpression
  {
    guard parsed != nil || token.kind == .dot || token.kind == .leftBracket else { return expression }
    return try adding(parsed, to: expression)
  }

  // Not inlined, so that the frames of the functions that call each other stay small.
  @inline(never)
  private mutating func adding(_ parsed: Step?, to expression: QueryExpression) throws(SyntaxFault)
    -> QueryExpression
  {
    var inner = parsed == nil ? height : 0
    var result = expression
    var fixed: [PathStep] = []
    var next = parsed
    var hasSteps = false
    func join() throws(SyntaxFault) {
      guard !fixed.isEmpty else { return }
      result = .member(result, fixed)
      fixed = []
      height = inner
      try raise()
      inner = height
    }
    while true {
      if next == nil {
        guard token.kind == .dot || token.kind == .leftBracket else { break }
        if token.kind == .dot, try peek().kind == .star {
          try advance()
          try advance()
          break
        }
        next = try step()
      }
      guard let step = next else { break }
      next = nil
      hasSteps = true
      if case .fixed(let name) = step {
        fixed.append(name)
        continue
      }
      let inside = height
      try join()
      if case .computed(let subscripted) = step {
        result = .subscripted(result, subscripted)
      } else {
        result = .call(FunctionCall("ARRAY_STAR", [result]))
      }
      height = max(inner, inside)
      try raise()
      inner = height
    }
    try join()
    if hasSteps { height = inner }
    return result
  }

  // MARK: Objects

  @inline(never)
  mutating func object() throws(SyntaxFault) -> QueryExpression {
    try advance()
    var members: [ComputedMember] = []
    var fixed: [ObjectMember] = []
    var deepest = 0
    if token.kind != .rightBrace {
      repeat {
        if token.kind == .string, try peek().kind == .colon {
          let name = unquoted(token)
          try advance()
          try advance()
          let value = try expression(&deepest)
          fixed.append(ObjectMember(name, value))
          members.append(ComputedMember(.literal(.string(name)), value))
          continue
        }
        let name = try expression(&deepest)
        if try take(.colon) {
          members.append(ComputedMember(name, try expression(&deepest)))
        } else if let implied = name.impliedName {
          fixed.append(ObjectMember(implied, name))
          members.append(ComputedMember(.literal(.string(implied)), name))
        } else {
          throw unexpected("\":\" and the member's value")
        }
      } while try take(.comma)
    }
    try expect(.rightBrace, "\",\" or \"}\"")
    height = deepest
    try raise()
    return fixed.count == members.count ? .object(fixed) : .computedObject(members)
  }

  // MARK: Loops

  /// Parses the variables of a loop: `[position :] name (IN | WITHIN) collection`, separated by commas.
  mutating func loopBindings(_ deepest: inout Int) throws(SyntaxFault) -> [VariableBinding] {
    var bindings: [VariableBinding] = []
    repeat {
      var variable = try name("a variable's name")
      var position: ByteString?
      if try take(.colon) {
        position = variable
        variable = try name("a variable's name")
      }
      let isDeep = try take(word: "WITHIN")
      if !isDeep { try expect(.in, "IN or WITHIN") }
      bindings.append(
        VariableBinding(variable, position: position, in: try expression(&deepest), isDeep: isDeep))
    } while try take(.comma)
    return bindings
  }

  /// Parses `ARRAY … FOR … END`, FIRST and OBJECT, after their first word. Nil when it is a name.
  mutating func collecting(_ first: Token) throws(SyntaxFault) -> QueryExpression? {
    let kind: Iteration.Kind
    if isWord("ARRAY", first) {
      kind = .array
    } else if isWord("FIRST", first) {
      kind = .first
    } else if isWord("OBJECT", first) {
      kind = .object
    } else {
      return nil
    }
    guard beginsOperand(token, after: first), hasFor() else { return nil }
    return try collecting(kind)
  }

  // Not inlined, so that the frames of the functions that call each other stay small.
  @inline(never)
  private mutating func collecting(_ kind: Iteration.Kind) throws(SyntaxFault) -> QueryExpression {
    nesting += 1
    if nesting > Self.depthLimit { throw tooDeep() }
    var deepest = 0
    var name: QueryExpression?
    if kind == .object {
      name = try expression(&deepest)
      try expect(.colon, "an operator or \":\"")
    }
    let result = try expression(&deepest)
    guard try take(word: "FOR") else { throw unexpected("an operator or FOR") }
    let bindings = try loopBindings(&deepest)
    var condition: QueryExpression?
    if try take(.when) { condition = try expression(&deepest) }
    try expect(.endWord, condition == nil ? "an operator, WHEN or END" : "an operator or END")
    nesting -= 1
    height = deepest
    try raise()
    return try withSteps(
      .iteration(Iteration(kind, name: name, result, over: bindings, condition: condition)))
  }

  /// Whether a token begins an operand, where an operator could also come. A sign does if it has a space before it
  /// and none after it.
  func beginsOperand(_ token: Token, after other: Token) -> Bool {
    switch token.kind {
    case .name, .quotedName, .string, .integer, .float, .parameter, .question, .leftBrace, .leftParenthesis,
      .leftBracket, .true, .false, .null, .missing, .not, .case, .any, .every, .left, .right:
      true
    case .minus, .plus: token.start > other.end && followsDirectly(token)
    default: false
    }
  }

  /// Whether FOR follows before the current expression can end.
  private mutating func hasFor() -> Bool {
    var scan = LoopScan()
    guard scan.goesOn(token, self) else { return scan.found }
    let parser = self
    scanAhead { scan.goesOn($0, parser) }
    return scan.found
  }

  /// Whether the next word is the operator WITHIN. It may also be an alias.
  func isWithin() throws(SyntaxFault) -> Bool {
    guard isWord("WITHIN") else { return false }
    let following = try peek()
    // The functions LEFT and RIGHT. Otherwise WITHIN is the alias before a join.
    if following.kind == .left || following.kind == .right {
      return try peekTwo().second.kind == .leftParenthesis
    }
    return beginsOperand(following, after: token)
  }
}

/// The search for the FOR of a loop.
private struct LoopScan {
  private(set) var found = false
  /// The number of open brackets. What is in them doesn't count.
  private var depth = 0
  /// The number of open expressions that have an END.
  private var open = 0
  private var before = TokenKind.end
  private var earlier = TokenKind.end
  /// Whether COLLATE was before. In it, CASE is the name of an option.
  private var isCollating = false

  /// Looks at the next token. False when the search is over.
  mutating func goesOn(_ token: Token, _ parser: Parser) -> Bool {
    var kind = token.kind
    if kind == .name, parser.isWord("SOME", token) { kind = .any }
    defer { (earlier, before) = (before, kind) }
    switch kind {
    case .leftParenthesis, .leftBracket, .leftBrace:
      depth += 1
      return true
    case .rightParenthesis, .rightBracket, .rightBrace:
      if depth == 0 { return false }
      depth -= 1
      return true
    case .end: return false
    default: return depth > 0 || goesOn(kind, token, parser)
    }
  }

  private mutating func goesOn(_ kind: TokenKind, _ token: Token, _ parser: Parser) -> Bool {
    switch kind {
    case .collate: isCollating = true
    case .case where isCollating: break
    case .case, .any: open += 1
    // ANY AND EVERY has one END.
    case .every: if before != .and || earlier != .any { open += 1 }
    case .endWord:
      if open == 0 { return false }
      open -= 1
    // IS DISTINCT FROM, and NTH_VALUE(…) FROM LAST.
    case .from where before == .distinct || before == .rightParenthesis: break
    case .comma where open > 0: isCollating = false
    case .comma, .from, .where, .group, .having, .order, .limit, .offset, .join, .on, .unnest, .as, .select,
      .semicolon:
      return false
    case .name where parser.isWord("FOR", token):
      found = true
      return false
    case .name, .quotedName, .colon: break
    default: isCollating = false
    }
    return true
  }
}

extension QueryExpression {
  /// The name of a member that has only a value: the last name of a path.
  fileprivate var impliedName: ByteString? {
    switch self {
    case .property(let path): path.steps.last?.name
    case .member(_, let steps): steps.last?.name
    case .star(let source?): source.name
    case .meta(_, let member?): ByteString(member.rawValue)
    default: nil
    }
  }
}
