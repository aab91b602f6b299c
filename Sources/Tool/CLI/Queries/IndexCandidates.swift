import Query
import Storage
import Touchstone

/// The indexes that might help a query, from its conditions and its order. Whether they do is measured.
struct IndexCandidates {
  /// Each once, the likeliest first.
  private(set) var definitions: [ValueIndexDefinition] = []

  /// The most candidates of a query.
  private static let most = 8
  /// The most expressions of a candidate that contains all that a query reads.
  private static let mostCovering = 5

  /// What a condition needs of an index.
  private enum Use {
    case equality, range
  }

  private let statement: SelectStatement
  private let sources: [(name: ByteString, alias: ByteString)]
  private let items: [(name: ByteString, array: QueryExpression)]
  private let aliases: [ByteString: QueryExpression]

  init(_ statement: SelectStatement) {
    self.statement = statement
    var sources: [(ByteString, ByteString)] = []
    var items: [(ByteString, QueryExpression)] = []
    var conditions = statement.condition.map(Self.conjuncts) ?? []
    func add(_ source: DataSource) {
      // Items of an array aren't documents.
      if source.content == .named { sources.append((source.name, source.alias ?? source.name)) }
    }
    statement.source.map(add)
    for join in statement.joins {
      switch join {
      case .join(_, let source, let on):
        add(source)
        if let on { conditions += Self.conjuncts(on) }
      case .nest(let source, let on, _):
        add(source)
        conditions += Self.conjuncts(on)
      case .unnest(let array, let name, _): items.append((name, array))
      }
    }
    self.sources = sources
    self.items = items
    aliases = Dictionary(
      statement.results.compactMap { result in result.alias.map { ($0, result.expression) } },
      uniquingKeysWith: { first, _ in first })
    for source in sources { addDocuments(source.1, conditions) }
    for (name, array) in items { addArray(array, as: name, conditions) }
    for condition in conditions { addQuantified(condition) }
    definitions = Array(definitions.prefix(Self.most))
  }

  // MARK: Documents

  private mutating func addDocuments(_ source: ByteString, _ conditions: [QueryExpression]) {
    var equal: [QueryExpression] = []
    var ranges: [QueryExpression] = []
    for condition in conditions {
      guard let (side, use) = Self.comparison(condition, { self.local($0, source) }) else { continue }
      switch use {
      case .equality: if !equal.contains(side) { equal.append(side) }
      case .range: if !ranges.contains(side) { ranges.append(side) }
      }
    }
    let isFirst = source == sources.first?.alias
    let order = isFirst ? keys(statement.orderBy.map(\.expression), source) : []
    let groups = isFirst ? keys(statement.groupBy, source) : []
    let equalAndRange = equal + (ranges.first.map { [$0] } ?? [])
    add(equalAndRange)
    add(equal + order.filter { !equal.contains($0) })
    add(equal + groups.filter { !equal.contains($0) })
    if sources.count == 1, items.isEmpty, !equalAndRange.isEmpty, let read = readExpressions(source) {
      let first = order.isEmpty ? equalAndRange : equal + order + ranges.prefix(1)
      let covering = first + read.filter { !first.contains($0) }
      if covering.count <= Self.mostCovering { add(covering) }
    }
    for key in equal + ranges { add([key]) }
  }

  /// The expressions in terms of a document; empty if one of them isn't.
  private func keys(_ expressions: [QueryExpression], _ source: ByteString) -> [QueryExpression] {
    let found = expressions.compactMap { expression -> QueryExpression? in
      if case .property(let path) = expression, path.steps.count == 1, case .name(let name) = path.steps[0],
        let meant = aliases[name]
      {
        return local(meant, source)
      }
      return local(expression, source)
    }
    return found.count == expressions.count ? found : []
  }

  /// The paths that the query reads, if it reads nothing but paths of the document.
  private func readExpressions(_ source: ByteString) -> [QueryExpression]? {
    var paths: [QueryExpression] = []
    let all =
      statement.results.map(\.expression) + statement.groupBy + statement.orderBy.map(\.expression)
      + [statement.condition, statement.having].compactMap { $0 }
    for expression in all {
      guard let used = Self.paths(expression) else { return nil }
      for path in used {
        guard let path = keys([path], source).first else { return nil }
        if !paths.contains(path) { paths.append(path) }
      }
    }
    return paths
  }

  // MARK: Arrays

  private mutating func addArray(
    _ array: QueryExpression, as item: ByteString, _ conditions: [QueryExpression]
  ) {
    guard let source = sources.first?.alias, let array = local(array, source) else { return }
    let found = conditions.compactMap { condition in Self.comparison(condition) { Self.ofItem($0, item) } }
    let keys = found.filter { $0.use == .equality } + found.filter { $0.use == .range }
    add(keys.map(\.side), unnest: .init(array, as: item))
    for key in keys { add([key.side], unnest: .init(array, as: item)) }
  }

