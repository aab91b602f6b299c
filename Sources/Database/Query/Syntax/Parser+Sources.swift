// Parses FROM: sources, JOIN, NEST and UNNEST.

import Storage

extension Parser {
  /// Parses FROM and all sources after it.
  mutating func sources(of select: inout SelectStatement, _ deepest: inout Int) throws(SyntaxFault) {
    try expect(.from, "FROM")
    let first = try source(&deepest)
    select.source = first
    var previous = first.ownName
    while let join = try join(after: previous, &deepest) {
      select.joins.append(join)
      deepest = max(deepest, height)
      switch join {
      case .join(_, let source, _), .nest(let source, _, _): previous = source.ownName
      case .unnest(_, let alias, _): previous = alias
      }
    }
  }

  mutating func source(_ deepest: inout Int) throws(SyntaxFault) -> DataSource {
    let start = token.start
    if isWord("LATERAL"), try peek().kind == .leftParenthesis { try advance() }
    var source: DataSource
    if let name = try systemName() {
      source = DataSource(
        ByteString(SystemKeyspace.prefix + name.string), as: try alias() ?? name,
        position: SourcePosition(start))
    } else if let name = try sourceName() {
      source = DataSource(name, as: try alias(), position: SourcePosition(start))
    } else {
      let items = try expression(&deepest)
      source = DataSource("", as: try alias(), position: SourcePosition(start))
      source.content = .items(items)
      if source.alias == nil, case .property(let path) = items { source.alias = path.steps.last?.name }
      if source.alias == nil { throw unexpected("AS and a name for the rows") }
    }
    while isWord("USE"), try beginsClause() {
      try advance()
      try use(of: &source, &deepest)
    }
    return source
  }

  /// Takes `system:name`. Returns the name in lower case. Nil when something else follows.
  private mutating func systemName() throws(SyntaxFault) -> ByteString? {
    guard isWord("SYSTEM"), case let (colon, name) = try peekTwo(), colon.kind == .colon, name.kind == .name
    else { return nil }
    for _ in 0..<3 { try advance() }
    return ByteString(text(name).lowercased())
  }

  /// Takes the name of a source: `_`, the database's, one of WITH. Nil when an expression follows.
  private mutating func sourceName() throws(SyntaxFault) -> ByteString? {
    guard token.kind == .name || token.kind == .quotedName else {
      switch token.kind {
      case .leftParenthesis, .leftBracket, .leftBrace, .parameter: return nil
      default: throw unexpected("a source's name (_ or the database's)")
      }
    }
    let next = try peekTwo()
    switch next.first.kind {
    case .dot:
      guard try name(token) == "_default", try name(next.second) == "_default" else { return nil }
      try advance()
      try advance()
    case .leftBracket: return nil
    case .leftParenthesis: if token.kind == .name { return nil }
    default: break
    }
    return try name("a source's name (_ or the database's)")
  }

  private func name(_ token: Token) throws(SyntaxFault) -> ByteString? {
    switch token.kind {
    case .name: bytes(token)
    case .quotedName: unquoted(token)
    default: nil
    }
  }

  /// Parses `KEYS expr` or `INDEX (name, …)`, after USE.
  private mutating func use(of source: inout DataSource, _ deepest: inout Int) throws(SyntaxFault) {
    if try takeWord("INDEX") {
      try expect(.leftParenthesis, "\"(\"")
      repeat {
        source.indexes.append(try name("the name of an index"))
        // USING GSI is the only kind of index here.
        if try take(.using) { _ = try name("GSI") }
      } while try take(.comma)
      try expect(.rightParenthesis, "\",\" or \")\"")
      return
    }
    _ = try takeWord("PRIMARY")
    guard try takeWord("KEYS") else { throw unexpected("KEYS or INDEX") }
    guard source.content == .named else { throw fault(.invalidUse, "USE KEYS needs a source of documents") }
    source.keys = try expression(&deepest)
  }

  // MARK: Joins

