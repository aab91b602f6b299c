#if canImport(Glibc)
  import Glibc
#endif

/// A power law fitted to values: value = factor · size^exponent, by least squares of the logarithms.
package struct PowerFit: Sendable {
  /// The fitted points by ascending size: the median of the samples at each size.
  package let points: [(size: Double, value: Double)]
  /// The exponent: 1 if the value grows linearly with the size, 0 if it doesn't grow.
  package let exponent: Double
  /// The value at size 1.
  package let factor: Double
  /// The 95% interval of the exponent by the bootstrap: the 2.5% and 97.5% quantiles of 2,000 fits, each of
  /// the medians of resampled samples. It shows the noise of the samples. It doesn't show how well a power
  /// law fits: see `greatestDeviation`. Nil if there is only one sample per size.
  package let interval: ClosedRange<Double>?

  /// Fits at least two sizes. Nil if there are fewer, or if a number isn't positive.
  package init?(_ points: [(size: Double, value: Double)]) {
    self.init(samples: points.map { ($0.size, [$0.value]) })
  }

  /// Fits the medians of `samples`: at least two sizes, each with at least one value. Nil if there are fewer,
  /// or if a number isn't positive.
  package init?(samples: [(size: Double, values: [Double])]) {
    guard
      samples.allSatisfy({ $0.size > 0 && !$0.values.isEmpty && $0.values.allSatisfy { $0 > 0 } })
    else { return nil }
    let samples = samples.sorted { $0.size < $1.size }
    let line = Line(at: samples.map { log($0.size) })
    guard let line else { return nil }
    let medians = samples.map { SampleStatistics.median($0.values) }
    exponent = line.slope(medians.map { log($0) })
    factor = exp(line.height(medians.map { log($0) }, slope: exponent))
    points = zip(samples, medians).map { ($0.size, $1) }
    let draws = samples.reduce(0) { $0 + $1.values.count }
    interval =
      draws == samples.count
      ? nil
      : Bootstrap.interval(draws: draws) { random in
        line.slope(
          samples.map { sample in
            let values = sample.values
            return log(SampleStatistics.median(values.map { _ in values[random.below(values.count)] }))
          })
      }
  }

  /// The fitted value at a size.
  package func value(at size: Double) -> Double { factor * pow(size, exponent) }

  /// The greatest factor by which a point is above or below the fit; 1 if all points are on it.
  package var greatestDeviation: Double {
    points.map { exp(abs(log($0.value / value(at: $0.size)))) }.max() ?? 1
  }

  /// Least squares with fixed x values.
  private struct Line {
    private let offsets: [Double]
    private let mean: Double
    private let squares: Double

    /// Nil if all x values are equal.
    init?(at places: [Double]) {
      guard !places.isEmpty else { return nil }
      let mean = places.reduce(0, +) / Double(places.count)
      self.mean = mean
      offsets = places.map { $0 - mean }
      squares = offsets.reduce(0) { $0 + $1 * $1 }
      guard squares > 0 else { return nil }
    }

    func slope(_ heights: [Double]) -> Double {
      zip(offsets, heights).reduce(0) { $0 + $1.0 * $1.1 } / squares
    }

    func height(_ heights: [Double], slope: Double) -> Double {
      heights.reduce(0, +) / Double(heights.count) - slope * mean
    }
  }
}
