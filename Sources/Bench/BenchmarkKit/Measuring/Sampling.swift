/// The number of rounds of a workload.
public struct Sampling: Sendable, Equatable {
  /// The minimum number of rounds, at least 1.
  public var minimum: Int
  /// The maximum number of rounds.
  public var maximum: Int
  /// Rounds continue until the 95% interval of each engine's median extends at most this share of the median
  /// to either side: 0.02 is 2%. Nil: exactly `minimum` rounds.
  public var precision: Double?
  /// The time limit of one workload in seconds. After it no further round starts, once `minimum` rounds are
  /// done.
  public var budget: Double

  /// A fixed number of rounds.
  public static func fixed(_ count: Int) -> Sampling { Sampling(minimum: count, maximum: count) }

  /// Rounds continue until the interval is within `precision`, but at least `minimum`, at most `maximum` and
  /// within the budget.
  public init(minimum: Int, maximum: Int, precision: Double? = nil, budget: Double = .infinity) {
    self.minimum = max(1, minimum)
    self.maximum = max(self.minimum, maximum)
    self.precision = precision
    self.budget = budget
  }

  /// Whether no further round is needed. `spread` is called only if the result depends on it.
  func isEnough(rounds: Int, seconds: Double, spread: () -> Double) -> Bool {
    guard rounds >= minimum else { return false }
    guard let precision, rounds < maximum, seconds < budget else { return true }
    return spread() <= precision
  }
}

/// Finds first rounds that were slow because code and files were read for the first time.
enum WarmUp {
  /// The maximum number of rounds of a workload that are left out. What is slow after them isn't a warm-up.
  static let mostRounds = 2
  /// With fewer samples, the first one can't be distinguished from the others.
  static let leastSamples = 4

  /// Whether the first sample of a series is more than 25% above the median of the others and more than 5%
  /// above their maximum. A sample that is only the slowest of its series doesn't count.
  static func isInFirst(of series: [[Double]]) -> Bool {
    series.contains { samples in
      guard samples.count >= leastSamples, let first = samples.first else { return false }
      let others = Array(samples.dropFirst())
      return first > SampleStatistics.median(others) * 1.25 && first > (others.max() ?? 0) * 1.05
    }
  }
}
