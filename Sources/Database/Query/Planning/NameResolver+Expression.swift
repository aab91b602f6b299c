import Storage

extension NameResolver {
  /// The canonical form of an expression.
  mutating func resolve(_ expression: QueryExpression, _ scope: Scope) throws -> QueryExpression {
    try size.visit()
    depth += 1
    defer { depth -= 1 }
    switch expression {
    case .property(let reference): return try resolve(reference, scope)
    case .star(let source): return try resolveStar(source, scope)
    case .meta(let source, let member): return try resolveMeta(source, member, scope)
    case .member(let base, let steps):
      let base = try resolve(base, scope)
      // Steps into a path make a longer path.
      guard case .property(var reference) = base else { return .member(base, steps) }
      reference.steps += steps
      return canonical(reference, scope)
    case .quantified(let quantifier, let variable, let collection, let condition):
      let collection = try resolve(collection, scope)
      var inner = scope
      let name = inner.add(variable: variable)
      return .quantified(quantifier, variable: name, in: collection, satisfies: try resolve(condition, inner))
    case .iteration(let iteration): return .iteration(try resolve(iteration, scope))
    case .call(let call): return try resolve(call, scope)
    case .exists(let statement): return try resolve(subquery: statement, .exists, scope)
    case .subquery(let statement): return try resolve(subquery: statement, .rows, scope)
    case .match(let index, let text): return try resolveMatch(index, text, scope)
    case .rank(let index): return .rank(try resolve(index, scope, "RANK"))
    default: return try expression.mappingParts { try resolve($0, scope) }
    }
  }

  @inline(never)
  private mutating func resolve(_ iteration: Iteration, _ scope: Scope) throws -> Iteration {
    var iteration = iteration
    var inner = scope
    for index in iteration.bindings.indices {
      iteration.bindings[index].collection = try resolve(iteration.bindings[index].collection, scope)
      iteration.bindings[index].variable = inner.add(variable: iteration.bindings[index].variable)
      iteration.bindings[index].position = iteration.bindings[index].position.map { inner.add(variable: $0) }
    }
    return try iteration.mapping(collections: { $0 }, inner: { try resolve($0, inner) })
  }

  private mutating func resolve(_ reference: PropertyReference, _ scope: Scope) throws -> QueryExpression {
    guard case .name(let first)? = reference.steps.first else {
      throw failure(.invalidUse, "a path begins with a name", at: reference.position)
    }
    var reference = reference
    if let variable = scope.variables[first] {
      reference.steps[0] = .name(variable)
      return .property(reference)
    }
    if scope.documentName == nil, scope.sources.contains(where: { $0.name == first }) {
      usedNames.insert(first)
      return canonical(reference, scope)
    }
    if let aliased = scope.aliases[first] {
      try size.count(aliased, at: depth, for: first)
      if aliased.hasAggregates, let clause = scope.noAggregates {
        throw failure(
          .invalidUse, "\"\(first)\" is an aggregate, which isn't allowed in \(clause)",
          at: reference.position)
      }
      if aliased.hasWindows, let clause = scope.noWindows {
        throw failure(
          .invalidUse, "\"\(first)\" is a window function, which isn't allowed in \(clause)",
          at: reference.position)
      }
      return aliased.stepping(reference.steps.dropFirst())
    }
    if let bound = scope.bindings[first] {
      try size.count(bound, at: depth, for: first)
      return bound.stepping(reference.steps.dropFirst())
    }
    if let outer = try enclosing?.resolve(reference) { return outer }
    let documents = scope.propertySources
    if scope.sources.isEmpty, query.sources.isEmpty, let outer = enclosing?.property(reference) {
      return outer
    }
    guard let source = documents.first else {
      throw failure(
        .unknownName, "there is no \"\(first)\" here: a property needs a FROM", at: reference.position)
    }
    guard documents.count == 1 else {
      let names = documents.map(\.name.string).joined(separator: ", ")
      throw failure(
        .unknownName,
        "property \"\(first)\" does not begin with a declared 'AS' alias, which are here: \(names)",
        at: reference.position)
    }
    if unprefixedPath == nil, reference.steps.count > 1, case .name = reference.steps[1] {
      unprefixedPath = reference
    }
    reference.steps.insert(.name(source.name), at: 0)
    return .property(reference)
  }

