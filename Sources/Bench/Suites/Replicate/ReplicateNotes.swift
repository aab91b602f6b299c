import BenchmarkKit

/// The remarks of the suite `replicate`: what each row takes beside time.
enum ReplicateNotes {
  static func lines(_ results: [WorkloadResult]) -> [String] {
    guard !results.isEmpty, results.allSatisfy({ $0.parameters["link"] == "local" }) else { return [] }
    return ["The links ws and wss were left out: this program has no `serve` to start."]
  }

  static func tables(_ results: [WorkloadResult]) -> [Remarks.Table] {
    guard !results.isEmpty else { return [] }
    return [
      Remarks.Table(
        heads: [
          "replication", "engine", "a second", "CPU µs here", "there", "wire per byte", "messages",
          "MiB here", "there",
        ], rows: results.map(row))
    ]
  }

  private static func row(_ result: WorkloadResult) -> [String] {
    func median(_ metric: Metric) -> Double? { result.metrics[metric]?.median }
    func cpu(_ metric: Metric) -> String {
      median(metric).map { rounded($0 * 1e6 / Double(max(1, result.operations))) } ?? "-"
    }
    func mebibytes(_ metric: Metric) -> String { median(metric).map { rounded($0 / 1_048_576) } ?? "-" }
    return [
      result.label, result.engine, rounded(result.metrics.opsPerSecond.median), cpu(.cpuSeconds),
      cpu(.remoteCPUSeconds), median(.wireAmplification).map { "\(($0 * 1_000).rounded() / 1_000)" } ?? "-",
      median(.messages).map { rounded($0) } ?? "-", mebibytes(.anonymousMemoryBytes),
      mebibytes(.remoteAnonymousBytes),
    ]
  }

  /// A number with one decimal below 100, otherwise whole.
  private static func rounded(_ value: Double) -> String {
    value < 100 ? "\((value * 10).rounded() / 10)" : "\(Int(value.rounded()))"
  }
}
