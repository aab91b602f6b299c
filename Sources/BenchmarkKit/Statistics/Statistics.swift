#if canImport(Glibc)
  import Glibc
#endif

/// Order statistics of samples.
package enum Statistics {
  /// The quantile of samples, with linear interpolation between neighbours: position `quantile * (count - 1)`
  /// in ascending order. `quantile` is 0 to 1. 0 if there are no samples.
  package static func quantile(_ quantile: Double, of samples: [Double]) -> Double {
    self.quantile(quantile, ofSorted: samples.sorted())
  }

  static func quantile(_ quantile: Double, ofSorted sorted: [Double]) -> Double {
    guard let last = sorted.last else { return 0 }
    let position = quantile * Double(sorted.count - 1)
    let index = Int(position)
    guard index + 1 < sorted.count else { return last }
    return sorted[index] + (sorted[index + 1] - sorted[index]) * (position - Double(index))
  }

  /// The middle sample, or the mean of the two middle ones. 0 if there are none.
  package static func median(_ samples: [Double]) -> Double { quantile(0.5, of: samples) }

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

  /// The geometric mean: the count-th root of the product. 1 if there are no ratios.
  package static func geometricMean(_ ratios: [Double]) -> Double {
    guard !ratios.isEmpty else { return 1 }
    return exp(ratios.reduce(0) { $0 + log($1) } / Double(ratios.count))
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

  /// Samples that are outside the quartiles by more than three times the distance between them: Tukey's far
  /// outliers ("Exploratory Data Analysis", 1977). They are reported, but count like all others. Empty if
  /// there are fewer than five samples.
  package static func outliers(_ samples: [Double]) -> [Double] {
    guard samples.count >= 5 else { return [] }
    let sorted = samples.sorted()
    let low = quantile(0.25, ofSorted: sorted)
    let high = quantile(0.75, ofSorted: sorted)
    return samples.filter { $0 < low - 3 * (high - low) || $0 > high + 3 * (high - low) }
  }

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
    let low = quantile(0.025, ofSorted: values)
    return low...max(low, quantile(0.975, ofSorted: values))
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
