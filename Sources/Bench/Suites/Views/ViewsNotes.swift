import BenchmarkKit

/// The remarks of the suite `views`.
enum ViewsNotes {
  static func lines(_ results: [WorkloadResult]) -> [String] {
    builds(results) + travel(results)
      + Growth.all(in: results.filter { $0.workload == ViewsWorkload.reduceTotal.rawValue }).filter {
        $0.parameter == "rows"
      }.map { $0.sentence() }
  }

  /// How long a build takes beside the index.
  private static func builds(_ results: [WorkloadResult]) -> [String] {
    results.filter { $0.workload == ViewsWorkload.build.rawValue && $0.parameters["map"] == .string("swift") }
      .compactMap { build in
        let index = results.first {
          $0.workload == ViewsWorkload.createIndex.rawValue && $0.engine == build.engine
            && $0.parameters["rows"] == build.parameters["rows"]
            && $0.parameters["key"] == build.parameters["key"]
        }
        guard let index, index.metrics.seconds.median > 0 else { return nil }
        let ratio = build.metrics.seconds.median / index.metrics.seconds.median
        return
          "\(build.label) takes \(rounded(ratio)) times as long on \(build.engine) as the equal value index."
      }
  }

  private static func travel(_ results: [WorkloadResult]) -> [String] {
    results.filter { $0.workload == ViewsWorkload.buildTravel.rawValue && $0.operations > 0 }.map {
      let microseconds = $0.metrics.seconds.median / Double($0.operations) * 1e6
      return "\($0.label) takes \(rounded(microseconds)) µs a document on \($0.engine)."
    }
  }

  private static func rounded(_ number: Double) -> Double { (number * 100).rounded() / 100 }
}
