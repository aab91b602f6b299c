// Formats of date strings: the shape of an example, or a pattern of % letters.

/// The format of a date string.
enum DateFormat {
  case shape(DateTime.Shape)
  /// Bytes of the pattern. `isLetter` marks a letter that followed a `%`.
  case pattern([(byte: UInt8, isLetter: Bool)])

  /// Complete ISO 8601: milliseconds only when they aren't zero, the zone as `Z` or `±HHMM`.
  static let iso = DateFormat.shape(DateTime.Shape())

  /// Parses a format. Nil for text that is not a format.
  init?(_ text: TextSlice) {
    if text.utf8.contains(UInt8(ascii: "%")) {
      var pattern: [(byte: UInt8, isLetter: Bool)] = []
      var isLetter = false
      var isExtended = false
      for byte in text.utf8 {
        if isLetter {
          // %Ez is a zone with a colon. The pattern stores it as Z.
          if byte == UInt8(ascii: "E") {
            isExtended = true
            continue
          }
          if isExtended {
            guard byte == UInt8(ascii: "z") else { return nil }
            pattern.append((UInt8(ascii: "Z"), true))
            (isLetter, isExtended) = (false, false)
            continue
          }
          guard "YymdeHMSFTsz%".utf8.contains(byte) else { return nil }
          pattern.append(byte == UInt8(ascii: "%") ? (byte, false) : (byte, true))
          isLetter = false
        } else if byte == UInt8(ascii: "%") {
          isLetter = true
        } else {
          pattern.append((byte, false))
        }
      }
      if isLetter { return nil }
      self = .pattern(pattern)
    } else {
      guard let example = DateTime(text, assumesUTC: true) else { return nil }
      self = .shape(example.shape)
    }
  }

  /// Formats a moment in a zone, which is given in minutes east of UTC.
  func text(_ milliseconds: Int64, offset: Int) -> [UInt8] {
    let parts = Parts(milliseconds, offset: offset)
    var text: [UInt8] = []
    switch self {
    case .shape(let shape):
      if shape.hasDate { parts.appendDate(to: &text) }
      if shape.hasDate && shape.hasTime { text.append(shape.separator) }
      guard shape.hasTime else { break }
      parts.appendTime(to: &text, seconds: shape.hasSeconds)
      if shape.hasMilliseconds ?? (parts.millisecond != 0) { parts.appendMilliseconds(to: &text) }
      if shape.zone != .none { parts.appendZone(to: &text, withColon: shape.zone == .withColon) }
    case .pattern(let pattern):
      for (byte, isLetter) in pattern {
        if isLetter { parts.append(letter: byte, to: &text) } else { text.append(byte) }
      }
    }
    return text
  }

  private struct Parts {
    var date: (year: Int, month: Int, day: Int)
    var hour, minute, second, millisecond: Int
    var offset: Int

    init(_ milliseconds: Int64, offset: Int) {
      let local = milliseconds + Int64(offset) * 60_000
      let days = local.flooredDivision(by: 86_400_000)
      let time = Int(local - days * 86_400_000)
      date = DateTime.date(days)
      hour = time / 3_600_000
      minute = time / 60_000 % 60
      second = time / 1000 % 60
      millisecond = time % 1000
      self.offset = offset
    }

    private func append(_ value: Int, _ digits: Int, to text: inout [UInt8]) {
      if value < 0 { text.append(UInt8(ascii: "-")) }
      let number = String(value.magnitude)
      for _ in 0..<max(0, digits - number.utf8.count) { text.append(UInt8(ascii: "0")) }
      text.append(contentsOf: number.utf8)
    }

    func appendDate(to text: inout [UInt8]) {
      append(date.year, 4, to: &text)
      text.append(UInt8(ascii: "-"))
      append(date.month, 2, to: &text)
      text.append(UInt8(ascii: "-"))
      append(date.day, 2, to: &text)
    }

    func appendTime(to text: inout [UInt8], seconds: Bool) {
      append(hour, 2, to: &text)
      text.append(UInt8(ascii: ":"))
      append(minute, 2, to: &text)
      guard seconds else { return }
      text.append(UInt8(ascii: ":"))
      append(second, 2, to: &text)
    }

    func appendMilliseconds(to text: inout [UInt8]) {
      text.append(UInt8(ascii: "."))
      append(millisecond, 3, to: &text)
    }

    func appendZone(to text: inout [UInt8], withColon: Bool) {
      if offset == 0 { return text.append(UInt8(ascii: "Z")) }
      text.append(UInt8(ascii: offset < 0 ? "-" : "+"))
      append(abs(offset) / 60, 2, to: &text)
      if withColon { text.append(UInt8(ascii: ":")) }
      append(abs(offset) % 60, 2, to: &text)
    }

    func append(letter: UInt8, to text: inout [UInt8]) {
      switch letter {
      case UInt8(ascii: "Y"): append(date.year, 4, to: &text)
      case UInt8(ascii: "y"): append(abs(date.year % 100), 2, to: &text)
      case UInt8(ascii: "m"): append(date.month, 2, to: &text)
      case UInt8(ascii: "d"), UInt8(ascii: "e"): append(date.day, 2, to: &text)
      case UInt8(ascii: "H"): append(hour, 2, to: &text)
      case UInt8(ascii: "M"): append(minute, 2, to: &text)
      case UInt8(ascii: "S"): append(second, 2, to: &text)
      case UInt8(ascii: "F"): appendDate(to: &text)
      case UInt8(ascii: "T"): appendTime(to: &text, seconds: true)
      // Milliseconds have three digits. After a written point they are always there. Otherwise they are there
      // with their own point, when they aren't zero.
      case UInt8(ascii: "s"):
        if text.last == UInt8(ascii: ".") {
          append(millisecond, 3, to: &text)
        } else if millisecond != 0 {
          appendMilliseconds(to: &text)
        }
      case UInt8(ascii: "z"): appendZone(to: &text, withColon: false)
      default: appendZone(to: &text, withColon: true)
      }
    }
  }
}
