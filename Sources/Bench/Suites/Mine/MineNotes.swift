import BenchmarkKit

/// The remarks of the suite `mine`.
enum MineNotes {
  /// Says how much the indexes help each query, and which engines kept a rate.
  static func lines(_ results: [WorkloadResult]) -> [String] {
    var lines = YCSBNotes.lines(results)
    let queries = results.filter { $0.parameters["index"] != nil }
    for name in queries.map(\.workload).firstOccurrences() {
      let parts = queries.engines.compactMap { engine -> String? in
        func seconds(_ index: String) -> Double? {
          queries.first {
            $0.workload == name && $0.engine == engine && $0.parameters["index"] == .string(index)
          }?.metrics.seconds.median
        }
        guard let plain = seconds("none"), let indexed = seconds("all"), indexed > 0 else { return nil }
        return "\(Format.ratio(plain / indexed))× as fast on \(engine)"
      }
      if !parts.isEmpty { lines.append("\(name) with the indexes: \(parts.joined(separator: ", ")).") }
    }
    return lines
  }

  /// The mix as the suite `endure` tells it, and the plans of the queries.
  static func tables(_ results: [WorkloadResult]) -> [Remarks.Table] {
    var rows: [[String]] = []
    for row in results.filter({ $0.plan != nil }).rows {
      let plans = row.compactMap(\.plan).firstOccurrences()
      for plan in plans {
        // Engines have the same plan as a rule.
        let engines =
          plans.count == 1 ? "all" : row.filter { $0.plan == plan }.map(\.engine).joined(separator: ", ")
        rows.append([row[0].label, engines, text(plan)])
      }
    }
    let plans = rows.isEmpty ? [] : [Remarks.Table(heads: ["query", "engine", "plan"], rows: rows)]
    return EndureNotes.tables(results) + plans
  }

  /// A plan on one line, the last operation first.
  private static func text(_ plan: [String]) -> String {
    plan.map { $0.trimmingPrefix { " └─".contains($0) } }.joined(separator: " ← ")
  }
}
