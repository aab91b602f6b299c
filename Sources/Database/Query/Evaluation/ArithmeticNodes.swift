// Nodes for arithmetic, and for `||`.

/// The arithmetic operators. The result is MISSING when an operand is missing, and else NULL when an operand
/// isn't a number.
enum Arithmetic {
  case add, subtract, multiply, divide, modulo

  /// Integers give an integer unless it overflows. The quotient of integers is cut off to an integer.
  /// Division by zero gives MISSING.
  @inline(__always)
  func apply(_ left: QueryValue, _ right: QueryValue) -> QueryValue {
    if case .int(let a) = left, case .int(let b) = right {
      let (result, overflow): (Int64, Bool) =
        switch self {
        case .add: a.addingReportingOverflow(b)
        case .subtract: a.subtractingReportingOverflow(b)
        case .multiply: a.multipliedReportingOverflow(by: b)
        case .divide: a.dividedReportingOverflow(by: b)
        case .modulo: a.remainderReportingOverflow(dividingBy: b)
        }
      if _fastPath(!overflow) { return .int(result) }
    }
    return applyToOthers(left, right)
  }

  @inline(never)
  private func applyToOthers(_ left: QueryValue, _ right: QueryValue) -> QueryValue {
    if left.isMissing || right.isMissing { return .missing }
    guard let a = left.number, let b = right.number else { return .null }
    if let exact = applyExactly(left, right) { return exact }
    switch self {
    case .add: return QueryValue(finite: a + b)
    case .subtract: return QueryValue(finite: a - b)
    case .multiply: return QueryValue(finite: a * b)
    case .divide:
      if b == 0 { return .missing }
      let quotient = a / b
      if case .int = left, case .int = right { return .double(quotient.rounded(.towardZero)) }
      return QueryValue(finite: quotient)
    case .modulo:
      // Both operands are cut off to integers.
      let divisor = b.rounded(.towardZero)
      if divisor == 0 { return .missing }
      if case .int = left, case .int = right { return .int(0) }
      return QueryValue(finite: a.rounded(.towardZero).truncatingRemainder(dividingBy: divisor) + 0)
    }
  }

  /// The exact result for two integers, one of them above `Int64.max`. Nil for other operands, for results
  /// outside 64 bits, and for division by zero.
  private func applyExactly(_ left: QueryValue, _ right: QueryValue) -> QueryValue? {
    let a: Int128
    let b: Int128
    switch (left, right) {
    case (.uint(let left), .uint(let right)): (a, b) = (Int128(left), Int128(right))
    case (.uint(let left), .int(let right)): (a, b) = (Int128(left), Int128(right))
    case (.int(let left), .uint(let right)): (a, b) = (Int128(left), Int128(right))
    default: return nil
    }
    let result: Int128
    switch self {
    case .add: result = a + b
    case .subtract: result = a - b
    case .multiply:
      let (product, overflow) = a.multipliedReportingOverflow(by: b)
      if overflow { return nil }
      result = product
    case .divide:
      if b == 0 { return nil }
      result = a / b
    case .modulo:
      if b == 0 { return nil }
      result = a % b
    }
    if let integer = Int64(exactly: result) { return .int(integer) }
    return UInt64(exactly: result).map { .uint($0) }
  }
}

final class ArithmeticNode: CompiledExpression, FoldableNode, @unchecked Sendable {
  private let arithmetic: Arithmetic
  private let left: CompiledExpression
  private let right: CompiledExpression

  init(_ arithmetic: Arithmetic, _ left: CompiledExpression, _ right: CompiledExpression) {
    self.arithmetic = arithmetic
    self.left = left
    self.right = right
  }

  var parts: [CompiledExpression] { [left, right] }
  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    arithmetic.apply(left.evaluate(context), right.evaluate(context))
  }
}

/// The signs `-x` and `+x`.
final class SignNode: CompiledExpression, FoldableNode, @unchecked Sendable {
  private let operand: CompiledExpression
  private let negates: Bool

  init(_ operand: CompiledExpression, negates: Bool) {
    self.operand = operand
    self.negates = negates
  }

  var parts: [CompiledExpression] { [operand] }
  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    let value = operand.evaluate(context)
    switch value {
    case .missing: return .missing
    case .int(let integer):
      if !negates { return value }
      return integer == .min ? .uint(1 << 63) : .int(-integer)
    case .uint(let integer):
      if !negates { return value }
      return integer == 1 << 63 ? .int(.min) : .double(-Double(integer))
    case .double(let number): return .double(negates ? -number : number)
    default: return .null
    }
  }
}

/// `a || b`, which is the function CONCAT.
final class ConcatenationNode: CompiledExpression, FoldableNode, @unchecked Sendable {
  let parts: [CompiledExpression]
  init(_ parts: [CompiledExpression]) { self.parts = parts }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    withUnsafeTemporaryAllocation(of: QueryValue.self, capacity: parts.count) { values in
      for index in parts.indices { values[index] = parts[index].evaluate(context) }
      return StringFunctions.concat(UnsafeBufferPointer(values), context)
    }
  }
}
