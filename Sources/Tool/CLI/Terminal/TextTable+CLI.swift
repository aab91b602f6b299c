import BenchmarkKit

/// The table that the bench prints too.
typealias TextTable = BenchmarkKit.TextTable

extension TextTable {
  /// Pads `text` with spaces to a width. At least two spaces are added.
  static func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(2, width - text.count))
  }

  /// A number with thousands separators: `31,591`.
  static func grouped(_ number: some BinaryInteger) -> String {
    var digits = String(number.magnitude)
    var groups: [String] = []
    while digits.count > 3 {
      groups.insert(String(digits.suffix(3)), at: 0)
      digits.removeLast(3)
    }
    return (number < 0 ? "-" : "") + ([digits] + groups).joined(separator: ",")
  }

  /// A number with its noun: `1 document`, `31,591 documents`.
  static func counted(_ number: Int, _ noun: String) -> String {
    "\(grouped(number)) \(noun)\(number == 1 ? "" : "s")"
  }
}
