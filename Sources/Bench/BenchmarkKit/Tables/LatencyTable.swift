/// Percentiles of single operations as text for a terminal: one line per workload and engine that timed them.
package struct LatencyTable {
  private let results: [WorkloadResult]

  /// A table of the results that have latencies.
  package init(_ results: [WorkloadResult]) {
    self.results = results.filter { result in Metric.latencies.allSatisfy { result.metrics[$0.metric] != nil }
    }
  }

  /// Whether there is nothing to show.
  package var isEmpty: Bool { results.isEmpty }

  /// The names of the percentiles, for the heads of columns.
  static let names = Metric.latencies.map { name($0.quantile) }

  /// The name of a quantile: `p99`.
  static func name(_ quantile: Double) -> String {
    quantile == 1 ? "max" : "p" + Format.shortest(quantile * 100)
  }

  /// The lines of the table. Each cell is the median over the runs.
  package func text() -> String {
    var table = TextTable(["latency", "", ""] + LatencyTable.names)
    let parameters = ParameterColumn(results)
    var last = ""
    for result in results {
      let isSame = result.label == last
      last = result.label
      table.add(
        [isSame ? "" : result.workload, isSame ? "" : parameters.text(result), result.engine]
          + Metric.latencies.map { Format.duration(result.metrics[$0.metric]?.median ?? 0) })
    }
    return table.text
  }
}
