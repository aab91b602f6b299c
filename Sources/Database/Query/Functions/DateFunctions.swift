// Functions of dates. Milliseconds are numbers counted from 1970-01-01T00:00:00Z. What is not a date gives
// null.

enum DateFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("STR_TO_MILLIS", 1...1, volatility: .environment) { arguments, _, _ in
      date(arguments) { .int($0.milliseconds) }
    },
    QueryFunction("STR_TO_UTC", 1...2, volatility: .environment) { arguments, context, _ in
      date(arguments) { text($0.milliseconds, 0, format(arguments, 1), context) }
    },
    QueryFunction("STR_TO_TZ", 2...3, usesPattern: true, volatility: .environment) {
      arguments, context, site in
      date(arguments) { date in
        guard let zone = Zone(arguments[1], context, site) else { return .null }
        return text(date.milliseconds, zone.offset(at: date.milliseconds), format(arguments, 2), context)
      }
    },
    QueryFunction("MILLIS_TO_STR", 1...2, volatility: .environment) { arguments, context, _ in
      milliseconds(arguments) {
        text($0, DateTime.localOffset(at: $0), format(arguments, 1), context)
      }
    },
    QueryFunction("MILLIS_TO_UTC", 1...2) { arguments, context, _ in
      milliseconds(arguments) { text($0, 0, format(arguments, 1), context) }
    },
    QueryFunction("MILLIS_TO_TZ", 2...3, usesPattern: true) { arguments, context, site in
      milliseconds(arguments) { milliseconds in
        guard let zone = Zone(arguments[1], context, site) else { return .null }
        return text(milliseconds, zone.offset(at: milliseconds), format(arguments, 2), context)
      }
    },
    QueryFunction("DATE_DIFF_STR", 3...3, volatility: .environment) { arguments, _, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard case .string(let a) = arguments[0], case .string(let b) = arguments[1],
        let first = DateTime(a), let second = DateTime(b), let part = DatePart(arguments[2])
      else { return .null }
      return .int(part.difference(first.milliseconds, second.milliseconds))
    },
    QueryFunction("DATE_DIFF_MILLIS", 3...3) { arguments, _, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard let a = moment(arguments[0]), let b = moment(arguments[1]), let part = DatePart(arguments[2])
      else { return .null }
      return .int(part.difference(a, b))
    },
    QueryFunction("DATE_ADD_STR", 3...4) { arguments, context, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard case .string(let source) = arguments[0], let date = DateTime(source, assumesUTC: true),
        let amount = arguments[1].integer, let part = DatePart(arguments[2])
      else { return .null }
      let offset = date.offset ?? 0
      let local = date.milliseconds + Int64(offset) * 60_000
      guard let sum = part.add(amount, to: local) else { return .null }
      var shape = date.shape
      // When the sum has milliseconds, they are shown.
      if shape.hasTime, shape.hasMilliseconds == false { shape.hasMilliseconds = nil }
      return text(
        sum - Int64(offset) * 60_000, offset, format(arguments, 3) ?? .shape(shape), context)
    },
    QueryFunction("DATE_ADD_MILLIS", 3...3) { arguments, _, _ in
      if let unknown = unknown(among: arguments) { return unknown }
      guard let start = moment(arguments[0]), let amount = arguments[1].integer,
        let part = DatePart(arguments[2]), let sum = part.add(amount, to: start)
      else { return .null }
      return .int(sum)
    },
  ]

  /// The range of dates, in milliseconds: the years -9999 to 9999. Its bounds keep the arithmetic far from
  /// overflowing 64 bits.
  static let latest: Int64 = 253_402_300_799_999
  static let earliest: Int64 = -377_705_116_800_000

  static func date(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ body: (DateTime) -> QueryValue
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let text) = arguments[0], let date = DateTime(text) else { return .null }
    return body(date)
  }

  static func milliseconds(
    _ arguments: UnsafeBufferPointer<QueryValue>, _ body: (Int64) -> QueryValue
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard let milliseconds = moment(arguments[0]) else { return .null }
    return body(milliseconds)
  }

  /// A number as milliseconds, within the years -9999 to 9999.
  static func moment(_ value: QueryValue) -> Int64? {
    guard let milliseconds = value.integer, milliseconds >= earliest, milliseconds <= latest else {
      return nil
    }
    return milliseconds
  }

  /// The format in an argument. Nil when there is no such argument, or it is not a format.
  static func format(_ arguments: UnsafeBufferPointer<QueryValue>, _ index: Int) -> DateFormat? {
    guard index < arguments.count, case .string(let text) = arguments[index] else { return nil }
    return DateFormat(text)
  }

  static func text(
    _ milliseconds: Int64, _ offset: Int, _ format: DateFormat?, _ context: EvaluationContext
  ) -> QueryValue {
    let text = (format ?? .iso).text(milliseconds, offset: offset)
    return text.withUnsafeBytes { .string(context.arena.copy(TextSlice($0))) }
  }
}

