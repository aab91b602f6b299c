// Parses UPDATE, DELETE, INSERT, UPSERT and MERGE.

import Storage

extension Parser {
  /// Parses a statement that changes documents, if one is next.
  mutating func change() throws(SyntaxFault) -> ChangeStatement? {
    guard token.kind == .name else { return nil }
    let next = try peek().kind
    // `UPDATE` alone could only be a mistake, but `SELECT update` never comes here.
    guard next == .name || next == .quotedName || next == .from else { return nil }
    var deepest = 0
    switch upperCase(token) {
    case "UPDATE": return try update(&deepest)
    case "DELETE" where next == .from: return try delete(&deepest)
    case "INSERT": return try insert(replaces: false, &deepest)
    case "UPSERT": return try insert(replaces: true, &deepest)
    case "MERGE": return try merge(&deepest)
    default: return nil
    }
  }

  private mutating func update(_ deepest: inout Int) throws(SyntaxFault) -> ChangeStatement {
    try advance()
    var statement = ChangeStatement(target: try target(&deepest), action: .delete)
    statement.action = .update(try assignments(&deepest))
    try end(&statement, &deepest)
    return statement
  }

  private mutating func delete(_ deepest: inout Int) throws(SyntaxFault) -> ChangeStatement {
    try advance()
    try expect(.from, "FROM")
    var statement = ChangeStatement(target: try target(&deepest), action: .delete)
    try end(&statement, &deepest)
    return statement
  }

  /// Parses the documents that are changed.
  private mutating func target(_ deepest: inout Int) throws(SyntaxFault) -> DataSource {
    let start = token.start
    let source = try source(&deepest)
    guard source.content == .named, !source.name.string.hasPrefix(SystemKeyspace.prefix) else {
      throw fault(.invalidUse, "documents of the database are changed, not rows of an expression", at: start)
    }
    return source
  }

  /// Parses WHERE, LIMIT, OFFSET and RETURNING.
  private mutating func end(_ statement: inout ChangeStatement, _ deepest: inout Int) throws(SyntaxFault) {
    if try take(.where) { statement.condition = try expression(&deepest) }
    if try take(.limit) { statement.limit = try expression(&deepest) }
    if try take(.offset) { statement.offset = try expression(&deepest) }
    try returning(&statement, &deepest)
  }

  private mutating func returning(
    _ statement: inout ChangeStatement, _ deepest: inout Int
  ) throws(SyntaxFault) {
    guard try takeWord("RETURNING") else { return }
    if try beginsRawResult() {
      try advance()
      statement.isRaw = true
    }
    repeat {
      statement.returning.append(try result(&deepest))
      if statement.isRaw { return }
    } while try take(.comma)
  }

  // MARK: SET and UNSET

  private mutating func assignments(_ deepest: inout Int) throws(SyntaxFault) -> Assignments {
    var all = Assignments()
    if try takeWord("SET") {
      repeat {
        let path = try assignedPath(&deepest)
        try expect(.equal, "\"=\"")
        let value = try expression(&deepest)
        all.set.append(SetTerm(path: path, value: value, loop: try loop(&deepest)))
      } while try take(.comma)
    }
    if try takeWord("UNSET") {
      repeat {
        let path = try assignedPath(&deepest)
        all.unset.append(UnsetTerm(path: path, loop: try loop(&deepest)))
      } while try take(.comma)
    }
    if all.set.isEmpty, all.unset.isEmpty { throw unexpected("SET or UNSET") }
    return all
  }

  private mutating func assignedPath(_ deepest: inout Int) throws(SyntaxFault) -> PropertyReference {
    let start = token.start
    guard case .property(let path) = try binary(.concatenation) else {
      throw fault("expected the path of a property", at: start)
    }
    deepest = max(deepest, height)
    return path
  }

  private mutating func loop(_ deepest: inout Int) throws(SyntaxFault) -> AssignmentLoop? {
    guard isWord("FOR") else { return nil }
    var loop = AssignmentLoop(variables: [])
    while try takeWord("FOR") {
      let name = try name("the name of a variable")
      if isWord("WITHIN") || token.kind == .colon || token.kind == .comma {
        throw fault(.unsupported, "FOR of an assignment takes one variable: FOR v IN path")
      }
      try expect(.in, "IN")
      loop.variables.append(.init(name: name, path: try assignedPath(&deepest)))
      if token.kind == .comma {
        throw fault(.unsupported, "FOR of an assignment takes one variable: FOR v IN path")
      }
    }
    if try take(.when) { loop.condition = try expression(&deepest) }
    try expect(.endWord, "END")
    return loop
  }

  // MARK: INSERT

  private mutating func insert(
    replaces: Bool, _ deepest: inout Int
  ) throws(SyntaxFault) -> ChangeStatement {
    try advance()
    guard try takeWord("INTO") else { throw unexpected("INTO") }
    let start = token.start
    let name = try name("a source's name (_ or the database's)")
    var alias: ByteString?
    if try take(.as) {
      alias = try self.name("a name after AS")
    } else if token.kind == .quotedName || token.kind == .name && !isWord("VALUES") {
      alias = try self.name("a name")
    }
    let target = DataSource(name, as: alias, position: SourcePosition(start))
    let documents = try insertedDocuments(&deepest)
    var statement = ChangeStatement(target: target, action: .insert(documents, replaces: replaces))
    try returning(&statement, &deepest)
    return statement
  }

