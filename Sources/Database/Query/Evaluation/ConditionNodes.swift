import Fleece

// Nodes for conditions: logic, comparisons, tests, IN, ANY and EVERY.

final class AndNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let left: CompiledExpression
  private let right: CompiledExpression

  init(_ left: CompiledExpression, _ right: CompiledExpression) {
    self.left = left
    self.right = right
  }

  var parts: [CompiledExpression] { [left, right] }
  override func truth(_ context: EvaluationContext) -> Truth {
    let first = left.truth(context)
    return first == .false ? .false : first.and(right.truth(context))
  }

  override func scanTests(_ source: Int, _ context: EvaluationContext) -> [ScanTest] {
    left.scanTests(source, context) + right.scanTests(source, context)
  }
}

final class OrNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let left: CompiledExpression
  private let right: CompiledExpression

  init(_ left: CompiledExpression, _ right: CompiledExpression) {
    self.left = left
    self.right = right
  }

  var parts: [CompiledExpression] { [left, right] }
  override func truth(_ context: EvaluationContext) -> Truth {
    let first = left.truth(context)
    return first == .true ? .true : first.or(right.truth(context))
  }
}

final class NotNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let operand: CompiledExpression
  init(_ operand: CompiledExpression) { self.operand = operand }
  var parts: [CompiledExpression] { [operand] }
  override func truth(_ context: EvaluationContext) -> Truth { operand.truth(context).negated }
}

final class ComparisonNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let comparison: ComparisonOperator
  private let left: CompiledExpression
  private let right: CompiledExpression
  private let collation: Int?

  init(
    _ comparison: ComparisonOperator, _ left: CompiledExpression, _ right: CompiledExpression,
    _ collation: Int?
  ) {
    self.comparison = comparison
    self.left = left
    self.right = right
    self.collation = collation
  }

  var parts: [CompiledExpression] { [left, right] }
  override func truth(_ context: EvaluationContext) -> Truth {
    comparison.apply(left.evaluate(context), right.evaluate(context), context.order(collation))
  }

  override func scanTests(_ source: Int, _ context: EvaluationContext) -> [ScanTest] {
    let tests = [left, right].compactMap { ($0 as? PathNode)?.existence(source, context) }
    if comparison == .equal, collation == nil, left is PathNode, let test = tests.first,
      right is ParameterNode, case .string(let text) = right.evaluate(context)
    {
      return [test.with(text: text)]
    }
    return tests
  }
}

/// `path = 'text'`, the most frequent condition. It compares the bytes in the body, without a copy.
final class PathIsTextNode: ConditionNode, @unchecked Sendable {
  private let source: Int
  private let path: Int
  private let text: TextSlice
  private let negated: Bool
  /// Owns the text.
  private let owner: EvaluationProgram

  init(_ source: Int, _ path: Int, _ text: TextSlice, _ owner: EvaluationProgram, negated: Bool) {
    self.source = source
    self.path = path
    self.text = text
    self.owner = owner
    self.negated = negated
  }

  override func truth(_ context: EvaluationContext) -> Truth {
    guard case .object(let body) = context.rows[source].value else {
      let comparison = negated ? ComparisonOperator.notEqual : .equal
      return comparison.apply(
        context.rows[source].value.follow(context.paths[path]), .string(text), context.order(nil))
    }
    guard let value = body.value(at: context.paths[path]) else { return .missing }
    guard let utf8 = value.utf8 else { return value.type == .null ? .null : Truth(negated) }
    return Truth(TextSlice(utf8).equals(text) != negated)
  }

  override func scanTests(_ source: Int, _ context: EvaluationContext) -> [ScanTest] {
    guard source == self.source else { return [] }
    return ScanTest(path: context.paths[path], text: negated ? nil : text).map { [$0] } ?? []
  }
}

/// A comparison of a path with a constant number.
final class PathNumberNode: ConditionNode, @unchecked Sendable {
  private let source: Int
  private let path: Int
  private let number: QueryValue
  private let comparison: ComparisonOperator
  private let owner: EvaluationProgram

  init(
    _ source: Int, _ path: Int, _ number: QueryValue, _ comparison: ComparisonOperator,
    _ owner: EvaluationProgram
  ) {
    self.source = source
    self.path = path
    self.number = number
    self.comparison = comparison
    self.owner = owner
  }

