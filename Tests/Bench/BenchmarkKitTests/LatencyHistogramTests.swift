import Expectations
import Testing

@testable import BenchmarkKit

/// Percentiles of the histogram are those of the sorted times, to within a thousandth.
struct LatencyHistogramTests {
  /// Times of every size, by the same draws each time.
  private func times(_ count: Int, seed: UInt64) -> [UInt64] {
    var random = ResamplingRandom(seed: seed)
    return (0..<count).map { _ in
      let bits = random.below(41)
      return (UInt64(random.below(1 << 30)) << 11) >> UInt64(41 - bits)
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func percentilesAreWithinAThousandth(_ seed: UInt64) {
    let times = times(20_000, seed: seed)
    var histogram = LatencyHistogram()
    for time in times { histogram.record(time) }
    let sorted = times.sorted()
    for quantile in [0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1] {
      let rank = max(1, Int((quantile * Double(times.count)).rounded(.up)))
      let exact = sorted[rank - 1]
      let found = histogram.value(at: quantile)
      expect(found >= exact && Double(found - exact) <= Double(exact) / 1_000, "seed \(seed), \(quantile)")
    }
    expect(histogram.maximum, equals: sorted.last)
    expect(histogram.count, equals: times.count)
  }

  @Test func everyTimeLiesInItsBucket() {
    var lowerEnd: UInt64 = 0
    for bucket in 0..<20_000 {
      let upperEnd = LatencyHistogram.upperEnd(bucket)
      expect(LatencyHistogram.bucket(lowerEnd) == bucket && LatencyHistogram.bucket(upperEnd) == bucket)
      expect(upperEnd - lowerEnd <= lowerEnd / 1_024)
      lowerEnd = upperEnd + 1
    }
  }

  @Test func sumOfHistogramsIsThatOfAllTimes() {
    let times = times(1_000, seed: 9)
    var whole = LatencyHistogram()
    var parts = [LatencyHistogram(), LatencyHistogram()]
    for (index, time) in times.enumerated() {
      whole.record(time)
      parts[index % 2].record(time)
    }
    parts[0].add(parts[1])
    expect(parts[0], equals: whole)
    expect(whole.count, equals: 1_000)
  }

  @Test func emptyAndEndlessTimes() {
    var histogram = LatencyHistogram()
    expect(histogram.value(at: 0.5) == 0 && histogram.mean == 0)
    histogram.record(.max)
    expect(histogram.value(at: 0.5), equals: .max)
  }

  /// A stall of 100 ms in a loop that wants to begin an operation each millisecond keeps 99 others waiting.
  @Test func stallsCountForAllThatWaited() {
    var histogram = LatencyHistogram()
    for _ in 0..<900 { histogram.record(10_000, expectedInterval: 1_000_000) }
    histogram.record(100_000_000, expectedInterval: 1_000_000)
    expect(histogram.count, equals: 1_000)
    expect(histogram.value(at: 0.9) <= 10_010)
    expect(histogram.value(at: 0.95) > 45_000_000)
  }
}
