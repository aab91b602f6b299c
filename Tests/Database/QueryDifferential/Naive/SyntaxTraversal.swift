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
    case .call(let call):
      call.arguments + [call.filter].compactMap { $0 } + (call.window.map { naiveParts($0.definition) } ?? [])
    case .iteration(let iteration):
      iteration.bindings.map(\.collection)
        + [iteration.name, iteration.result, iteration.condition].compactMap { $0 }
    case .within(let operand, let collection, _): [operand, collection]
    case .subscripted(let base, let inside): [base] + naiveParts(inside)
    case .computedObject(let members): members.flatMap { [$0.name, $0.value] }
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
      var rest = new[...]
      var copy = FunctionCall(
        call.name, call.arguments.map { _ in rest.removeFirst() }, isDistinct: call.isDistinct)
      if call.filter != nil { copy.filter = rest.removeFirst() }
      if var window = call.window {
        window.definition.partitionBy = window.definition.partitionBy.map { _ in rest.removeFirst() }
        window.definition.orderBy = window.definition.orderBy.map {
          Ordering(rest.removeFirst(), isDescending: $0.isDescending, nulls: $0.nulls)
        }
        if let frame = window.definition.frame {
          func bound(_ bound: WindowFrame.Bound) -> WindowFrame.Bound {
            switch bound {
            case .preceding: .preceding(rest.removeFirst())
            case .following: .following(rest.removeFirst())
            default: bound
            }
          }
          window.definition.frame = WindowFrame(
            frame.unit, from: bound(frame.start), to: bound(frame.end), excluding: frame.exclusion)
        }
        copy.window = window
      }
      return .call(copy)
    case .iteration(var iteration):
      var rest = new[...]
      for index in iteration.bindings.indices { iteration.bindings[index].collection = rest.removeFirst() }
      if iteration.name != nil { iteration.name = rest.removeFirst() }
      if iteration.result != nil { iteration.result = rest.removeFirst() }
      if iteration.condition != nil { iteration.condition = rest.removeFirst() }
      return .iteration(iteration)
    case .within(_, _, let negated): return .within(new[0], in: new[1], negated: negated)
    case .subscripted(_, let inside):
      switch inside {
      case .element: return .subscripted(new[0], .element(new[1]))
      case .field: return .subscripted(new[0], .field(new[1]))
      case .slice(let start, let end):
        return .subscripted(
          new[0],
          .slice(from: start == nil ? nil : new[1], to: end == nil ? nil : new[new.count - 1]))
      }
    case .computedObject(let members):
      return .computedObject(
        members.indices.map { ComputedMember(new[2 * $0], new[2 * $0 + 1]) })
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
    (results.map(\.expression) + orderBy.map(\.expression) + [having].compactMap { $0 }).contains {
      $0.contains {
        if case .call(let call) = $0 {
          call.window == nil && naiveAggregates.contains(call.name)
        } else {
          false
        }
      }
    }
  }

  var hasWindows: Bool {
    (results.map(\.expression) + orderBy.map(\.expression)).contains {
      $0.contains { if case .call(let call) = $0 { call.window != nil } else { false } }
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
      case .call(let call):
        ["SIN", "COS", "SQRT", "POWER", "LN", "EXP", "ROUND"].contains(call.name)
          || call.name.hasPrefix("STDDEV") || call.name.hasPrefix("VARIANCE")
          || call.name == "RATIO_TO_REPORT" || call.name.hasSuffix("_DISTANCE")
      default: false
      }
    }
  }
}

/// The expressions of a window.
func naiveParts(_ window: WindowDefinition) -> [QueryExpression] {
  var all = window.partitionBy + window.orderBy.map(\.expression)
  for case .preceding(let offset)? in [window.frame?.start] { all.append(offset) }
  for case .following(let offset)? in [window.frame?.start] { all.append(offset) }
  for case .preceding(let offset)? in [window.frame?.end] { all.append(offset) }
  for case .following(let offset)? in [window.frame?.end] { all.append(offset) }
  return all
}

private func naiveParts(_ inside: Subscript) -> [QueryExpression] {
  switch inside {
  case .element(let index): [index]
  case .field(let name): [name]
  case .slice(let start, let end): [start, end].compactMap { $0 }
  }
}
