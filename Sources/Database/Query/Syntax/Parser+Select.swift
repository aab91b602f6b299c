// Parses queries: WITH, sets, SELECT and the clauses after FROM.

import Storage

extension Parser {
  /// Whether the next token begins a query and not an expression.
  func beginsQuery() throws(SyntaxFault) -> Bool {
    switch token.kind {
    case .select, .from: return true
    case .name: return try beginsWith()
    default: return false
    }
  }

  private func beginsWith() throws(SyntaxFault) -> Bool {
    guard isWord("WITH") else { return false }
    let next = try peek().kind
    return next == .name || next == .quotedName
  }

  /// Parses a query that is an expression, after its parenthesis.
  mutating func subquery() throws(SyntaxFault) -> QueryExpression {
    nesting += 1
    if nesting > Self.depthLimit { throw tooDeep() }
    let select = try select()
    nesting -= 1
    try raise()
    return .subquery(select)
  }

  /// Parses an expression in parentheses. `((SELECT …) UNION SELECT …)` is a query that begins like one.
  mutating func expressionOrSets() throws(SyntaxFault) -> QueryExpression {
    let start = token.start
    return try sets(after: try expression(), from: start)
  }

  /// Parses the rest of sets after an expression that began at `start`, if it is a query in parentheses.
  mutating func sets(
    after expression: QueryExpression, from start: Int
  ) throws(SyntaxFault) -> QueryExpression {
    guard case .subquery(let first) = expression, lastParentheses == start..<endOfLast,
      try setOperator() != nil
    else { return expression }
    return try sets(after: first)
  }

  /// Not a part of the frame of every parenthesis.
  @inline(never)
  private mutating func sets(after first: SelectStatement) throws(SyntaxFault) -> QueryExpression {
    var deepest = height
    let all = try ended(try combined(first, &deepest), &deepest)
    height = deepest
    try raise()
    return .subquery(all)
  }

  /// Parses a query up to the first token that isn't part of it.
  mutating func select() throws(SyntaxFault) -> SelectStatement {
    let levels = nesting > 0 ? Self.queryLevels : 0
    nesting += levels
    if nesting > Self.depthLimit { throw tooDeep() }
    var deepest = 0
    var bindings: [WithBinding] = []
    var isRecursive = false
    if try beginsWith() {
      try advance()
      if isWord("RECURSIVE"), try peek().kind != .as { isRecursive = try takeWord("RECURSIVE") }
      repeat { bindings.append(try withBinding(isRecursive, &deepest)) } while try take(.comma)
    }
    let isParenthesized = token.kind == .leftParenthesis
    var select = try term(&deepest)
    let isCombined = try setOperator() != nil
    if isCombined { select = try combined(select, &deepest) }
    if isCombined || !isParenthesized { select = try ended(select, &deepest) }
    if !bindings.isEmpty {
      guard select.with.isEmpty else { throw fault("only one of two nested WITHs can be here") }
      select.with = bindings
      select.isRecursive = isRecursive
    }
    nesting -= levels
    height = deepest
    return select
  }

  // MARK: WITH and sets

  private mutating func withBinding(
    _ isRecursive: Bool, _ deepest: inout Int
  ) throws(SyntaxFault) -> WithBinding {
    let position = SourcePosition(token.start)
    let name = try name("a name after WITH")
    try expect(.as, "AS")
    try expect(.leftParenthesis, "\"(\" and a query or an expression")
    let value = try beginsQuery() ? try subquery() : try expressionOrSets()
    deepest = max(deepest, height)
    try expect(.rightParenthesis, "\")\"")
    var binding = WithBinding(name, value, position: position)
    if isRecursive, isWord("CYCLE") {
      throw fault(
        .unsupported, "CYCLE isn't supported; UNION without ALL ends at rows that were there before")
    }
    guard isRecursive, try takeWord("OPTIONS") else { return binding }
    let start = token.start
    guard case .object(let members) = try expression(&deepest) else {
      throw fault("expected an object after OPTIONS, such as {\"levels\": 10}", at: start)
    }
    for member in members {
      switch member.name {
      case "levels": binding.levels = member.value
      case "documents": binding.rows = member.value
      default:
        throw fault(
          "OPTIONS has \"levels\" and \"documents\", and no \"\(member.name)\"", at: start)
      }
    }
    return binding
  }

