import Storage

extension PlannedIndex {
  /// Creates the planner's form of an index. Nil for an index that plans can't use.
  init?(_ definition: ValueIndexDefinition, _ reader: ValueIndexReader) throws {
    var resolver = NameResolver(databaseName: "_", text: nil)
    var scope = NameResolver.Scope()
    // Every path of a definition belongs to the document. None begins with the name of a source.
    scope.documentName = "_"
    scope.sources = [ResolvedSource(name: "_", kind: .documents(.cross, on: []))]
    self.init(name: ByteString(reader.name), keys: [], condition: [], unnest: nil, entries: reader.count)
    if let definition = definition.unnest {
      unnest = (try resolver.resolve(definition.array, scope), definition.item)
      scope.variables[definition.item] = definition.item
    }
    for expression in definition.expressions {
      // The index orders text by its bytes, not by a COLLATE.
      if expression.hasParts(\.isCollated) { return nil }
      keys.append(try resolver.resolve(expression, scope))
    }
    condition = try definition.condition.map { try resolver.resolve($0, scope).conjuncts } ?? []
    hasObjects = reader.hasObjects
    entriesPerPrefix = reader.entriesPerPrefix
    handle = reader.handle
  }
}
