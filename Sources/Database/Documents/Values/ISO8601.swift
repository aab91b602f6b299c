import FoundationEssentials

// Dates in JSON: ISO 8601 strings.
//
//   written := YYYY-MM-DD "T" hh:mm:ss.mmm "Z"
//   read    := date [("T" | "t" | " ") time [zone]]
//   date    := YYYY "-" MM ["-" DD]
//   time    := hh ":" mm [":" ss ["." digit+]]       hh up to 24, ss up to 60
//   zone    := "Z" | "z" | ("+" | "-") hh [":"] mm   none: UTC

/// The text form of dates: milliseconds, in UTC.
enum ISO8601 {
  /// Returns the milliseconds since 1970 for a text, nil if the text isn't a date.
  static func milliseconds(_ text: String) -> Double? {
    var text = text
    return text.withUTF8 { utf8 in
      var scanner = Scanner(utf8: utf8)
      return scanner.milliseconds()
    }
  }

  /// Returns the text of a date between the years 0 and 9999, nil for other dates.
  static func text(_ date: Date) -> String? {
    let milliseconds = (date.timeIntervalSince1970 * 1000).rounded()
    guard milliseconds >= -62_167_219_200_000, milliseconds < 253_402_300_800_000 else { return nil }
    let total = Int64(milliseconds)
    let day = total >= 0 ? total / 86_400_000 : -((-total + 86_399_999) / 86_400_000)
    let (year, month, dayOfMonth) = civil(day)
    let time = total - day * 86_400_000
    var text: [UInt8] = []
    text.reserveCapacity(24)
    func append(_ number: Int64, digits: Int) {
      var divisor: Int64 = 1
      for _ in 1..<digits { divisor *= 10 }
      while divisor > 0 {
        text.append(UInt8(0x30 + number / divisor % 10))
        divisor /= 10
      }
    }
    append(year, digits: 4)
    text.append(UInt8(ascii: "-"))
    append(month, digits: 2)
    text.append(UInt8(ascii: "-"))
    append(dayOfMonth, digits: 2)
    text.append(UInt8(ascii: "T"))
    append(time / 3_600_000, digits: 2)
    text.append(UInt8(ascii: ":"))
    append(time / 60_000 % 60, digits: 2)
    text.append(UInt8(ascii: ":"))
    append(time / 1_000 % 60, digits: 2)
    text.append(UInt8(ascii: "."))
    append(time % 1_000, digits: 3)
    text.append(UInt8(ascii: "Z"))
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns the number of days since 1970 for a date of the proleptic Gregorian calendar. (Years begin in
  /// March here, so that a leap day comes last. 400 years have 146,097 days.)
  fileprivate static func day(year: Int64, month: Int64, day: Int64) -> Int64 {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  fileprivate static func civil(_ day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = day + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
    return (year, month < 10 ? month + 3 : month - 9, dayOfYear - (153 * month + 2) / 5 + 1)
  }

  private struct Scanner {
    let utf8: UnsafeBufferPointer<UInt8>
    var position = 0

    init(utf8: UnsafeBufferPointer<UInt8>) { self.utf8 = utf8 }

    var next: UInt8? { position < utf8.count ? utf8[position] : nil }

    mutating func skip(_ byte: Character) -> Bool {
      guard let next, next == byte.asciiValue else { return false }
      position += 1
      return true
    }

    mutating func number(_ digits: Int, in range: ClosedRange<Int64>) -> Int64? {
      guard utf8.count - position >= digits else { return nil }
      var value: Int64 = 0
      for _ in 0..<digits {
        let digit = utf8[position] &- 0x30
        guard digit < 10 else { return nil }
        value = value * 10 + Int64(digit)
        position += 1
      }
      return range.contains(value) ? value : nil
    }

    mutating func milliseconds() -> Double? {
      guard let year = number(4, in: 0...9999), skip("-"), let month = number(2, in: 1...12) else {
        return nil
      }
      var dayOfMonth: Int64 = 1
      if skip("-") {
        guard let number = number(2, in: 1...31) else { return nil }
        dayOfMonth = number
      }
      let day = ISO8601.day(year: year, month: month, day: dayOfMonth)
      // Rejects the 31st of a month with 30 days.
      guard ISO8601.civil(day) == (year, month, dayOfMonth) else { return nil }
      var result = Double(day) * 86_400_000
      if next == nil { return result }
      guard skip("T") || skip("t") || skip(" "), let hour = number(2, in: 0...24), skip(":"),
        let minute = number(2, in: 0...59)
      else { return nil }
      result += Double(hour * 3_600_000 + minute * 60_000)
      if skip(":") {
        guard let second = number(2, in: 0...60) else { return nil }
        result += Double(second * 1_000)
        if skip(".") {
          var unit = 100.0
          let first = position
          while let digit = number(1, in: 0...9) {
            result += Double(digit) * unit
            unit /= 10
          }
          guard position > first else { return nil }
        }
      }
      guard let zone = zone(), position == utf8.count else { return nil }
      return result - zone
    }

    /// Returns the zone's offset in milliseconds east of UTC.
    private mutating func zone() -> Double? {
      if next == nil || skip("Z") || skip("z") { return 0 }
      let sign = skip("+") ? 1.0 : skip("-") ? -1.0 : 0
      guard sign != 0, let hours = number(2, in: 0...23) else { return nil }
      _ = skip(":")
      guard let minutes = number(2, in: 0...59) else { return nil }
      return sign * Double(hours * 3_600_000 + minutes * 60_000)
    }
  }
}
