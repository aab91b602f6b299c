import Storage

/// What a query inside another one can name of it. It collects what the inner query reads.
final class EnclosingScope {
  /// The names of the outer query, where the inner one is.
  let scope: NameResolver.Scope
  /// The names of the query around the outer one.
  private let outer: EnclosingScope?
  /// What the inner query reads, as expressions of the outer query.
  private(set) var captures: [QueryExpression] = []
  private var captureNumbers: [QueryExpression: Int] = [:]
  /// The sources of the outer query that the inner one names.
  private(set) var usedNames: Set<ByteString> = []
  /// The sources of the outer query whose tombstones the inner one asks for.
  private(set) var mentionsDeleted: Set<ByteString> = []
  /// The name of a recursive query, inside of it.
  private let recursion: ByteString?
  private let size: QuerySize

  init(
    _ scope: NameResolver.Scope, _ outer: EnclosingScope?, recursion: ByteString? = nil, size: QuerySize
  ) {
    self.size = size
    self.scope = scope
    self.outer = outer
    self.recursion = recursion
  }

  /// The value of a path that begins with a name of an outer query. Nil if no outer query has the name.
  func resolve(_ reference: PropertyReference) throws -> QueryExpression? {
    guard case .name(let first)? = reference.steps.first else { return nil }
    if first == recursion {
      return QueryExpression.parameter(InternalName.recursion).stepping(reference.steps.dropFirst())
    }
    guard let found = try named(first, reference) else {
      return try outer?.resolve(reference).map(capture)
    }
    return capture(found)
  }

  private func named(_ first: ByteString, _ reference: PropertyReference) throws -> QueryExpression? {
    if let variable = scope.variables[first] {
      return .property(
        PropertyReference([.name(variable)] + reference.steps.dropFirst(), position: reference.position))
    }
    if let source = scope.sources.first(where: { $0.name == first }) {
      usedNames.insert(first)
      return reference.steps.count == 1 && source.isDocuments
        ? .star(source: SourceName(first, position: reference.position)) : .property(reference)
    }
    if let aliased = scope.aliases[first] {
      try size.count(aliased, at: 0, for: first)
      if aliased.hasAggregates, let clause = scope.noAggregates {
        throw QueryError(.invalidUse, "\"\(first)\" is an aggregate, which isn't allowed in \(clause)")
      }
      return aliased.stepping(reference.steps.dropFirst())
    }
    guard let bound = scope.bindings[first] else { return nil }
    try size.count(bound, at: 0, for: first)
    return bound.stepping(reference.steps.dropFirst())
  }

  /// The metadata of an outer query's source.
  func meta(_ name: SourceName, _ member: MetaProperty?) -> QueryExpression? {
    if let source = scope.sources.first(where: { $0.name == name.name }) {
      guard source.isDocuments else { return nil }
      usedNames.insert(name.name)
      if member == .deleted { mentionsDeleted.insert(name.name) }
      return capture(.meta(source: name, member))
    }
    return outer?.meta(name, member).map(capture)
  }

  /// The property of the outer query's only source of documents, for a query without FROM.
  func property(_ reference: PropertyReference) -> QueryExpression? {
    let sources = scope.propertySources
    guard sources.count == 1 else { return sources.isEmpty ? outer?.property(reference).map(capture) : nil }
    var reference = reference
    reference.steps.insert(.name(sources[0].name), at: 0)
    return capture(.property(reference))
  }

  /// Whether an outer query has a name: a source with an alias, a name of WITH or LET, a variable.
  func hasName(_ name: ByteString) -> Bool {
    name == recursion || scope.variables[name] != nil || scope.sources.contains { $0.name == name }
      || scope.aliases[name] != nil || scope.bindings[name] != nil || outer?.hasName(name) ?? false
  }

  /// Whether WITH gives the name to rows or a value.
  func hasBinding(_ name: ByteString) -> Bool {
    name == recursion || scope.bindings[name] != nil || outer?.hasBinding(name) ?? false
  }

  /// The parameter for a value of the outer query.
  private func capture(_ expression: QueryExpression) -> QueryExpression {
    let number = captureNumbers[expression] ?? captures.count
    if number == captures.count {
      captures.append(expression)
      captureNumbers[expression] = number
    }
    return .parameter(InternalName.capture(number))
  }
}

extension QueryExpression {
  /// The value at the end of a path into this one.
  func stepping(_ steps: some Collection<PathStep>) -> QueryExpression {
    guard !steps.isEmpty else { return self }
    switch self {
    case .property(var path):
      path.steps += steps
      return .property(path)
    case .star(let source?):
      return .property(PropertyReference([.name(source.name)] + steps, position: source.position))
    default: return .member(self, Array(steps))
    }
  }
}
