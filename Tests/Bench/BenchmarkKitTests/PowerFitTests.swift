import Expectations
import Foundation
import Testing

@testable import BenchmarkKit

/// The fit of a power finds what was put in, and says how sure it is.
struct PowerFitTests {
  private static let sizes: [Double] = [10_000, 30_000, 100_000, 300_000, 1_000_000]

  @Test(arguments: [-0.5, 0, 0.08, 0.5, 1, 1.1, 2])
  func exactPowerIsFound(_ exponent: Double) throws {
    let fit = try #require(
      PowerFit(samples: Self.sizes.map { ($0, [Double](repeating: 3e-6 * pow($0, exponent), count: 5)) }))
    expect(abs(fit.exponent - exponent) < 1e-9)
    expect(abs(fit.factor / 3e-6 - 1) < 1e-9)
    expect(abs(fit.value(at: 50_000) / (3e-6 * pow(50_000, exponent)) - 1) < 1e-9)
    expect(abs(fit.greatestDeviation - 1) < 1e-9)
    let interval = try #require(fit.interval)
    expect(abs(interval.lowerBound - exponent) < 1e-9 && abs(interval.upperBound - exponent) < 1e-9)
  }

  @Test func intervalOfNoisySamplesHoldsTheExponentAlmostAlways() throws {
    // With seven samples the interval of a median by the bootstrap is a little too narrow: 9 of 10 is what it holds.
    var held = 0
    var widths: [Double] = []
    for seed in 0..<100 {
      var random = ResamplingRandom(seed: UInt64(seed))
      let samples = Self.sizes.map { size in
        (
          size: size,
          values: (0..<7).map { _ in
            // Up to a fifth up or down, evenly, as the sum of two draws.
            let noise = Double(random.below(1_000) + random.below(1_000)) / 1_000 - 1
            return 1e-6 * pow(size, 0.3) * exp(0.2 * noise)
          }
        )
      }
      let interval = try #require(PowerFit(samples: samples)?.interval)
      if interval.contains(0.3) { held += 1 }
      widths.append(interval.upperBound - interval.lowerBound)
    }
    expect(held >= 85, "\(held) of 100")
    expect(SampleStatistics.median(widths) < 0.08, "\(SampleStatistics.median(widths))")
  }

  @Test func whatIsNoPowerShowsAsADeviation() throws {
    // A time that is level up to a size and then grows.
    let fit = try #require(PowerFit(samples: Self.sizes.map { ($0, [max(1e-6, 1e-11 * $0)]) }))
    expect(fit.greatestDeviation > 1.3)
    expect(fit.interval == nil)
  }

  @Test func oneFarOutSampleDoesNotMoveIt() throws {
    var samples = Self.sizes.map { (size: $0, values: [Double](repeating: 1e-6 * $0, count: 5)) }
    samples[4].values[2] *= 50
    let fit = try #require(PowerFit(samples: samples))
    expect(abs(fit.exponent - 1) < 1e-9)
  }

  @Test func whatCannotBeFittedIsNil() {
    expect(PowerFit(samples: []) == nil)
    expect(PowerFit(samples: [(1, [1, 2])]) == nil)
    expect(PowerFit(samples: [(5, [1]), (5, [2])]) == nil)
    expect(PowerFit(samples: [(1, [1]), (2, [])]) == nil)
    expect(PowerFit(samples: [(1, [1]), (2, [0])]) == nil)
    expect(PowerFit(samples: [(0, [1]), (2, [1])]) == nil)
  }
}
