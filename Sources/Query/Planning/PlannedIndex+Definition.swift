import Storage

extension PlannedIndex {
  /// Creates the planner's form of an index. Nil for an index that plans can't use.
  init?(_ definition: ValueIndexDefinition, _ reader: ValueIndexReader) throws {
    var resolver = NameResolver(databaseName: "_", text: nil)
    var scope = NameResolver.Scope()
    // Every path of a definition belongs to the document. None begins with the name of a source.
    scope.documentName = "_"
    scope.sources = [ResolvedSource(name: "_", kind: .documents(.cross, on: []))]
    if let unnest = definition.unnest {
      let array = try resolver.resolve(unnest.array, scope)
      self.init(
        name: ByteString(reader.name), keys: [], condition: [], unnest: (array, unnest.item), entries: 0)
      scope.variables[unnest.item] = unnest.item
    } else {
      self.init(name: ByteString(reader.name), keys: [], condition: [], unnest: nil, entries: 0)
    }
    for expression in definition.expressions {
      // The index orders text by its bytes, not by a COLLATE.
      if expression.hasCollation { return nil }
      keys.append(try resolver.resolve(expression, scope))
    }
    condition = try definition.condition.map { try resolver.resolve($0, scope).conjuncts } ?? []
    hasObjects = reader.hasObjects
    entries = reader.count
    entriesPerPrefix = reader.entriesPerPrefix
    handle = reader.handle
  }
}

extension QueryExpression {
  /// Whether it contains a COLLATE.
  fileprivate var hasCollation: Bool {
    if case .collate = self { return true }
    var found = false
    forEachPart { if $0.hasCollation { found = true } }
    return found
  }
}
