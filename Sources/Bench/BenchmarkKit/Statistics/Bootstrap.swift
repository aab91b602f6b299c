/// Confidence intervals by the bootstrap: from samples that are drawn again and again with replacement.
package enum Bootstrap {
  /// The 95% confidence interval of the median by the bootstrap: the 2.5% and 97.5% quantiles of 2,000
  /// medians of samples drawn with replacement. The seed is fixed, so equal samples have equal intervals.
  package static func medianInterval(_ samples: [Double]) -> ClosedRange<Double> {
    interval(rounds: samples.count) { drawn in median(drawn.map { samples[$0] }) }
  }

  /// The ratio of two medians and its 95% confidence interval, from paired samples. The bootstrap draws
  /// rounds, so a disturbance of both samples of a round cancels. Both sets have the same number of samples.
  package static func ratio(_ numerator: [Double], over denominator: [Double]) -> (
    ratio: Double, interval: ClosedRange<Double>
  ) {
    let count = min(numerator.count, denominator.count)
    let interval = interval(rounds: count) { drawn in
      median(drawn.map { numerator[$0] }) / median(drawn.map { denominator[$0] })
    }
    return (median(numerator) / median(denominator), interval)
  }

  /// The ratio of two medians and its 95% confidence interval, from samples that aren't paired. The bootstrap
  /// draws from each set separately.
  package static func unpairedRatio(_ numerator: [Double], over denominator: [Double]) -> (
    ratio: Double, interval: ClosedRange<Double>
  ) {
    let count = numerator.count
    let interval = interval(draws: count + denominator.count) { random in
      let above = median((0..<count).map { _ in numerator[random.below(count)] })
      return above / median(denominator.indices.map { _ in denominator[random.below(denominator.count)] })
    }
    return (median(numerator) / median(denominator), interval)
  }

  private static func median(_ samples: [Double]) -> Double { SampleStatistics.median(samples) }

  private static let resamples = 2_000

  private static func interval(
    rounds: Int, _ statistic: ([Int]) -> Double
  ) -> ClosedRange<Double> {
    var drawn = [Int](repeating: 0, count: rounds)
    return interval(draws: rounds) { random in
      for index in drawn.indices { drawn[index] = random.below(rounds) }
      return statistic(drawn)
    }
  }

  /// The interval that contains 95% of the values of `statistic`, which draws its own samples.
  static func interval(
    draws: Int, _ statistic: (inout ResamplingRandom) -> Double
  ) -> ClosedRange<Double> {
    guard draws > 0 else { return 0...0 }
    var random = ResamplingRandom()
    var values = (0..<resamples).map { _ in statistic(&random) }.filter { !$0.isNaN }
    guard !values.isEmpty else { return 0...0 }
    values.sort()
    let low = SampleStatistics.quantile(0.025, ofSorted: values)
    return low...max(low, SampleStatistics.quantile(0.975, ofSorted: values))
  }
}

/// The random generator of the bootstrap and of the order of engines: xorshift64* (Vigna 2016).
struct ResamplingRandom {
  private var state: UInt64 = 0x2545_F491_4F6C_DD1D

  /// A generator with a fixed seed.
  init() {}

  /// A generator with a given seed.
  init(seed: UInt64) {
    // Spreads adjacent seeds to distant states.
    state = (seed &+ 1) &* 0x9E37_79B9_7F4A_7C15 | 1
    for _ in 0..<4 { _ = below(2) }
  }

  mutating func below(_ bound: Int) -> Int {
    state ^= state >> 12
    state ^= state << 25
    state ^= state >> 27
    let value = state &* 0x2545_F491_4F6C_DD1D
    return Int(((value >> 32) &* UInt64(bound)) >> 32)
  }
}
