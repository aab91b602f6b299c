/// Something to be measured on several engines: what it does, not how it is timed.
///
/// An engine is a name here; what it stands for is known to who declares the workload. `(suite, name, engine,
/// parameters)` is unique in a run.
public struct Workload: Sendable {
  /// The suite that it is part of: `engine`, `travel`.
  public let suite: String
  /// A short name of the field: `fillseq`.
  public let name: String
  /// What it does, in a sentence.
  public let summary: String
  /// What else varies: `value_bytes`, `threads`.
  public let parameters: Parameters
  /// Operations of one run, by which times are divided.
  public let operations: Int
  /// Whether other threads than the caller's do part of its work, which a counter of instructions doesn't see.
  public let runsThreads: Bool
  /// Makes everything ready for one run. Not timed.
  public let prepare: @Sendable (TrialContext) throws -> Trial
  /// The loop that shows how fast it could be.
  public let limit: Limit?
  /// Whether it means something on an engine; it is left out on the others.
  public let runs: @Sendable (_ engine: String) -> Bool

  /// The bare loop over the same library that a workload is held against, run in the same rounds.
  public struct Limit: Sendable {
    /// What it is on an engine: `LMDB puts, bare C`. Nil when there is none on that engine.
    public let name: @Sendable (_ engine: String) -> String?
    /// Makes everything ready for one run. Not timed.
    public let prepare: @Sendable (TrialContext) throws -> Trial

    /// A limit of that name, made ready by `prepare`.
    public init(
      name: @escaping @Sendable (_ engine: String) -> String?,
      prepare: @escaping @Sendable (TrialContext) throws -> Trial
    ) {
      self.name = name
      self.prepare = prepare
    }
  }

  /// Declares a workload; see the properties.
  public init(
    suite: String, name: String, summary: String, parameters: Parameters = [:], operations: Int,
    runsThreads: Bool = false, limit: Limit? = nil,
    runs: @escaping @Sendable (_ engine: String) -> Bool = { _ in true },
    prepare: @escaping @Sendable (TrialContext) throws -> Trial
  ) {
    self.suite = suite
    self.name = name
    self.summary = summary
    self.parameters = parameters
    self.operations = operations
    self.runsThreads = runsThreads
    self.prepare = prepare
    self.limit = limit
    self.runs = runs
  }
}

/// For whom and where a run is made ready.
public struct TrialContext: Sendable {
  /// The engine by its name.
  public let engine: String
  /// An empty directory for this run alone, removed after it.
  public let directory: String
  /// The round of samples, from 0.
  public let round: Int

  /// The context of one run.
  public init(engine: String, directory: String, round: Int) {
    self.engine = engine
    self.directory = directory
    self.round = round
  }
}

/// One run that is ready to begin.
public struct Trial {
  /// How long a run took.
  public enum Duration: Sendable {
    /// From the call of `run` to its return.
    case whole
    /// What `run` measured itself: for what has a beginning or an end that doesn't count.
    case seconds(Double)
    /// Single operations that `run` timed one by one, and the seconds that it measured of them all; nil: from the
    /// call of `run` to its return.
    ///
    /// Two looks at the clock take about 50 ns: time short operations all together, or one in so many.
    case latencies(LatencyHistogram, seconds: Double? = nil)
  }

  /// The bytes that a run is about, by which amplifications are divided.
  public struct LogicalBytes: Sendable {
    /// Keys and values that the run had to write; 0 when it writes none.
    public var written: Int
    /// Keys and values that the files hold at its end; 0 when that isn't known.
    public var stored: Int

    /// Both numbers.
    public init(written: Int, stored: Int) {
      self.written = written
      self.stored = stored
    }
  }

  /// Does the work once.
  public let run: () throws -> Duration
  /// Size of its files in bytes after the run. Not timed.
  public let fileBytes: () throws -> Int
  /// The data's own bytes; nil when the workload doesn't say.
  public let logicalBytes: LogicalBytes?
  /// What the run measured besides, asked for after it; takes the place of what the kit measures by the same name. Not
  /// timed.
  public let metrics: () throws -> [Metric: Double]
  /// Closes what was opened. Called also when `run` threw.
  public let finish: () throws -> Void

  /// A run; see the properties.
  public init(
    run: @escaping () throws -> Duration, fileBytes: @escaping () throws -> Int = { 0 },
    logicalBytes: LogicalBytes? = nil, metrics: @escaping () throws -> [Metric: Double] = { [:] },
    finish: @escaping () throws -> Void = {}
  ) {
    self.run = run
    self.fileBytes = fileBytes
    self.logicalBytes = logicalBytes
    self.metrics = metrics
    self.finish = finish
  }
}
