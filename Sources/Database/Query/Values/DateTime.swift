#if canImport(Glibc)
  import Glibc
#endif

// Dates as text, in ISO 8601:
//
//   text = date [("T" | " ") time] | time
//   date = [sign] YYYY "-" MM "-" DD
//   time = HH ":" MM [":" SS ["." digits]] [zone]
//   zone = "Z" | ("+" | "-") HH [":"] MM
//
// The shape of a text is the set of its parts. A format gives a shape by an example: `1111-11-11` is a date
// without a time.

/// A moment in the proleptic Gregorian calendar, and the shape of the text that it was read from.
struct DateTime {
  /// The parts of a date text.
  struct Shape: Equatable {
    enum Zone { case none, short, withColon }
    var hasDate = true
    var hasTime = true
    var hasSeconds = true
    /// Nil prints milliseconds only when they aren't zero.
    var hasMilliseconds: Bool?
    var separator = UInt8(ascii: "T")
    var zone = Zone.short
  }

  /// Milliseconds since 1970, in UTC.
  var milliseconds: Int64
  /// The zone in the text, in minutes east of UTC. Nil when the text had none.
  var offset: Int?
  var shape: Shape

  /// Parses a text. Nil when it isn't a date. A text without a zone is in local time, or in UTC with
  /// `assumesUTC`.
  init?(_ text: TextSlice, assumesUTC: Bool = false) {
    var reader = Reader(text: text)
    shape = Shape(hasTime: false, hasSeconds: false, hasMilliseconds: false, zone: .none)
    var days: Int64 = 0
    var time: Int64 = 0
    if reader.isTime {
      shape.hasDate = false
    } else {
      guard let year = reader.number(4), reader.skip("-"), let month = reader.number(2), reader.skip("-"),
        let day = reader.number(2), let found = DateTime.days(year: year, month: month, day: day)
      else { return nil }
      days = found
      if let separator = reader.peek, separator == UInt8(ascii: "T") || separator == UInt8(ascii: " ") {
        shape.separator = separator
        reader.offset += 1
        guard reader.isTime else { return nil }
      }
    }
    if reader.isTime {
      shape.hasTime = true
      guard let hour = reader.number(2), hour <= 23, reader.skip(":"), let minute = reader.number(2),
        minute <= 59
      else { return nil }
      time = Int64(hour * 3_600_000 + minute * 60_000)
      if reader.skip(":") {
        guard let second = reader.number(2), second <= 59 else { return nil }
        shape.hasSeconds = true
        time += Int64(second * 1000)
        if reader.skip(".") {
          guard let fraction = reader.fraction() else { return nil }
          shape.hasMilliseconds = true
          time += Int64(fraction)
        }
      }
      if reader.skip("Z") {
        offset = 0
        shape.zone = .short
      } else if let sign = reader.peek, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") {
        reader.offset += 1
        guard let hours = reader.number(2), hours <= 23 else { return nil }
        shape.zone = reader.skip(":") ? .withColon : .short
        guard let minutes = reader.number(2), minutes <= 59 else { return nil }
        offset = (hours * 60 + minutes) * (sign == UInt8(ascii: "-") ? -1 : 1)
      }
    }
    guard reader.isAtEnd else { return nil }
    let local = days * 86_400_000 + time
    if let offset {
      milliseconds = local - Int64(offset) * 60_000
    } else {
      milliseconds = assumesUTC ? local : DateTime.utc(fromLocal: local)
    }
  }

  private struct Reader {
    let text: TextSlice
    var offset = 0

    var peek: UInt8? { offset < text.count ? text.start[offset] : nil }
    var isAtEnd: Bool { offset == text.count }
    /// Whether `HH:` comes next.
    var isTime: Bool { offset + 2 < text.count && text.start[offset + 2] == UInt8(ascii: ":") }

    mutating func skip(_ byte: Unicode.Scalar) -> Bool {
      guard peek == UInt8(ascii: byte) else { return false }
      offset += 1
      return true
    }

    mutating func number(_ digits: Int) -> Int? {
      guard offset + digits <= text.count else { return nil }
      var value = 0
      for _ in 0..<digits {
        let digit = text.start[offset] &- 0x30
        guard digit < 10 else { return nil }
        value = value * 10 + Int(digit)
        offset += 1
      }
      return value
    }

    /// Reads the digits of a fraction as milliseconds. Further digits are cut off.
    mutating func fraction() -> Int? {
      var (value, digits) = (0, 0)
      while let byte = peek, byte &- 0x30 < 10 {
        if digits < 3 { value = value * 10 + Int(byte - 0x30) }
        digits += 1
        offset += 1
      }
      guard digits > 0 else { return nil }
      for _ in min(digits, 3)..<3 { value *= 10 }
      return value
    }
  }
}

// The calendar. Days are counted from 1970-01-01. Years are grouped in eras of 400 years that begin in March.
extension DateTime {
  static func daysInMonth(_ year: Int, _ month: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }

  /// The number of a day. Nil when the date doesn't exist.
  static func days(year: Int, month: Int, day: Int) -> Int64? {
    guard month >= 1, month <= 12, day >= 1, day <= daysInMonth(year, month) else { return nil }
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return Int64(era * 146_097 + dayOfEra - 719_468)
  }

  /// The date of a day number.
  static func date(_ days: Int64) -> (year: Int, month: Int, day: Int) {
    let shifted = Int(days) + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }

  /// The offset of the local zone at a moment, in minutes east of UTC.
  static func localOffset(at milliseconds: Int64) -> Int {
    var seconds = time_t(milliseconds.flooredDivision(by: 1000))
    var local = tm()
    guard localtime_r(&seconds, &local) != nil else { return 0 }
    return local.tm_gmtoff / 60
  }

  /// The moment of a local time. When the local time occurs twice or never, mktime decides.
  static func utc(fromLocal local: Int64) -> Int64 {
    let days = local.flooredDivision(by: 86_400_000)
    let time = Int32(truncatingIfNeeded: (local - days * 86_400_000) / 1000)
    let (year, month, day) = date(days)
    var parts = tm()
    parts.tm_year = Int32(year - 1900)
    parts.tm_mon = Int32(month - 1)
    parts.tm_mday = Int32(day)
    parts.tm_hour = time / 3600
    parts.tm_min = time / 60 % 60
    parts.tm_sec = time % 60
    parts.tm_isdst = -1
    let milliseconds = local - local.flooredDivision(by: 1000) * 1000
    return Int64(mktime(&parts)) * 1000 + milliseconds
  }
}

extension Int64 {
  /// The quotient, rounded down.
  func flooredDivision(by divisor: Int64) -> Int64 {
    let quotient = self / divisor
    return self % divisor < 0 ? quotient - 1 : quotient
  }
}

/// Texts of dates, for others than queries.
package enum DateText {
  /// The milliseconds since 1970 of a date, or of a date and a time with its zone, such as `2027-01-31T12:00:00+05:30`. A date
  /// begins in UTC. Nil for what isn't one.
  package static func milliseconds(of text: String) -> Int64? {
    Array(text.utf8).withUnsafeBytes { bytes in
      guard let date = DateTime(TextSlice(bytes), assumesUTC: true), date.shape.hasDate,
        date.offset != nil || !date.shape.hasTime
      else { return nil }
      return date.milliseconds
    }
  }
}
