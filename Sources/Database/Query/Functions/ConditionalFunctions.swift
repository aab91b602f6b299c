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
  ]

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
