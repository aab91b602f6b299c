/// Percentiles of single operations for a terminal: a line for each workload and engine that timed them.
public struct LatencyTable {
  private let results: [WorkloadResult]

  /// A table of those of `results` that have latencies.
  public init(_ results: [WorkloadResult]) {
    self.results = results.filter { result in Metric.latencies.allSatisfy { result.metrics[$0.metric] != nil }
    }
  }

  /// Whether there is nothing to show.
  public var isEmpty: Bool { results.isEmpty }

  /// The percentiles as a table has them over its columns.
  static let names = Metric.latencies.map { _, quantile in
    quantile == 1 ? "max" : "p" + Format.shortest(quantile * 100)
  }

  /// The lines of the table: medians of the runs, percentile by percentile.
  public func text() -> String {
    var cells = [["latency", "", ""] + LatencyTable.names]
    var last = ""
    for result in results {
      let isSame = result.label == last
      last = result.label
      cells.append(
        [isSame ? "" : result.workload, isSame ? "" : result.parameters.text, result.engine]
          + Metric.latencies.map { Format.duration(result.metrics[$0.metric]?.median ?? 0) })
    }
    return TextColumns.aligned(cells).joined(separator: "\n")
  }
}