  /// The operator between two queries, if one is next.
  private func setOperator() throws(SyntaxFault) -> SetOperator? {
    guard token.kind == .name, try beginsClause() else { return nil }
    return SetOperator(rawValue: upperCase(token))
  }

  /// Parses the operators and queries after the first query.
  private mutating func combined(
    _ first: SelectStatement, _ deepest: inout Int
  ) throws(SyntaxFault) -> SelectStatement {
    var left = first
    while let operation = try setOperator() {
      try advance()
      let isAll = try takeWord("ALL")
      let right = try term(&deepest)
      deepest += 1
      if deepest > Self.depthLimit { throw tooDeep() }
      var both = SelectStatement(results: [])
      both.combination = .combined(left, operation, isAll: isAll, right)
      left = both
    }
    return left
  }

  private mutating func term(_ deepest: inout Int) throws(SyntaxFault) -> SelectStatement {
    guard token.kind == .leftParenthesis else { return try body(&deepest) }
    nesting += 1
    if nesting > Self.depthLimit { throw tooDeep() }
    try advance()
    let select = try select()
    nesting -= 1
    deepest = max(deepest, height)
    try expect(.rightParenthesis, "\")\"")
    return select
  }

  // MARK: Clauses

  /// Parses a query without WITH, ORDER BY, LIMIT and OFFSET.
  private mutating func body(_ deepest: inout Int) throws(SyntaxFault) -> SelectStatement {
    try checkStatement()
    var select = SelectStatement(results: [])
    let beginsWithFrom = token.kind == .from
    if beginsWithFrom {
      try sources(of: &select, &deepest)
      try conditions(of: &select, &deepest)
    }
    try projection(of: &select, &deepest)
    if !beginsWithFrom {
      if token.kind == .from { try sources(of: &select, &deepest) }
      try conditions(of: &select, &deepest)
    }
    return select
  }

  private mutating func projection(
    of select: inout SelectStatement, _ deepest: inout Int
  ) throws(SyntaxFault) {
    try expect(.select, "SELECT")
    if try take(.distinct) {
      select.isDistinct = true
    } else if isWord("ALL") {
      // A property may be named ALL.
      switch try peek().kind {
      case .comma, .dot, .from, .as, .end, .semicolon, .leftBracket, .rightParenthesis: break
      default: try advance()
      }
    }
    if try beginsRawResult() {
      try advance()
      select.isRaw = true
      select.results = [try result(&deepest)]
    } else {
      repeat { select.results.append(try result(&deepest)) } while try take(.comma)
    }
    guard isWord("EXCLUDE"), try beginsClause() else { return }
    try advance()
    repeat { select.excluded.append(try excludedPath()) } while try take(.comma)
  }

  mutating func result(_ deepest: inout Int) throws(SyntaxFault) -> ResultColumn {
    let start = token.start
    let expression = try expression(&deepest)
    let position = token.kind == .as ? try peek().start : token.start
    let alias = try alias()
    return ResultColumn(expression, as: alias, position: SourcePosition(alias == nil ? start : position))
  }

  private mutating func excludedPath() throws(SyntaxFault) -> PropertyReference {
    let start = token.start
    guard case .property(let path) = try expression(), path.steps.allSatisfy({ $0.name != nil }) else {
      throw fault("expected the path of a property after EXCLUDE", at: start)
    }
    return path
  }

  private mutating func conditions(
    of select: inout SelectStatement, _ deepest: inout Int
  ) throws(SyntaxFault) {
    if isWord("LET"), try beginsClause() { select.lets = try bindings(&deepest) }
    if try take(.where) { select.condition = try expression(&deepest) }
    if try take(.group) { try groups(of: &select, &deepest) }
    if isWord("LETTING"), try beginsClause() {
      if select.groupBy.isEmpty { throw fault(.invalidUse, "LETTING needs GROUP BY before it") }
      select.letting = try bindings(&deepest)
    }
    if token.kind == .having {
      if select.groupBy.isEmpty { throw fault(.invalidUse, "HAVING needs GROUP BY before it") }
      try advance()
      select.having = try expression(&deepest)
    }
    select.windows = try namedWindows(&deepest)
  }

