// Functions of the parts of dates, of ranges of dates, and of durations.

enum DatePartFunctions {
  static let table: [QueryFunction] = [
    QueryFunction("DATE_PART_MILLIS", 2...3, usesPattern: true, volatility: .environment) {
      arguments, context, site in
      local(arguments, zone: 2, context, site) { date in
        DateComponent(arguments[1]).map { .int($0.value(in: date)) } ?? .null
      }
    },
    QueryFunction("DATE_PART_STR", 2...2, volatility: .environment) { arguments, _, _ in
      DateFunctions.date(arguments) { date in
        DateComponent(arguments[1]).map { .int($0.value(in: LocalDate(date))) } ?? .null
      }
    },
    QueryFunction("WEEKDAY_MILLIS", 1...2, usesPattern: true, volatility: .environment) {
      arguments, context, site in
      local(arguments, zone: 1, context, site) { QueryValue($0.weekdayName) }
    },
    QueryFunction("WEEKDAY_STR", 1...1, volatility: .environment) { arguments, _, _ in
      DateFunctions.date(arguments) { QueryValue(LocalDate($0).weekdayName) }
    },
    QueryFunction("DATE_TRUNC_MILLIS", 2...2) { arguments, _, _ in
      DateFunctions.milliseconds(arguments) { milliseconds in
        TruncatedPart(arguments[1])?.truncate(milliseconds).map { .int($0) } ?? .null
      }
    },
    QueryFunction("DATE_TRUNC_STR", 2...2) { arguments, context, _ in
      written(arguments) { local, write in
        TruncatedPart(arguments[1])?.truncate(local).map { write($0, context) } ?? .null
      }
    },
    QueryFunction("DATE_RANGE_MILLIS", 3...4) { arguments, context, _ in
      DateFunctions.milliseconds(arguments) { start in
        guard let end = DateFunctions.moment(arguments[1]) else { return .null }
        return range(arguments, from: start, to: end, context) { .int($0) }
      }
    },
    QueryFunction("DATE_RANGE_STR", 3...4) { arguments, context, _ in
      written(arguments) { local, write in
        guard case .string(let text) = arguments[1], let end = DateTime(text, assumesUTC: true) else {
          return .null
        }
        // Both are compared in the zone of the start.
        let shift = Int64(end.offset == nil ? 0 : (DateTime(arguments[0])?.offset ?? 0)) * 60_000
        return range(arguments, from: local, to: end.milliseconds + shift, context) { write($0, context) }
      }
    },
    QueryFunction("DATE_FORMAT_STR", 2...2, volatility: .environment) { arguments, context, _ in
      DateFunctions.date(arguments) { date in
        guard arguments[1].type == .string else { return .null }
        return DateFunctions.text(
          date.milliseconds, LocalDate(date).offset, DateFunctions.format(arguments, 1), context)
      }
    },
    QueryFunction("DURATION_TO_STR", 1...1) { arguments, context, _ in
      guard let nanoseconds = arguments[0].integer else { return arguments[0].isMissing ? .missing : .null }
      return .string(context.arena.copy(DurationText.text(nanoseconds)))
    },
    QueryFunction("STR_TO_DURATION", 1...1) { arguments, _, _ in
      StringFunctions.text1(arguments) { DurationText.nanoseconds($0.string).map { .int($0) } ?? .null }
    },
  ]

  /// Computes a function of milliseconds in a zone: that of an argument, or the local one.
  private static func local(
    _ arguments: Arguments, zone index: Int, _ context: EvaluationContext, _ site: CallSite,
    _ body: (LocalDate) -> QueryValue
  ) -> QueryValue {
    DateFunctions.milliseconds(arguments) { milliseconds in
      guard let zone = index < arguments.count ? Zone(arguments[index], context, site) : .local else {
        return .null
      }
      return body(LocalDate(milliseconds, offset: zone.offset(at: milliseconds)))
    }
  }

  /// Computes a function of a date text. `body` gets the local time of the text in milliseconds, and a function
  /// that writes a local time in the form of the text.
  private static func written(
    _ arguments: Arguments, _ body: (Int64, (Int64, EvaluationContext) -> QueryValue) -> QueryValue
  ) -> QueryValue {
    if let unknown = unknown(among: arguments) { return unknown }
    guard case .string(let text) = arguments[0], let date = DateTime(text, assumesUTC: true) else {
      return .null
    }
    let offset = date.offset ?? 0
    let shift = Int64(offset) * 60_000
    return body(date.milliseconds + shift) { local, context in
      DateFunctions.text(local - shift, offset, .shape(date.shape), context)
    }
  }

  /// `DATE_RANGE_…(start, end, part[, step])`: the dates from the start up to, but not including, the end. Each is
  /// so many parts after the start, so that a range of months keeps the day where there is one.
  private static func range(
    _ arguments: Arguments, from start: Int64, to end: Int64, _ context: EvaluationContext,
    _ make: (Int64) -> QueryValue
  ) -> QueryValue {
    guard let part = DatePart(arguments[2]) else { return .null }
    var step: Int64 = 1
    if arguments.count > 3 {
      guard let given = StringFunctions.wholeNumber(arguments[3]) else { return .null }
      step = Int64(given)
    }
    guard step != 0 else { return context.arena.array([make(start)]) }
    var dates: [QueryValue] = []
    var next = start
    while step > 0 ? next < end : next > end {
      dates.append(make(next))
      guard dates.count <= context.limits.items, context.goesOn else {
        return context.tooManyItems(of: "DATE_RANGE")
      }
      let (amount, overflow) = step.multipliedReportingOverflow(by: Int64(dates.count))
      guard !overflow, let sum = part.add(amount, to: start) else { break }
      next = sum
    }
    return context.array(dates, of: "DATE_RANGE")
  }
}

