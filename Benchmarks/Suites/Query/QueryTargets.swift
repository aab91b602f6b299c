import BenchmarkKit

/// The targets for queries, and the results.
enum QueryTargets {
  /// One line per target for which the run has results.
  static func lines(_ results: [WorkloadResult]) -> [String] {
    var lines: [String] = []
    for engine in ["lmdb", "sqlite", "sqlcipher"] {
      let isLMDB = engine == "lmdb"
      add(
        "\(engine), without index, q2-q9", ratios(results, engine, "none", 2...9), asked: isLMDB ? 20 : 7,
        &lines)
      let indexed = ratios(results, engine, "value", 2...5) + ratios(results, engine, "value", 7...7)
      add("\(engine), with index, q2-q5 and q7", indexed, asked: isLMDB ? 4 : 2, &lines)
    }
    if let reject = results.first(where: { $0.workload == "reject" && $0.engine == "lmdb" }) {
      lines.append("A refused row on lmdb: \(text(reject.secondsPerOperation * 1e6)) µs (asked 0.3).")
    }
    for engine in ["lmdb", "sqlite"] {
      if let plan = results.first(where: { $0.workload == "plan" && $0.engine == engine }) {
        lines.append(
          "Parse and plan of q5 on \(engine): \(text(plan.secondsPerOperation * 1e6)) µs (asked 60).")
      }
      let inserts = results.filter { $0.workload == "insert" && $0.engine == engine }
      if let plain = inserts.first(where: { $0.parameters["indexes"] == .integer(0) }),
        let one = inserts.first(where: { $0.parameters["indexes"] == .integer(1) })
      {
        let ratio = one.metrics.seconds.median / plain.metrics.seconds.median
        lines.append("Insert with one index on \(engine): \(text(ratio))x without (asked 1.5).")
      }
    }
    return lines
  }

  /// How many times faster the queries are than SQLite's JSON functions.
  private static func ratios(
    _ results: [WorkloadResult], _ engine: String, _ index: String, _ numbers: ClosedRange<Int>
  ) -> [(String, Double)] {
    numbers.compactMap { number in
      guard
        let limit = results.first(where: {
          $0.workload == "q\(number)" && $0.engine == engine && $0.parameters["index"] == .string(index)
        })?.limit, limit.normalized > 0
      else { return nil }
      return ("q\(number)", 1 / limit.normalized)
    }
  }

  private static func add(
    _ what: String, _ ratios: [(String, Double)], asked: Double, _ lines: inout [String]
  ) {
    guard let least = ratios.map(\.1).min() else { return }
    let each = ratios.map { "\($0.0) \(text($0.1))x" }.joined(separator: ", ")
    lines.append(
      "Faster than SQLite's JSON functions, \(what): \(each); at least \(text(least))x (asked \(text(asked)))."
    )
  }

  private static func text(_ value: Double) -> String {
    let tenths = Int((value * 10).rounded())
    return value < 1 ? "\(Double(Int((value * 1000).rounded())) / 1000)" : "\(tenths / 10).\(tenths % 10)"
  }
}