  /// Parses the names of LET or LETTING.
  private mutating func bindings(_ deepest: inout Int) throws(SyntaxFault) -> [LetBinding] {
    try advance()
    var bindings: [LetBinding] = []
    repeat {
      let position = SourcePosition(token.start)
      let name = try name("a name")
      try expect(.equal, "\"=\"")
      bindings.append(LetBinding(name, try expression(&deepest), position: position))
    } while try take(.comma)
    return bindings
  }

  /// Parses ORDER BY, LIMIT and OFFSET.
  private mutating func ended(
    _ query: SelectStatement, _ deepest: inout Int
  ) throws(SyntaxFault) -> SelectStatement {
    var select = query
    if try take(.order) {
      try expect(.by, "BY")
      repeat { select.orderBy.append(try ordering(&deepest)) } while try take(.comma)
    }
    while true {
      if token.kind == .limit, select.limit == nil {
        try advance()
        select.limit = try expression(&deepest)
      } else if token.kind == .offset, select.offset == nil {
        try advance()
        select.offset = try expression(&deepest)
        _ = try takeRows()
      } else if isWord("FETCH"), select.limit == nil, try beginsClause() {
        select.limit = try fetched(&deepest)
      } else {
        break
      }
    }
    return select
  }

  /// Takes ROW or ROWS.
  private mutating func takeRows() throws(SyntaxFault) -> Bool {
    if try takeWord("ROWS") { return true }
    return try takeWord("ROW")
  }

  /// Parses `FETCH FIRST n ROWS ONLY`, which is LIMIT. Without a number it is one row.
  private mutating func fetched(_ deepest: inout Int) throws(SyntaxFault) -> QueryExpression {
    try advance()
    try advance()
    var count = QueryExpression.literal(.int(1))
    if !isWord("ROWS"), !isWord("ROW") { count = try expression(&deepest) }
    guard try takeRows() else { throw unexpected("ROWS ONLY") }
    if token.kind == .name, !isWord("ONLY") {
      throw fault(.unsupported, "only ROWS ONLY is supported: WITH TIES isn't; use RANK() OVER (ORDER BY …)")
    }
    guard try takeWord("ONLY") else { throw unexpected("ONLY") }
    return count
  }

  /// Parses `[AS] name`, if there is one.
  mutating func alias() throws(SyntaxFault) -> ByteString? {
    if try take(.as) { return try name("a name after AS") }
    guard token.kind == .name || token.kind == .quotedName else { return nil }
    if try beginsClause() || beginsWindowClause() { return nil }
    return try name("a name")
  }

  /// Whether the next name begins a clause instead of being an alias. None of these words is reserved, so what
  /// follows it decides.
  func beginsClause(after word: Token? = nil) throws(SyntaxFault) -> Bool {
    let word = word ?? token
    guard word.kind == .name, word.end - word.start <= 9 else { return false }
    let upper = upperCase(word)
    guard ReservedWords.clauseWords.contains(upper) else { return false }
    let (first, second) = word.start == token.start ? try peekTwo() : try peekAfterNext()
    switch upper {
    case "UNION", "INTERSECT", "EXCEPT":
      return first.kind == .select || first.kind == .leftParenthesis
        || isWord("ALL", first) || isWord("WITH", first)
    case "LET", "LETTING":
      return (first.kind == .name || first.kind == .quotedName) && second.kind == .equal
    case "NEST":
      return first.kind == .name || first.kind == .quotedName || first.kind == .leftParenthesis
    case "USE": return isWord("KEYS", first) || isWord("INDEX", first) || isWord("PRIMARY", first)
    case "EXCLUDE", "SET", "UNSET": return first.kind == .name || first.kind == .quotedName
    case "RETURNING":
      switch first.kind {
      case .name, .quotedName, .string, .integer, .float, .parameter, .star, .leftBrace, .leftBracket,
        .leftParenthesis, .case, .not:
        return true
      default: return false
      }
    case "FETCH":
      guard isWord("FIRST", first) || isWord("NEXT", first) else { return false }
      switch second.kind {
      case .integer, .parameter, .question, .leftParenthesis: return true
      default: return isWord("ROW", second) || isWord("ROWS", second)
      }
    case "FULL": return first.kind == .join || first.kind == .outer
    default: return false
    }
  }

  private func peekAfterNext() throws(SyntaxFault) -> (first: Token, second: Token) {
    var copy = self
    try copy.advance()
    return try copy.peekTwo()
  }
}
