// Nodes that compute with numbers, and `||`.

/// The operators of arithmetic. MISSING on a side is MISSING, then what isn't a number NULL.
enum Arithmetic {
  case add, subtract, multiply, divide, modulo

  /// Integers stay integers unless they overflow; a quotient of integers is cut off; division by zero is MISSING.
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
    switch self {
    case .add: return QueryValue(finite: a + b)
    case .subtract: return QueryValue(finite: a - b)
    case .multiply: return QueryValue(finite: a * b)
    case .divide:
      if b == 0 { return .missing }
      if case .double = left { return QueryValue(finite: a / b) }
      if case .double = right { return QueryValue(finite: a / b) }
      return quotient(left, right, a / b)
    case .modulo: return remainder(left, right, a, b)
    }
  }

  /// Of two integers one of which, or the result, is above `Int64.max`.
  private func quotient(_ left: QueryValue, _ right: QueryValue, _ approximate: Double) -> QueryValue {
    switch (left, right) {
    case (.uint(let a), .uint(let b)): return QueryValue(a / b)
    case (.uint(let a), .int(let b)) where b > 0: return QueryValue(a / UInt64(b))
    case (.int, .uint(let b)): return .int(left.integer == .min && b == 1 << 63 ? -1 : 0)
    default: return .double(approximate.rounded(.towardZero))
    }
  }

  /// Both sides are cut off to integers; the result is a double when one was.
  private func remainder(_ left: QueryValue, _ right: QueryValue, _ a: Double, _ b: Double) -> QueryValue {
    var isDouble = false
    if case .double = left { isDouble = true }
    if case .double = right { isDouble = true }
    let (whole, divisor) = (a.rounded(.towardZero), b.rounded(.towardZero))
    if divisor == 0 { return .missing }
    if isDouble { return QueryValue(finite: whole.truncatingRemainder(dividingBy: divisor) + 0) }
    switch (left, right) {
    case (.uint(let a), .uint(let b)): return QueryValue(a % b)
    case (.uint(let a), .int(let b)): return QueryValue(a % b.magnitude)
    case (.int(let a), .uint(let b)):
      return a == .min && b == 1 << 63 ? .int(0) : .int(a)
    default: return .int(0)
    }
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

/// `-x` and `+x`.
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

/// `a || b`, which is CONCAT.
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
