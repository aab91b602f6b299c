#if canImport(Glibc)
  import Glibc
#endif

/// Runs workloads on engines in rounds, the engines and their limits taking turns, each from a fresh directory.
///
/// Engines are interleaved so that what happens on the machine meanwhile happens to all: in a round every engine
/// and the limit of every engine runs once, `A limit-A B limit-B`; the next round begins with the next engine,
/// and swaps each engine with its limit.
public struct Runner {
  /// How runs are made.
  public struct Options {
    /// Rounds, each of which gives one sample of every engine.
    public var samples: Int
    /// Where the directories of the runs are made. It must exist.
    public var workDirectory: String
    /// Told before every run.
    public var progress: (Progress) -> Void
    /// Asked before every run; when true, `run` throws `Interrupted`.
    public var shouldStop: () -> Bool

    /// Options; see the properties.
    public init(
      samples: Int, workDirectory: String, progress: @escaping (Progress) -> Void = { _ in },
      shouldStop: @escaping () -> Bool = { false }
    ) {
      self.samples = samples
      self.workDirectory = workDirectory
      self.progress = progress
      self.shouldStop = shouldStop
    }
  }

  /// What is about to run.
  public struct Progress {
    /// Runs done, of `total`.
    public let done: Int
    /// Runs in all.
    public let total: Int
    /// The workload of the next run.
    public let workload: Workload
    /// The engine of the next run.
    public let engine: String
    /// Whether the next run is of the engine's limit.
    public let isLimit: Bool
  }

  /// `shouldStop` said so.
  public struct Interrupted: Error {}

  /// A run that failed: which, and why.
  public struct Failure: Error, CustomStringConvertible {
    /// The workload with its parameters.
    public let workload: String
    /// The engine it ran on.
    public let engine: String
    /// What was thrown.
    public let reason: any Error

    /// For people.
    public var description: String { "\(workload) on \(engine): \(reason)" }
  }

  /// One run of a round.
  struct Step: Equatable {
    let engine: Int
    let isLimit: Bool
  }

  private let options: Options

  /// A runner with these options.
  public init(_ options: Options) { self.options = options }

  /// The runs of a round in their order.
  static func order(round: Int, engines: Int) -> [Step] {
    (0..<engines).flatMap { offset in
      let engine = (round + offset) % engines
      let pair = [Step(engine: engine, isLimit: false), Step(engine: engine, isLimit: true)]
      return round % 2 == 0 ? pair : pair.reversed()
    }
  }

  /// Measures every workload on every engine. Results come workload by workload, in the order of `engines`.
  /// Throws `Failure` at the first run that fails.
  public func run(_ workloads: [Workload], engines: [String]) throws -> [WorkloadResult] {
    let plans = workloads.map { workload in
      (workload: workload, limits: engines.map { workload.limit?.name($0) })
    }
    let total = plans.reduce(0) { $0 + engines.count + $1.limits.count { $0 != nil } } * options.samples
    var done = 0
    var results: [WorkloadResult] = []
    for plan in plans {
      var samples = engines.map { _ in SampleSeries() }
      var limitSamples = engines.map { _ in SampleSeries() }
      for round in 0..<options.samples {
        for step in Runner.order(round: round, engines: engines.count) {
          if step.isLimit, plan.limits[step.engine] == nil { continue }
          let engine = engines[step.engine]
          if options.shouldStop() { throw Interrupted() }
          options.progress(
            Progress(
              done: done, total: total, workload: plan.workload, engine: engine, isLimit: step.isLimit))
          let sample = try measure(plan.workload, engine, round, isLimit: step.isLimit)
          if step.isLimit {
            limitSamples[step.engine].append(sample)
          } else {
            samples[step.engine].append(sample)
          }
          done += 1
        }
      }
      for (index, engine) in engines.enumerated() {
        results.append(
          WorkloadResult(
            plan.workload, engine: engine, samples: samples[index],
            limit: plan.limits[index].map { ($0, limitSamples[index]) }))
      }
    }
    return results
  }

  private func measure(
    _ workload: Workload, _ engine: String, _ round: Int, isLimit: Bool
  ) throws -> Sample {
    do {
      let directory = try TrialDirectory(in: options.workDirectory)
      defer { directory.remove() }
      let context = TrialContext(engine: engine, directory: directory.path, round: round)
      let trial: Trial
      if isLimit, let limit = workload.limit {
        trial = try limit.prepare(context)
      } else {
        trial = try workload.prepare(context)
      }
      let sample: Sample
      do {
        sample = try Sample.take(trial)
      } catch {
        try? trial.finish()
        throw error
      }
      try trial.finish()
      return sample
    } catch {
      let name = workload.parameters.isEmpty ? "" : " (\(workload.parameters.text))"
      throw Failure(
        workload: "\(isLimit ? "limit of " : "")\(workload.suite) \(workload.name)\(name)", engine: engine,
        reason: error)
    }
  }
}