  /// Parses one JOIN, NEST, UNNEST or comma, if there is one.
  private mutating func join(
    after previous: ByteString, _ deepest: inout Int
  ) throws(SyntaxFault) -> JoinClause? {
    height = 0
    if try take(.comma) { return .join(.cross, try source(&deepest), on: nil) }
    guard let kind = try joinKind() else { return nil }
    if kind == .inner || kind == .leftOuter {
      if try take(.unnest) { return try unnest(isLeftOuter: kind == .leftOuter) }
      if isWord("NEST"), try beginsClause() {
        try advance()
        let nested = try source(&deepest)
        let condition = try joinCondition(nested.ownName, previous, &deepest)
        return .nest(nested, on: condition, isLeftOuter: kind == .leftOuter)
      }
    }
    try expect(.join, kind == .inner || kind == .leftOuter ? "JOIN or UNNEST" : "JOIN")
    let source = try source(&deepest)
    guard kind == .cross else {
      return .join(kind, source, on: try joinCondition(source.ownName, previous, &deepest))
    }
    if token.kind == .on {
      throw fault("CROSS JOIN can't have ON; use INNER JOIN, or a condition in WHERE")
    }
    return .join(.cross, source, on: nil)
  }

  private mutating func joinKind() throws(SyntaxFault) -> JoinKind? {
    switch token.kind {
    case .join, .unnest: return .inner
    case .inner:
      try advance()
      return .inner
    case .left, .right:
      let kind: JoinKind = token.kind == .left ? .leftOuter : .rightOuter
      try advance()
      _ = try take(.outer)
      return kind
    case .cross:
      try advance()
      return .cross
    case .natural:
      throw fault(.unsupported, "NATURAL JOIN isn't supported; use JOIN … USING with the names")
    case .name:
      guard try beginsClause() else { return nil }
      if isWord("NEST") { return .inner }
      guard try takeWord("FULL") else { return nil }
      _ = try take(.outer)
      return .fullOuter
    default: return nil
    }
  }

  /// Parses ON or USING. `source` is the joined source, and `previous` the one before it.
  private mutating func joinCondition(
    _ source: ByteString, _ previous: ByteString, _ deepest: inout Int
  ) throws(SyntaxFault) -> QueryExpression {
    if try take(.using) {
      try expect(.leftParenthesis, "\"(\" and the names of properties")
      var equal: [QueryExpression] = []
      repeat {
        let name = try name("the name of a property")
        let sides = [previous, source].map {
          QueryExpression.property(PropertyReference([.name($0), .name(name)]))
        }
        equal.append(.binary(.equal, sides[0], sides[1]))
      } while try take(.comma)
      try expect(.rightParenthesis, "\",\" or \")\"")
      deepest = max(deepest, 2 + min(equal.count, Self.longestChain + 64))
      return .grouped(.and, equal[...])
    }
    try expect(.on, "ON and the condition of the JOIN")
    if let keys = try keyCondition(source, &deepest) { return keys }
    return try expression(&deepest)
  }

  /// Parses `KEYS expr` and `KEY expr FOR name`, if one of them follows ON.
  private mutating func keyCondition(
    _ source: ByteString, _ deepest: inout Int
  ) throws(SyntaxFault) -> QueryExpression? {
    let next = try peek()
    if isWord("PRIMARY"), isWord("KEYS", next) || isWord("KEY", next) { try advance() }
    let isKeys = isWord("KEYS")
    guard isKeys || isWord("KEY") else { return nil }
    let first = try peek()
    switch first.kind {
    case .name: if try beginsClause(after: first) { return nil }
    case .quotedName, .string, .parameter: break
    // `ON keys[0] = 1` is a condition.
    case .leftBracket, .leftParenthesis: if first.start == token.end { return nil }
    default: return nil
    }
    try advance()
    let keys = try expression(&deepest)
    func id(_ name: ByteString) -> QueryExpression { .meta(source: SourceName(name), .id) }
    if isKeys {
      return .contained(id(source), in: .call(FunctionCall("TOARRAY", [keys])), negated: false)
    }
    guard try takeWord("FOR") else { throw unexpected("FOR and the name of the other source") }
    return .binary(.equal, id(try name("the name of a source")), keys)
  }

  private mutating func unnest(isLeftOuter: Bool) throws(SyntaxFault) -> JoinClause {
    let array = try expression()
    if let alias = try alias() { return .unnest(array, as: alias, isLeftOuter: isLeftOuter) }
    guard case .property(let path) = array, case .name(let last)? = path.steps.last else {
      throw unexpected("AS and a name for the unnested items")
    }
    return .unnest(array, as: last, isLeftOuter: isLeftOuter)
  }
}
