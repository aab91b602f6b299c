// What a condition says about one expression that an index or the document IDs are ordered by.

import Storage

/// A condition on one expression that can be turned into key ranges. The compared values don't depend on the
/// row that is searched. They are literals, parameters, and properties of rows from earlier steps.
typealias KeyCondition = ValueCondition<QueryExpression>
typealias ConditionBound = KeyCondition.Bound

/// A comparison with values of one form: expressions, or their compiled nodes.
enum ValueCondition<Value> {
  case equal(Value)
  /// Equal to one of the items of an array.
  case anyOf(Value)
  /// Between two bounds. One of them may be missing.
  case range(lower: Bound?, upper: Bound?)
  /// Matches a LIKE pattern, which may begin with text.
  case like(Value)
  case isNull
  case isMissing
  /// Neither null nor missing.
  case isValued
  /// Not missing.
  case isThere

  /// A bound of a range.
  struct Bound {
    var value: Value
    var isInclusive: Bool
  }

  /// Whether all keys that meet the condition begin with the same bytes, given one compared value. The rest
  /// of the index keys is then in order.
  var isEquality: Bool {
    switch self {
    case .equal, .isNull, .isMissing: true
    default: false
    }
  }

  /// The compared values.
  var values: [Value] {
    switch self {
    case .equal(let value), .anyOf(let value), .like(let value): [value]
    case .range(let lower, let upper): [lower, upper].compactMap { $0?.value }
    case .isNull, .isMissing, .isValued, .isThere: []
    }
  }
}

extension ValueCondition: Equatable where Value: Equatable {}
extension ValueCondition: Hashable where Value: Hashable {}
extension ValueCondition: Sendable where Value: Sendable {}
extension ValueCondition.Bound: Equatable where Value: Equatable {}
extension ValueCondition.Bound: Hashable where Value: Hashable {}
extension ValueCondition.Bound: Sendable where Value: Sendable {}

extension ValueCondition {
  /// The same condition with other values.
  func map<Other>(
    _ body: (Value) throws(QueryError) -> Other
  ) throws(QueryError) -> ValueCondition<Other> {
    func mapped(_ bound: Bound?) throws(QueryError) -> ValueCondition<Other>.Bound? {
      guard let bound else { return nil }
      return ValueCondition<Other>.Bound(value: try body(bound.value), isInclusive: bound.isInclusive)
    }
    return switch self {
    case .equal(let value): .equal(try body(value))
    case .anyOf(let values): .anyOf(try body(values))
    case .range(let lower, let upper): .range(lower: try mapped(lower), upper: try mapped(upper))
    case .like(let pattern): .like(try body(pattern))
    case .isNull: .isNull
    case .isMissing: .isMissing
    case .isValued: .isValued
    case .isThere: .isThere
    }
  }
}

/// A condition on one expression, and the conjunct that it comes from.
struct KeyTerm: Sendable {
  var key: QueryExpression
  var condition: KeyCondition
  /// The index of the conjunct.
  var conjunct: Int
  /// Whether every value that meets the condition meets the whole conjunct. The conjunct then needs no
  /// further check. `key BETWEEN 1 AND other`, where `other` is a property of the same row, also depends on
  /// its other bound.
  var isWhole = true
}

extension QueryExpression {
  /// The key conditions in this condition on expressions of the source `name`. Compared values may depend on
  /// the sources in `bound`. Empty when no range can express the condition.
  func keyTerms(of name: ByteString, bound: Set<ByteString>, conjunct: Int) -> [KeyTerm] {
    // A value of its own for each row is no key.
    if isVolatile { return [] }
    // Keys aren't compared under a COLLATE.
    func isKey(_ expression: QueryExpression) -> Bool {
      !expression.isCollated && expression.reads(only: name)
    }
    func isValue(_ expression: QueryExpression) -> Bool {
      !expression.isCollated && expression.reads(within: bound)
    }
    func term(_ key: QueryExpression, _ condition: KeyCondition, isWhole: Bool = true) -> [KeyTerm] {
      [KeyTerm(key: key, condition: condition, conjunct: conjunct, isWhole: isWhole)]
    }
    switch self {
    case .binary(let relation, let left, let right):
      if isKey(left), isValue(right), let condition = KeyCondition(relation, right) {
        return term(left, condition)
      }
      if isKey(right), isValue(left), let mirrored = relation.mirrored,
        let condition = KeyCondition(mirrored, left)
      {
        return term(right, condition)
      }
      return []
    case .between(let operand, let lower, let upper, negated: false):
      // A COLLATE on one of the three operands applies to both comparisons.
      guard isKey(operand), !lower.isCollated, !upper.isCollated else { return [] }
      let lower = isValue(lower) ? ConditionBound(value: lower, isInclusive: true) : nil
      let upper = isValue(upper) ? ConditionBound(value: upper, isInclusive: true) : nil
      if lower == nil && upper == nil { return [] }
      return term(operand, .range(lower: lower, upper: upper), isWhole: lower != nil && upper != nil)
    case .contained(let operand, let collection, negated: false):
      guard isKey(operand), isValue(collection) else { return [] }
      if case .array(let items) = collection, items.count == 1 { return term(operand, .equal(items[0])) }
      return term(operand, .anyOf(collection))
    case .like(let operand, let pattern, negated: false):
      return isKey(operand) && isValue(pattern) ? term(operand, .like(pattern)) : []
    case .test(let operand, let test, let negated):
      guard isKey(operand) else { return [] }
      switch (test, negated) {
      case (.null, false): return term(operand, .isNull)
      case (.missing, false): return term(operand, .isMissing)
      case (.valued, false), (.null, true): return term(operand, .isValued)
      case (.missing, true): return term(operand, .isThere)
      case (.valued, true): return []
      }
    default: return []
    }
  }
}

extension QueryExpression {
  /// Whether COLLATE is its outermost operator.
  var isCollated: Bool { uncollated.collation != nil }
}

extension KeyCondition {
  init?(_ relation: BinaryOperator, _ value: QueryExpression) {
    switch relation {
    case .equal: self = .equal(value)
    case .less: self = .range(lower: nil, upper: ConditionBound(value: value, isInclusive: false))
    case .lessOrEqual: self = .range(lower: nil, upper: ConditionBound(value: value, isInclusive: true))
    case .greater: self = .range(lower: ConditionBound(value: value, isInclusive: false), upper: nil)
    case .greaterOrEqual: self = .range(lower: ConditionBound(value: value, isInclusive: true), upper: nil)
    default: return nil
    }
  }
}

extension BinaryOperator {
  /// The operator for swapped operands. Nil when there is none.
  var mirrored: BinaryOperator? {
    switch self {
    case .equal: .equal
    case .less: .greater
    case .lessOrEqual: .greaterOrEqual
    case .greater: .less
    case .greaterOrEqual: .lessOrEqual
    default: nil
    }
  }
}
