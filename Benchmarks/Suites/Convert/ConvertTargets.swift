import BenchmarkKit

/// The targets of the suite and its results: documents and bytes per second, and ratios to the limits of the
/// same rounds.
enum ConvertTargets {
  /// One line per workload and engine.
  static func lines(_ results: [WorkloadResult]) -> [String] {
    results.map { result in
      let seconds = result.metrics.seconds.median
      let name = "\(label(result)): "
      guard result.workload != ConvertWorkload.rekey.rawValue else {
        let took = "\(rounded(seconds)) s, two derivations of a passphrase in it"
        return name + took + verdict("less than 1 s", seconds < 1)
      }
      var text = "\(whole(Double(result.operations) / seconds)) documents a second"
      if result.metrics.fileBytes.median > 0 {
        text += ", \(whole(result.metrics.fileBytes.median / seconds / 1e6)) MB a second"
      }
      guard let limit = result.limit else { return name + text }
      let found = Statistics.ratio(limit.seconds.samples, over: result.metrics.seconds.samples)
      if result.workload == ConvertWorkload.verify.rawValue {
        let ratio = found.ratio > 0 ? 1 / found.ratio : 0
        return name + text + ", \(rounded(ratio)) times \(limit.name)" + verdict("at most 2", ratio <= 2)
      }
      let interval = "95%: \(rounded(found.interval.lowerBound)) to \(rounded(found.interval.upperBound))"
      return name + text + ", \(rounded(found.ratio))x the speed of \(limit.name) (\(interval))"
        + (result.workload == ConvertWorkload.convert.rawValue
          ? verdict("at least 0.5", found.ratio >= 0.5) : "")
    }
  }

  private static func label(_ result: WorkloadResult) -> String {
    switch (result.parameters["from"], result.parameters["with"]) {
    case (let from?, _): "convert \(from) to \(result.engine)"
    case (_, let with?): "verify \(result.engine) with \(with)"
    default: "\(result.workload), \(result.engine)"
    }
  }

  private static func verdict(_ reach: String, _ isReached: Bool) -> String {
    " (to reach: \(reach); \(isReached ? "reached" : "NOT reached"))"
  }

  private static func whole(_ value: Double) -> String { value.isFinite ? "\(Int(value.rounded()))" : "?" }
  private static func rounded(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
}