/// A unit of dates, in which differences are counted.
enum DatePart: String {
  case millennium, century, decade, year, quarter, month, week, day, hour, minute, second, millisecond

  /// The unit of a name, in any case. Nil for an unknown name.
  init?(_ value: QueryValue) {
    guard case .string(let text) = value, let part = DatePart(rawValue: text.string.lowercased()) else {
      return nil
    }
    self = part
  }

  /// The number of boundaries of the unit between two moments, in UTC. Weeks are counted as seven days each.
  /// The result is positive when the first moment is later.
  func difference(_ a: Int64, _ b: Int64) -> Int64 {
    if self == .week { return (DatePart.day.count(a) - DatePart.day.count(b)) / 7 }
    return count(a) - count(b)
  }

  /// The number of the unit that contains a moment, counted from a fixed origin.
  private func count(_ milliseconds: Int64) -> Int64 {
    let days = milliseconds.flooredDivision(by: 86_400_000)
    let (year, month, _) = DateTime.date(days)
    return switch self {
    case .millennium: Int64(year).flooredDivision(by: 1000)
    case .century: Int64(year).flooredDivision(by: 100)
    case .decade: Int64(year).flooredDivision(by: 10)
    case .year: Int64(year)
    case .quarter: Int64(year * 4 + (month - 1) / 3)
    case .month: Int64(year * 12 + month)
    case .week: days.flooredDivision(by: 7)
    case .day: days
    case .hour: milliseconds.flooredDivision(by: 3_600_000)
    case .minute: milliseconds.flooredDivision(by: 60_000)
    case .second: milliseconds.flooredDivision(by: 1000)
    case .millisecond: milliseconds
    }
  }

  /// Adds an amount of units to a moment. Nil when the result is outside the years -9999 to 9999. When units
  /// of months lead to a day that doesn't exist, the result is the last day of the month.
  func add(_ amount: Int64, to milliseconds: Int64) -> Int64? {
    let perUnit: Int64
    switch self {
    case .millisecond: perUnit = 1
    case .second: perUnit = 1000
    case .minute: perUnit = 60_000
    case .hour: perUnit = 3_600_000
    case .day: perUnit = 86_400_000
    case .week: perUnit = 604_800_000
    case .month: return add(months: amount, times: 1, to: milliseconds)
    case .quarter: return add(months: amount, times: 3, to: milliseconds)
    case .year: return add(months: amount, times: 12, to: milliseconds)
    case .decade: return add(months: amount, times: 120, to: milliseconds)
    case .century: return add(months: amount, times: 1200, to: milliseconds)
    case .millennium: return add(months: amount, times: 12_000, to: milliseconds)
    }
    let (added, overflow) = amount.multipliedReportingOverflow(by: perUnit)
    let (sum, overflowed) = milliseconds.addingReportingOverflow(added)
    return overflow || overflowed ? nil : within(sum)
  }

  private func within(_ milliseconds: Int64) -> Int64? {
    milliseconds >= DateFunctions.earliest && milliseconds <= DateFunctions.latest ? milliseconds : nil
  }

  private func add(months: Int64, times: Int64, to milliseconds: Int64) -> Int64? {
    guard months.magnitude < 1_000_000 else { return nil }
    let days = milliseconds.flooredDivision(by: 86_400_000)
    let (year, month, day) = DateTime.date(days)
    let total = Int64(year * 12 + month - 1) + months * times
    let newYear = Int(total.flooredDivision(by: 12))
    // Years far outside the range would overflow 64 bits of milliseconds.
    guard newYear.magnitude <= 10_000 else { return nil }
    let newMonth = Int(total - Int64(newYear) * 12) + 1
    let newDay = min(day, DateTime.daysInMonth(newYear, newMonth))
    guard let moved = DateTime.days(year: newYear, month: newMonth, day: newDay) else { return nil }
    return within(moved * 86_400_000 + milliseconds - days * 86_400_000)
  }
}
