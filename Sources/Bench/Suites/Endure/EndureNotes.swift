import BenchmarkKit

/// The remarks of the suite `endure`.
enum EndureNotes {
  /// Says which engines kept a rate.
  static func lines(_ results: [WorkloadResult]) -> [String] {
    var lines = YCSBNotes.lines(results)
    if results.contains(where: {
      $0.metrics[.diskWriteAmplification] == nil && $0.metrics[.longestStall] != nil
    }) {
      lines.append(
        "The kernel counted no bytes given to the disk, as on a file system in memory, so write amplification is missing."
      )
    }
    return lines
  }

  /// A line for each result: what a user feels, what it costs, and what the library did meanwhile.
  static func tables(_ results: [WorkloadResult]) -> [Remarks.Table] {
    let results = results.filter { $0.metrics[.longestStall] != nil }
    let parameters = ParameterColumn(results)
    let rows = results.map { result in
      func cell(_ metric: Metric, _ format: (Double) -> String) -> String {
        result.metrics[metric].map { format($0.median) } ?? "-"
      }
      return [
        parameters.label(result), result.engine, Format.ratio(result.metrics.opsPerSecond.median),
        cell(.latencyP50, Format.duration), cell(.latencyP99, Format.duration),
        cell(.longestStall) { $0 > 0 ? Format.duration($0) : "none" },
        cell(.diskWriteAmplification, Format.ratio),
        cell(.spaceAmplification, Format.ratio), cell(.peakSpaceAmplification, Format.ratio),
        // It is looked at twenty times a second.
        result.metrics[.secondsUntilQuiet].map { $0.median < 0.05 ? "at once" : Format.duration($0.median) }
          ?? "not in time",
        meanwhile(result),
      ]
    }
    guard !rows.isEmpty else { return [] }
    return [
      Remarks.Table(
        heads: [
          "workload", "engine", "operations/s", "median", "p99", "longest stall", "written/byte",
          "stored/byte",
          "at most", "quiet after", "meanwhile",
        ], rows: rows)
    ]
  }

  /// What the library counted at the end of the first run: `flushes 12, compactions 7`.
  private static func meanwhile(_ result: WorkloadResult) -> String {
    guard let series = result.series?.all.first else { return "" }
    return series.activity.sorted { $0.key < $1.key }.map { name, values in
      // Totals end with their greatest value. Of others, the greatest is what a run came to.
      "\(name) \(Int(values.max() ?? 0))"
    }.joined(separator: ", ")
  }
}
