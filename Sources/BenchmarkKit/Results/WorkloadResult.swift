/// What a workload took on one engine.
public struct WorkloadResult: Codable, Equatable, Sendable {
  /// The suite that the workload is part of.
  public var suite: String
  /// The workload's name.
  public var workload: String
  /// The engine's name.
  public var engine: String
  /// What else varies.
  public var parameters: Parameters
  /// Operations of one run.
  public var operations: Int
  /// What was measured.
  public var metrics: Metrics
  /// What the bare loop took, when there is one.
  public var limit: LimitResult?

  /// Everything that was measured, metric by metric.
  public struct Metrics: Codable, Equatable, Sendable {
    private var distributions: [String: Distribution] = [:]

    init(_ samples: SampleSeries) {
      for metric in Metric.allCases {
        if let values = samples.values(of: metric) { distributions[metric.rawValue] = Distribution(values) }
      }
    }

    /// The samples of several, one after the other; of a metric that not all have, none.
    init(merging all: [Metrics]) {
      for metric in Metric.allCases {
        let found = all.compactMap { $0[metric]?.samples }
        if found.count == all.count { distributions[metric.rawValue] = Distribution(found.flatMap { $0 }) }
      }
    }

    /// Reads an object of distributions. Throws when a required metric is missing; what isn't known is left out.
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

    /// What was measured of a metric; nil when it wasn't.
    public subscript(metric: Metric) -> Distribution? { distributions[metric.rawValue] }

    /// Adds what was counted in one run beside the samples.
    public mutating func setAllocations(_ count: Int) {
      distributions[Metric.allocations.rawValue] = Distribution([Double(count)])
    }

    /// Of a metric that every result has.
    private func required(_ metric: Metric) -> Distribution { self[metric] ?? Distribution([]) }

    /// Wall clock, in seconds a run.
    public var seconds: Distribution { required(.seconds) }
    /// Operations a second: of each sample, `operations` over its seconds.
    public var opsPerSecond: Distribution { required(.opsPerSecond) }
    /// Processor time of all threads, user and system, in seconds a run.
    public var cpuSeconds: Distribution { required(.cpuSeconds) }
    /// Bytes handed to the kernel to write.
    public var bytesWritten: Distribution { required(.bytesWritten) }
    /// Greatest resident memory of the process during the run, in bytes.
    public var peakMemoryBytes: Distribution { required(.peakMemoryBytes) }
    /// Size of the engine's files after the run, in bytes.
    public var fileBytes: Distribution { required(.fileBytes) }
  }

  /// Instructions of one run at small sizes; nil when they weren't counted.
  public var instructions: InstructionCounts?
  /// How often the first rounds were left out and made again, as they were of a machine that warmed up; nil: never.
  public var warmups: Int?

  /// The bare loop that a workload is held against.
  public struct LimitResult: Codable, Equatable, Sendable {
    /// What it is: `LMDB puts, bare C`.
    public var name: String
    /// Wall clock, in seconds a run; sample for sample of the same rounds as the workload's.
    public var seconds: Distribution
    /// Processor time of all threads, in seconds a run. On a machine that others use as well, the ratio of
    /// processor times says more than that of wall clocks.
    public var cpuSeconds: Distribution
    /// The workload's median seconds over the limit's.
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
    self.limit = limit.map { name, samples in
      let seconds = Distribution(samples.values(of: .seconds) ?? [])
      return LimitResult(
        name: name, seconds: seconds, cpuSeconds: Distribution(samples.values(of: .cpuSeconds) ?? []),
        normalized: seconds.median > 0 ? metrics.seconds.median / seconds.median : 0)
    }
  }

  /// The samples of several runs of one workload on one engine, as if they had been one.
  init(merging first: WorkloadResult, _ others: [WorkloadResult]) {
    self = first
    let all = [first] + others
    metrics = Metrics(merging: all.map(\.metrics))
    instructions = all.compactMap(\.instructions).first
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

  /// Median seconds an operation.
  public var secondsPerOperation: Double { metrics.seconds.median / Double(max(1, operations)) }
}

/// Samples in the order they were taken, and their order statistics.
public struct Distribution: Codable, Equatable, Sendable {
  /// One for each round.
  public var samples: [Double]
  /// The middle one.
  public var median: Double
  /// 95% of the samples are at most this, with a straight line between neighbours.
  public var p95: Double
  /// 99% of the samples are at most this.
  public var p99: Double
  /// The 95% confidence interval of the median: its low end and its high end.
  public var ci95: [Double]

  /// The distribution of these samples.
  public init(_ samples: [Double]) {
    let sorted = samples.sorted()
    self.samples = samples
    median = Statistics.quantile(0.5, ofSorted: sorted)
    p95 = Statistics.quantile(0.95, ofSorted: sorted)
    p99 = Statistics.quantile(0.99, ofSorted: sorted)
    let interval = Statistics.medianInterval(samples)
    ci95 = [interval.lowerBound, interval.upperBound]
  }
}

/// Instructions that one run executed in its own thread, as callgrind counts them: the same each time to within a few
/// thousandths, however busy the machine is.
public struct InstructionCounts: Codable, Equatable, Sendable {
  /// Of the workload.
  public var run: Int
  /// Of its limit, when it has one.
  public var limit: Int?

  /// Counts; see the properties.
  public init(run: Int, limit: Int? = nil) {
    self.run = run
    self.limit = limit
  }
}
