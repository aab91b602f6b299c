import BenchmarkKit

/// The targets of the suite and its results, as ratios of rows of one run.
enum DocumentsTargets {
  /// One line per question and engine.
  static func lines(_ results: [WorkloadResult]) -> [String] {
    var engines: [String] = []
    for result in results where !engines.contains(result.engine) { engines.append(result.engine) }
    return engines.flatMap { engine in
      let rows = results.filter { $0.engine == engine }
      return
        (histories(rows) + latencies(rows, engine) + [counting(rows), compaction(rows)].compactMap { $0 })
        .map { "\(engine): \($0)" }
    }
  }

  private static func row(_ rows: [WorkloadResult], _ kind: DocumentsWorkload, _ parameters: Parameters)
    -> WorkloadResult?
  {
    rows.first { $0.workload == kind.rawValue && $0.parameters == parameters }
  }

  /// The ratio of the medians with its interval, as text.
  private static func text(_ new: WorkloadResult, over old: WorkloadResult) -> String {
    let (value, interval) = ratio(new, over: old)
    return "\(rounded(value))x (95%: \(rounded(interval.lowerBound)) to \(rounded(interval.upperBound)))"
  }

  /// Whether the ratio reaches the target, as text.
  private static func verdict(_ new: WorkloadResult, over old: WorkloadResult, reach: Double) -> String {
    " (to reach: at most \(rounded(reach))x; \(ratio(new, over: old).value <= reach ? "reached" : "NOT reached"))"
  }

  /// The ratio of two times per operation.
  private static func ratio(_ new: WorkloadResult, over old: WorkloadResult) -> (
    value: Double, interval: ClosedRange<Double>
  ) {
    let scale = Double(old.operations) / Double(new.operations)
    let found = Statistics.ratio(new.metrics.seconds.samples, over: old.metrics.seconds.samples)
    return (
      found.ratio * scale, (found.interval.lowerBound * scale)...(found.interval.upperBound * scale)
    )
  }

  private static func histories(_ rows: [WorkloadResult]) -> [String] {
    let found = rows.filter { $0.workload == DocumentsWorkload.history.rawValue }
    return [20, 1_000].flatMap { depth in
      let windows = found.filter { $0.parameters["depth"] == .integer(depth) }
      guard let last = windows.last else { return [String]() }
      return windows.dropLast().map { first in
        let isFull = first.parameters["update"] != .integer(100) || depth <= 100
        return
          "the \(ordinal(last)) update takes \(text(last, over: first)) the time of the \(ordinal(first)) at "
          + "depth \(depth)" + (isFull ? "" : ", whose history isn't full yet")
          + verdict(last, over: first, reach: 1.2)
      }
    }
  }

  private static func ordinal(_ row: WorkloadResult) -> String {
    guard case .integer(let update)? = row.parameters["update"] else { return "?" }
    return "\(update)th"
  }

  private static func latencies(_ rows: [WorkloadResult], _ engine: String) -> [String] {
    [1, 4, 16].compactMap { readers in
      func row(_ hasWriter: Bool) -> WorkloadResult? {
        self.row(rows, .readP99, ["readers": .integer(readers), "writer": .boolean(hasWriter)])
      }
      guard let alone = row(false), let beside = row(true) else { return nil }
      return "p99 of a read, \(readers) reading, is \(text(beside, over: alone)) beside a writer"
        + (engine == "lmdb" ? verdict(beside, over: alone, reach: 2) : "")
    }
  }

  private static func counting(_ rows: [WorkloadResult]) -> String? {
    let counts = rows.filter { $0.workload == DocumentsWorkload.count.rawValue }
    guard let few = counts.first, let many = counts.last, counts.count == 2,
      case .integer(let documents)? = many.parameters["documents"]
    else { return nil }
    return
      "counting among \(documents) documents takes \(text(many, over: few)) the time of counting a hundredth"
      + verdict(many, over: few, reach: 2)
  }

  private static func compaction(_ rows: [WorkloadResult]) -> String? {
    guard let before = row(rows, .rewrite, [:]), let after = row(rows, .compact, [:]),
      before.metrics.fileBytes.median > 0
    else { return nil }
    let share = after.metrics.fileBytes.median / before.metrics.fileBytes.median
    let mebibytes = { (bytes: Double) in "\(rounded(bytes / 1_048_576)) MiB" }
    return "compaction leaves \(rounded(share * 100))% of the file, "
      + "\(mebibytes(after.metrics.fileBytes.median)) of \(mebibytes(before.metrics.fileBytes.median))"
  }

  private static func rounded(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
}
