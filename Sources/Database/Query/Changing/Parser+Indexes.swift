// Parses CREATE INDEX, DROP INDEX and BUILD INDEX:
//
//   create = CREATE (INDEX name | PRIMARY INDEX [name]) [IF NOT EXISTS] ON name ["(" key {"," key} ")"] [WHERE expr] [using] [WITH object]
//   key    = ((ALL | DISTINCT) (ARRAY expr FOR name IN expr END | expr) | expr) [INCLUDE MISSING] [ASC | DESC]
//   drop   = DROP (INDEX name | PRIMARY INDEX) [IF EXISTS] ON name [using] | DROP INDEX name "." name [IF EXISTS] [using]
//   build  = BUILD INDEX ON name "(" name {"," name} ")" [using]
//   using  = USING GSI

import Storage

extension Parser {
  /// Parses a statement about indexes, if one is next.
  mutating func indexStatement() throws(SyntaxFault) -> IndexStatement? {
    guard token.kind == .name, case let following = try peek(), following.kind == .name else { return nil }
    let isPrimary = isWord("PRIMARY", following)
    guard isPrimary || isWord("INDEX", following) else { return nil }
    let word = upperCase(token)
    guard word == "CREATE" || word == "DROP" || word == "BUILD" && !isPrimary else { return nil }
    try advance()
    try advance()
    if isPrimary, !(try take(word: "INDEX")) { throw unexpected("INDEX") }
    switch word {
    case "CREATE": return try createIndex(isPrimary: isPrimary)
    case "DROP": return try dropIndex(isPrimary: isPrimary)
    default: return try buildIndexes()
    }
  }

  private mutating func createIndex(isPrimary: Bool) throws(SyntaxFault) -> IndexStatement {
    var unlessExists = try condition(exists: false)
    let name = isPrimary && token.kind == .on ? nil : try name("the index's name")
    if !unlessExists { unlessExists = try condition(exists: false) }
    let source = try indexedSource()
    var definition: ValueIndexDefinition?
    if !isPrimary {
      try expect(.leftParenthesis, "\"(\" and an expression to index")
      var keys = ValueIndexDefinition([QueryExpression]())
      repeat { try indexKey(of: &keys) } while try take(.comma)
      try expect(.rightParenthesis, "an operator, \",\" or \")\"")
      if isWord("PARTITION") { throw fault(.unsupported, "an index of this database has no partitions") }
      if try take(.where) { keys.condition = try expression() }
      definition = keys
    }
    try indexOptions()
    return IndexStatement(action: .create(name, definition, unlessExists: unlessExists), source: source)
  }

  private mutating func indexKey(of definition: inout ValueIndexDefinition) throws(SyntaxFault) {
    let position = token.start
    let following = try peek()
    if token.kind == .distinct || isWord("ALL") && beginsOperand(following, after: token) {
      try advance()
      guard definition.unnest == nil else {
        throw fault(.unsupported, "an index has one array at most", at: position)
      }
      let (key, unnest) = try arrayKey(try expression(), at: position)
      definition.expressions.append(key)
      definition.unnest = unnest
    } else {
      definition.expressions.append(try expression())
    }
    // Documents without the property are in each index, and an index is read in both directions.
    if isWord("INCLUDE") {
      try advance()
      try expect(.missing, "MISSING")
    }
    if !(try take(.asc)) { _ = try take(.desc) }
  }

  /// The key for the items of an array: `ARRAY v.x FOR v IN items END`, or a path for the items themselves.
  private func arrayKey(
    _ expression: QueryExpression, at position: Int
  ) throws(SyntaxFault) -> (QueryExpression, ValueIndexDefinition.Unnest) {
    if case .property(let path) = expression, case .name(let name)? = path.steps.last {
      return (.property(PropertyReference([.name(name)])), .init(expression, as: name))
    }
    guard case .iteration(let loop) = expression, loop.kind == .array, let key = loop.result,
      loop.bindings.count == 1, case let binding = loop.bindings[0], !binding.isDeep,
      binding.position == nil, loop.condition == nil
    else {
      throw fault(
        .unsupported,
        "an array index takes a path, or ARRAY … FOR v IN items END with one variable and no WHEN",
        at: position)
    }
    return (key, .init(binding.collection, as: binding.variable))
  }

  private mutating func dropIndex(isPrimary: Bool) throws(SyntaxFault) -> IndexStatement {
    if isPrimary {
      let ifExists = try condition(exists: true)
      let source = try indexedSource()
      try using()
      return IndexStatement(action: .drop(nil, ifExists: ifExists), source: source)
    }
    var ifExists = try condition(exists: true)
    let start = token.start
    var name = try name("the index's name")
    var source: SourceName?
    if try take(.dot) {
      source = SourceName(name, position: SourcePosition(start))
      name = try self.name("the index's name after the dot")
    }
    if !ifExists { ifExists = try condition(exists: true) }
    if source == nil { source = try indexedSource() }
    try using()
    return IndexStatement(action: .drop(name, ifExists: ifExists), source: source ?? SourceName(name))
  }

  private mutating func buildIndexes() throws(SyntaxFault) -> IndexStatement {
    let source = try indexedSource()
    try expect(.leftParenthesis, "\"(\" and an index's name")
    var names: [ByteString] = []
    repeat { names.append(try name("an index's name")) } while try take(.comma)
    try expect(.rightParenthesis, "\",\" or \")\"")
    try using()
    return IndexStatement(action: .build(names), source: source)
  }

  // MARK: Parts

  private mutating func indexedSource() throws(SyntaxFault) -> SourceName {
    try expect(.on, "ON")
    let start = token.start
    return SourceName(try name("a source's name (_ or the database's)"), position: SourcePosition(start))
  }

  /// Parses IF EXISTS or IF NOT EXISTS.
  private mutating func condition(exists: Bool) throws(SyntaxFault) -> Bool {
    guard isWord("IF"), exists ? isWord("EXISTS", try peek()) : try peek().kind == .not else { return false }
    try advance()
    if !exists { try advance() }
    guard try take(word: "EXISTS") else { throw unexpected("EXISTS") }
    return true
  }

  private mutating func using() throws(SyntaxFault) {
    guard try take(.using) else { return }
    guard try take(word: "GSI") else { throw unexpected("GSI") }
  }

  /// Parses USING and WITH. An index is built at once, whether it may be deferred or not.
  private mutating func indexOptions() throws(SyntaxFault) {
    try using()
    guard isWord("WITH") else { return }
    try advance()
    let position = token.start
    guard case .object(let members) = try expression() else {
      throw fault("expected an object after WITH", at: position)
    }
    for member in members where member.name != "defer_build" {
      throw fault(
        .unsupported, "WITH of an index has only \"defer_build\", not \"\(member.name)\"", at: position)
    }
  }
}
