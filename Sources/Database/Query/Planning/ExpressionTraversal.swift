// Traversal of expressions: their parts, and copies with other parts.

import Storage

extension QueryExpression {
  /// Calls `body` with each direct part. Queries inside aren't parts.
  func forEachPart(_ body: (QueryExpression) throws -> Void) rethrows {
    switch self {
    case .literal, .parameter, .property, .star, .meta, .exists, .subquery, .rank: break
    case .member(let base, _): try body(base)
    case .array(let items): for item in items { try body(item) }
    case .object(let members): for member in members { try body(member.value) }
    case .unary(_, let operand): try body(operand)
    case .binary(_, let left, let right):
      try body(left)
      try body(right)
    case .test(let operand, _, _): try body(operand)
    case .between(let operand, let lower, let upper, _):
      try body(operand)
      try body(lower)
      try body(upper)
    case .contained(let operand, let collection, _):
      try body(operand)
      try body(collection)
    case .like(let operand, let pattern, _):
      try body(operand)
      try body(pattern)
    case .conditional(let operand, let branches, let otherwise):
      if let operand { try body(operand) }
      for branch in branches {
        try body(branch.condition)
        try body(branch.result)
      }
      if let otherwise { try body(otherwise) }
    case .quantified(_, _, let collection, let condition):
      try body(collection)
      try body(condition)
    case .call(let call):
      for argument in call.arguments { try body(argument) }
      if call.namesRows { try call.forEachPartOfRows(body) }
    case .iteration(let iteration): try iteration.forEachPart(body)
    case .within(let operand, let collection, _):
      try body(operand)
      try body(collection)
    case .subscripted(let base, let inside):
      try body(base)
      for part in inside.parts { try body(part) }
    case .computedObject(let members):
      for member in members {
        try body(member.name)
        try body(member.value)
      }
    case .match(_, let text): try body(text)
    case .collate(let operand, _): try body(operand)
    }
  }

  /// A copy in which `body` has replaced each direct part.
  func mappingParts(_ body: (QueryExpression) throws -> QueryExpression) rethrows -> QueryExpression {
    switch self {
    case .literal, .parameter, .property, .star, .meta, .exists, .subquery, .rank: return self
    case .member(let base, let steps): return .member(try body(base), steps)
    case .array(let items): return .array(try items.map(body))
    case .object(let members):
      return .object(try members.map { ObjectMember($0.name, try body($0.value)) })
    case .unary(let unary, let operand): return .unary(unary, try body(operand))
    case .binary(let binary, let left, let right): return .binary(binary, try body(left), try body(right))
    case .test(let operand, let test, let negated): return .test(try body(operand), test, negated: negated)
    case .between(let operand, let lower, let upper, let negated):
      return .between(try body(operand), lower: try body(lower), upper: try body(upper), negated: negated)
    case .contained(let operand, let collection, let negated):
      return .contained(try body(operand), in: try body(collection), negated: negated)
    case .like(let operand, let pattern, let negated):
      return .like(try body(operand), pattern: try body(pattern), negated: negated)
    case .conditional(let operand, let branches, let otherwise):
      return .conditional(
        operand: try operand.map(body),
        branches: try branches.map {
          ConditionalBranch(when: try body($0.condition), then: try body($0.result))
        }, otherwise: try otherwise.map(body))
    case .quantified(let quantifier, let variable, let collection, let condition):
      return .quantified(
        quantifier, variable: variable, in: try body(collection), satisfies: try body(condition))
    case .call(var call):
      call.arguments = try call.arguments.map(body)
      if call.namesRows { try call.mapPartsOfRows(body) }
      return .call(call)
    case .iteration(let iteration): return .iteration(try iteration.mapping(collections: body, inner: body))
    case .within(let operand, let collection, let negated):
      return .within(try body(operand), in: try body(collection), negated: negated)
    case .subscripted(let base, let inside): return .subscripted(try body(base), try inside.mapping(body))
    case .computedObject(let members):
      return .computedObject(try members.map { ComputedMember(try body($0.name), try body($0.value)) })
    case .match(let index, let text): return .match(index, try body(text))
    case .collate(let operand, let collation): return .collate(try body(operand), collation)
    }
  }

  /// Collects the first names of all paths, except variables of the expression's own quantifiers. In a
  /// resolved expression these are the sources that it reads.
  func collectSources(into names: inout Set<ByteString>, except variables: Set<ByteString> = []) {
    switch self {
    case .property(let reference):
      if case .name(let name)? = reference.steps.first, !variables.contains(name) { names.insert(name) }
    case .star(let source), .meta(let source, _):
      if let source { names.insert(source.name) }
    case .match(let index, let text):
      if let source = index.source { names.insert(source) }
      text.collectSources(into: &names, except: variables)
    case .rank(let index): if let source = index.source { names.insert(source) }
    case .quantified(_, let variable, let collection, let condition):
      collection.collectSources(into: &names, except: variables)
      condition.collectSources(into: &names, except: variables.union([variable]))
    case .iteration(let iteration):
      for binding in iteration.bindings { binding.collection.collectSources(into: &names, except: variables) }
      let inner = variables.union(iteration.variables)
      for part in iteration.inner { part.collectSources(into: &names, except: inner) }
    default: forEachPart { $0.collectSources(into: &names, except: variables) }
    }
  }

  /// The sources that a resolved expression reads.
  var sources: Set<ByteString> {
    var names: Set<ByteString> = []
    collectSources(into: &names)
    return names
  }

  /// Whether it reads this source and no other.
  func reads(only name: ByteString) -> Bool {
    // The most frequent cases need no set.
    switch self {
    case .literal, .parameter: return false
    case .property(let reference):
      if case .name(let first)? = reference.steps.first { return first == name }
      return false
    default: return sources == [name]
    }
  }

  /// Whether it reads no other sources than these.
  func reads(within names: Set<ByteString>) -> Bool {
    switch self {
    case .literal, .parameter: return true
    case .property(let reference):
      if case .name(let first)? = reference.steps.first { return names.contains(first) }
      return true
    default: return sources.isSubset(of: names)
    }
  }

  /// Whether it reads no source. Its value is then the same for all rows of a run.
  var isConstant: Bool { sources.isEmpty }

  /// Whether this expression or a part of it satisfies the predicate.
  func hasParts(_ isSuch: (QueryExpression) -> Bool) -> Bool {
    if isSuch(self) { return true }
    var found = false
    forEachPart { if !found, $0.hasParts(isSuch) { found = true } }
    return found
  }

  /// Whether it contains an aggregate over the rows of a group.
  var hasAggregates: Bool {
    hasParts {
      if case .call(let call) = $0 {
        call.window == nil && AggregateFunctions.names.contains(call.name)
      } else {
        false
      }
    }
  }

  /// Whether it contains a function over a window.
  var hasWindows: Bool { hasParts { if case .call(let call) = $0 { call.window != nil } else { false } } }

  /// The conditions that AND joins. All of them have to be true.
  var conjuncts: [QueryExpression] {
    if case .binary(.and, let left, let right) = self { return left.conjuncts + right.conjuncts }
    return [self]
  }

  /// The conditions that OR joins. One of them has to be true.
  var disjuncts: [QueryExpression] {
    if case .binary(.or, let left, let right) = self { return left.disjuncts + right.disjuncts }
    return [self]
  }
}

/// The functions that are computed over the rows of a group.
enum AggregateFunctions {
  static let names = Set(AggregateKind.allCases.map(\.rawValue))
}
