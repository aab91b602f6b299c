#if canImport(Glibc)
  import Glibc
#endif

/// Numbers that describe samples: quantiles, means and outliers.
package enum SampleStatistics {
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

  /// The geometric mean: the count-th root of the product. 1 if there are no ratios.
  package static func geometricMean(_ ratios: [Double]) -> Double {
    guard !ratios.isEmpty else { return 1 }
    return exp(ratios.reduce(0) { $0 + log($1) } / Double(ratios.count))
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
}
