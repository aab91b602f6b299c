/// A comparison of two runs, metric by metric.
package struct Comparison: Sendable {
  /// The verdict on one row.
  package enum Verdict: String, Sendable, Codable {
    /// The new run is better: less time, fewer bytes, or more operations per second.
    case better
    /// The new run is worse.
    case worse
    /// No difference is significant, or it is less than half a percent.
    case unclear = "can't tell"
  }

  /// The value that is compared: a metric, or its ratio to the limit.
  package enum Measure: Hashable, Sendable, CustomStringConvertible {
    /// A metric.
    case metric(Metric)
    /// Seconds divided by the limit's seconds in the same round. It is comparable across machines and days.
    case normalized
    /// Processor time divided by the limit's. Other users of the machine disturb it less.
    case normalizedCPU

    /// The name in tables.
    package var description: String {
      switch self {
      case .metric(let metric): metric.rawValue
      case .normalized: "normalized"
      case .normalizedCPU: "normalized_cpu"
      }
    }

    /// The samples of a result; nil if it has none.
    func samples(of result: WorkloadResult) -> [Double]? {
      switch self {
      case .metric(let metric): return result.metrics[metric]?.samples
      case .normalized: return Measure.ratios(result.metrics.seconds, result.limit?.seconds)
      case .normalizedCPU: return Measure.ratios(result.metrics.cpuSeconds, result.limit?.cpuSeconds)
      }
    }

    /// The ratio of each round; nil without a limit.
    private static func ratios(_ samples: Distribution, _ limits: Distribution?) -> [Double]? {
      guard let limits = limits?.samples, !limits.isEmpty, limits.count == samples.samples.count,
        limits.allSatisfy({ $0 > 0 })
      else { return nil }
      return zip(samples.samples, limits).map { $0 / $1 }
    }
  }

  /// The comparison of one measure of one workload on one engine.
  package struct Row: Sendable {
    /// The suite.
    package let suite: String
    /// The workload with its parameters.
    package let label: String
    /// The engine.
    package let engine: String
    /// The value that is compared.
    package let measure: Measure
    /// The median of the first run.
    package let base: Double
    /// The median of the second run.
    package let new: Double
    /// The second median divided by the first.
    package let ratio: Double
    /// The 95% confidence interval of `ratio`, by the bootstrap.
    package let interval: ClosedRange<Double>
    /// The probability of such samples if there were no difference: the Mann-Whitney test, with Holm's
    /// correction over all rows of the same measure.
    package fileprivate(set) var probability: Double
    /// The verdict. A row differs if the probability is below 5%, the interval doesn't contain 1, and the
    /// ratio differs from 1 by at least half a percent.
    package fileprivate(set) var verdict: Verdict
  }

  /// All rows, in the order of the second run.
  package let rows: [Row]
  /// Reasons why the two runs may not be comparable, one sentence each: different machines, data, libraries
  /// or settings.
  package let warnings: [String]
  /// Workloads, with parameters and engine, that only one of the runs has.
  package let unmatched: [String]

  /// The default measures.
  package static let standard: [Measure] = [
    .normalized, .normalizedCPU, .metric(.seconds), .metric(.cpuSeconds), .metric(.bytesWritten),
    .metric(.peakMemoryBytes),
    .metric(.fileBytes), .metric(.latencyP99),
  ]

  /// Compares the results that both runs have.
  package init(base: ResultsFile, new: ResultsFile, measures: [Measure] = Comparison.standard) {
    let before = Dictionary(base.results.map { ($0.identity, $0) }) { first, _ in first }
    let after = Set(new.results.map(\.identity))
    var rows: [Row] = []
    for result in new.results {
      guard let old = before[result.identity] else { continue }
      for measure in measures {
        if let row = Comparison.row(measure, old, result) { rows.append(row) }
      }
    }
    for measure in measures {
      let indices = rows.indices.filter { rows[$0].measure == measure }
      for (index, probability) in zip(indices, SignificanceTest.holm(indices.map { rows[$0].probability })) {
        rows[index].probability = probability
        rows[index].verdict = Comparison.verdict(rows[index])
      }
    }
    self.rows = rows
    unmatched =
      base.results.filter { !after.contains($0.identity) }.map { "\($0.identity): only in the first" }
      + new.results.filter { before[$0.identity] == nil }.map { "\($0.identity): only in the second" }
    warnings = Comparison.warnings(base, new)
  }

  private static func row(_ measure: Measure, _ old: WorkloadResult, _ new: WorkloadResult) -> Row? {
    guard let before = measure.samples(of: old), let after = measure.samples(of: new) else { return nil }
    let base = SampleStatistics.median(before)
    let median = SampleStatistics.median(after)
    guard base > 0, median > 0 else { return nil }
    let (ratio, interval) = Bootstrap.unpairedRatio(after, over: before)
    return Row(
      suite: new.suite, label: new.label, engine: new.engine, measure: measure, base: base, new: median,
      ratio: ratio, interval: interval, probability: SignificanceTest.mannWhitney(before, after),
      verdict: .unclear)
  }

  /// The least difference that counts. Memory and bytes are measured so exactly that even one page is
  /// statistically significant.
  static let leastDifference = 0.005

  private static func verdict(_ row: Row) -> Verdict {
    guard row.probability < 0.05, !row.interval.contains(1), abs(row.ratio - 1) >= leastDifference else {
      return .unclear
    }
    if case .metric(let metric) = row.measure, metric.isBetterWhenGreater {
      return row.ratio > 1 ? .better : .worse
    }
    return row.ratio < 1 ? .better : .worse
  }

  private static func warnings(_ base: ResultsFile, _ new: ResultsFile) -> [String] {
    var warnings: [String] = []
    if base.machine != new.machine {
      warnings.append(
        "The runs are of different machines or systems: only 'normalized' compares, and that with care.")
    }
    if base.dataset != new.dataset { warnings.append("The runs are of different documents.") }
    for (name, engine) in new.engines.sorted(by: { $0.key < $1.key }) {
      guard let old = base.engines[name] else { continue }
      if old.library != engine.library {
        warnings.append("\(name): the first run was on \(old.library), the second on \(engine.library).")
      }
      for setting in Set(old.settings.keys).union(engine.settings.keys).sorted()
      where old.settings[setting] != engine.settings[setting] {
        warnings.append(
          "\(name): \(setting) was \(old.settings[setting] ?? "not set"), and is "
            + "\(engine.settings[setting] ?? "not set").")
      }
    }
    return warnings
  }
}
