import BenchmarkKit
import Storage

extension Suite {
  /// Mixes of reads, updates, inserts and scans over documents, as the field compares stores by.
  public static let ycsb = Suite(
    name: "ycsb",
    summary:
      "The Yahoo! Cloud Serving Benchmark's load and workloads A to F over documents with ten fields of 100 bytes, by "
      + "one thread and more, as fast as it goes and at target rates.",
    workloadNames: YCSBWorkload.allCases.map(\.rawValue), usesDataset: false, notes: YCSBNotes.lines
  ) { context in
    let data = YCSBData(context)
    let settings = context.settings
    return YCSBWorkload.allCases.flatMap { kind in
      kind.variants(threads: settings.threads, rates: settings.rates).map {
        YCSBRow(kind, $0, data, context).workload()
      }
    }
  }
}

/// What the rows at target rates say, in words.
enum YCSBNotes {
  /// A line for each row: whether the rate was kept. One that wasn't has latencies of a queue that grows.
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
