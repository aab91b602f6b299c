/// The result of a workload on one engine.
public struct WorkloadResult: Codable, Equatable, Sendable {
  /// The suite that the workload is part of.
  public var suite: String
  /// The workload's name.
  public var workload: String
  /// The engine's name.
  public var engine: String
  /// The workload's parameters.
  public var parameters: Parameters
  /// The number of operations in one run.
  public var operations: Int
  /// The measured metrics.
  public var metrics: Metrics
  /// The time of the limit, if there is one.
  public var limit: LimitResult?

  /// The measured metrics, each with its distribution.
  public struct Metrics: Codable, Equatable, Sendable {
    private var distributions: [String: Distribution] = [:]

    init(_ samples: SampleSeries) {
      for metric in Metric.allCases {
        if let values = samples.values(of: metric) { distributions[metric.rawValue] = Distribution(values) }
      }
    }

    /// Joins the samples of several results. A metric that one of them lacks is left out.
    init(merging all: [Metrics]) {
      for metric in Metric.allCases {
        let found = all.compactMap { $0[metric]?.samples }
        if found.count == all.count { distributions[metric.rawValue] = Distribution(found.flatMap { $0 }) }
      }
    }

    /// Reads an object of distributions. Throws if a required metric is missing. Unknown metrics are ignored.
    public init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Name.self)
      for metric in Metric.allCases {
        let name = Name(stringValue: metric.rawValue)
        distributions[metric.rawValue] =
          try metric.isRequired
          ? container.decode(Distribution.self, forKey: name)
          : container.decodeIfPresent(Distribution.self, forKey: name)
      }
    }

    /// Writes an object of distributions.
    public func encode(to encoder: any Encoder) throws { try distributions.encode(to: encoder) }

    private struct Name: CodingKey {
      let stringValue: String
      var intValue: Int? { nil }
      init(stringValue: String) { self.stringValue = stringValue }
      init?(intValue: Int) { nil }
    }

    /// The distribution of a metric; nil if it wasn't measured.
    package subscript(metric: Metric) -> Distribution? { distributions[metric.rawValue] }

    /// Sets the allocations, which are counted in an extra run.
    public mutating func setAllocations(_ count: Int) {
      distributions[Metric.allocations.rawValue] = Distribution([Double(count)])
    }

    /// The distribution of a metric that every result has.
    private func required(_ metric: Metric) -> Distribution { self[metric] ?? Distribution([]) }

    /// Wall-clock time of a run, in seconds.
    public var seconds: Distribution { required(.seconds) }
    /// Operations per second: for each sample, `operations` divided by its seconds.
    public var opsPerSecond: Distribution { required(.opsPerSecond) }
    /// Processor time of all threads in a run, user and system, in seconds.
    public var cpuSeconds: Distribution { required(.cpuSeconds) }
    /// Bytes passed to the kernel by `write` and similar calls.
    public var bytesWritten: Distribution { required(.bytesWritten) }
    /// Greatest resident memory of the process during the run, in bytes.
    public var peakMemoryBytes: Distribution { required(.peakMemoryBytes) }
    /// Size of the engine's files after the run, in bytes.
    public var fileBytes: Distribution { required(.fileBytes) }
  }

  /// The instructions of one run at small sizes; nil if they weren't counted.
  public var instructions: InstructionCounts?
  /// What the runs did interval by interval; nil if they didn't record that.
  public var series: TimeSeriesList?
  /// How the engine found what the runs asked for, one line for each operation, the last operation first; nil if there is no
  /// plan.
  public var plan: [String]?
  /// How often the first round was a warm-up and was repeated; nil for never.
  public var warmups: Int?

  /// The result of a limit: the bare loop that a workload is compared with.
  public struct LimitResult: Codable, Equatable, Sendable {
    /// The name of the loop: `LMDB puts, bare C`.
    public var name: String
    /// Wall-clock time of a run, in seconds. Each sample is from the same round as the workload's.
    public var seconds: Distribution
    /// Processor time of all threads in a run, in seconds. On a machine with other users, the ratio of
    /// processor times is more reliable than that of wall-clock times.
    public var cpuSeconds: Distribution
    /// The workload's median seconds divided by the limit's.
    public var normalized: Double

    private enum CodingKeys: String, CodingKey {
      case name
      case seconds
      case cpuSeconds = "cpu_seconds"
      case normalized
    }
  }

  init(
    _ workload: Workload, engine: String, samples: SampleSeries, limit: (String, SampleSeries)?,
    warmups: Int = 0
  ) {
    suite = workload.suite
    self.workload = workload.name
    self.engine = engine
    parameters = workload.parameters
    self.warmups = warmups > 0 ? warmups : nil
    operations = workload.operations
    metrics = Metrics(samples)
    series = samples.series
    plan = samples.plan
    self.limit = limit.map { name, samples in
      let seconds = Distribution(samples.values(of: .seconds) ?? [])
      return LimitResult(
        name: name, seconds: seconds, cpuSeconds: Distribution(samples.values(of: .cpuSeconds) ?? []),
        normalized: seconds.median > 0 ? metrics.seconds.median / seconds.median : 0)
    }
  }

  /// Joins the samples of several runs of one workload on one engine.
  init(merging first: WorkloadResult, _ others: [WorkloadResult]) {
    self = first
    let all = [first] + others
    metrics = Metrics(merging: all.map(\.metrics))
    instructions = all.compactMap(\.instructions).first
    let found = all.compactMap(\.series).flatMap(\.all)
    series = found.isEmpty ? nil : TimeSeriesList(found)
    let limits = all.compactMap(\.limit)
    guard let limit = limits.first, limits.count == all.count else {
      self.limit = nil
      return
    }
    let seconds = Distribution(limits.flatMap(\.seconds.samples))
    self.limit = LimitResult(
      name: limit.name, seconds: seconds, cpuSeconds: Distribution(limits.flatMap(\.cpuSeconds.samples)),
      normalized: seconds.median > 0 ? metrics.seconds.median / seconds.median : 0)
  }

  /// The median time of an operation, in seconds.
  public var secondsPerOperation: Double { metrics.seconds.median / Double(max(1, operations)) }
}

/// Samples in the order of the rounds, and their order statistics.
public struct Distribution: Codable, Equatable, Sendable {
  /// One sample per round.
  public var samples: [Double]
  /// The median.
  public var median: Double
  /// The 95th percentile, interpolated linearly between neighbours.
  public var p95: Double
  /// The 99th percentile.
  public var p99: Double
  /// The 95% confidence interval of the median: its lower and its upper end.
  public var ci95: [Double]

  /// Computes the distribution of these samples.
  public init(_ samples: [Double]) {
    let sorted = samples.sorted()
    self.samples = samples
    median = SampleStatistics.quantile(0.5, ofSorted: sorted)
    p95 = SampleStatistics.quantile(0.95, ofSorted: sorted)
    p99 = SampleStatistics.quantile(0.99, ofSorted: sorted)
    let interval = Bootstrap.medianInterval(samples)
    ci95 = [interval.lowerBound, interval.upperBound]
  }
}

/// The instructions that one run executed in its own thread, counted by callgrind. They vary by a few
/// thousandths at most, however busy the machine is.
public struct InstructionCounts: Codable, Equatable, Sendable {
  /// The instructions of the workload.
  public var run: Int
  /// The instructions of its limit, if it has one.
  public var limit: Int?

  /// Makes counts. See the properties.
  public init(run: Int, limit: Int? = nil) {
    self.run = run
    self.limit = limit
  }
}
