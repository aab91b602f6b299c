/// Results as text for a terminal: one row per workload and one column per engine.
///
/// A cell has the median time per operation and, in parentheses, its ratio to the limit's. From the second
/// column on, it also has the ratio to the first engine.
public struct ResultsTable {
  private let results: [WorkloadResult]
  private let engines: [String]

  /// A table of `results` with a column for each of `engines`.
  public init(_ results: [WorkloadResult], engines: [String]) {
    self.results = results
    self.engines = engines
  }

  /// The lines of the table. Columns are aligned by characters.
  public func text() -> String {
    var lines: [String] = []
    for suite in results.map(\.suite).firstOccurrences() {
      if !lines.isEmpty { lines.append("") }
      let rows = results.filter { $0.suite == suite }
      lines += TextTable(suite, rows, engines: engines, cell: cell).lines
      let notes = ParameterColumn(rows).notes
      if !notes.isEmpty { lines += [""] + notes }
    }
    let first = engines.first ?? ""
    lines.append("")
    var ratios: [String] = []
    if results.contains(where: { $0.limit != nil }) {
      ratios.append("in brackets: the ratio to the same work in bare C")
    }
    if engines.count > 1 { ratios.append("after ×: the ratio to \(first)") }
    lines.append(
      "Median time of an operation" + (ratios.isEmpty ? "." : "; " + ratios.joined(separator: "; ") + "."))
    return lines.joined(separator: "\n")
  }

  private func cell(_ engine: String, _ row: [WorkloadResult]) -> String {
    guard let result = row.first(where: { $0.engine == engine }) else { return "-" }
    var text = Format.duration(result.secondsPerOperation)
    if let limit = result.limit { text += " (\(Format.ratio(limit.normalized)))" }
    if let first = row.first(where: { $0.engine == engines.first }), engine != engines.first,
      first.metrics.seconds.median > 0
    {
      text += " ×\(Format.ratio(result.metrics.seconds.median / first.metrics.seconds.median))"
    }
    return text
  }
}
