#if canImport(Glibc)
  import Glibc
#endif

/// The power of a size that values follow best: value = factor · size^exponent, by least squares of the logarithms.
public struct PowerFit: Sendable {
  /// What was fitted, by ascending size: of each size the median of its samples.
  public let points: [(size: Double, value: Double)]
  /// 1 when the value grows like the size, 0 when it doesn't grow.
  public let exponent: Double
  /// The value at size 1.
  public let factor: Double
  /// The 95% interval of the exponent by the bootstrap: of 2,000 fits of medians of samples that are drawn anew at
  /// each size, those at 2.5% and 97.5%. It is of the samples' noise and says nothing of whether the values follow a
  /// power at all (`greatestDeviation`). Nil when there is one sample at each size.
  public let interval: ClosedRange<Double>?

  /// A fit of at least two sizes; nil otherwise, or when a number isn't positive.
  public init?(_ points: [(size: Double, value: Double)]) {
    self.init(samples: points.map { ($0.size, [$0.value]) })
  }

  /// A fit of the medians of `samples`, which are at least two sizes with one value each; nil otherwise, or when a
  /// number isn't positive.
  public init?(samples: [(size: Double, values: [Double])]) {
    guard
      samples.allSatisfy({ $0.size > 0 && !$0.values.isEmpty && $0.values.allSatisfy { $0 > 0 } })
    else { return nil }
    let samples = samples.sorted { $0.size < $1.size }
    let line = Line(at: samples.map { log($0.size) })
    guard let line else { return nil }
    let medians = samples.map { Statistics.median($0.values) }
    exponent = line.slope(medians.map { log($0) })
    factor = exp(line.height(medians.map { log($0) }, slope: exponent))
    points = zip(samples, medians).map { ($0.size, $1) }
    let draws = samples.reduce(0) { $0 + $1.values.count }
    interval =
      draws == samples.count
      ? nil
      : Statistics.interval(draws: draws) { random in
        line.slope(
          samples.map { sample in
            let values = sample.values
            return log(Statistics.median(values.map { _ in values[random.below(values.count)] }))
          })
      }
  }

  /// The value at a size by the fit.
  public func value(at size: Double) -> Double { factor * pow(size, exponent) }

  /// The greatest factor by which a point lies above or below the fit; 1 when all lie on it.
  public var greatestDeviation: Double {
    points.map { exp(abs(log($0.value / value(at: $0.size)))) }.max() ?? 1
  }

  /// Least squares at places that don't change.
  private struct Line {
    private let offsets: [Double]
    private let mean: Double
    private let squares: Double

    /// Nil when all places are the same.
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
