// What a condition says about one expression that an index or the documents' IDs are ordered by.

import Storage

/// What a condition asks of one expression, so that its values lie in ranges. Values are expressions that don't
/// depend on the row that is looked for: literals, parameters, and properties of rows that are there before it.
enum KeyCondition: Hashable, Sendable {
  case equal(Expression)
  /// Equal to an item of an array.
  case anyOf(Expression)
  /// Between two bounds, one of which may be missing.
  case range(lower: KeyBound?, upper: KeyBound?)
  /// Matches a pattern, which may begin with text.
  case like(Expression)
  case isNull
  case isMissing
  /// Neither null nor missing.
  case isValued
  /// Not missing.
  case isThere

  /// Whether all keys that meet it begin with the same bytes for one value: what follows in an index is in order.
  var isEquality: Bool {
    switch self {
    case .equal, .isNull, .isMissing: true
    default: false
    }
  }

  /// The values it compares with.
  var values: [Expression] {
    switch self {
    case .equal(let value), .anyOf(let value), .like(let value): [value]
    case .range(let lower, let upper): [lower, upper].compactMap { $0?.value }
    case .isNull, .isMissing, .isValued, .isThere: []
    }
  }
}

/// An end of a range.
struct KeyBound: Hashable, Sendable {
  var value: Expression
  var isInclusive: Bool
}

/// A condition about one expression, and the conjunct it was found in.
struct KeyTerm: Sendable {
  var key: Expression
  var condition: KeyCondition
  /// Which of the conjuncts says so.
  var conjunct: Int
  /// Whether every value that meets the condition meets the whole conjunct, which then needn't be asked again. `key
  /// BETWEEN 1 AND other` with a property of the same row on one side says more than its other bound.
  var isWhole = true
}

extension Expression {
  /// What this condition says about expressions of the source `name`, whose values may depend on the sources
  /// `bound`. Empty when it says nothing that a range can hold.
  func keyTerms(of name: ByteString, bound: Set<ByteString>, conjunct: Int) -> [KeyTerm] {
    // Comparisons under a COLLATE aren't those of keys.
    func isKey(_ expression: Expression) -> Bool { !expression.isCollated && expression.reads(only: name) }
    func isValue(_ expression: Expression) -> Bool {
      !expression.isCollated && expression.reads(within: bound)
    }
    func term(_ key: Expression, _ condition: KeyCondition, isWhole: Bool = true) -> [KeyTerm] {
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
      // A COLLATE of one of the three is for both comparisons.
      guard isKey(operand), !lower.isCollated, !upper.isCollated else { return [] }
      let lower = isValue(lower) ? KeyBound(value: lower, isInclusive: true) : nil
      let upper = isValue(upper) ? KeyBound(value: upper, isInclusive: true) : nil
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

extension Expression {
  /// Whether a COLLATE is its outermost part.
  var isCollated: Bool { if case .collate = self { true } else { false } }
}

extension KeyCondition {
  init?(_ relation: BinaryOperator, _ value: Expression) {
    switch relation {
    case .equal: self = .equal(value)
    case .less: self = .range(lower: nil, upper: KeyBound(value: value, isInclusive: false))
    case .lessOrEqual: self = .range(lower: nil, upper: KeyBound(value: value, isInclusive: true))
    case .greater: self = .range(lower: KeyBound(value: value, isInclusive: false), upper: nil)
    case .greaterOrEqual: self = .range(lower: KeyBound(value: value, isInclusive: true), upper: nil)
    default: return nil
    }
  }
}

extension BinaryOperator {
  /// The relation with its sides swapped.
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
