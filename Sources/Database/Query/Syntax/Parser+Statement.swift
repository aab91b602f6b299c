// Parses clauses: SELECT, FROM, JOIN, UNNEST and the rest.

import Storage

extension QueryStatement {
  /// Parses a query, with or without EXPLAIN.
  ///
  /// - Throws: a `QueryError` with the position of the mistake and what was expected there.
  package init(parsing text: String) throws(QueryError) {
    self = try Parser.parse(text) { parser throws(SyntaxFault) in try parser.statement() }
  }
}

extension SelectStatement {
  /// Parses a query. EXPLAIN isn't allowed.
  ///
  /// - Throws: a `QueryError` with the position of the mistake and what was expected there.
  public init(parsing text: String) throws(QueryError) {
    self = try Parser.parse(text) { parser throws(SyntaxFault) in
      let select = try parser.select()
      try parser.endOfStatement(after: select)
      return select
    }
  }
}

extension QueryExpression {
  /// Parses a single expression, such as one of an index.
  ///
  /// - Throws: a `QueryError` with the position of the mistake and what was expected there.
  public init(parsing text: String) throws(QueryError) {
    self = try Parser.parse(text) { parser throws(SyntaxFault) in
      let expression = try parser.expression()
      guard parser.token.kind == .end else { throw parser.unexpected("an operator or the end") }
      return expression
    }
  }
}

extension Parser {
  fileprivate mutating func statement() throws(SyntaxFault) -> QueryStatement {
    var explains = false
    var analyzes = false
    if isWord("EXPLAIN") {
      explains = true
      try advance()
      if isWord("ANALYZE") {
        analyzes = true
        try advance()
      }
    }
    let select = try select()
    try endOfStatement(after: select)
    return explains ? .explain(select, analyze: analyzes) : .select(select)
  }

  fileprivate mutating func endOfStatement(after select: SelectStatement) throws(SyntaxFault) {
    _ = try take(.semicolon)
    guard token.kind == .end else { throw unexpectedClause(after: select) }
  }

  /// Parses a query from SELECT up to the first token that isn't part of it.
  mutating func select() throws(SyntaxFault) -> SelectStatement {
    try checkStatement()
    try expect(.select, "SELECT")
    var select = SelectStatement(results: [])
    if try take(.distinct) {
      select.isDistinct = true
    } else if isWord("ALL") {
      // A property may be named ALL.
      switch try peek().kind {
      case .comma, .dot, .from, .as, .end, .semicolon, .leftBracket, .rightParenthesis: break
      default: try advance()
      }
    }
    try checkRawResult()
    var deepest = 0
    repeat {
      select.results.append(try result())
      deepest = max(deepest, height)
    } while try take(.comma)

    if try take(.from) {
      select.source = try source()
      while let join = try join() {
        select.joins.append(join)
        deepest = max(deepest, height)
      }
    }
    if try take(.where) { select.condition = try expression(&deepest) }
    if try take(.group) {
      try expect(.by, "BY")
      repeat {
        let start = token.start
        let expression = try expression(&deepest)
        try checkTerm(expression, of: "GROUP BY", at: start)
        select.groupBy.append(expression)
      } while try take(.comma)
    }
    if token.kind == .having {
      if select.groupBy.isEmpty { throw fault(.invalidUse, "HAVING needs GROUP BY before it") }
      try advance()
      select.having = try expression(&deepest)
    }
    if try take(.order) {
      try expect(.by, "BY")
      repeat {
        let start = token.start
        let expression = try expression(&deepest)
        try checkTerm(expression, of: "ORDER BY", at: start)
        let descends = try take(.desc)
        if !descends { _ = try take(.asc) }
        select.orderBy.append(Ordering(expression, isDescending: descends))
      } while try take(.comma)
    }
    while true {
      if token.kind == .limit, select.limit == nil {
        try advance()
        select.limit = try expression(&deepest)
      } else if token.kind == .offset, select.offset == nil {
        try advance()
        select.offset = try expression(&deepest)
      } else {
        break
      }
    }
    height = deepest
    return select
  }

  private mutating func result() throws(SyntaxFault) -> ResultColumn {
    let start = token.start
    let expression = try expression()
    let position = token.kind == .as ? try peek().start : token.start
    let alias = try alias()
    return ResultColumn(expression, as: alias, position: SourcePosition(alias == nil ? start : position))
  }