/// A date and a time of day in a zone.
struct LocalDate {
  /// The days since 1970-01-01 in the zone.
  let days: Int64
  /// The milliseconds since midnight.
  let time: Int64
  /// The zone in minutes east of UTC.
  let offset: Int

  init(_ milliseconds: Int64, offset: Int) {
    let local = milliseconds + Int64(offset) * 60_000
    days = local.flooredDivision(by: 86_400_000)
    time = local - days * 86_400_000
    self.offset = offset
  }

  /// The date of a text, in its own zone, or else in the local one.
  init(_ date: DateTime) {
    self.init(
      date.milliseconds, offset: date.offset ?? DateTime.localOffset(at: date.milliseconds))
  }

  /// 0 is Sunday.
  var weekday: Int64 { (days + 4) - (days + 4).flooredDivision(by: 7) * 7 }

  var weekdayName: StaticString {
    switch weekday {
    case 0: "Sunday"
    case 1: "Monday"
    case 2: "Tuesday"
    case 3: "Wednesday"
    case 4: "Thursday"
    case 5: "Friday"
    default: "Saturday"
    }
  }

  /// The Thursday of the week, which begins with Monday. Its year is the week's year.
  var thursday: Int64 { days - (weekday + 6) % 7 + 3 }

  /// The number of a day in its year, from 1.
  static func dayOfYear(_ days: Int64) -> Int64 {
    days - (DateTime.days(year: DateTime.date(days).year, month: 1, day: 1) ?? days) + 1
  }
}

/// A part of a date that DATE_PART_… reads.
enum DateComponent: String {
  case millennium, century, decade, year, quarter, month, week, day, hour, minute, second, millisecond
  case calendarMonth = "calendar_month"
  case isoYear = "iso_year"
  case isoWeek = "iso_week"
  case isoDayOfWeek = "iso_dow"
  case dayOfYear = "day_of_year"
  case dayOfWeek = "day_of_week"
  case timezone
  case timezoneHour = "timezone_hour"
  case timezoneMinute = "timezone_minute"

  /// The component of a name, in any case. Nil for an unknown name.
  init?(_ value: QueryValue) {
    guard case .string(let text) = value else { return nil }
    switch text.string.lowercased() {
    case "doy": self = .dayOfYear
    case "dow": self = .dayOfWeek
    case let name:
      guard let component = DateComponent(rawValue: name) else { return nil }
      self = component
    }
  }

  func value(in local: LocalDate) -> Int64 {
    let (year, month, day) = DateTime.date(local.days)
    return switch self {
    case .millennium: Int64(year).flooredDivision(by: 1000) + 1
    case .century: Int64(year).flooredDivision(by: 100) + 1
    case .decade: Int64(year).flooredDivision(by: 10)
    case .year: Int64(year)
    case .quarter: Int64((month + 2) / 3)
    case .month, .calendarMonth: Int64(month)
    case .week: (LocalDate.dayOfYear(local.days) + 6) / 7
    case .day: Int64(day)
    case .hour: local.time / 3_600_000
    case .minute: local.time / 60_000 % 60
    case .second: local.time / 1000 % 60
    case .millisecond: local.time % 1000
    case .isoYear: Int64(DateTime.date(local.thursday).year)
    case .isoWeek: (LocalDate.dayOfYear(local.thursday) + 6) / 7
    case .isoDayOfWeek: (local.weekday + 6) % 7 + 1
    case .dayOfYear: LocalDate.dayOfYear(local.days)
    case .dayOfWeek: local.weekday
    case .timezone: Int64(local.offset * 60)
    case .timezoneHour: Int64(local.offset / 60)
    case .timezoneMinute: Int64(local.offset % 60)
    }
  }
}

/// What DATE_TRUNC_… keeps of a date.
private enum TruncatedPart {
  case part(DatePart)
  /// To the Monday. A plain week begins with Sunday.
  case isoWeek

  init?(_ value: QueryValue) {
    if case .string(let text) = value, text.string.lowercased() == "iso_week" {
      self = .isoWeek
    } else if let part = DatePart(value) {
      self = .part(part)
    } else {
      return nil
    }
  }

  /// The beginning of the part that contains a local time in milliseconds. Nil before year -9999.
  func truncate(_ local: Int64) -> Int64? {
    let date = LocalDate(local, offset: 0)
    let (year, month, _) = DateTime.date(date.days)
    func first(of year: Int, _ month: Int = 1) -> Int64? { DateTime.days(year: year, month: month, day: 1) }
    func floored(_ years: Int) -> Int { Int(Int64(year).flooredDivision(by: Int64(years))) * years }
    let days: Int64?
    switch self {
    case .isoWeek: days = date.days - (date.weekday + 6) % 7
    case .part(.millennium): days = first(of: floored(1000))
    case .part(.century): days = first(of: floored(100))
    case .part(.decade): days = first(of: floored(10))
    case .part(.year): days = first(of: year)
    case .part(.quarter): days = first(of: year, (month - 1) / 3 * 3 + 1)
    case .part(.month): days = first(of: year, month)
    case .part(.week): days = date.days - date.weekday
    case .part(.day): days = date.days
    case .part(.hour): return local - date.time % 3_600_000
    case .part(.minute): return local - date.time % 60_000
    case .part(.second): return local - date.time % 1000
    case .part(.millisecond): return local
    }
    return days.flatMap { $0 * 86_400_000 >= DateFunctions.earliest ? $0 * 86_400_000 : nil }
  }
}

extension DateTime {
  fileprivate init?(_ value: QueryValue) {
    guard case .string(let text) = value else { return nil }
    self.init(text, assumesUTC: true)
  }
}