  override func truth(_ context: EvaluationContext) -> Truth {
    let value = context.rows[source].value.follow(context.paths[path])
    switch value {
    case .missing: return .missing
    case .null: return .null
    case .int, .double, .uint: return Truth(comparison.accepts(compareNumbers(value, number)))
    // Values of other types: booleans are below numbers, and the rest is above.
    case .bool: return Truth(comparison.accepts(-1))
    default: return Truth(comparison.accepts(1))
    }
  }

  override func scanTests(_ source: Int, _ context: EvaluationContext) -> [ScanTest] {
    guard source == self.source else { return [] }
    return ScanTest(path: context.paths[path], text: nil).map { [$0] } ?? []
  }
}

/// `a IS b` for two expressions: equality in which null equals null, and missing equals missing.
final class IdenticalNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let left: CompiledExpression
  private let right: CompiledExpression
  private let collation: Int?
  private let negated: Bool

  init(_ left: CompiledExpression, _ right: CompiledExpression, _ collation: Int?, negated: Bool) {
    self.left = left
    self.right = right
    self.collation = collation
    self.negated = negated
  }

  var parts: [CompiledExpression] { [left, right] }
  override func truth(_ context: EvaluationContext) -> Truth {
    let isEqual = context.order(collation).areEqual(left.evaluate(context), right.evaluate(context))
    return Truth(isEqual != negated)
  }
}

/// `IS NULL`, `IS MISSING`, `IS VALUED`.
final class TestNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let operand: CompiledExpression
  private let test: ValueTest
  private let negated: Bool

  init(_ operand: CompiledExpression, _ test: ValueTest, negated: Bool) {
    self.operand = operand
    self.test = test
    self.negated = negated
  }

  var parts: [CompiledExpression] { [operand] }
  override func truth(_ context: EvaluationContext) -> Truth {
    let value = operand.evaluate(context)
    switch test {
    case .null:
      switch value {
      case .missing: return .missing
      case .null: return Truth(!negated)
      default: return Truth(negated)
      }
    case .missing: return Truth(value.isMissing != negated)
    case .valued: return Truth(value.isUnknown == negated)
    }
  }
}

/// `x BETWEEN a AND b`, which means `x >= a AND x <= b`.
final class BetweenNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let operand: CompiledExpression
  private let lower: CompiledExpression
  private let upper: CompiledExpression
  private let collation: Int?
  private let negated: Bool

  init(
    _ operand: CompiledExpression, _ lower: CompiledExpression, _ upper: CompiledExpression,
    _ collation: Int?, negated: Bool
  ) {
    self.operand = operand
    self.lower = lower
    self.upper = upper
    self.collation = collation
    self.negated = negated
  }

  var parts: [CompiledExpression] { [operand, lower, upper] }
  override func truth(_ context: EvaluationContext) -> Truth {
    let value = operand.evaluate(context)
    let order = context.order(collation)
    let above = ComparisonOperator.greaterOrEqual.apply(value, lower.evaluate(context), order)
    let within =
      above == .false
      ? above : above.and(ComparisonOperator.lessOrEqual.apply(value, upper.evaluate(context), order))
    return negated ? within.negated : within
  }
}

/// `x IN collection` for any collection, and `x WITHIN collection`, which looks at what is inside of the items too. NULL when the
/// collection isn't an array, or for WITHIN an object, and MISSING when an operand is missing.
final class InNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let operand: CompiledExpression
  private let collection: CompiledExpression
  private let collation: Int?
  private let isDeep: Bool
  private let negated: Bool

  /// `isDeep`: WITHIN.
  init(
    _ operand: CompiledExpression, _ collection: CompiledExpression, _ collation: Int?,
    isDeep: Bool = false, negated: Bool
  ) {
    self.operand = operand
    self.collection = collection
    self.collation = collation
    self.isDeep = isDeep
    self.negated = negated
  }

  var parts: [CompiledExpression] { [operand, collection] }
  override func truth(_ context: EvaluationContext) -> Truth {
    let value = operand.evaluate(context)
    let items = collection.evaluate(context)
    if value.isMissing || items.isMissing { return .missing }
    guard items.type == .array || isDeep && items.type == .object else { return .null }
    let order = context.order(collation)
    var found = Truth.false
    func goesOn(after item: QueryValue) -> Bool {
      found = found.or(ComparisonOperator.equal.apply(value, item, order))
      return found != .true && context.goesOn
    }
    if isDeep {
      items.collect(isDeep: true, hasNames: false, context) { _, item in goesOn(after: item) }
    } else {
      items.forEachItem(goesOn)
    }
    return negated ? found.negated : found
  }
}