  /// Parses `[AS] name`, if there is one.
  private mutating func alias() throws(SyntaxFault) -> ByteString? {
    if try take(.as) { return try name("a name after AS") }
    guard token.kind == .name || token.kind == .quotedName else { return nil }
    return try name("a name")
  }

  private mutating func source() throws(SyntaxFault) -> DataSource {
    let start = token.start
    if token.kind == .leftParenthesis, try peek().kind == .select { throw nestedQuery() }
    var name = try name("a source's name (_ or the database's)")
    if try take(.dot) {
      let collection = try self.name("a name after the dot")
      guard name == "_default", collection == "_default" else {
        throw fault(
          .unsupported, "scopes and collections aren't supported; a source is _ or the name of the database",
          at: start
        )
      }
      name = collection
    }
    if isWord("FULL") {
      let following = try peek().kind
      if following == .join || following == .outer { throw fault(.unsupported, "FULL JOIN isn't supported") }
    }
    return DataSource(name, as: try alias(), position: SourcePosition(start))
  }

  /// Parses one JOIN or UNNEST, if there is one.
  private mutating func join() throws(SyntaxFault) -> JoinClause? {
    height = 0
    let kind: JoinKind
    switch token.kind {
    case .join, .unnest: kind = .inner
    case .inner:
      kind = .inner
      try advance()
    case .left:
      kind = .leftOuter
      try advance()
      _ = try take(.outer)
    case .cross:
      kind = .cross
      try advance()
    case .right, .natural:
      throw fault(.unsupported, "\(upperCase(token)) JOIN isn't supported; use INNER, LEFT OUTER or CROSS")
    case .comma:
      throw fault("expected JOIN or UNNEST, found \",\"; add further sources with JOIN … ON or CROSS JOIN")
    default: return nil
    }
    if kind != .cross, try take(.unnest) { return try unnest(isLeftOuter: kind == .leftOuter) }
    try expect(.join, kind == .cross ? "JOIN" : "JOIN or UNNEST")
    let source = try source()
    if kind == .cross {
      if token.kind == .on {
        throw fault("CROSS JOIN can't have ON; use INNER JOIN, or a condition in WHERE")
      }
      return .join(.cross, source, on: nil)
    }
    try expect(.on, "ON and the condition of the JOIN")
    return .join(kind, source, on: try expression())
  }

  private mutating func unnest(isLeftOuter: Bool) throws(SyntaxFault) -> JoinClause {
    let array = try expression()
    if let alias = try alias() { return .unnest(array, as: alias, isLeftOuter: isLeftOuter) }
    guard case .property(let path) = array, case .name(let last)? = path.steps.last else {
      throw unexpected("AS and a name for the unnested items")
    }
    return .unnest(array, as: last, isLeftOuter: isLeftOuter)
  }

  /// The error for a token after the end of a query. It lists what could follow.
  private func unexpectedClause(after select: SelectStatement) -> SyntaxFault {
    var clauses: [String] = []
    if select.offset == nil, select.limit == nil {
      if select.orderBy.isEmpty {
        if select.having == nil {
          if select.groupBy.isEmpty {
            if select.condition == nil {
              clauses = select.source == nil ? ["FROM"] : ["JOIN", "UNNEST"]
              clauses.append("WHERE")
            }
            clauses.append("GROUP BY")
          } else {
            clauses.append("HAVING")
          }
        }
        clauses.append("ORDER BY")
      }
      clauses += ["LIMIT", "OFFSET"]
    } else if select.offset == nil {
      clauses = ["OFFSET"]
    } else if select.limit == nil {
      clauses = ["LIMIT"]
    }
    clauses.append("the end")
    var fault = unexpected((clauses.count > 1 ? "an operator, " : "") + clauses.joined(separator: ", "))
    // `FROM _ WHER x = 1`: a misspelled keyword was parsed as an alias.
    let words =
      select.joins.isEmpty ? [select.source?.alias?.string, select.results.last?.alias?.string] : []
    for word in words.compactMap({ $0 }) + [text(token)] where word.utf8.count <= 10 {
      let near = Suggestions.nearest(to: word, among: ReservedWords.clauses)
      if let first = near.first, first != word.uppercased() {
        fault.message += " (did you mean \(first) instead of \(word)?)"
        break
      }
    }
    return fault
  }
}

extension ReservedWords {
  fileprivate static let clauses = [
    "FROM", "JOIN", "UNNEST", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET",
  ]
}
