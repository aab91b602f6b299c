/// The operators that compare two values.
enum ComparisonOperator: UInt8 {
  case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual

  /// Whether an order (below, at, above 0) is one that it asks for.
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

  /// MISSING with missing on a side, else NULL with null, else whether the order is the one that is asked for.
  /// Values of two types are never equal, and one is less by N1QL's order of types.
  @inline(__always)
  func apply(_ left: QueryValue, _ right: QueryValue, _ order: ValueOrder) -> Truth {
    if left.isUnknown || right.isUnknown {
      return left.isMissing || right.isMissing ? .missing : .null
    }
    return Truth(accepts(order.compare(left, right)))
  }
}
