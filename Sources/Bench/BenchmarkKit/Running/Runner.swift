#if canImport(Glibc)
  import Glibc
#endif

/// Runs workloads on engines in rounds. The engines and their limits take turns, each in a new directory.
///
/// Engines are interleaved so that disturbances of the machine affect all of them. In a round every engine
/// and every limit runs once: `A limit-A B limit-B`. The order of the first round is random. The next round
/// starts with the next engine, so that each engine takes each position, and swaps each engine with its
/// limit.
///
/// A first round may be a warm-up, in which code and files are read for the first time. `WarmUp` finds it by
/// its samples; it is left out and repeated.
public struct Runner {
  /// Options of a runner.
  package struct Options {
    /// The number of rounds. Each gives one sample per engine.
    package var sampling: Sampling
    /// The seed for the order of engines.
    package var seed: UInt64
    /// The existing directory in which the directories of runs are made.
    package var workDirectory: String
    /// Whether every run starts with cold processor caches (`CacheEviction`). That takes 20 ms per run.
    package var evictsCaches: Bool
    /// An artificial slowdown, to test whether a gate finds it. It is called at the end of every run of an
    /// engine, but not of limits, with the seconds of the run. It returns the seconds that it worked.
    package var plantedDelay: ((_ workload: Workload, _ engine: String, _ seconds: Double) -> Double)?
    /// Called before every run.
    package var progress: (Progress) -> Void
    /// Called before every run. If it returns true, `run` throws `Interrupted`.
    package var shouldStop: () -> Bool

    /// Makes options. See the properties.
    package init(
      sampling: Sampling, seed: UInt64 = 1, workDirectory: String, evictsCaches: Bool = true,
      plantedDelay: ((_ workload: Workload, _ engine: String, _ seconds: Double) -> Double)? = nil,
      progress: @escaping (Progress) -> Void = { _ in },
      shouldStop: @escaping () -> Bool = { false }
    ) {
      self.sampling = sampling
      self.seed = seed
      self.workDirectory = workDirectory
      self.evictsCaches = evictsCaches
      self.plantedDelay = plantedDelay
      self.progress = progress
      self.shouldStop = shouldStop
    }
  }

  /// The run that comes next.
  public struct Progress {
    /// The number of runs done.
    public let done: Int
    /// The total number of runs, if no more than the minimum number of rounds is needed.
    public let total: Int
    /// The workload of the next run.
    package let workload: Workload
    /// The engine of the next run.
    public let engine: String
    /// Whether the next run is that of the engine's limit.
    public let isLimit: Bool
  }

  /// Thrown if `shouldStop` returns true.
  public struct Interrupted: Error {}

  /// A failed run.
  public struct Failure: Error, CustomStringConvertible {
    /// The workload with its parameters.
    public let workload: String
    /// The engine it ran on.
    public let engine: String
    /// The error that the run threw.
    public let reason: any Error

    /// The workload, the engine and the error.
    public var description: String { "\(workload) on \(engine): \(reason)" }
  }

  /// One run in a round.
  struct Step: Equatable {
    let engine: Int
    let isLimit: Bool
  }

  private let options: Options

  /// A runner with these options.
  package init(_ options: Options) { self.options = options }

  /// The order of the runs in a round. It is a random order, and a new one is drawn after every engine was in
  /// every position.
  static func order(round: Int, engines: Int, seed: UInt64) -> [Step] {
    let shuffled = shuffled(engines, seed: seed &+ UInt64(round / max(1, engines)))
    return (0..<engines).flatMap { offset in
      let engine = shuffled[(round + offset) % engines]
      let pair = [Step(engine: engine, isLimit: false), Step(engine: engine, isLimit: true)]
      return round % 2 == 0 ? pair : pair.reversed()
    }
  }

  private static func shuffled(_ count: Int, seed: UInt64) -> [Int] {
    var random = ResamplingRandom(seed: seed)
    var order = Array(0..<count)
    for index in order.indices.reversed() { order.swapAt(index, random.below(index + 1)) }
    return order
  }

