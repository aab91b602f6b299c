import BenchmarkKit
import Storage

extension Suite {
  /// The standard mixes of reads, updates, inserts and scans for comparing stores.
  public static let ycsb = Suite(
    name: "ycsb",
    summary:
      "The load and the workloads A to F of the Yahoo! Cloud Serving Benchmark, over documents with ten fields of 100 "
      + "bytes, with one and more threads, at full speed and at target rates.",
    workloadNames: YCSBWorkload.allCases.map(\.rawValue), usesDataset: false, runsOnServers: true,
    notes: YCSBNotes.lines
  ) { context in
    let data = YCSBData(context)
    let settings = context.settings
    return YCSBWorkload.allCases.flatMap { kind in
      kind.variants(threads: settings.threads, rates: settings.rates).map {
        YCSBBenchmark(kind: kind, variant: $0, data: data, context: context).workload()
      }
    }
  }
}

/// The remarks on rows with target rates.
enum YCSBNotes {
  /// One line per row: whether the rate was reached. If it wasn't, the latencies are those of a growing
  /// queue.
  static func lines(_ results: [WorkloadResult]) -> [String] {
    var labels: [String] = []
    for result in results where !labels.contains(result.label) { labels.append(result.label) }
    return labels.compactMap { label in
      let rows = results.filter { $0.label == label }
      guard case .integer(let rate)? = rows.first?.parameters["rate"] else { return nil }
      let parts = rows.map { row in
        let reached = row.metrics.opsPerSecond.median
        let isKept = reached >= 0.98 * Double(rate)
        return isKept
          ? "\(row.engine) kept it" : "\(row.engine) did \(Int(reached.rounded())), and its queue grew"
      }
      return "\(label), latencies from the intended start: \(parts.joined(separator: "; "))"
    }
  }
}
