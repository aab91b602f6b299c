/// The operators that compare two values.
enum ComparisonOperator: UInt8 {
  case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual

  /// Whether the operator accepts an order (below, at or above 0).
  @inline(__always)
  func accepts(_ order: Int) -> Bool {
    switch self {
    case .equal: order == 0
    case .notEqual: order != 0
    case .less: order < 0
    case .lessOrEqual: order <= 0
    case .greater: order > 0
    case .greaterOrEqual: order >= 0
    }
  }

  /// Compares two values. MISSING when an operand is missing, else NULL when an operand is null. Values of
  /// different types are never equal, and are ordered by N1QL's order of types.
  @inline(__always)
  func apply(_ left: QueryValue, _ right: QueryValue, _ order: ValueOrder) -> Truth {
    if left.isUnknown || right.isUnknown {
      return left.isMissing || right.isMissing ? .missing : .null
    }
    return Truth(accepts(order.compare(left, right)))
  }
}
