/// Checks whether a run is slower than a baseline by more than is allowed.
///
/// A workload is judged by its instructions if both runs counted them. Without counts, a workload that keeps
/// the processor busy is judged by its processor time divided by the limit's. A workload that waits for the
/// disk is judged by wall-clock time divided by the limit's, with or without counts. A workload without a
/// limit and without counts isn't judged, because absolute times of two runs aren't comparable.
package struct Gate: Sendable {
  /// The measure by which a workload is judged.
  package enum Measure: String, Sendable {
    /// Instructions, counted by callgrind.
    case instructions
    /// Processor time divided by the limit's, round by round.
    case processor = "normalized_cpu"
    /// Wall-clock time divided by the limit's, round by round.
    case wall = "normalized"
  }

  /// The judgement of one workload on one engine by one measure.
  package struct Row: Sendable {
    /// The identity of the result: `suite workload (parameters) on engine`.
    package let identity: String
    /// The suite.
    package let suite: String
    /// The workload without its parameters.
    package let workload: String
    /// The measure.
    package let measure: Measure
    /// The run's value divided by the baseline's.
    package let ratio: Double
    /// The 95% interval of `ratio`. For counted instructions it is the ratio itself.
    package let interval: ClosedRange<Double>
    /// The allowed ratio.
    package let allowed: Double
    /// The lowest value that `visible` can reach with more samples of the run. The baseline's variation
    /// remains.
    package let visibleByBaseline: Double

    /// Whether the whole interval is above the allowed ratio.
    package var isBeyond: Bool { interval.lowerBound > allowed }
    /// The smallest slowdown, as a ratio, that these samples would have shown. The interval of a run with
    /// that slowdown and the same variation is completely above the allowed ratio. It equals `allowed` if
    /// nothing varies.
    package var visible: Double { Gate.visible(ratio, interval, allowed) }
    /// The greatest acceptable value of `visible`: it allows half more than `allowed`. It can't be `allowed`
    /// itself, because only samples without variation reach that.
    package var wanted: Double { 1 + (allowed - 1) * 1.5 }
    /// Whether the samples vary too much to show a slowdown that should be seen.
    package var isBlurred: Bool { visible > wanted }
    /// Whether more samples of the run alone can make `visible` acceptable.
    package var canBeSharper: Bool { visibleByBaseline <= wanted }

    /// Whether both rows have the same workload, engine and measure.
    package func isSame(as other: Row) -> Bool { identity == other.identity && measure == other.measure }
  }

  /// The rows, in the order of the run.
  package let rows: [Row]
  /// The results that weren't judged, one line each with the reason.
  package let notJudged: [String]

  /// The share of its time in which a workload must keep the processor busy to be judged by processor time.
  static let busyShare = 0.7

  /// Compares `new` with `baseline`.
  package init(_ new: ResultsFile, baseline: ResultsFile, thresholds: Thresholds = Thresholds()) {
    let known = Dictionary(baseline.results.map { ($0.identity, $0) }) { first, _ in first }
    var rows: [Row] = []
    var notJudged: [String] = []
    for result in new.results {
      guard let old = known[result.identity] else {
        notJudged.append("\(result.identity): the baseline doesn't have it")
        continue
      }
      let judged = Gate.rows(result, old, thresholds)
      if judged.isEmpty {
        notJudged.append("\(result.identity): it has neither counted instructions nor a limit")
      }
      rows += judged
    }
    self.rows = rows
    self.notJudged = notJudged
  }

  private static func rows(_ new: WorkloadResult, _ old: WorkloadResult, _ thresholds: Thresholds) -> [Row] {
    typealias Ratio = (ratio: Double, interval: ClosedRange<Double>)
    func row(_ measure: Measure, _ found: Ratio, byBaseline: Ratio, _ share: Double) -> Row {
      let allowed = 1 + share
      return Row(
        identity: new.identity, suite: new.suite, workload: new.workload, measure: measure,
        ratio: found.ratio, interval: found.interval, allowed: allowed,
        visibleByBaseline: visible(byBaseline.ratio, byBaseline.interval, allowed))
    }
    let thresholds = thresholds.of(new.identity)
    var rows: [Row] = []
    if let counted = new.instructions?.run, let before = old.instructions?.run, before > 0 {
      let ratio = Double(counted) / Double(before)
      let exact = (ratio, ratio...ratio)
      rows.append(row(.instructions, exact, byBaseline: exact, thresholds.processor))
    }
    // In a baseline from a busy machine, this is also false for some workloads that don't wait for the disk.
    // These are judged by both measures.
    let isBusy = old.metrics.cpuSeconds.median >= busyShare * old.metrics.seconds.median
    if isBusy, !rows.isEmpty { return rows }
    let measure = isBusy ? Comparison.Measure.normalizedCPU : .normalized
    guard let after = measure.samples(of: new), let before = measure.samples(of: old) else { return rows }
    rows.append(
      row(
        isBusy ? .processor : .wall, Bootstrap.unpairedRatio(after, over: before),
        byBaseline: Bootstrap.unpairedRatio([SampleStatistics.median(after)], over: before),
        isBusy ? thresholds.processor : thresholds.waiting))
    return rows
  }

  private static func visible(_ ratio: Double, _ interval: ClosedRange<Double>, _ allowed: Double) -> Double {
    interval.lowerBound > 0 ? allowed * ratio / interval.lowerBound : .infinity
  }
}
