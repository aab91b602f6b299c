/// Two runs held against each other, metric by metric: what became faster, slower, or can't be told.
public struct Comparison: Sendable {
  /// What can be said of a metric.
  public enum Verdict: String, Sendable, Codable {
    /// Less time, fewer bytes; of operations a second more.
    case better
    /// The opposite.
    case worse
    /// The samples don't say that there is a difference, or it is less than half a percent.
    case unclear = "can't tell"
  }

  /// What is compared of a result: a metric, or how it stands to its limit.
  public enum Measure: Hashable, Sendable, CustomStringConvertible {
    /// A metric as it was measured.
    case metric(Metric)
    /// Seconds over those of the limit in the same round: what different machines and days are compared by.
    case normalized
    /// Processor time over that of the limit: a machine that others use as well disturbs it less.
    case normalizedCPU

    /// The name in tables.
    public var description: String {
      switch self {
      case .metric(let metric): metric.rawValue
      case .normalized: "normalized"
      case .normalizedCPU: "normalized_cpu"
      }
    }

    /// The samples of a result, or nil when it has none.
    func samples(of result: WorkloadResult) -> [Double]? {
      switch self {
      case .metric(let metric): return result.metrics[metric]?.samples
      case .normalized: return Measure.ratios(result.metrics.seconds, result.limit?.seconds)
      case .normalizedCPU: return Measure.ratios(result.metrics.cpuSeconds, result.limit?.cpuSeconds)
      }
    }

    /// Round by round; nil without a limit.
    private static func ratios(_ samples: Distribution, _ limits: Distribution?) -> [Double]? {
      guard let limits = limits?.samples, !limits.isEmpty, limits.count == samples.samples.count,
        limits.allSatisfy({ $0 > 0 })
      else { return nil }
      return zip(samples.samples, limits).map { $0 / $1 }
    }
  }

  /// One measure of one workload on one engine.
  public struct Row: Sendable {
    /// The suite.
    public let suite: String
    /// The workload with its parameters.
    public let label: String
    /// The engine.
    public let engine: String
    /// What is compared.
    public let measure: Measure
    /// The median of the first run.
    public let base: Double
    /// The median of the second.
    public let new: Double
    /// The second median over the first.
    public let ratio: Double
    /// Its 95% confidence interval, by the bootstrap.
    public let interval: ClosedRange<Double>
    /// The probability of such samples without a difference: Mann-Whitney, corrected by Holm for all rows that are
    /// compared by the same measure.
    public fileprivate(set) var probability: Double
    /// What can be said: a difference is when the probability is under 5% and the interval leaves out 1.
    public fileprivate(set) var verdict: Verdict
  }

  /// All rows, in the order of the second run.
  public let rows: [Row]
  /// Why the two runs may not compare, a sentence each: other machines, data, libraries or settings.
  public let warnings: [String]
  /// Workloads with parameters and engine that only one of the runs has.
  public let unmatched: [String]

  /// What is compared when nothing is said.
  public static let standard: [Measure] = [
    .normalized, .normalizedCPU, .metric(.seconds), .metric(.cpuSeconds), .metric(.bytesWritten),
    .metric(.peakMemoryBytes),
    .metric(.fileBytes), .metric(.latencyP99),
  ]

  /// Compares what both runs have.
  public init(base: ResultsFile, new: ResultsFile, measures: [Measure] = Comparison.standard) {
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
      for (index, probability) in zip(indices, RankTest.holm(indices.map { rows[$0].probability })) {
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
    let base = Statistics.median(before)
    let median = Statistics.median(after)
    guard base > 0, median > 0 else { return nil }
    let (ratio, interval) = Statistics.unpairedRatio(after, over: before)
    return Row(
      suite: new.suite, label: new.label, engine: new.engine, measure: measure, base: base, new: median,
      ratio: ratio, interval: interval, probability: RankTest.mannWhitney(before, after), verdict: .unclear)
  }

  /// A difference that nobody would act on: memory and bytes are counted so exactly that a page more is significant.
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
