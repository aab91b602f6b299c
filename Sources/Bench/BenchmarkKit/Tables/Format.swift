/// Formats numbers for tables.
package enum Format {
  /// A time with three significant digits and its unit: `1.04 µs`.
  package static func duration(_ seconds: Double) -> String {
    let units: [(scale: Double, name: String)] = [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
    // The unit is chosen after rounding: 999.5 µs is 1.00 ms.
    let unit = units.first { seconds >= $0.scale * 0.9995 } ?? units[units.count - 1]
    return "\(threeDigits(seconds / unit.scale)) \(unit.name)"
  }

  /// A ratio with two decimals, or three digits from 10 on.
  package static func ratio(_ value: Double) -> String {
    value < 9.995 ? decimals(value, 2) : threeDigits(value)
  }

  /// A number of operations with three significant digits: `0.52`, `21,300`.
  package static func count(_ value: Double) -> String {
    guard value.isFinite, value >= 999.5, value < 1e15 else { return threeDigits(value) }
    var scale = 1.0
    while value / scale >= 999.5 { scale *= 10 }
    let digits = Array(String(Int((value / scale).rounded() * scale)))
    return digits.enumerated().map { index, digit in
      (index > 0 && (digits.count - index) % 3 == 0 ? "," : "") + String(digit)
    }.joined()
  }

  /// Text of a ratio with its interval: `1.25x (95%: 1.20 to 1.31)`.
  package static func ratio(_ found: (ratio: Double, interval: ClosedRange<Double>)) -> String {
    "\(ratio(found.ratio))x (95%: \(interval(found.interval)))"
  }

  /// Text of an interval of ratios: `1.20 to 1.31`.
  package static func interval(_ interval: ClosedRange<Double>) -> String {
    "\(ratio(interval.lowerBound)) to \(ratio(interval.upperBound))"
  }

  /// A metric's value with its unit: `1.04 µs`, `12.3 MiB`.
  static func value(_ value: Double, of metric: Metric) -> String {
    switch metric.unit {
    case "s": duration(value)
    case "B": bytes(value)
    case "": ratio(value)
    default: "\(threeDigits(value)) \(metric.unit)"
    }
  }

  /// A number of bytes with three significant digits.
  static func bytes(_ count: Double) -> String {
    let units: [(scale: Double, name: String)] = [(1_073_741_824, "GiB"), (1_048_576, "MiB"), (1_024, "KiB")]
    guard let unit = units.first(where: { count >= $0.scale }) else { return "\(decimals(count, 0)) B" }
    return "\(threeDigits(count / unit.scale)) \(unit.name)"
  }

  /// A number without trailing zeros: `99.9`, `50`.
  static func shortest(_ value: Double) -> String {
    let text = decimals(value, 2)
    return text.hasSuffix(".00")
      ? String(text.dropLast(3)) : text.hasSuffix("0") ? String(text.dropLast()) : text
  }

  static func threeDigits(_ value: Double) -> String {
    decimals(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0)
  }

  /// A number with 0, 1 or 2 decimals.
  package static func decimals(_ value: Double, _ count: Int) -> String {
    guard value.isFinite, value.magnitude < 1e15 else { return "\(value)" }
    let scale = count == 0 ? 1 : count == 1 ? 10 : 100
    let scaled = Int((value.magnitude * Double(scale)).rounded())
    let sign = value < 0 && scaled > 0 ? "-" : ""
    guard count > 0 else { return "\(sign)\(scaled)" }
    let fraction = String(scaled % scale)
    let zeros = String(repeating: "0", count: count - fraction.count)
    return "\(sign)\(scaled / scale).\(zeros)\(fraction)"
  }
}