  private mutating func addQuantified(_ condition: QueryExpression) {
    guard case .quantified(let quantifier, let variable, let collection, let test) = condition,
      quantifier != .every, let source = sources.first?.alias, let array = local(collection, source)
    else { return }
    let found = Self.conjuncts(test).compactMap { part in Self.comparison(part) { Self.ofItem($0, variable) }
    }
    add(found.map(\.side), unnest: .init(array, as: variable))
  }

  private mutating func add(_ keys: [QueryExpression], unnest: ValueIndexDefinition.Unnest? = nil) {
    let definition = ValueIndexDefinition(keys, unnest: unnest)
    guard !keys.isEmpty, Set(keys).count == keys.count, !definitions.contains(definition),
      (try? definition.check()) != nil
    else { return }
    definitions.append(definition)
  }

  // MARK: Expressions

  private static func conjuncts(_ expression: QueryExpression) -> [QueryExpression] {
    if case .binary(.and, let left, let right) = expression { return conjuncts(left) + conjuncts(right) }
    return [expression]
  }

  /// The side of a condition that `find` accepts, if the other one doesn't depend on it.
  private static func comparison(
    _ condition: QueryExpression, _ find: (QueryExpression) -> QueryExpression?
  ) -> (side: QueryExpression, use: Use)? {
    switch condition {
    case .binary(let binary, let left, let right):
      let use: Use
      switch binary {
      case .equal, .identical: use = .equality
      case .less, .lessOrEqual, .greater, .greaterOrEqual: use = .range
      default: return nil
      }
      let sides = [(left, right), (right, left)]
      for (side, other) in sides where find(other) == nil {
        if let found = find(side) { return (found, use) }
      }
      return nil
    case .contained(let side, in: let collection, negated: false) where find(collection) == nil:
      return find(side).map { ($0, .equality) }
    case .between(let side, _, _, negated: false), .like(let side, _, negated: false):
      return find(side).map { ($0, .range) }
    case .test(let side, .null, negated: false), .test(let side, .missing, negated: false):
      return find(side).map { ($0, .equality) }
    default: return nil
    }
  }

  /// An expression about documents of one source, with paths that begin at the document; nil for any other, and for constants.
  private func local(_ expression: QueryExpression, _ source: ByteString) -> QueryExpression? {
    let isAlone = sources.count == 1
    return Self.mapping(expression) { steps in
      guard case .name(let first) = steps[0] else { return nil }
      if first == source { return steps.count > 1 ? Array(steps.dropFirst()) : nil }
      let isOther =
        sources.contains { $0.alias == first } || items.contains { $0.name == first }
      return isAlone && !isOther ? steps : nil
    }
  }

  /// An expression about the items of an array; nil for any other.
  private static func ofItem(_ expression: QueryExpression, _ item: ByteString) -> QueryExpression? {
    mapping(expression) { steps in steps[0] == .name(item) ? steps : nil }
  }

  /// The expression with other paths. Nil if `change` has none for a path, if there is no path, and for expressions that are
  /// neither paths nor functions of paths and literals.
  private static func mapping(
    _ expression: QueryExpression, _ change: ([PathStep]) -> [PathStep]?
  ) -> QueryExpression? {
    switch expression {
    case .property(let path): return change(path.steps).map { .property(PropertyReference($0)) }
    case .call(var call):
      var hasPath = false
      var arguments: [QueryExpression] = []
      for argument in call.arguments {
        if case .literal = argument {
          arguments.append(argument)
        } else if let mapped = mapping(argument, change) {
          hasPath = true
          arguments.append(mapped)
        } else {
          return nil
        }
      }
      call.arguments = arguments
      return hasPath ? .call(call) : nil
    default: return nil
    }
  }

  /// The paths in an expression. Nil if it reads anything else of a document.
  private static func paths(_ expression: QueryExpression) -> [QueryExpression]? {
    func all(_ parts: [QueryExpression]) -> [QueryExpression]? {
      var found: [QueryExpression] = []
      for part in parts {
        guard let paths = paths(part) else { return nil }
        found += paths
      }
      return found
    }
    switch expression {
    case .property: return [expression]
    case .literal, .parameter, .meta(_, .id): return []
    case .call(let call) where call.arguments == [.star(source: nil)]: return []
    case .call(let call): return all(call.arguments)
    case .unary(_, let operand), .test(let operand, _, _): return all([operand])
    case .binary(_, let left, let right): return all([left, right])
    case .between(let operand, let lower, let upper, _): return all([operand, lower, upper])
    case .contained(let operand, let collection, _): return all([operand, collection])
    case .like(let operand, let pattern, _): return all([operand, pattern])
    case .array(let items): return all(items)
    default: return nil
    }
  }
}
