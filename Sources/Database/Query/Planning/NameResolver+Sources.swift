// Resolves FROM, LET, the names of GROUP BY, and EXCLUDE.

import Storage

extension NameResolver {
  mutating func resolveSources(_ statement: SelectStatement) throws {
    guard let first = statement.source else {
      guard statement.joins.isEmpty else { throw failure(.invalidUse, "a JOIN needs a FROM") }
      return
    }
    try add(first, .cross, on: nil)
    for clause in statement.joins {
      switch clause {
      case .join(let kind, let source, let condition):
        guard condition != nil || kind == .cross else {
          throw failure(.invalidUse, "a JOIN needs ON, unless it is a CROSS JOIN", at: source.position)
        }
        guard condition == nil || kind != .cross else {
          throw failure(.invalidUse, "a CROSS JOIN takes no ON", at: source.position)
        }
        try add(source, kind, on: condition)
      case .nest(let source, let condition, let isLeftOuter):
        try nest(source, condition, isLeftOuter: isLeftOuter)
      case .unnest(let expression, let alias, let isLeftOuter):
        var scope = Scope(sources: query.sources, bindings: bindings)
        scope.noAggregates = "UNNEST"
        let resolved = try resolve(expression, scope)
        try checkUnused(alias, SourcePosition())
        query.sources.append(
          ResolvedSource(name: alias, kind: .unnest(resolved, isLeftOuter: isLeftOuter)))
      }
    }
  }

  /// Adds a source, and the conditions of its ON.
  private mutating func add(_ source: DataSource, _ kind: JoinKind, on condition: QueryExpression?) throws {
    let name = source.ownName
    let items = try items(of: source)
    if kind.keepsUnmatched, items?.isConstant == false {
      throw failure(
        .invalidUse, "the rows of a \(kind.rawValue) JOIN can't depend on the sources before it",
        at: source.position)
    }
    try checkUnused(name, source.position)
    var resolved = ResolvedSource(
      name: name, kind: items.map { .items($0, kind, on: []) } ?? .documents(kind, on: []))
    resolved.indexes = source.indexes
    query.sources.append(resolved)
    var scope = Scope(sources: query.sources, bindings: bindings)
    scope.noAggregates = "ON"
    var on = try condition.map { try resolve($0, scope).conjuncts } ?? []
    if let keys = source.keys {
      scope.noAggregates = "USE KEYS"
      var keyScope = scope
      keyScope.sources.removeLast()
      let keys = try resolve(keys, keyScope)
      let id = QueryExpression.meta(source: SourceName(name), .id)
      let isKey = QueryExpression.contained(id, in: keys.asArray, negated: false)
      if kind == .cross { query.conditions.append(isKey) } else { on.append(isKey) }
    }
    query.sources[query.sources.count - 1].kind =
      items.map { .items($0, kind, on: on) } ?? .documents(kind, on: on)
  }

  /// The array whose items are the rows of a source. Nil for the documents of the database.
  private mutating func items(of source: DataSource) throws -> QueryExpression? {
    var scope = Scope(sources: query.sources, bindings: bindings)
    scope.noAggregates = "FROM"
    switch source.content {
    case .items(.subquery(let statement)): return try resolve(subquery: statement, .rows, scope)
    case .items(.property(let path)) where !isKnown(path, scope):
      throw failure(
        .unsupported, "scopes and collections aren't supported; a source is _ or the name of the database",
        at: path.position)
    case .items(let items): return try resolve(items, scope)
    case .named: break
    }
    if let keyspace = try SystemKeyspace.named(source.name, at: source.position, in: text) {
      guard source.keys == nil else {
        throw failure(.invalidUse, "USE KEYS needs a source of documents", at: source.position)
      }
      return .parameter(ByteString(keyspace.name))
    }
    let path = PropertyReference([.name(source.name)], position: source.position)
    if bindings[source.name] != nil || enclosing?.hasBinding(source.name) ?? false {
      return try resolve(.property(path), Scope(bindings: bindings))
    }
    let known: [ByteString] = ["_", "_default", "_default._default", ByteString(databaseName)]
    if known.contains(source.name) { return nil }
    if isKnown(path, scope) { return try resolve(.property(path), scope) }
    throw failure(
      .unknownName,
      "there is no source \"\(source.name)\"; the source for the documents of the database is _ or \(databaseName)",
      at: source.position)
  }

  /// Whether the path of a source begins with a name that is known here.
  private func isKnown(_ path: PropertyReference, _ scope: Scope) -> Bool {
    guard case .name(let first)? = path.steps.first else { return false }
    return scope.sources.contains { $0.name == first } || scope.bindings[first] != nil
      || enclosing?.hasName(first) ?? false
  }

