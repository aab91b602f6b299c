/// Durations as text: `1h2m3.5s`, `-2ms`, `1.5µs`. Units are h, m, s, ms, µs (or us) and ns.
enum DurationText {
  private static let units: [(name: String, nanoseconds: Int64)] = [
    ("ns", 1), ("us", 1000), ("µs", 1000), ("μs", 1000), ("ms", 1_000_000), ("s", 1_000_000_000),
    ("m", 60_000_000_000), ("h", 3_600_000_000_000),
  ]

  /// The nanoseconds of a text. Nil when it isn't a duration, or is out of range.
  static func nanoseconds(_ text: String) -> Int64? {
    var rest = Substring(text)
    let isNegative = rest.first == "-"
    if isNegative || rest.first == "+" { rest.removeFirst() }
    if rest == "0" { return 0 }
    guard !rest.isEmpty else { return nil }
    var total: Int64 = 0
    while !rest.isEmpty {
      let number = rest.prefix { $0.isASCII && $0.isNumber || $0 == "." }
      rest = rest[number.endIndex...]
      let name = rest.prefix { !($0.isASCII && $0.isNumber || $0 == ".") }
      rest = rest[name.endIndex...]
      guard let unit = units.first(where: { $0.name == name })?.nanoseconds,
        let part = product(of: number, and: unit)
      else { return nil }
      let (sum, overflow) = total.addingReportingOverflow(part)
      if overflow { return nil }
      total = sum
    }
    return isNegative ? -total : total
  }

  /// A decimal number times a unit, cut off to whole nanoseconds.
  private static func product(of number: Substring, and unit: Int64) -> Int64? {
    let parts = number.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count <= 2, number.contains(where: \.isNumber),
      let whole = Int64(parts[0].isEmpty ? "0" : parts[0])
    else { return nil }
    let (product, overflow) = whole.multipliedReportingOverflow(by: unit)
    if overflow { return nil }
    var fraction: Int64 = 0
    // Further digits are below a nanosecond of the longest unit.
    for digit in parts.count > 1 ? parts[1].prefix(15).reversed() : [] {
      fraction = (fraction + Int64(digit.wholeNumberValue ?? 0) * unit) / 10
    }
    let (sum, overflowed) = product.addingReportingOverflow(fraction)
    return overflowed ? nil : sum
  }

  /// The text of so many nanoseconds.
  static func text(_ nanoseconds: Int64) -> String {
    if nanoseconds == 0 { return "0s" }
    let sign = nanoseconds < 0 ? "-" : ""
    let all = nanoseconds.magnitude
    switch all {
    case ..<1000: return "\(sign)\(all)ns"
    case ..<1_000_000: return sign + decimal(all, 1000) + "µs"
    case ..<1_000_000_000: return sign + decimal(all, 1_000_000) + "ms"
    default:
      let minutes = all / 60_000_000_000
      let seconds = decimal(all % 60_000_000_000, 1_000_000_000) + "s"
      if minutes == 0 { return sign + seconds }
      return sign + (minutes >= 60 ? "\(minutes / 60)h" : "") + "\(minutes % 60)m" + seconds
    }
  }

  /// A quotient with all its digits behind the point, without zeros at the end.
  private static func decimal(_ value: UInt64, _ unit: UInt64) -> String {
    var digits = String(String(unit + value % unit).dropFirst())
    while digits.last == "0" { digits.removeLast() }
    return digits.isEmpty ? "\(value / unit)" : "\(value / unit).\(digits)"
  }
}
