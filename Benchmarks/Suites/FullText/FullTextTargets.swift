import BenchmarkKit

/// The targets for full-text indexes, and the results.
enum FullTextTargets {
  /// One line per target for which the run has results.
  static func lines(_ results: [WorkloadResult]) -> [String] {
    var lines: [String] = []
    for engine in ["lmdb", "sqlite", "sqlcipher"] {
      let rows = results.filter { $0.engine == engine }
      guard !rows.isEmpty else { continue }
      func add(_ what: String, _ workloads: [String], _ asked: (lmdb: Double, sqlite: Double)?) {
        let ratios = workloads.compactMap { name in
          rows.first { $0.workload == name }?.limit.flatMap {
            $0.normalized > 0 ? (name, 1 / $0.normalized) : nil
          }
        }
        guard let least = ratios.map(\.1).min() else { return }
        let each = ratios.map { "\($0.0) \(text($0.1))x" }.joined(separator: ", ")
        var line = "\(engine), \(what) against FTS5: \(each)"
        if let asked, engine != "sqlcipher" {
          let reach = engine == "lmdb" ? asked.lmdb : asked.sqlite
          line += " (to reach: \(text(reach))x; \(least >= reach ? "reached" : "NOT reached"))"
        }
        lines.append(line + ".")
      }
      add("building", ["build"], (0.7, 0.5))
      add("one word, all rows", ["word"], (2, 1))
      add("phrase and NEAR", ["phrase", "near"], (1.5, 1))
      add("ranked top 20", ["ranked", "ranked-or"], (3, 1.5))
      add("the rest", ["and", "or", "prefix", "update"], nil)
      if let documents = bytes(rows, "documents"), let indexed = bytes(rows, "indexed"),
        let fts5 = bytes(rows, "fts5"), fts5 > 0
      {
        let ratio = (indexed - documents) / fts5
        lines.append(
          "\(engine), size of the index: \(text((indexed - documents) / 1_048_576)) MiB, \(text(ratio))x FTS5's with "
            + "content='' (to reach: at most 1.2x; \(ratio <= 1.2 ? "reached" : "NOT reached")).")
      }
    }
    return lines
  }

  private static func bytes(_ rows: [WorkloadResult], _ what: String) -> Double? {
    rows.first { $0.workload == "size" && $0.parameters["of"] == .string(what) }?.metrics.fileBytes.median
  }

  private static func text(_ value: Double) -> String {
    let hundredths = Int((value * 100).rounded())
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)"
  }
}
