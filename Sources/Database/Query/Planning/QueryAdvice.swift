// What ADVISE answers.

import Storage

/// For each source of documents of a query and of its inner queries: the index that it uses, or a CREATE INDEX that would help.
struct QueryAdvice {
  /// One line for each source.
  private(set) var lines: [String] = []

  init(_ compiled: CompiledQuery) { add(compiled) }

  private mutating func add(_ compiled: CompiledQuery) {
    let plan = compiled.plan
    if case .documentCount? = plan.grouping, let source = plan.query.sources.first {
      lines.append("\(source.name): needs no index, because the number of documents is known")
      return
    }
    var bound: Set<ByteString> = []
    for step in plan.steps {
      if step.source.isDocuments {
        lines.append("\(step.source.name): " + Self.advice(on: step.access, step, plan, bound))
      }
      bound.insert(step.source.name)
    }
    for subquery in compiled.subqueries {
      for query in subquery.rows.queries { add(query) }
    }
  }

  private static func advice(
    on access: AccessPath, _ step: PlanStep, _ plan: QueryPlan, _ bound: Set<ByteString>
  ) -> String {
    switch access {
    case .index(let access): return "uses the index \(access.index.name)"
    case .fullText(let access): return "uses the full-text index \(access.match.index.name)"
    case .identifiers: return "finds documents by their IDs"
    case .union(let paths):
      return paths.map { advice(on: $0, step, plan, bound) }.joined(separator: "; ")
    case .unnest, .items, .value: return "reads no documents"
    case .documents, .hash:
      guard let index = helpfulIndex(step.source, plan, bound) else {
        return "no index helps, because no condition compares its properties with a value"
      }
      return index.description
    }
  }

  /// The statement that makes an index for the conditions on a source: equalities first, then one range, or the order.
  private static func helpfulIndex(
    _ source: ResolvedSource, _ plan: QueryPlan, _ bound: Set<ByteString>
  ) -> IndexStatement? {
    let conditions = plan.query.conditions + source.on
    let terms = conditions.enumerated().flatMap { number, condition in
      condition.keyTerms(of: source.name, bound: bound, conjunct: number)
    }
    func isEquality(_ term: KeyTerm) -> Bool {
      if case .anyOf = term.condition { true } else { term.condition.isEquality }
    }
    var keys: [QueryExpression] = []
    func add(_ key: QueryExpression) {
      let own = key.withoutSource(source.name)
      guard !keys.contains(own), keys.count < ValueIndexDefinition.maximumExpressions,
        (try? ValueIndexDefinition([own]).check()) != nil
      else { return }
      keys.append(own)
    }
    for term in terms where isEquality(term) { add(term.key) }
    if let range = terms.first(where: { !isEquality($0) }) {
      add(range.key)
    } else if !plan.query.isGrouped, !keys.isEmpty || plan.query.limit != nil,
      plan.query.orderBy.allSatisfy({ $0.expression.reads(only: source.name) })
    {
      for ordering in plan.query.orderBy { add(ordering.expression) }
    }
    var definition = ValueIndexDefinition(keys)
    if keys.isEmpty {
      guard let array = arrayIndex(conditions, source, bound) else { return nil }
      definition = array
    }
    let words = definition.expressions.map(\.description).joined(separator: "_")
    let name = "adv_" + words.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? String($0) : "_" }.joined()
    return IndexStatement(
      action: .create(ByteString(name), definition, unlessExists: false), source: SourceName("_"))
  }

  /// An index for `ANY v IN array SATISFIES v.x = value END`.
  private static func arrayIndex(
    _ conditions: [QueryExpression], _ source: ResolvedSource, _ bound: Set<ByteString>
  ) -> ValueIndexDefinition? {
    for condition in conditions {
      guard case .quantified(.any, let variable, let array, let test) = condition,
        array.reads(only: source.name)
      else { continue }
      let terms = test.conjuncts.flatMap { $0.keyTerms(of: variable, bound: bound, conjunct: 0) }
      guard let key = terms.first?.key else { continue }
      let definition = ValueIndexDefinition(
        [key], unnest: .init(array.withoutSource(source.name), as: variable))
      if (try? definition.check()) != nil { return definition }
    }
    return nil
  }
}

extension QueryExpression {
  /// The same expression for the only source.
  fileprivate func withoutSource(_ name: ByteString) -> QueryExpression {
    switch self {
    case .property(var path):
      guard path.steps.count > 1, path.steps[0] == .name(name) else { return self }
      path.steps.removeFirst()
      return .property(path)
    case .meta(_, let member): return .meta(source: nil, member)
    default: return mappingParts { $0.withoutSource(name) }
    }
  }
}