  private mutating func insertedDocuments(_ deepest: inout Int) throws(SyntaxFault) -> InsertedDocuments {
    if try take(.leftParenthesis) {
      _ = try takeWord("PRIMARY")
      guard try takeWord("KEY") else { throw unexpected("KEY") }
      var key: QueryExpression?
      var value: QueryExpression?
      var hasValue = false
      if token.kind != .comma, token.kind != .rightParenthesis { key = try expression(&deepest) }
      if try take(.comma) {
        guard try takeWord("VALUE") else { throw unexpected("VALUE") }
        hasValue = true
        if token.kind != .comma, token.kind != .rightParenthesis { value = try expression(&deepest) }
        if token.kind == .comma {
          throw fault(.unsupported, "OPTIONS isn't supported; set an expiration by its own call")
        }
      }
      try expect(.rightParenthesis, "\")\"")
      if let key {
        if hasValue, value == nil { throw unexpected("an expression after VALUE") }
        let isParenthesized = token.kind == .leftParenthesis
        guard try beginsQuery() || isParenthesized else { throw unexpected("SELECT") }
        let query = try select()
        deepest = max(deepest, height)
        return .rows(query, key: key, value: value)
      }
    }
    var rows: [[QueryExpression]] = []
    guard try takeWord("VALUES") else { throw unexpected("VALUES") }
    repeat {
      _ = try takeWord("VALUES")
      try expect(.leftParenthesis, "\"(\" and a key and a value")
      let row = try expressions(until: .rightParenthesis)
      deepest = max(deepest, height)
      guard row.count == 2 else { throw fault("VALUES takes a key and a value: (key, value)") }
      try expect(.rightParenthesis, "\")\"")
      rows.append(row)
    } while try take(.comma)
    return .values(rows)
  }

  // MARK: MERGE

  private mutating func merge(_ deepest: inout Int) throws(SyntaxFault) -> ChangeStatement {
    try advance()
    guard try takeWord("INTO") else { throw unexpected("INTO") }
    let target = try target(&deepest)
    try expect(.using, "USING and a source")
    let source = try source(&deepest)
    try expect(.on, "ON")
    var actions = MergeActions(source: source, on: .literal(.null))
    let following = try peek().kind
    let isKey = isWord("KEY") && following != .dot && following != .equal
    if isKey { try advance() }
    let on = try expression(&deepest)
    actions.on =
      isKey ? .binary(.equal, .meta(source: SourceName(target.ownName), .id), on) : on
    while try take(.when) { try mergeAction(&actions, isKey ? on : nil, &deepest) }
    if actions.update == nil, actions.delete == nil, actions.insert == nil {
      throw unexpected("WHEN MATCHED THEN or WHEN NOT MATCHED THEN")
    }
    var statement = ChangeStatement(target: target, action: .merge(actions))
    if try take(.limit) { statement.limit = try expression(&deepest) }
    try returning(&statement, &deepest)
    return statement
  }

  private mutating func mergeAction(
    _ actions: inout MergeActions, _ key: QueryExpression?, _ deepest: inout Int
  ) throws(SyntaxFault) {
    let isNegated = try take(.not)
    guard try takeWord("MATCHED") else { throw unexpected("MATCHED or NOT MATCHED") }
    try expect(.then, "THEN")
    if isNegated {
      guard try takeWord("INSERT"), actions.insert == nil else { throw unexpected("one INSERT") }
      actions.insert = try mergeInsert(key, &deepest)
      actions.insert?.condition = try take(.where) ? try expression(&deepest) : nil
    } else if try takeWord("UPDATE") {
      guard actions.update == nil else { throw fault("MERGE takes one UPDATE") }
      let all = try assignments(&deepest)
      actions.update = .init(
        assignments: all, condition: try take(.where) ? try expression(&deepest) : nil)
    } else if try takeWord("DELETE") {
      guard actions.delete == nil else { throw fault("MERGE takes one DELETE") }
      actions.delete = .init(condition: try take(.where) ? try expression(&deepest) : nil)
    } else {
      throw unexpected("UPDATE or DELETE")
    }
  }

  private mutating func mergeInsert(
    _ key: QueryExpression?, _ deepest: inout Int
  ) throws(SyntaxFault) -> MergeActions.Insert {
    // With ON KEY, INSERT takes the value alone.
    if let key {
      return .init(key: key, value: try expression(&deepest))
    }
    try expect(.leftParenthesis, "\"(\" and KEY")
    _ = try takeWord("KEY")
    var insert = MergeActions.Insert(key: try expression(&deepest))
    if try take(.comma) {
      if isWord("VALUE"), try peek().kind != .rightParenthesis { try advance() }
      insert.value = try expression(&deepest)
    }
    try expect(.rightParenthesis, "\")\"")
    return insert
  }
}
