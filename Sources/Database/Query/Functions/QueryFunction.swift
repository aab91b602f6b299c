// The table of functions. The parser checks names and argument counts with it, and the compiler finds the
// code to call. docs/query-functions.md describes each function.

/// What a call knows besides its arguments.
struct CallSite {
  /// The number of the collation around the call. Nil compares by bytes.
  var collation: Int?
  /// The differences that CONTAINS ignores.
  var like: LikeOptions
  /// The number under which the context keeps the call's compiled pattern.
  var pattern: Int
}

/// The values of a call's arguments.
typealias Arguments = UnsafeBufferPointer<QueryValue>

/// Computes a function. The number of arguments is always one that the table allows.
typealias ScalarFunction = @Sendable (Arguments, EvaluationContext, CallSite) -> QueryValue

/// A function of the query language.
struct QueryFunction: Sendable {
  enum Kind: Sendable {
    case scalar(ScalarFunction)
    /// Computed over the rows of a group, or of a window.
    case aggregate(AggregateKind)
    /// Computed over the rows of a window.
    case window(WindowFunctionKind)
  }

  /// How long a call with the same arguments has the same result. Calls with constant arguments are computed
  /// in advance only if it is `immutable`.
  enum Volatility: Sendable, Comparable {
    /// For ever.
    case immutable
    /// As long as the process keeps its settings, such as the local time zone, or for the current document.
    case environment
    /// During one run of a query. Another run can give another result for the same documents.
    case run
    /// Each call has a result of its own.
    case call
  }

  /// The name in upper case.
  let name: String
  /// The numbers of arguments that the function takes.
  let arguments: ClosedRange<Int>
  let kind: Kind
  /// Whether the call keeps a compiled pattern.
  let usesPattern: Bool
  /// How long a call with the same arguments has the same result.
  let volatility: Volatility

  init(
    _ name: String, _ arguments: ClosedRange<Int>, usesPattern: Bool = false,
    volatility: Volatility = .immutable, _ function: @escaping ScalarFunction
  ) {
    self.name = name
    self.arguments = arguments
    kind = .scalar(function)
    self.usesPattern = usesPattern
    self.volatility = volatility
  }

  init(_ window: WindowFunctionKind) {
    name = window.rawValue
    arguments = window.arguments
    kind = .window(window)
    usesPattern = false
    volatility = .immutable
  }

  init(_ name: String, _ aggregate: AggregateKind) {
    self.name = name
    arguments = 1...1
    kind = .aggregate(aggregate)
    usesPattern = false
    volatility = .immutable
  }

  /// The maximum number of arguments of any function.
  static let maximumArguments = 127

  /// All functions by name.
  static let all: [String: QueryFunction] = {
    var all: [String: QueryFunction] = [:]
    let tables = [
      aggregates, windows, StringFunctions.table, TextFunctions.table, TokenFunctions.table,
      PatternFunctions.table,
      NumberFunctions.table, BitFunctions.table, ArrayFunctions.table, ArrayEditing.table, ArraySets.table,
      ObjectFunctions.table, ObjectPathFunctions.table, JSONFunctions.table, TypeFunctions.table,
      ConditionalFunctions.table, DateFunctions.table, DatePartFunctions.table, ClockFunctions.table,
      FullTextFunctions.table,
      VectorFunctions.table,
    ]
    for table in tables { for function in table { all[function.name] = function } }
    return all
  }()

  private static let aggregates = AggregateKind.allCases.map { QueryFunction($0.rawValue, $0) }
  private static let windows = WindowFunctionKind.allCases.map { QueryFunction($0) }

  /// Finds a function by its name in upper case, or by an alias. Nil when there is none.
  static func named(_ name: String) -> QueryFunction? {
    all[name] ?? aliases[name].flatMap { all[$0] }
  }

  /// Finds the function of a call.
  ///
  /// - Throws: `unknownFunction` or `argumentCount`, with the position of the call.
  static func named(_ call: FunctionCall) throws(QueryError) -> QueryFunction {
    guard let function = named(call.name) else {
      throw QueryError(.unknownFunction, "there is no function \(call.name)", at: call.position)
    }
    guard function.arguments.contains(call.arguments.count) else {
      throw QueryError(
        .argumentCount,
        "\(call.name) takes \(function.argumentsText), but has \(call.arguments.count)",
        at: call.position)
    }
    return function
  }

