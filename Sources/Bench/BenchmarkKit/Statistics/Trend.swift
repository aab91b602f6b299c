#if canImport(Glibc)
  import Glibc
#endif

/// How the results of workloads changed from run to run.
package struct Trend: Sendable {
  /// What is followed of a workload: the first of these that all of its runs have.
  package enum Measure: String, CaseIterable, Codable, Sendable {
    /// Counted by callgrind. They hardly vary.
    case instructions
    /// Processor time divided by the limit's.
    case processor = "normalized_cpu"
    /// Seconds of the run. Only runs of the last one's machine are compared.
    case seconds

    fileprivate func values(_ result: WorkloadResult) -> [Double]? {
      switch self {
      case .instructions: result.instructions.map { [Double($0.run)] }
      case .processor: Comparison.Measure.normalizedCPU.samples(of: result)
      case .seconds: result.metrics.seconds.samples
      }
    }

    /// The smallest change that is called one, as a share. Counts vary by 0.4% between equal builds.
    fileprivate var leastChange: Double { self == .instructions ? 0.005 : 0.03 }
  }

  /// A run.
  package struct Point: Codable, Equatable, Sendable {
    /// The version and revision of the build.
    package let build: String
    /// When it began, in UTC.
    package let started: String
    /// The median of its samples.
    package let value: Double
  }

  /// A run from which on the values are others.
  package struct ChangePoint: Codable, Equatable, Sendable {
    /// The index of the first run with the new values.
    package let index: Int
    /// The median from there to the next change, divided by the one before.
    package let ratio: Double
  }

  /// A workload on an engine.
  package struct Row: Sendable {
    package let identity: String
    package let suite: String
    package let label: String
    package let engine: String
    package let measure: Measure
    package let points: [Point]
    package let changes: [ChangePoint]
    /// The last value divided by the first.
    package var ratio: Double { (points.last?.value ?? 1) / (points.first?.value ?? 1) }
  }

  /// The workloads that at least two runs have, in the order of the runs.
  package let rows: [Row]
  /// How many runs another machine has made, whose seconds can't be compared with those of the last run.
  package let foreignRuns: Int

  /// Compares runs in the order in which they began.
  package init(_ files: [ResultsFile]) {
    let files = files.sorted { $0.started < $1.started }
    let machine = files.last?.machine
    foreignRuns = files.count { $0.machine != machine }
    let identities = files.flatMap(\.results).map(\.identity).firstOccurrences()
    let found = files.map { file in
      (file, Dictionary(file.results.map { ($0.identity, $0) }) { first, _ in first })
    }
    rows = identities.compactMap { identity in
      Trend.row(found.compactMap { file, results in results[identity].map { (file, $0) } }, machine)
    }
  }

  private static func row(_ runs: [(file: ResultsFile, result: WorkloadResult)], _ machine: Machine?) -> Row?
  {
    guard let last = runs.last?.result else { return nil }
    for measure in Measure.allCases {
      let usable = measure == .seconds ? runs.filter { $0.file.machine == machine } : runs
      let values = usable.compactMap { measure.values($0.result) }
      guard usable.count >= 2, values.count == usable.count, values.allSatisfy({ $0.allSatisfy { $0 > 0 } })
      else { continue }
      let points = zip(usable, values).map { run, values in
        Point(build: run.file.touchstone, started: run.file.started, value: SampleStatistics.median(values))
      }
      return Row(
        identity: last.identity, suite: last.suite, label: last.label, engine: last.engine, measure: measure,
        points: points, changes: changes(values, leastChange: measure.leastChange))
    }
    return nil
  }

  // MARK: Change points

  /// Divides the runs where the medians on both sides differ most, compared with how much the runs vary, and then each part
  /// again.
  ///
  /// A difference counts if it is at least `leastChange`, and four times what noise makes of two medians of so many runs. The
  /// noise is the greater of two: how much the runs' own samples vary, and how much neighbours differ (half of them, so that
  /// steps don't count).
  package static func changes(_ runs: [[Double]], leastChange: Double) -> [ChangePoint] {
    let values = runs.map { log(SampleStatistics.median($0)) }
    let noise = max(neighbours(values), within(runs))
    let least = log(1 + leastChange)
    func median(_ range: Range<Int>) -> Double { SampleStatistics.median(Array(values[range])) }
    func starts(_ range: Range<Int>) -> [Int] {
      var best: (start: Int, score: Double)?
      for start in range.dropFirst() {
        let difference = abs(median(start..<range.upperBound) - median(range.lowerBound..<start))
        let left = Double(start - range.lowerBound)
        let right = Double(range.upperBound - start)
        let score = difference * (left * right / (left + right)).squareRoot()
        guard difference >= least, score > 4 * noise else { continue }
        if score > best?.score ?? 0 { best = (start, score) }
      }
      guard let start = best?.start else { return [] }
      return starts(range.lowerBound..<start) + [start] + starts(start..<range.upperBound)
    }
    let found = starts(values.indices)
    let bounds = [0] + found + [values.count]
    return found.indices.map { place in
      let ratio = exp(
        median(bounds[place + 1]..<bounds[place + 2]) - median(bounds[place]..<bounds[place + 1]))
      return ChangePoint(index: found[place], ratio: ratio)
    }
  }

  /// The standard deviation of a run, from the differences of neighbours.
  private static func neighbours(_ values: [Double]) -> Double {
    // Of two differences one may be the step.
    guard values.count >= 4 else { return 0 }
    let differences = zip(values, values.dropFirst()).map { abs($0 - $1) }
    return SampleStatistics.median(differences) / (0.6745 * 2.0.squareRoot())
  }

  /// The standard deviation of a run's median, from its samples: the median of the runs.
  private static func within(_ runs: [[Double]]) -> Double {
    let deviations = runs.compactMap { samples -> Double? in
      guard samples.count >= 3 else { return nil }
      let middle = SampleStatistics.median(samples)
      let deviation = SampleStatistics.median(samples.map { abs(log($0 / middle)) }) / 0.6745
      return 1.2533 * deviation / Double(samples.count).squareRoot()
    }
    return deviations.isEmpty ? 0 : SampleStatistics.median(deviations)
  }
}
