// Resolves the queries inside a query: in expressions, in FROM, in WITH, and those that sets combine.

import Storage

extension NameResolver {
  /// Resolves a query in an expression. Returns its value.
  mutating func resolve(
    subquery statement: SelectStatement, _ form: ResolvedSubquery.Form, _ scope: Scope, isShared: Bool = false
  ) throws -> QueryExpression {
    let names = EnclosingScope(scope, enclosing, size: size)
    let rows = ResolvedRows.query(try inner(statement, names))
    return add(rows, form, names, isShared: isShared)
  }

  /// Resolves a query with the names of another one around it.
  private func inner(_ statement: SelectStatement, _ names: EnclosingScope) throws -> ResolvedQuery {
    var resolver = NameResolver(
      databaseName: databaseName, starColumnName: starColumnName, text: text, size: size)
    resolver.enclosing = names
    try resolver.resolve(statement)
    resolver.query.isCorrelated = !names.captures.isEmpty
    return resolver.query
  }

  private mutating func add(
    _ rows: ResolvedRows, _ form: ResolvedSubquery.Form, _ names: EnclosingScope, isShared: Bool
  ) -> QueryExpression {
    usedNames.formUnion(names.usedNames)
    mentionsDeleted.formUnion(names.mentionsDeleted)
    let subquery = ResolvedSubquery(
      rows: rows, form: form, captureCount: names.captures.count, isShared: isShared)
    return query.add(subquery, captures: names.captures)
  }

  // MARK: WITH

  /// Resolves the names of WITH. Each can use the ones before it.
  mutating func resolveBindings(_ statement: SelectStatement) throws {
    var names: Set<ByteString> = []
    for binding in statement.with {
      guard names.insert(binding.name).inserted else {
        throw failure(
          .duplicateName, "WITH gives the name \"\(binding.name)\" twice", at: binding.position)
      }
      // The table of names is copied when it changes while a scope has it.
      let value = try value(of: binding, isRecursive: statement.isRecursive)
      bindings[binding.name] = value
    }
  }

  private mutating func value(of binding: WithBinding, isRecursive: Bool) throws -> QueryExpression {
    var scope = Scope(bindings: bindings)
    scope.noAggregates = "WITH"
    guard case .subquery(let inner) = binding.value else { return try resolve(binding.value, scope) }
    if isRecursive, let value = try recursive(binding, inner, scope) { return value }
    return try resolve(subquery: inner, .rows, scope, isShared: true)
  }

  /// Resolves a query that may use its own rows. Nil for one that isn't a union, or doesn't use them.
  private mutating func recursive(
    _ binding: WithBinding, _ statement: SelectStatement, _ scope: Scope
  ) throws -> QueryExpression? {
    guard case .combined(let first, .union, let isAll, let next)? = statement.combination else { return nil }
    guard statement.orderBy.isEmpty, statement.limit == nil, statement.offset == nil else {
      throw failure(
        .invalidUse, "a recursive query takes no ORDER BY, LIMIT or OFFSET; use them where its rows are read",
        at: binding.position)
    }
    let names = EnclosingScope(scope, enclosing, recursion: binding.name, size: size)
    let start = try inner(first, names)
    var step = try inner(next, names)
    step.isCorrelated = true
    guard start.isRaw == step.isRaw else {
      throw failure(
        .invalidUse, "both parts of a recursive query are RAW, or none of them", at: binding.position)
    }
    let bounds = RecursionBounds(
      levels: try bound(binding.levels, "levels", binding),
      rows: try bound(binding.rows, "documents", binding))
    let rows = ResolvedRows.recursive(first: .query(start), next: .query(step), isAll: isAll, bounds)
    return add(rows, .rows, names, isShared: true)
  }

  private func bound(_ value: QueryExpression?, _ name: String, _ binding: WithBinding) throws -> Int? {
    guard let value else { return nil }
    guard case .literal(.int(let number)) = value, number >= 0 else {
      throw failure(
        .invalidUse, "\"\(name)\" of OPTIONS is a whole number that isn't negative", at: binding.position)
    }
    return Int(number)
  }

  // MARK: Sets

  /// Resolves UNION, INTERSECT or EXCEPT. The combined rows are the source of a query that orders and limits
  /// them.
  mutating func resolve(_ combination: SetCombination, of statement: SelectStatement) throws {
    let names = EnclosingScope(Scope(bindings: bindings), enclosing, size: size)
    let rows = try resolve(combination, names)
    let items = add(rows, .rows, names, isShared: false)
    let name = InternalName.combination
    query.sources = [ResolvedSource(name: name, kind: .items(items, .cross, on: []))]
    let queries = rows.queries
    query.isRaw = queries.contains(where: \.isRaw)
    if query.isRaw {
      query.columns = [
        ResolvedColumn(name: queries[0].columns[0].name, expression: InternalName.reference(name))
      ]
    } else {
      var known: Set<ByteString> = []
      for column in queries.flatMap(\.columns) where known.insert(column.name).inserted {
        query.columns.append(
          ResolvedColumn(
            name: column.name, expression: .property(PropertyReference([.name(name), .name(column.name)])),
            isNamed: true))
      }
    }
    var scope = Scope(sources: query.sources, bindings: bindings)
    scope.noAggregates = "the ORDER BY of \(combination.operation.rawValue)"
    scope.noWindows = scope.noAggregates
    query.orderBy = try statement.orderBy.flatMap { try resolve($0, scope).terms }
    query.limit = try statement.limit.map { try resolveConstant($0, "LIMIT") }
    query.offset = try statement.offset.map { try resolveConstant($0, "OFFSET") }
  }

  private mutating func resolve(
    _ combination: SetCombination, _ names: EnclosingScope
  ) throws -> ResolvedRows {
    guard case .combined(let left, let operation, let isAll, let right) = combination else {
      return .query(ResolvedQuery())
    }
    func rows(_ operand: SelectStatement) throws -> ResolvedRows {
      if let inner = operand.combination, operand.with.isEmpty, operand.orderBy.isEmpty,
        operand.limit == nil, operand.offset == nil
      {
        return try resolve(inner, names)
      }
      return .query(try inner(operand, names))
    }
    return .combined(try rows(left), operation, isAll: isAll, try rows(right))
  }
}

extension SetCombination {
  var operation: SetOperator {
    switch self {
    case .combined(_, let operation, _, _): operation
    }
  }
}
