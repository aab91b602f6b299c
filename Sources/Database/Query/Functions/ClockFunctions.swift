#if canImport(Glibc)
  import Glibc
#endif

// Functions of the current time. NOW_… give the time of the run, which is the same in all of its expressions,
// and CLOCK_… the time of the call.

enum ClockFunctions {
  static let table: [QueryFunction] =
    functions("NOW", .run) { $0.budget.time }
    + functions("CLOCK", .call) { _ in microseconds }

  /// The current time in microseconds since 1970.
  static var microseconds: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }

  private static func functions(
    _ prefix: String, _ volatility: QueryFunction.Volatility,
    _ time: @escaping @Sendable (EvaluationContext) -> Int64
  ) -> [QueryFunction] {
    @Sendable func text(
      _ zone: Zone, _ arguments: Arguments, _ index: Int, _ context: EvaluationContext
    ) -> QueryValue {
      let milliseconds = time(context).flooredDivision(by: 1000)
      return DateFunctions.text(
        milliseconds, zone.offset(at: milliseconds), DateFunctions.format(arguments, index), context)
    }
    return [
      QueryFunction("\(prefix)_MILLIS", 0...0, volatility: volatility) { _, context, _ in
        .double(Double(time(context)) / 1000)
      },
      QueryFunction("\(prefix)_STR", 0...1, volatility: volatility) { arguments, context, _ in
        unknown(among: arguments) ?? text(.local, arguments, 0, context)
      },
      QueryFunction("\(prefix)_UTC", 0...1, volatility: volatility) { arguments, context, _ in
        unknown(among: arguments) ?? text(.fixed(0), arguments, 0, context)
      },
      QueryFunction("\(prefix)_TZ", 1...2, usesPattern: true, volatility: volatility) {
        arguments, context, site in
        if let unknown = unknown(among: arguments) { return unknown }
        return Zone(arguments[0], context, site).map { text($0, arguments, 1, context) } ?? .null
      },
    ]
  }
}
