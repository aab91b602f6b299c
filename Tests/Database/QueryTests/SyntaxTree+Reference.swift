import TestSupport

@testable import Query

// Random trees of loops, subscripts and windows.
extension RandomTree {
  typealias Inner = (inout RandomTree) -> QueryExpression

  mutating func reference(depth: Int, _ deeper: Inner) -> QueryExpression {
    switch Int.random(in: 0..<6, using: &random) {
    case 0: return .within(deeper(&self), in: deeper(&self), negated: chance(50))
    case 1: return .subscripted(deeper(&self), subscripted(deeper))
    case 2:
      return .computedObject(some(1...3) { ComputedMember(deeper(&$0), deeper(&$0)) })
    case 3: return .iteration(iteration(deeper))
    default:
      let kind = one(WindowFunctionKind.allCases)
      let call = WindowCall(
        window(deeper), countsFromLast: kind == .nthValue && chance(50),
        ignoresNulls: kind.takesNulls && chance(50))
      return .call(
        FunctionCall(kind.rawValue, (0..<kind.arguments.lowerBound).map { _ in deeper(&self) }, window: call))
    }
  }

  private mutating func subscripted(_ deeper: Inner) -> Subscript {
    switch Int.random(in: 0..<3, using: &random) {
    case 0: .element(deeper(&self))
    case 1: .field(deeper(&self))
    default: .slice(from: maybe(60, deeper), to: maybe(60, deeper))
    }
  }

  private mutating func iteration(_ deeper: Inner) -> Iteration {
    let kind = one(Iteration.Kind.allCases)
    var bindings = some(1...2) {
      VariableBinding(
        $0.name(), position: $0.maybe(30) { $0.name() }, in: deeper(&$0), isDeep: $0.chance(30))
    }
    // A single plain variable of a test is another tree.
    if kind.isTest { bindings[0].isDeep = true }
    return Iteration(
      kind, name: kind == .object ? deeper(&self) : nil, kind.isTest ? nil : deeper(&self), over: bindings,
      condition: kind.isTest ? deeper(&self) : maybe(50, deeper))
  }

  mutating func window(_ deeper: Inner) -> WindowDefinition {
    var window = WindowDefinition(maybe(30) { $0.name().string }, partitionBy: some(0...2, deeper))
    window.orderBy = some(0...2) { $0.ordering(deeper) }.filter {
      if case .literal = $0.expression.uncollated.operand { false } else { true }
    }
    window.frame = maybe(40) { tree in
      func bound(_ tree: inout RandomTree, _ kinds: ClosedRange<Int>) -> WindowFrame.Bound {
        switch Int.random(in: kinds, using: &tree.random) {
        case 0: .unboundedPreceding
        case 1: .preceding(deeper(&tree))
        case 2: .currentRow
        case 3: .following(deeper(&tree))
        default: .unboundedFollowing
        }
      }
      let start = bound(&tree, 0...3)
      let rank = max(1, start.rank)
      return WindowFrame(
        tree.one(WindowFrame.Unit.allCases), from: start, to: bound(&tree, rank...4),
        excluding: tree.one(WindowFrame.Exclusion.allCases))
    }
    return window
  }

  mutating func ordering(_ inner: Inner) -> Ordering {
    Ordering(inner(&self), isDescending: chance(50), nulls: maybe(20) { $0.one(NullsOrder.allCases) })
  }
}
