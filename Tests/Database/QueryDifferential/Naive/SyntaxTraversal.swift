import Query
import Storage

// Ways through syntax trees, for the naive evaluator and the shrinker.

extension QueryExpression {
  /// The expressions it is made of.
  var parts: [QueryExpression] {
    switch self {
    case .literal, .parameter, .property, .star, .meta, .rank, .exists, .subquery: []
    case .member(let base, _): [base]
    case .array(let items): items
    case .object(let members): members.map(\.value)
    case .unary(_, let operand): [operand]
    case .binary(_, let left, let right): [left, right]
    case .test(let operand, _, _): [operand]
    case .between(let operand, let lower, let upper, _): [operand, lower, upper]
    case .contained(let operand, let collection, _): [operand, collection]
    case .like(let operand, let pattern, _): [operand, pattern]
    case .conditional(let operand, let branches, let otherwise):
      (operand.map { [$0] } ?? []) + branches.flatMap { [$0.condition, $0.result] }
        + (otherwise.map { [$0] } ?? [])
    case .quantified(_, _, let collection, let condition): [collection, condition]
    case .call(let call): call.arguments
    case .match(_, let text): [text]
    case .collate(let operand, _): [operand]
    }
  }

  /// The same with other parts, as many.
  func replacing(parts new: [QueryExpression]) -> QueryExpression {
    switch self {
    case .literal, .parameter, .property, .star, .meta, .rank, .exists, .subquery: return self
    case .member(_, let steps): return .member(new[0], steps)
    case .array: return .array(new)
    case .object(let members): return .object(zip(members, new).map { ObjectMember($0.name, $1) })
    case .unary(let sign, _): return .unary(sign, new[0])
    case .binary(let binary, _, _): return .binary(binary, new[0], new[1])
    case .test(_, let test, let negated): return .test(new[0], test, negated: negated)
    case .between(_, _, _, let negated):
      return .between(new[0], lower: new[1], upper: new[2], negated: negated)
    case .contained(_, _, let negated): return .contained(new[0], in: new[1], negated: negated)
    case .like(_, _, let negated): return .like(new[0], pattern: new[1], negated: negated)
    case .conditional(let operand, let branches, let otherwise):
      var rest = new[...]
      let first = operand == nil ? nil : rest.removeFirst()
      let others = branches.map { _ in ConditionalBranch(when: rest.removeFirst(), then: rest.removeFirst()) }
      return .conditional(
        operand: first, branches: others, otherwise: otherwise == nil ? nil : rest.removeFirst())
    case .quantified(let quantifier, let variable, _, _):
      return .quantified(quantifier, variable: variable, in: new[0], satisfies: new[1])
    case .call(let call):
      return .call(FunctionCall(call.name, new, isDistinct: call.isDistinct))
    case .match(let index, _): return .match(index, new[0])
    case .collate(_, let collation): return .collate(new[0], collation)
    }
  }

  var withoutCollation: QueryExpression { if case .collate(let operand, _) = self { operand } else { self } }

  /// Calls `body` with it and all that is in it; what is in an EXISTS isn't.
  func forEach(_ body: (QueryExpression) -> Void) {
    body(self)
    for part in parts { part.forEach(body) }
  }

  func contains(where predicate: (QueryExpression) -> Bool) -> Bool {
    predicate(self) || parts.contains { $0.contains(where: predicate) }
  }
}

extension SelectStatement {
  /// Its expressions, one after the other.
  var expressions: [QueryExpression] {
    var all = results.map(\.expression)
    for join in joins {
      switch join {
      case .join(_, _, let condition): if let condition { all.append(condition) }
      case .nest(_, let condition, _): all.append(condition)
      case .unnest(let array, _, _): all.append(array)
      }
    }
    all += lets.map(\.value) + letting.map(\.value)
    all += [condition].compactMap { $0 } + groupBy + [having].compactMap { $0 }
    all += orderBy.map(\.expression) + [limit, offset].compactMap { $0 }
    return all
  }

  /// Calls `body` with all expressions in it, and what is in them.
  func forEachExpression(_ body: (QueryExpression) -> Void) {
    for expression in expressions { expression.forEach(body) }
  }

  func contains(where predicate: (QueryExpression) -> Bool) -> Bool {
    expressions.contains { $0.contains(where: predicate) }
  }

  var hasAggregates: Bool {
    let names: Set<String> = ["COUNT", "SUM", "AVG", "MIN", "MAX", "ARRAY_AGG"]
    return (results.map(\.expression) + orderBy.map(\.expression) + [having].compactMap { $0 }).contains {
      $0.contains { if case .call(let call) = $0 { names.contains(call.name) } else { false } }
    }
  }

  /// Whether tombstones of a source are rows as well.
  func mentionsDeleted(_ source: ByteString) -> Bool {
    contains {
      guard case .meta(let name, .deleted) = $0 else { return false }
      return name == nil || name?.name == source
    }
  }

  /// Whether numbers in results may differ by rounding.
  var isApproximate: Bool {
    contains {
      switch $0 {
      case .rank: true
      case .call(let call): ["SIN", "COS", "SQRT", "POWER", "LN", "EXP", "ROUND"].contains(call.name)
      default: false
      }
    }
  }
}
