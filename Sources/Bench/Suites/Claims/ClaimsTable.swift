import BenchmarkKit

/// A table of each claim, the measured value, and whether the claim holds.
enum ClaimsTable {
  private static let new = "lmdb"
  private static let old = "sqlite"

  /// The table. Empty if the run didn't have both engines.
  static func tables(_ results: [WorkloadResult]) -> [Remarks.Table] {
    let rows = speed(results) + readers(results) + memory(results)
    return rows.isEmpty ? [] : [Remarks.Table(heads: ["claim", "measured", "holds"], rows: rows)]
  }

  private static func row(
    _ results: [WorkloadResult], _ kind: ClaimsWorkload, _ engine: String, _ parameters: Parameters = [:]
  ) -> WorkloadResult? {
    results.first { $0.workload == kind.rawValue && $0.engine == engine && $0.parameters == parameters }
  }

  // MARK: 2x to 5x as fast

  private static func speed(_ results: [WorkloadResult]) -> [[String]] {
    var lines: [[String]] = []
    var count = 0
    var reached = 0
    for kind in ClaimsWorkload.operations {
      guard let new = row(results, kind, new), let old = row(results, kind, old) else { continue }
      let found = Bootstrap.ratio(old.metrics.seconds.samples, over: new.metrics.seconds.samples)
      count += 1
      if found.ratio >= 2 { reached += 1 }
      let verdict =
        found.interval.lowerBound >= 2
        ? found.ratio > 5 ? "yes, and more" : "yes" : found.interval.upperBound < 2 ? "no" : "can't be told"
      lines.append([
        "2x to 5x as fast: \(kind.rawValue)",
        Format.ratio(found),
        verdict,
      ])
    }
    if count > 0 {
      lines.append([
        "2x to 5x as fast, depending on the operation", "at least 2x in \(reached) of \(count)",
        reached == count ? "yes" : reached == 0 ? "no" : "in part",
      ])
    }
    return lines
  }

  // MARK: Writers never block readers

  private static func readers(_ results: [WorkloadResult]) -> [[String]] {
    [new, old].flatMap { engine in
      [ClaimsWorkload.readP50, .readP99].compactMap { kind -> [String]? in
        guard let alone = row(results, kind, engine, ["writer": .boolean(false)]),
          let beside = row(results, kind, engine, ["writer": .boolean(true)])
        else { return nil }
        let found = Bootstrap.ratio(beside.metrics.seconds.samples, over: alone.metrics.seconds.samples)
        return [
          "writers never block readers: \(engine), \(kind.rawValue)",
          "\(micros(alone)) µs alone, \(micros(beside)) µs beside a writer: \(Format.ratio(found.ratio))x",
          // Four readers and a writer share the processors. That alone may double the time.
          found.ratio <= 2 ? "yes" : "slower: \(Format.ratio(found.ratio))x",
        ]
      }
    }
  }

  // MARK: Lower RAM footprint

  /// The bytes of memory per database after the first.
  private static func footprint(_ results: [WorkloadResult], _ engine: String, _ metric: Metric) -> Double? {
    let rows = results.filter { $0.workload == ClaimsWorkload.openMany.rawValue && $0.engine == engine }
      .compactMap { row -> (count: Int, bytes: Double)? in
        guard case .integer(let count)? = row.parameters["databases"], let values = row.metrics[metric] else {
          return nil
        }
        return (count, values.median)
      }.sorted { $0.count < $1.count }
    guard let first = rows.first, let last = rows.last, last.count > first.count else { return nil }
    return (last.bytes - first.bytes) / Double(last.count - first.count)
  }

  private static func memory(_ results: [WorkloadResult]) -> [[String]] {
    let metrics: [(String, Metric)] = [
      ("the process's own memory", .anonymousMemoryBytes),
      ("with pages of mapped files", .settledMemoryBytes),
    ]
    return metrics.compactMap { text, metric in
      guard let new = footprint(results, new, metric), let old = footprint(results, old, metric) else {
        return nil
      }
      return [
        "lower RAM footprint: \(text)",
        "\(kibibytes(new)) KiB a database with \(self.new), \(kibibytes(old)) with \(self.old)",
        new < old ? "yes" : "no",
      ]
    }
  }

  private static func kibibytes(_ bytes: Double) -> String { "\(Int((bytes / 1_024).rounded()))" }
  private static func micros(_ row: WorkloadResult) -> String { Format.ratio(row.secondsPerOperation * 1e6) }
}
