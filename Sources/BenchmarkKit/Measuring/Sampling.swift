/// How many rounds of a workload are made.
public struct Sampling: Sendable, Equatable {
  /// At least so many, from 1.
  public var minimum: Int
  /// At most so many.
  public var maximum: Int
  /// Rounds are made until the 95% interval of each engine's median is at most this share of it to either side: 0.02
  /// is 2%. Nil: `minimum` rounds.
  public var precision: Double?
  /// No further round begins after so many seconds on one workload.
  public var budget: Double

  /// Always so many rounds.
  public static func fixed(_ count: Int) -> Sampling { Sampling(minimum: count, maximum: count) }

  /// Rounds until the interval is within `precision`, from `minimum` to `maximum` and within the budget.
  public init(minimum: Int, maximum: Int, precision: Double? = nil, budget: Double = .infinity) {
    self.minimum = max(1, minimum)
    self.maximum = max(self.minimum, maximum)
    self.precision = precision
    self.budget = budget
  }

  /// Whether no further round is needed after so many. `spread` is called only when it decides.
  func isEnough(rounds: Int, seconds: Double, spread: () -> Double) -> Bool {
    guard rounds >= minimum else { return false }
    guard let precision, rounds < maximum, seconds < budget else { return true }
    return spread() <= precision
  }
}

/// Finds first rounds that were slow because code and files were read for the first time.
enum WarmUp {
  /// So many rounds of a workload are left out at most: what is still slow then is slow.
  static let mostRounds = 2
  /// With fewer samples the first can't be told from the others.
  static let leastSamples = 4

  /// Whether in one of the series the first sample is a quarter above the median of the others, and above the
  /// greatest of them by a twentieth: one that is merely the slowest of its series isn't.
  static func isInFirst(of series: [[Double]]) -> Bool {
    series.contains { samples in
      guard samples.count >= leastSamples, let first = samples.first else { return false }
      let others = Array(samples.dropFirst())
      return first > Statistics.median(others) * 1.25 && first > (others.max() ?? 0) * 1.05
    }
  }
}
