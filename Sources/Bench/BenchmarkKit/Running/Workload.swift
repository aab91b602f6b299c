/// Something to measure on several engines. It says what is done, not how it is timed.
///
/// An engine is only a name here; the declaration of the workload knows its meaning. `(suite, name, engine,
/// parameters)` is unique in a run.
package struct Workload: Sendable {
  /// The suite of the workload: `engine`, `travel`.
  package let suite: String
  /// A short standard name: `fillseq`.
  package let name: String
  /// A sentence that says what it does.
  package let summary: String
  /// Its parameters: `value_bytes`, `threads`.
  package let parameters: Parameters
  /// The number of operations in one run. Times are divided by it.
  package let operations: Int
  /// Whether other threads than the caller's do part of its work. A counter of instructions doesn't see
  /// these.
  package let runsThreads: Bool
  /// Prepares one run. Not timed.
  package let prepare: @Sendable (TrialContext) throws -> Trial
  /// The limit of the workload; nil if it has none.
  package let limit: Limit?
  /// Whether the workload applies to an engine. It is skipped on the others.
  package let runs: @Sendable (_ engine: String) -> Bool

  /// A bare loop over the same library that shows how fast the workload could be. It runs in the same rounds.
  package struct Limit: Sendable {
    /// The name of the limit on an engine: `LMDB puts, bare C`. Nil if that engine has none.
    package let name: @Sendable (_ engine: String) -> String?
    /// Prepares one run. Not timed.
    package let prepare: @Sendable (TrialContext) throws -> Trial

    /// Makes a limit.
    package init(
      name: @escaping @Sendable (_ engine: String) -> String?,
      prepare: @escaping @Sendable (TrialContext) throws -> Trial
    ) {
      self.name = name
      self.prepare = prepare
    }
  }

  /// Makes a workload. See the properties.
  package init(
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

/// The engine and the directory for which a run is prepared.
package struct TrialContext: Sendable {
  /// The engine's name.
  package let engine: String
  /// An empty directory for this run only. It is removed afterwards.
  package let directory: String
  /// The round, from 0.
  package let round: Int

  /// Makes the context of one run.
  package init(engine: String, directory: String, round: Int) {
    self.engine = engine
    self.directory = directory
    self.round = round
  }
}

/// One prepared run.
package struct Trial {
  /// The duration of a run.
  package enum Duration: Sendable {
    /// From the call of `run` to its return.
    case whole
    /// The seconds that `run` measured itself, if its beginning or end doesn't count.
    case seconds(Double)
    /// The times of single operations measured by `run`, and the seconds of all of them. If `seconds` is nil,
    /// the whole call of `run` counts.
    ///
    /// Reading the clock twice takes about 50 ns. Time short operations together, or only a sample of them.
    case latencies(LatencyHistogram, seconds: Double? = nil)
  }

  /// The sizes of the data itself, by which amplifications are computed.
  package struct LogicalBytes: Sendable {
    /// Keys and values that the run had to write, in bytes; 0 if it writes none.
    package var written: Int
    /// Keys and values in the files at its end, in bytes; 0 if that isn't known.
    package var stored: Int

    /// Makes a pair of sizes.
    package init(written: Int, stored: Int) {
      self.written = written
      self.stored = stored
    }
  }

  /// Runs the work once.
  package let run: () throws -> Duration
  /// The size of its files after the run, in bytes. Not timed.
  package let fileBytes: () throws -> Int
  /// The sizes of the data itself; nil if the workload doesn't provide them.
  package let logicalBytes: LogicalBytes?
  /// Other metrics that the run measured, read after it. They replace the kit's metrics of the same name. Not
  /// timed.
  package let metrics: () throws -> [Metric: Double]
  /// What the run did interval by interval, read after it; nil if it didn't record that.
  package let series: () -> TimeSeries?
  /// How the engine finds what the run asks for, read after it; nil if it has no plan.
  package let plan: () -> [String]?
  /// Closes what the run opened. Called also if `run` threw.
  package let finish: () throws -> Void

  /// Makes a run. See the properties.
  package init(
    run: @escaping () throws -> Duration, fileBytes: @escaping () throws -> Int = { 0 },
    logicalBytes: LogicalBytes? = nil, metrics: @escaping () throws -> [Metric: Double] = { [:] },
    series: @escaping () -> TimeSeries? = { nil }, plan: @escaping () -> [String]? = { nil },
    finish: @escaping () throws -> Void = {}
  ) {
    self.run = run
    self.fileBytes = fileBytes
    self.logicalBytes = logicalBytes
    self.metrics = metrics
    self.series = series
    self.plan = plan
    self.finish = finish
  }

  /// Makes a run whose duration is that of `work`, from its call to its return.
  package init(
    timing work: @escaping () throws -> Void, fileBytes: @escaping () throws -> Int = { 0 },
    logicalBytes: LogicalBytes? = nil, metrics: @escaping () throws -> [Metric: Double] = { [:] },
    finish: @escaping () throws -> Void = {}
  ) {
    self.init(
      run: {
        try work()
        return .whole
      }, fileBytes: fileBytes, logicalBytes: logicalBytes, metrics: metrics, finish: finish)
  }
}
