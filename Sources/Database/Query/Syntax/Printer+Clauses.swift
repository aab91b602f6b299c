// Prints the clauses of queries.

import Storage

extension Printer {
  mutating func put(_ select: SelectStatement) {
    if !select.with.isEmpty {
      put(select.isRecursive ? "WITH RECURSIVE " : "WITH ")
      put(select.with) { $0.put($1) }
      put(" ")
    }
    if let combination = select.combination {
      put(combination)
    } else {
      putBody(select)
    }
    if !select.orderBy.isEmpty {
      put(" ORDER BY ")
      put(select.orderBy) { $0.put($1) }
    }
    put(" LIMIT ", select.limit)
    put(" OFFSET ", select.offset)
  }

  private mutating func putBody(_ select: SelectStatement) {
    put(select.isDistinct ? "SELECT DISTINCT " : "SELECT ")
    if select.isRaw { put("RAW ") }
    put(select.results) { printer, result in
      printer.putResult(result.expression, isRaw: select.isRaw)
      printer.put(alias: result.alias)
    }
    if !select.excluded.isEmpty {
      put(" EXCLUDE ")
      put(select.excluded) { $0.write($1.steps) }
    }
    if let source = select.source {
      put(" FROM ")
      put(source)
    }
    for join in select.joins { put(join) }
    put(" LET ", select.lets)
    put(" WHERE ", select.condition)
    if !select.groupBy.isEmpty {
      put(" GROUP BY ")
      if select.groupingSets.isEmpty {
        put(Array(select.groupBy.enumerated())) { printer, term in
          printer.put(term.element)
          printer.put(alias: select.groupNames[term.offset])
        }
      } else {
        put(groupingSets: select.groupingSets, of: select.groupBy)
      }
    }
    if let name = select.groupArray {
      put(" GROUP AS ")
      put(name: name)
    }
    put(" LETTING ", select.letting)
    put(" HAVING ", select.having)
    put(windows: select.windows)
  }

  /// Prints the expression of a result. After RAW, parentheses keep it from being parsed as a part of an
  /// expression that begins with a property of that name.
  mutating func putResult(_ expression: QueryExpression, isRaw: Bool) {
    let text = rendered(expression, atLeast: .collate)
    let mayFollowRaw = text.first.map { $0.isLetter || "'\"`$_{".contains($0) || $0.isNumber } ?? false
    put(isRaw && (!mayFollowRaw || text.hasPrefix("NOT ")) ? "(\(text))" : text)
  }

  private mutating func put(_ combination: SetCombination) {
    guard case .combined(let left, let operation, let isAll, let right) = combination else { return }
    putOperand(left, isParenthesized: left.combination == nil ? false : left.hasEnd)
    put(" \(operation.rawValue) ")
    if isAll { put("ALL ") }
    putOperand(right, isParenthesized: right.combination != nil)
  }

  private mutating func putOperand(_ select: SelectStatement, isParenthesized: Bool) {
    let needed = isParenthesized || select.hasEnd || !select.with.isEmpty
    if needed { put("(") }
    put(select)
    if needed { put(")") }
  }

  private mutating func put(_ binding: WithBinding) {
    put(name: binding.name)
    put(" AS ")
    if case .subquery = binding.value {
      put(binding.value)
    } else {
      put("(")
      put(binding.value)
      put(")")
    }
    let options = [("levels", binding.levels), ("documents", binding.rows)]
    let members = options.compactMap { name, value in value.map { ObjectMember(name, $0) } }
    if !members.isEmpty {
      put(" OPTIONS ")
      put(.object(members))
    }
  }

  private mutating func put(_ clause: String, _ bindings: [LetBinding]) {
    guard !bindings.isEmpty else { return }
    put(clause)
    put(bindings) { printer, binding in
      printer.put(name: binding.name)
      printer.put(" = ")
      printer.put(binding.value)
    }
  }

  mutating func put(_ clause: String, _ expression: QueryExpression?) {
    guard let expression else { return }
    put(clause)
    put(expression)
  }

  mutating func put(alias: ByteString?) {
    guard let alias else { return }
    put(" AS ")
    put(name: alias)
  }

  mutating func put(_ source: DataSource) {
    switch source.content {
    case .named where source.alias != nil && SystemKeyspace(parameter: source.name) != nil:
      put(source.name.string)
    case .named: put(name: source.name)
    case .items(let items):
      let text = rendered(items, atLeast: .collate)
      // A call, a literal or an operator needs parentheses here. A path doesn't, and a query has its own.
      if case .property(let path) = items, path.steps.count > 1 {
        put(text)
      } else if case .subquery = items {
        put(text)
      } else {
        put("(" + text + ")")
      }
    }
    put(alias: source.alias)
    if !source.indexes.isEmpty {
      put(" USE INDEX (")
      put(source.indexes) { $0.put(name: $1) }
      put(")")
    }
    put(" USE KEYS ", source.keys)
  }

  private mutating func put(_ join: JoinClause) {
    switch join {
    case .join(let kind, let source, let condition):
      put(kind == .inner ? " JOIN " : " \(kind.rawValue) JOIN ")
      put(source)
      put(" ON ", condition)
    case .nest(let source, let condition, let isLeftOuter):
      put(isLeftOuter ? " LEFT OUTER NEST " : " NEST ")
      put(source)
      put(" ON ", condition)
    case .unnest(let array, let alias, let isLeftOuter):
      put(isLeftOuter ? " LEFT OUTER UNNEST " : " UNNEST ")
      put(array)
      put(alias: alias)
    }
  }
}

extension SelectStatement {
  /// Whether it has an ORDER BY, LIMIT or OFFSET.
  fileprivate var hasEnd: Bool { !orderBy.isEmpty || limit != nil || offset != nil }
}