/// `x IN (a, b)` with a written list, which means `x = a OR x = b`.
final class ListNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let operand: CompiledExpression
  private let items: [CompiledExpression]
  private let collation: Int?
  private let negated: Bool

  init(
    _ operand: CompiledExpression, _ items: [CompiledExpression], _ collation: Int?, negated: Bool
  ) {
    self.operand = operand
    self.items = items
    self.collation = collation
    self.negated = negated
  }

  var parts: [CompiledExpression] { [operand] + items }
  override func truth(_ context: EvaluationContext) -> Truth {
    let value = operand.evaluate(context)
    if value.isMissing { return .missing }
    let order = context.order(collation)
    var found = Truth.false
    for item in items {
      found = found.or(ComparisonOperator.equal.apply(value, item.evaluate(context), order))
      if found == .true { break }
    }
    return negated ? found.negated : found
  }
}

/// `x IN ('a', 'b', 3)` with constants. They are looked up in a hash table.
final class ConstantListNode: ConditionNode, FoldableNode, @unchecked Sendable {
  private let operand: CompiledExpression
  private let values: ValueSet
  /// The result for a value that isn't in the list: FALSE, or NULL or MISSING when the list contains null or
  /// missing.
  private let otherwise: Truth
  private let isEmpty: Bool
  private let owner: EvaluationProgram
  private let negated: Bool

  init(
    _ operand: CompiledExpression, _ constants: [QueryValue], _ owner: EvaluationProgram, negated: Bool
  ) {
    self.operand = operand
    self.owner = owner
    self.negated = negated
    values = ValueSet(minimumCapacity: constants.count)
    var otherwise = Truth.false
    for constant in constants {
      switch constant {
      case .missing: otherwise = otherwise.or(.missing)
      case .null: otherwise = otherwise.or(.null)
      default: values.insert(constant, ValueOrder(.empty))
      }
    }
    self.otherwise = otherwise
    isEmpty = constants.isEmpty
  }

  var parts: [CompiledExpression] { [operand] }
  override func truth(_ context: EvaluationContext) -> Truth {
    let value = operand.evaluate(context)
    if value.isMissing { return .missing }
    if case .null = value {
      let truth = isEmpty ? Truth.false : values.isEmpty ? otherwise : .null
      return negated ? truth.negated : truth
    }
    let found = values.contains(value, context.order(nil)) ? Truth.true : otherwise
    return negated ? found.negated : found
  }
}

/// ANY, EVERY, and ANY AND EVERY over the items of an array or the member values of an object.
final class QuantifiedNode: ConditionNode, @unchecked Sendable {
  private let quantifier: Quantifier
  private let variable: Int
  private let collection: CompiledExpression
  private let condition: CompiledExpression

  init(
    _ quantifier: Quantifier, variable: Int, _ collection: CompiledExpression,
    _ condition: CompiledExpression
  ) {
    self.quantifier = quantifier
    self.variable = variable
    self.collection = collection
    self.condition = condition
  }

  override func truth(_ context: EvaluationContext) -> Truth {
    let items = collection.evaluate(context)
    var isEmpty = true
    // Whether some item has decided the result.
    var isDecided = false
    let deciding: Bool = quantifier == .any
    let arena = context.arena
    // Only the truth is kept of the values computed for an item.
    items.forEachItem { item in
      isEmpty = false
      context.variables[variable] = item
      isDecided = arena.scope { (condition.truth(context) == .true) == deciding }
      return !isDecided && context.goesOn
    }
    switch quantifier {
    case .any: return Truth(isDecided)
    case .every: return Truth(!isDecided)
    case .anyAndEvery: return Truth(!isDecided && !isEmpty)
    }
  }

  override func scanTests(_ source: Int, _ context: EvaluationContext) -> [ScanTest] {
    if quantifier == .every { return [] }
    return (collection as? PathNode)?.existence(source, context).map { [$0] } ?? []
  }
}
