import Fleece
import Query

// Operators of the naive evaluator.

func naiveSigned(_ sign: UnaryOperator, _ operand: JSONValue?) -> JSONValue? {
  guard let operand else { return missing }
  guard let number = operand.double else { return .null }
  if sign == .plus { return operand }
  guard let integer = naiveInteger(operand) else { return .double(-number) }
  return naiveNumber(-integer) ?? .double(-number)
}

/// An integer of 64 bits; nil outside.
func naiveNumber(_ integer: Int128) -> JSONValue? {
  if let integer = Int64(exactly: integer) { return .int(integer) }
  return UInt64(exactly: integer).map { .uint($0) }
}

/// A finite number, or null.
func naiveNumber(_ number: Double) -> JSONValue { number.isFinite ? .double(number) : .null }

func naiveBinary(
  _ binary: BinaryOperator, _ left: JSONValue?, _ right: JSONValue?, foldsCase: Bool = false
) throws -> JSONValue? {
  let order = naiveCompare(left, right, foldsCase: foldsCase)
  if binary == .identical { return .bool(order == 0) }
  if binary == .notIdentical { return .bool(order != 0) }
  guard let left, let right else { return missing }
  if binary == .concatenate { return .string(naiveText(left) + naiveText(right)) }
  switch binary {
  case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual:
    if left.isNull || right.isNull { return .null }
    switch binary {
    case .equal: return .bool(order == 0)
    case .notEqual: return .bool(order != 0)
    case .less: return .bool(order < 0)
    case .lessOrEqual: return .bool(order <= 0)
    case .greater: return .bool(order > 0)
    default: return .bool(order >= 0)
    }
  default: break
  }
  guard let a = left.double, let b = right.double else { return .null }
  if let x = naiveInteger(left), let y = naiveInteger(right) { return integers(binary, x, y, a, b) }
  switch binary {
  case .add: return naiveNumber(a + b)
  case .subtract: return naiveNumber(a - b)
  case .multiply: return naiveNumber(a * b)
  case .divide: return b == 0 ? missing : naiveNumber(a / b)
  default:
    let divisor = b.rounded(.towardZero)
    if divisor == 0 { return missing }
    return naiveNumber(a.rounded(.towardZero).truncatingRemainder(dividingBy: divisor) + 0)
  }
}

/// Exact where 64 bits hold the result, signed unless a side is above `Int64.max`; else a double.
private func integers(_ binary: BinaryOperator, _ x: Int128, _ y: Int128, _ a: Double, _ b: Double)
  -> JSONValue?
{
  if y == 0, binary == .divide || binary == .modulo { return missing }
  let exact: Int128? =
    switch binary {
    case .add: x + y
    case .subtract: x - y
    case .multiply: x.multipliedReportingOverflow(by: y).overflow ? nil : x * y
    case .divide: x / y
    default: x % y
    }
  let isUnsigned = x > Int128(Int64.max) || y > Int128(Int64.max)
  if let exact, isUnsigned || Int64(exactly: exact) != nil, let result = naiveNumber(exact) { return result }
  switch binary {
  case .add: return naiveNumber(a + b)
  case .subtract: return naiveNumber(a - b)
  case .multiply: return naiveNumber(a * b)
  default: return naiveNumber((a / b).rounded(.towardZero))
  }
}

/// What `||` makes of a value.
func naiveText(_ value: JSONValue) -> String { value.string ?? naiveJSON(value) }

func naiveLike(_ text: String, _ pattern: String, ignoresCase: Bool) -> Bool {
  func folded(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    let lower = String(scalar).lowercased().unicodeScalars
    return ignoresCase && lower.count == 1 ? lower.first ?? scalar : scalar
  }
  func matches(_ text: ArraySlice<Unicode.Scalar>, _ pattern: ArraySlice<Unicode.Scalar>) -> Bool {
    guard var first = pattern.first else { return text.isEmpty }
    var rest = pattern.dropFirst()
    if first == "%" { return (text.startIndex...text.endIndex).contains { matches(text[$0...], rest) } }
    let isAny = first == "_"
    if first == "\\", let escaped = rest.first {
      first = escaped
      rest = rest.dropFirst()
    }
    guard let scalar = text.first, isAny || folded(first) == folded(scalar) else { return false }
    return matches(text.dropFirst(), rest)
  }
  return matches(Array(text.unicodeScalars)[...], Array(pattern.unicodeScalars)[...])
}
