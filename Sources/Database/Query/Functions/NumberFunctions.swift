#if canImport(Glibc)
  import Glibc
#endif

// Functions of numbers. Results are doubles, except for ABS of an integer, SIGN and IDIV. A result that isn't
// finite is null.

enum NumberFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("ABS", 1...1) { arguments, _, _ in
      switch arguments[0] {
      case .int(let value): QueryValue(value.magnitude)
      case .uint: arguments[0]
      default: number1(arguments) { abs($0) }
      }
    },
    real("ACOS") { acos($0) }, real("ASIN") { asin($0) }, real("ATAN") { atan($0) },
    real("CEIL") { ceil($0) }, real("COS") { cos($0) }, real("DEGREES") { $0 * 180 / .pi },
    real("EXP") { exp($0) }, real("FLOOR") { floor($0) }, real("LN") { log($0) }, real("LOG") { log10($0) },
    real("RADIANS") { $0 * .pi / 180 }, real("SIN") { sin($0) }, real("SQRT") { $0.squareRoot() },
    real("TAN") { tan($0) },
    QueryFunction("ATAN2", 2...2) { arguments, _, _ in number2(arguments) { atan2($0, $1) } },
    QueryFunction("POWER", 2...2) { arguments, _, _ in number2(arguments) { pow($0, $1) } },
    QueryFunction("E", 0...0) { _, _, _ in .double(M_E) },
    QueryFunction("PI", 0...0) { _, _, _ in .double(.pi) },
    QueryFunction("SIGN", 1...1) { arguments, _, _ in
      guard let value = arguments[0].number else { return arguments[0].isMissing ? .missing : .null }
      return .int(value > 0 ? 1 : value < 0 ? -1 : 0)
    },
    // All numbers are finite.
    QueryFunction("ISNAN", 1...1) { arguments, _, _ in
      arguments[0].number == nil ? (arguments[0].isMissing ? .missing : .null) : .bool(false)
    },
    // With GROUP BY alone, every key is a key of the group. NameResolver+Grouping.swift replaces other calls.
    QueryFunction("GROUPING", 1...31) { _, _, _ in .int(0) },
    QueryFunction("DIV", 2...2) { arguments, _, _ in number2(arguments) { $0 / $1 } },
    QueryFunction("IDIV", 2...2) { arguments, _, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard let a = wholePart(arguments[0]), let b = wholePart(arguments[1]), b != 0 else { return .null }
      if let integer = Int64(exactly: a / b) { return .int(integer) }
      return UInt64(exactly: a / b).map { .uint($0) } ?? .null
    },
    rounding("ROUND", .toNearestOrAwayFromZero), rounding("ROUND_EVEN", .toNearestOrEven),
    rounding("TRUNC", .towardZero), QueryFunction("RANDOM", 0...1, volatility: .call, random),
  ]

  /// `RANDOM([seed])`: a number from 0 up to, but not including, 1. A seed always gives the same number.
  @Sendable private static func random(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    guard let seed = arguments.first else { return .double(Double.random(in: 0..<1)) }
    guard let number = StringFunctions.wholeNumber(seed) else { return seed.isMissing ? .missing : .null }
    // SplitMix64: each bit of the seed changes about half of the bits of the result.
    var bits = UInt64(bitPattern: Int64(number)) &+ 0x9E37_79B9_7F4A_7C15
    bits = (bits ^ bits >> 30) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ bits >> 27) &* 0x94D0_49BB_1331_11EB
    return .double(Double((bits ^ bits >> 31) >> 11) / Double(1 << 53))
  }

  /// A number as an integer, without its fraction. Nil for other types, and for numbers outside the range of
  /// 64-bit integers (signed or unsigned).
  private static func wholePart(_ value: QueryValue) -> Int128? {
    switch value {
    case .int(let integer): return Int128(integer)
    case .uint(let integer): return Int128(integer)
    case .double(let number):
      let whole = number.rounded(.towardZero)
      return Int64(exactly: whole).map { Int128($0) } ?? UInt64(exactly: whole).map { Int128($0) }
    default: return nil
    }
  }

  private static func real(_ name: String, _ body: @escaping @Sendable (Double) -> Double) -> QueryFunction {
    QueryFunction(name, 1...1) { arguments, _, _ in number1(arguments, body) }
  }

  @inline(__always)
  private static func number1(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ body: (Double) -> Double
  ) -> QueryValue {
    guard let value = arguments[0].number else { return arguments[0].isMissing ? .missing : .null }
    return QueryValue(finite: body(value))
  }

  @inline(__always)
  private static func number2(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ body: (Double, Double) -> Double
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard let a = arguments[0].number, let b = arguments[1].number else { return .null }
    return QueryValue(finite: body(a, b))
  }

  /// Rounds to a number of digits after the decimal point. A negative number rounds before it.
  private static func rounding(_ name: String, _ rule: FloatingPointRoundingRule) -> QueryFunction {
    QueryFunction(name, 1...2) { arguments, _, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard let value = arguments[0].number else { return .null }
      guard arguments.count > 1 else { return QueryValue(finite: value.rounded(rule)) }
      guard let digits = arguments[1].integer else { return .null }
      // Outside these limits a double has no digits to round, or no digits would be left.
      if digits > 308 { return .double(value) }
      if digits < -308 { return .double(0) }
      let scale = pow(10, Double(abs(digits)))
      let scaled = digits < 0 ? value / scale : value * scale
      guard scaled.isFinite else { return .double(value) }
      let rounded = scaled.rounded(rule)
      return QueryValue(finite: digits < 0 ? rounded * scale : rounded / scale)
    }
  }
}