  /// Measures every workload on every engine. Returns results workload by workload, in the order of
  /// `engines`. Throws `Failure` at the first run that fails, and `Interrupted`.
  package func run(_ workloads: [Workload], engines: [String]) throws -> [WorkloadResult] {
    let plans = workloads.map { Plan($0, engines: engines) }
    let total = plans.reduce(0) { $0 + $1.runsPerRound } * options.sampling.minimum
    var done = 0
    var results: [WorkloadResult] = []
    for plan in plans {
      let engines = plan.engines
      let started = Clock.nanoseconds()
      var samples = engines.map { _ in SampleSeries() }
      var limitSamples = engines.map { _ in SampleSeries() }
      var round = 0
      var warmups = 0
      repeat {
        for step in Runner.order(round: round, engines: engines.count, seed: options.seed) {
          if step.isLimit, plan.limits[step.engine] == nil { continue }
          let engine = engines[step.engine]
          if options.shouldStop() { throw Interrupted() }
          options.progress(
            Progress(
              done: done, total: max(total, done + 1), workload: plan.workload, engine: engine,
              isLimit: step.isLimit))
          let sample = try measure(plan.workload, engine, round, isLimit: step.isLimit)
          if step.isLimit {
            limitSamples[step.engine].append(sample)
          } else {
            samples[step.engine].append(sample)
          }
          done += 1
        }
        round += 1
        if round - warmups == options.sampling.minimum, warmups < WarmUp.mostRounds,
          WarmUp.isInFirst(of: (samples + limitSamples).compactMap { $0.values(of: .seconds) })
        {
          warmups += 1
          for index in engines.indices {
            samples[index].removeFirst()
            if plan.limits[index] != nil { limitSamples[index].removeFirst() }
          }
        }
      } while !options.sampling.isEnough(
        rounds: round - warmups, seconds: Double(Clock.nanoseconds() - started) / 1e9,
        spread: { spread(samples, limitSamples) })
      for (index, engine) in engines.enumerated() {
        results.append(
          WorkloadResult(
            plan.workload, engine: engine, samples: samples[index],
            limit: plan.limits[index].map { ($0, limitSamples[index]) }, warmups: warmups))
      }
    }
    return results
  }

  /// A workload and the names of its limits, per engine.
  private struct Plan {
    let workload: Workload
    let engines: [String]
    let limits: [String?]

    init(_ workload: Workload, engines all: [String]) {
      self.workload = workload
      engines = all.filter(workload.runs)
      limits = engines.map { workload.limit?.name($0) }
    }

    var runsPerRound: Int { limits.count + limits.count { $0 != nil } }
  }

  /// The widest half of a 95% interval among the engines, as a share of the median. If there is a limit, it
  /// is the interval of the ratio to the limit, in which disturbances of the machine cancel.
  private func spread(_ samples: [SampleSeries], _ limits: [SampleSeries]) -> Double {
    zip(samples, limits).map { series, limit in
      guard let seconds = series.values(of: .seconds) else { return 0 }
      let center: Double
      let interval: ClosedRange<Double>
      if let below = limit.values(of: .seconds) {
        (center, interval) = Bootstrap.ratio(seconds, over: below)
      } else {
        center = SampleStatistics.median(seconds)
        interval = Bootstrap.medianInterval(seconds)
      }
      return center > 0 ? (interval.upperBound - interval.lowerBound) / 2 / center : 0
    }.max() ?? 0
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
        if options.evictsCaches { CacheEviction.run() }
        let planted = isLimit ? nil : options.plantedDelay
        sample = try Sample.take(
          trial, operations: workload.operations,
          delay: planted.map { delay in { delay(workload, engine, $0) } })
      } catch {
        try? trial.finish()
        throw error
      }
      try trial.finish()
      return sample
    } catch {
      throw Failure(
        workload: "\(isLimit ? "limit of " : "")\(workload.suite) \(workload.label)", engine: engine,
        reason: error)
    }
  }
}
