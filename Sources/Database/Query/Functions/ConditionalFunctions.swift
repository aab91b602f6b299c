// Functions that choose one of their arguments.

enum ConditionalFunctions {
  static let table: [QueryFunction] = [
    // The first argument that isn't missing.
    QueryFunction("IFMISSING", 2...127) { arguments, _, _ in
      arguments.first { !$0.isMissing } ?? .null
    },
    // The first argument that isn't null. It may be missing.
    QueryFunction("IFNULL", 2...127) { arguments, _, _ in
      arguments.first { if case .null = $0 { false } else { true } } ?? .null
    },
    QueryFunction("IFMISSINGORNULL", 2...127) { arguments, _, _ in
      arguments.first { !$0.isUnknown } ?? .null
    },
    QueryFunction("MISSINGIF", 2...2) { arguments, context, site in
      ifEqual(arguments, context, site, .missing)
    },
    QueryFunction("NULLIF", 2...2) { arguments, context, site in ifEqual(arguments, context, site, .null) },
    QueryFunction("NVL", 2...2) { arguments, _, _ in arguments[0].isUnknown ? arguments[1] : arguments[0] },
    QueryFunction("NVL2", 3...3) { arguments, _, _ in arguments[0].isUnknown ? arguments[2] : arguments[1] },
    QueryFunction("DECODE", 3...127, decode),
    // Numbers are finite here: what would be infinite or not a number is null.
    QueryFunction("IFINF", 2...127, firstNumber), QueryFunction("IFNAN", 2...127, firstNumber),
    QueryFunction("IFNANORINF", 2...127, firstNumber),
    QueryFunction("NANIF", 2...2) { arguments, context, site in ifEqual(arguments, context, site, .null) },
    QueryFunction("NEGINFIF", 2...2) { arguments, context, site in
      ifEqual(arguments, context, site, .null)
    },
    QueryFunction("POSINFIF", 2...2) { arguments, context, site in
      ifEqual(arguments, context, site, .null)
    },
  ]

  /// `DECODE(value, search, result, …[, default])`: the result of the first search value that equals the value.
  /// Null equals null here, and missing equals missing.
  @Sendable private static func decode(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    let order = context.order(site.collation)
    var index = 1
    while index + 1 < arguments.count {
      if order.areEqual(arguments[0], arguments[index]) { return arguments[index + 1] }
      index += 2
    }
    return index < arguments.count ? arguments[index] : .null
  }

  /// The first number before any other value that isn't missing. Null for another value; missing when all are.
  @Sendable private static func firstNumber(
    _ arguments: Arguments, _ context: EvaluationContext, _ site: CallSite
  ) -> QueryValue {
    guard let first = arguments.first(where: { !$0.isMissing }) else { return .missing }
    return first.type == .number ? first : .null
  }

  /// The first argument, or `result` when both arguments are equal. A missing argument gives missing, else a
  /// null gives null: null equals no value.
  private static func ifEqual(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ context: EvaluationContext, _ site: CallSite,
    _ result: QueryValue
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    return context.order(site.collation).areEqual(arguments[0], arguments[1]) ? result : arguments[0]
  }
}