  /// Whether the function is computed over the rows of a group.
  var isAggregate: Bool { if case .aggregate = kind { true } else { false } }

  /// Whether the function needs a window.
  var isWindowFunction: Bool { if case .window = kind { true } else { false } }

  /// Whether the function can have RESPECT NULLS and IGNORE NULLS.
  var takesNulls: Bool { if case .window(let window) = kind { window.takesNulls } else { false } }

  /// The number of arguments for messages, such as "2 or 3 arguments".
  var argumentsText: String {
    let (low, high) = (arguments.lowerBound, arguments.upperBound)
    if low == high { return low == 0 ? "no arguments" : low == 1 ? "1 argument" : "\(low) arguments" }
    if high == QueryFunction.maximumArguments { return "at least \(low) argument\(low == 1 ? "" : "s")" }
    return high == low + 1 ? "\(low) or \(high) arguments" : "\(low) to \(high) arguments"
  }

  /// The error message for a number of arguments that isn't allowed. Nil when it is allowed.
  func complaint(about count: Int) -> String? {
    if arguments.contains(count) { return nil }
    let taken =
      switch (arguments.lowerBound, arguments.upperBound) {
      case (0, 0): "no arguments"
      case (1, 1): "one argument"
      case (let few, let many) where few == many: "\(few) arguments"
      case (let few, Self.maximumArguments) where count < few:
        "at least \(few) argument\(few == 1 ? "" : "s")"
      case (_, Self.maximumArguments): "at most \(Self.maximumArguments) arguments"
      case (let few, let many): "\(few) to \(many) arguments"
      }
    return "\(name) takes \(taken), not \(count)"
  }
}

/// The aggregate functions. Raw values are their names.
enum AggregateKind: String, CaseIterable, Sendable {
  case count = "COUNT"
  case sum = "SUM"
  case average = "AVG"
  case minimum = "MIN"
  case maximum = "MAX"
  case arrayAggregate = "ARRAY_AGG"
  case countNumbers = "COUNTN"
  case median = "MEDIAN"
  /// The deviation and the variance of a sample. A single value has 0, and NULL in the forms with SAMP.
  case deviation = "STDDEV"
  case sampleDeviation = "STDDEV_SAMP"
  case populationDeviation = "STDDEV_POP"
  case variance = "VARIANCE"
  case sampleVariance = "VARIANCE_SAMP"
  case populationVariance = "VARIANCE_POP"

  /// Whether it uses numbers only.
  var isNumeric: Bool {
    switch self {
    case .count, .minimum, .maximum, .arrayAggregate: false
    default: true
    }
  }

  /// Whether its state is the mean and the sum of the squares of the differences from it.
  var isVariance: Bool {
    switch self {
    case .deviation, .sampleDeviation, .populationDeviation, .variance, .sampleVariance, .populationVariance:
      true
    default: false
    }
  }
}

/// A call of a function.
final class CallNode: CompiledExpression, FoldableNode, @unchecked Sendable {
  private let function: ScalarFunction
  private let site: CallSite
  let parts: [CompiledExpression]
  private let arguments: ExpressionList

  init(_ function: @escaping ScalarFunction, _ parts: [CompiledExpression], _ site: CallSite) {
    self.function = function
    self.parts = parts
    arguments = ExpressionList(parts)
    self.site = site
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    withUnsafeTemporaryAllocation(of: QueryValue.self, capacity: arguments.count) { values in
      if let first = values.baseAddress { arguments.evaluate(context, to: first) }
      return function(UnsafeBufferPointer(values), context, site)
    }
  }
}

/// What most functions return for unknown arguments: MISSING when any is missing, else NULL when any is null.
/// Nil when all are known.
@inline(__always)
func unknown(among arguments: UnsafeBufferPointer<QueryValue>) -> QueryValue? {
  var isNull = false
  for argument in arguments {
    switch argument {
    case .missing: return .missing
    case .null: isNull = true
    default: break
    }
  }
  return isNull ? .null : nil
}