  /// NEST makes one array of the matches of a row: the rows of a query for that row.
  private mutating func nest(_ source: DataSource, _ condition: QueryExpression, isLeftOuter: Bool) throws {
    let name = source.ownName
    try checkUnused(name, source.position)
    var matches = SelectStatement(
      results: [ResultColumn(.star(source: SourceName(name)), as: nil)], source: source, condition: condition)
    matches.isRaw = true
    let array = try resolve(
      subquery: matches, .rows, Scope(sources: query.sources, bindings: bindings))
    query.sources.append(ResolvedSource(name: name, kind: .value(array)))
    guard !isLeftOuter else { return }
    let count = QueryExpression.call(FunctionCall("ARRAY_LENGTH", [InternalName.reference(name)]))
    query.conditions.append(.binary(.greater, count, .literal(.int(0))))
  }

  // MARK: LET

  /// Resolves LET. A value that is cheap to compute is computed where its name is used, so that an index can
  /// serve conditions on it. Another one is computed once for each row.
  mutating func resolveLets(_ statement: SelectStatement) throws -> [ByteString: QueryExpression] {
    var scope = Scope(sources: query.sources, bindings: bindings)
    scope.noAggregates = "LET"
    for binding in statement.lets {
      guard scope.aliases[binding.name] == nil else {
        throw failure(.duplicateName, "LET gives the name \"\(binding.name)\" twice", at: binding.position)
      }
      try checkUnused(binding.name, binding.position)
      let value = try resolve(binding.value, scope)
      if value.isCheap {
        scope.aliases[binding.name] = value
      } else {
        var source = ResolvedSource(name: binding.name, kind: .value(value))
        source.isHidden = true
        query.sources.append(source)
        scope.sources = query.sources
        scope.aliases[binding.name] = InternalName.reference(binding.name)
      }
    }
    return scope.aliases
  }

  /// The names that can be used in results: those of LET, GROUP BY, GROUP AS and LETTING.
  mutating func resolveGroups(
    _ statement: SelectStatement, _ lets: [ByteString: QueryExpression]
  ) throws -> [ByteString: QueryExpression] {
    var names = lets
    var scope = Scope(sources: query.sources, aliases: lets, bindings: bindings)
    scope.noAggregates = "GROUP BY"
    for (number, name) in statement.groupNames {
      guard statement.groupBy.indices.contains(number) else { continue }
      names[name] = try resolve(statement.groupBy[number], scope)
    }
    if let name = statement.groupArray {
      let members = scope.visibleSources.map { ObjectMember($0.name, whole($0, at: SourcePosition())) }
      names[name] = .call(FunctionCall("ARRAY_AGG", [.object(members)]))
    }
    scope.noAggregates = nil
    scope.aliases = names
    for binding in statement.letting {
      let value = try resolve(binding.value, scope)
      scope.aliases[binding.name] = value
    }
    return scope.aliases
  }

  // MARK: EXCLUDE

  /// Leaves paths out of the results. A path begins with the name of a column, or is a property of a source
  /// of which `*` is a column.
  mutating func exclude(_ statement: SelectStatement) throws {
    guard !statement.excluded.isEmpty else { return }
    var paths: [Int: [[ByteString]]] = [:]
    var removed: Set<Int> = []
    let scope = Scope(sources: query.sources, bindings: bindings)
    for path in statement.excluded {
      let names = path.steps.compactMap(\.name)
      if !statement.isRaw, let column = query.columns.firstIndex(where: { $0.name == names[0] }) {
        if names.count == 1 {
          removed.insert(column)
        } else {
          paths[column, default: []].append(Array(names.dropFirst()))
        }
        continue
      }
      guard case .property(let property) = try resolve(.property(path), scope),
        case .name(let source)? = property.steps.first
      else { continue }
      for (number, column) in query.columns.enumerated() where column.isWhole(source) {
        paths[number, default: []].append(property.steps.dropFirst().compactMap(\.name))
      }
    }
    for (column, paths) in paths {
      query.columns[column].expression = InternalName.without(query.columns[column].expression, paths)
    }
    guard removed.count < query.columns.count else {
      throw failure(.invalidUse, "EXCLUDE leaves no column")
    }
    query.columns = query.columns.enumerated().filter { !removed.contains($0.offset) }.map(\.element)
  }
}

extension ResolvedColumn {
  /// Whether it is the whole row of a source.
  fileprivate func isWhole(_ source: ByteString) -> Bool {
    switch expression {
    case .star(let name): name?.name == source
    case .property(let path): path.steps == [.name(source)]
    default: false
    }
  }
}

extension QueryExpression {
  /// An array of this value, unless it is one.
  fileprivate var asArray: QueryExpression {
    switch self {
    case .array: self
    case .literal(.string): .array([self])
    default: .call(FunctionCall("TOARRAY", [self]))
    }
  }

  /// Whether computing it several times costs less than keeping it: it has no query, and no function whose
  /// value changes.
  fileprivate var isCheap: Bool {
    !hasSubqueries
      && !hasParts { part in
        guard case .call(let call) = part, !AggregateFunctions.names.contains(call.name) else { return false }
        return part.callVolatility == .call
      }
  }
}
