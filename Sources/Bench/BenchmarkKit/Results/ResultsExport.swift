import Bytes
import FoundationEssentials

/// Results in formats that other programs read.
package struct ResultsExport {
  private let results: [WorkloadResult]

  /// Exports the results of these files, one file after another. If several files have the same result, only
  /// the first is exported: readers of these formats expect each name once.
  package init(_ files: [ResultsFile]) {
    var seen: Set<String> = []
    results = files.flatMap(\.results).filter { seen.insert($0.identity).inserted }
  }

  /// Comma-separated values (RFC 4180): one line per result and metric, after a header line.
  ///
  /// Columns: suite, workload, parameters, engine, operations, metric, unit, samples, median, p95, p99,
  /// ci95_low, ci95_high. The times of limits have the metrics `limit_seconds` and `normalized`.
  package func csv() -> String {
    var lines = [
      "suite,workload,parameters,engine,operations,metric,unit,samples,median,p95,p99,ci95_low,ci95_high"
    ]
    for result in results {
      let identity = [
        result.suite, result.workload, result.parameters.text, result.engine, "\(result.operations)",
      ]
      func add(_ metric: String, _ unit: String, _ distribution: Distribution) {
        let numbers = [distribution.median, distribution.p95, distribution.p99] + distribution.ci95
        let cells =
          identity + [metric, unit, "\(distribution.samples.count)"] + numbers.map { "\($0)" }
        lines.append(cells.map(\.csvField).joined(separator: ","))
      }
      for metric in Metric.allCases {
        if let found = result.metrics[metric] { add(metric.rawValue, metric.unit, found) }
      }
      if let limit = result.limit { add("limit_seconds", "s", limit.seconds) }
      if let samples = Comparison.Measure.normalized.samples(of: result) {
        add("normalized", "", Distribution(samples))
      }
    }
    return lines.joined(separator: "\r\n") + "\r\n"
  }

  /// A Markdown table per suite, with one row per workload and one column per engine. A cell has the median
  /// time of an operation, and in parentheses its ratio to the limit's.
  package func markdown() -> String {
    results.map(\.suite).firstOccurrences().map { suite in
      let rows = results.filter { $0.suite == suite }
      let engines = rows.engines
      var lines = [
        "| \(suite) | \(engines.joined(separator: " | ")) |", "|---|\(engines.map { _ in "---:|" }.joined())",
      ]
      for label in rows.map(\.label).firstOccurrences() {
        let cells = engines.map { engine -> String in
          guard let result = rows.first(where: { $0.label == label && $0.engine == engine }) else {
            return "-"
          }
          let time = Format.duration(result.secondsPerOperation)
          return result.limit.map { "\(time) (\(Format.ratio($0.normalized)))" } ?? time
        }
        lines.append("| \(label.replacing("|", with: "\\|")) | \(cells.joined(separator: " | ")) |")
      }
      return lines.joined(separator: "\n") + "\n"
    }.joined(separator: "\n")
  }

  /// The input of the GitHub action `benchmark` with its tool `customSmallerIsBetter`: a JSON array of
  /// objects with `name`, `unit`, `value` and `range`. Here `range` is half the width of the 95% interval.
  ///
  /// Values are nanoseconds per operation, and `normalized` if there is a limit. `normalized` values of
  /// machines with different speeds can share a dashboard.
  package func smallerIsBetter() throws -> Data {
    struct Entry: Encodable {
      let name: String
      let unit: String
      let value: Double
      let range: String
    }
    let entries = results.flatMap { result -> [Entry] in
      let scale = 1e9 / Double(max(1, result.operations))
      let seconds = result.metrics.seconds
      var entries = [
        Entry(
          name: result.identity, unit: "ns/op", value: seconds.median * scale,
          range: "± \((seconds.ci95[1] - seconds.ci95[0]) / 2 * scale)")
      ]
      if let samples = Comparison.Measure.normalized.samples(of: result) {
        let normalized = Distribution(samples)
        entries.append(
          Entry(
            name: "\(result.identity), times its limit", unit: "x", value: normalized.median,
            range: "± \((normalized.ci95[1] - normalized.ci95[0]) / 2)"))
      }
      return entries
    }
    return try JSONEncoder.readable.encode(entries)
  }
}