  /// The name of a source alone means the whole document.
  private func canonical(_ reference: PropertyReference, _ scope: Scope) -> QueryExpression {
    guard reference.steps.count == 1, case .name(let name)? = reference.steps.first,
      let source = scope.sources.first(where: { $0.name == name })
    else { return .property(reference) }
    return whole(source, at: reference.position)
  }

  private mutating func resolveStar(_ source: SourceName?, _ scope: Scope) throws -> QueryExpression {
    if let source {
      if let variable = scope.variables[source.name] {
        return .property(PropertyReference([.name(variable)], position: source.position))
      }
      guard let found = scope.sources.first(where: { $0.name == source.name }) else {
        let path = PropertyReference([.name(source.name)], position: source.position)
        if let outer = try enclosing?.resolve(path) { return outer }
        // `geo.*`: the members of a property.
        if scope.propertySources.count == 1 || scope.aliases[source.name] != nil {
          return try resolve(path, scope)
        }
        throw failure(.unknownName, "there is no source \"\(source.name)\"", at: source.position)
      }
      usedNames.insert(source.name)
      return whole(found, at: source.position)
    }
    guard let only = scope.sources.first else { throw failure(.invalidUse, "* needs a FROM") }
    let sources = scope.propertySources
    guard sources.count == 1 else {
      throw failure(.invalidUse, "* inside an expression needs a source's name: \(only.name).*")
    }
    return whole(sources[0], at: SourcePosition())
  }

  private mutating func resolveMeta(_ source: SourceName?, _ member: MetaProperty?, _ scope: Scope) throws
    -> QueryExpression
  {
    let documents = scope.documents
    let found: ResolvedSource
    if let source {
      guard let named = documents.first(where: { $0.name == source.name }) else {
        if !scope.sources.contains(where: { $0.name == source.name }),
          let outer = enclosing?.meta(source, member)
        {
          return outer
        }
        throw failure(
          .unknownName, "META(\(source.name)): there is no source of documents \"\(source.name)\"",
          at: source.position)
      }
      usedNames.insert(source.name)
      found = named
    } else {
      guard let only = documents.first else { throw failure(.invalidUse, "META() needs a FROM") }
      guard documents.count == 1 else {
        throw failure(
          .invalidUse, "META() of several sources needs the name of one: META(\(only.name))")
      }
      found = only
    }
    if member == .deleted { mentionsDeleted.insert(found.name) }
    return .meta(source: SourceName(found.name, position: source?.position ?? SourcePosition()), member)
  }

  private mutating func resolve(_ call: FunctionCall, _ scope: Scope) throws -> QueryExpression {
    if FullTextFunctions.names.contains(call.name) { return try resolveFullTextFunction(call, scope) }
    if call.window != nil { return try resolve(windowed: call, scope) }
    guard AggregateFunctions.names.contains(call.name) else {
      return try QueryExpression.call(call).mappingParts { try resolve($0, scope) }
    }
    if let clause = scope.noAggregates {
      throw failure(
        .invalidUse, "\(call.name) is an aggregate, which isn't allowed in \(clause)", at: call.position)
    }
    guard call.arguments.count == 1, let argument = call.arguments.first else {
      throw failure(.argumentCount, "\(call.name) takes one argument", at: call.position)
    }
    var inner = scope
    inner.noAggregates = "another aggregate"
    var resolved = call
    resolved.filter = try call.filter.map { try resolve($0, inner) }
    if case .star(nil) = argument {
      try checkStar(of: call)
      return .call(resolved)
    }
    resolved.arguments = [try resolve(argument, inner)]
    return .call(resolved)
  }

  /// Throws when an aggregate doesn't take a star.
  func checkStar(of call: FunctionCall) throws {
    guard call.name == "COUNT" else {
      throw failure(.invalidUse, "only COUNT takes *", at: call.position)
    }
    guard !call.isDistinct else {
      throw failure(
        .invalidUse, "COUNT(DISTINCT *) isn't possible; name an expression instead of *", at: call.position)
    }
  }
}
