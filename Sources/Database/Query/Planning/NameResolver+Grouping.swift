// Resolves grouping sets.
//
// A query with sets groups each row once for every set. So the numbers of the sets are the items of one more source,
// which no query can name, and the last key of the groups. A key that isn't in the set of a group is null there: it
// becomes a CASE over that number, wherever it stands outside of aggregates. GROUPING is another such CASE.

import Storage

extension InternalName {
  /// The source of the numbers of grouping sets.
  static let groupingSet: ByteString = "\u{1}set"
}

extension NameResolver {
  /// Replaces the keys of the groups in all results. Returns the new keys.
  mutating func resolveGroupingSets(
    _ statement: SelectStatement, _ keys: [QueryExpression]
  ) throws -> [QueryExpression] {
    let sets = statement.groupingSets
    guard !query.sources.isEmpty else { throw failure(.invalidUse, "grouping sets need a FROM") }
    guard sets.count <= GroupingSets.most, !keys.isEmpty,
      sets.allSatisfy({ $0.allSatisfy(keys.indices.contains) })
    else {
      throw failure(
        .invalidUse, "a query has at most \(GroupingSets.most) grouping sets, of the expressions of GROUP BY")
    }
    query.emptyGroupingSets = sets.indices.filter { sets[$0].isEmpty }
    let number = InternalName.reference(InternalName.groupingSet)
    var source = ResolvedSource(
      name: InternalName.groupingSet,
      kind: .unnest(.array(sets.indices.map { .literal(.int(Int64($0))) }), isLeftOuter: false))
    source.isHidden = true
    query.sources.append(source)

    var grouped = GroupedKeys(keys: keys, sets: sets, number: number)
    for (index, key) in keys.enumerated() {
      let (plain, collation) = key.uncollated
      let inSets = sets.indices.filter { sets[$0].contains(index) }
      guard inSets.count < sets.count else { continue }
      let isGrouped = QueryExpression.contained(
        number, in: .array(inSets.map { .literal(.int(Int64($0))) }), negated: false)
      let value = QueryExpression.conditional(
        operand: nil, branches: [ConditionalBranch(when: isGrouped, then: plain)], otherwise: nil)
      grouped.replaced[plain] = value
      grouped.replaced[key] = collation.map { .collate(value, $0) } ?? value
    }
    for index in query.columns.indices {
      query.columns[index].expression = try grouped.mapping(query.columns[index].expression, self)
    }
    query.having = try query.having.map { try grouped.mapping($0, self) }
    for index in query.orderBy.indices {
      query.orderBy[index].expression = try grouped.mapping(query.orderBy[index].expression, self)
    }
    return keys.map { grouped.replaced[$0] ?? $0 } + [number]
  }
}

/// The keys of groups by sets.
private struct GroupedKeys {
  var keys: [QueryExpression]
  var sets: [[Int]]
  /// The number of a group's set.
  var number: QueryExpression
  /// What keys become that aren't in all sets.
  var replaced: [QueryExpression: QueryExpression] = [:]

  /// An expression of a group.
  func mapping(_ expression: QueryExpression, _ resolver: NameResolver) throws -> QueryExpression {
    if let other = replaced[expression] { return other }
    if case .call(let call) = expression, call.window == nil {
      // An aggregate reads the rows of the group, in which the key has its value.
      if AggregateFunctions.names.contains(call.name) { return expression }
      if call.name == "GROUPING" { return try grouping(call, resolver) }
    }
    return try expression.mappingParts { try mapping($0, resolver) }
  }

  /// The bits of GROUPING: 1 for an argument that isn't in the group's set. The last argument has the lowest bit.
  private func grouping(_ call: FunctionCall, _ resolver: NameResolver) throws -> QueryExpression {
    let arguments = try call.arguments.map { argument -> Int in
      guard let key = keys.firstIndex(where: { $0 == argument || $0.uncollated.operand == argument }) else {
        throw resolver.failure(.invalidUse, "GROUPING takes expressions of GROUP BY", at: call.position)
      }
      return key
    }
    let branches = sets.enumerated().map { index, set in
      let bits = arguments.reduce(0 as Int64) { $0 << 1 | (set.contains($1) ? 0 : 1) }
      return ConditionalBranch(when: .literal(.int(Int64(index))), then: .literal(.int(bits)))
    }
    return .conditional(operand: number, branches: branches, otherwise: nil)
  }
}
