/// Says whether a run is slower than a baseline by more than is allowed.
///
/// A workload is judged by its instructions where both runs counted them. One without counts, when it works the
/// processor, by its processor time over that of its limit; one that waits for the disk, with counts or without, by
/// wall clock over that of its limit as well. A workload without a limit, and without counted instructions, isn't
/// judged: absolute times of two runs don't compare.
public struct Gate: Sendable {
  /// By how much a workload may be slower, as shares: 0.1 is 10%.
  public struct Thresholds: Sendable {
    /// Of instructions, and of processor time over the limit's.
    public var processor: Double
    /// Of wall clock over the limit's, for what waits for the disk: its time varies more.
    public var waiting: Double

    /// Thresholds; those of waiting are three times those of the processor unless given.
    public init(processor: Double = 0.1, waiting: Double? = nil) {
      self.processor = processor
      self.waiting = waiting ?? processor * 3
    }
  }

  /// What a workload is judged by.
  public enum Measure: String, Sendable {
    /// Instructions counted by callgrind.
    case instructions
    /// Processor time over that of the limit, round by round.
    case processor = "normalized_cpu"
    /// Wall clock over that of the limit, round by round.
    case wall = "normalized"
  }

  /// One workload on one engine by one measure.
  public struct Row: Sendable {
    /// Which: `suite workload (parameters) on engine`.
    public let identity: String
    /// The suite.
    public let suite: String
    /// The workload without its parameters.
    public let workload: String
    /// What it is judged by.
    public let measure: Measure
    /// The run's value over the baseline's.
    public let ratio: Double
    /// Its 95% interval; of counted instructions the ratio itself.
    public let interval: ClosedRange<Double>
    /// The ratio that is allowed.
    public let allowed: Double
    /// How little more samples of the run alone could bring `visible` to: what the baseline's own vary by stays.
    public let visibleByBaseline: Double

    /// Whether the whole interval lies beyond.
    public var isBeyond: Bool { interval.lowerBound > allowed }
    /// The smallest slowdown, as a ratio, that these samples would have shown: the whole interval of a run so much slower,
    /// which varies as this one does, lies beyond what is allowed. `allowed` when nothing varies.
    public var visible: Double { Gate.visible(ratio, interval, allowed) }
    /// What `visible` should be at most: half more than is allowed. It can't be `allowed` itself, which only samples that
    /// don't vary would show.
    public var wanted: Double { 1 + (allowed - 1) * 1.5 }
    /// Whether a slowdown that should be seen would have passed.
    public var isBlurred: Bool { visible > wanted }
    /// Whether more samples of the run alone can change that.
    public var canBeSharper: Bool { visibleByBaseline <= wanted }

    /// Whether both are of one workload on one engine by one measure.
    public func isSame(as other: Row) -> Bool { identity == other.identity && measure == other.measure }
  }

  /// What was judged, in the order of the run.
  public let rows: [Row]
  /// What wasn't, a line each with the reason.
  public let notJudged: [String]

  /// Share of its time that a workload must keep the processor busy to be judged by what the processor did.
  static let busyShare = 0.7

  /// Judges `new` by `baseline`.
  public init(_ new: ResultsFile, baseline: ResultsFile, thresholds: Thresholds = Thresholds()) {
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
    var rows: [Row] = []
    if let counted = new.instructions?.run, let before = old.instructions?.run, before > 0 {
      let ratio = Double(counted) / Double(before)
      let exact = (ratio, ratio...ratio)
      rows.append(row(.instructions, exact, byBaseline: exact, thresholds.processor))
    }
    // Of a baseline from a busy machine this is false for more than wait: those are judged by both.
    let isBusy = old.metrics.cpuSeconds.median >= busyShare * old.metrics.seconds.median
    if isBusy, !rows.isEmpty { return rows }
    let measure = isBusy ? Comparison.Measure.normalizedCPU : .normalized
    guard let after = measure.samples(of: new), let before = measure.samples(of: old) else { return rows }
    rows.append(
      row(
        isBusy ? .processor : .wall, Statistics.unpairedRatio(after, over: before),
        byBaseline: Statistics.unpairedRatio([Statistics.median(after)], over: before),
        isBusy ? thresholds.processor : thresholds.waiting))
    return rows
  }

  private static func visible(_ ratio: Double, _ interval: ClosedRange<Double>, _ allowed: Double) -> Double {
    interval.lowerBound > 0 ? allowed * ratio / interval.lowerBound : .infinity
  }
}
