/// A comparison as text for a terminal: one row per workload and engine, with the medians, their ratio and
/// its interval.
package struct ComparisonTable {
  private let comparison: Comparison
  private let onlyDifferences: Bool

  /// A table of all rows, or of only those that differ.
  package init(_ comparison: Comparison, onlyDifferences: Bool = false) {
    self.comparison = comparison
    self.onlyDifferences = onlyDifferences
  }

  /// The lines of the table, measure by measure, and a summary sentence.
  package func text() -> String {
    var blocks: [String] = []
    for measure in comparison.rows.map(\.measure).firstOccurrences() {
      let all = comparison.rows.filter { $0.measure == measure }
      let shown = onlyDifferences ? all.filter { $0.verdict != .unclear } : all
      var table = TextTable(["\(measure)", "engine", "first", "second", "ratio", "95% interval", "p", ""])
      for row in shown {
        table.add(
          "\(row.suite) \(row.label)", row.engine, value(row.base, measure), value(row.new, measure),
          "\(Format.ratio(row.ratio))x",
          Format.interval(row.interval),
          row.probability < 0.001 ? "<0.001" : Format.decimals(row.probability, 2), row.verdict.rawValue)
      }
      let better = all.count { $0.verdict == .better }
      let worse = all.count { $0.verdict == .worse }
      blocks.append(
        (shown.isEmpty ? "" : table.text + "\n")
          + "\(measure): \(better) better, \(worse) worse, \(all.count - better - worse) without a significant difference, of "
          + "\(all.count).")
    }
    return blocks.joined(separator: "\n\n")
  }

  private func value(_ value: Double, _ measure: Comparison.Measure) -> String {
    guard case .metric(let metric) = measure else { return Format.ratio(value) }
    return Format.value(value, of: metric)
  }
}
