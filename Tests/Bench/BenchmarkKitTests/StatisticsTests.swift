import Expectations
import Testing

@testable import BenchmarkKit

/// Order statistics against values worked out by hand.
struct StatisticsTests {
  @Test func medianOfOddAndEvenCounts() {
    expect(SampleStatistics.median([3, 1, 2]), equals: 2)
    expect(SampleStatistics.median([4, 1, 3, 2]), equals: 2.5)
    expect(SampleStatistics.median([7]), equals: 7)
    expect(SampleStatistics.median([]), equals: 0)
  }

  @Test func quantilesLieOnAStraightLineBetweenNeighbours() {
    // 1...11: position 0.95 * 10 = 9.5, between the 10th and the 11th.
    let samples = (1...11).map(Double.init)
    expect(abs(SampleStatistics.quantile(0.95, of: samples) - 10.5) < 1e-12)
    expect(abs(SampleStatistics.quantile(0.99, of: samples) - 10.9) < 1e-12)
    expect(SampleStatistics.quantile(0, of: samples), equals: 1)
    expect(SampleStatistics.quantile(1, of: samples), equals: 11)
  }

  @Test func intervalOfEqualSamplesIsAPoint() {
    expect(Bootstrap.medianInterval([5, 5, 5, 5]), equals: 5...5)
    expect(Bootstrap.medianInterval([5]), equals: 5...5)
    expect(Bootstrap.medianInterval([]), equals: 0...0)
  }

  @Test func intervalHoldsTheMedianAndIsTheSameEachTime() {
    let samples = [9.0, 1, 8, 2, 7, 3, 6, 4, 5]
    let interval = Bootstrap.medianInterval(samples)
    expect(interval.contains(5))
    // A median of nine draws is at most k when five or more of them are: that has a probability of 0.15% for
    // k = 1 and 3.0% for k = 2, so the 2.5% point is 2, and by symmetry the other is 8.
    expect(interval, equals: 2...8)
    expect(Bootstrap.medianInterval(samples), equals: interval)
  }

  @Test func ratioOfPairsIgnoresWhatBothShare() {
    // A machine that is three times slower in half of the rounds.
    let slow = [1.0, 3, 1, 3, 1, 3, 1, 3, 1]
    let ratio = Bootstrap.ratio(slow.map { $0 * 1.2 }, over: slow)
    expect(abs(ratio.ratio - 1.2) < 1e-12)
    expect(abs(ratio.interval.lowerBound - 1.2) < 1e-12 && abs(ratio.interval.upperBound - 1.2) < 1e-12)
  }

  @Test func geometricMeanOfReciprocalsIsOne() {
    expect(abs(SampleStatistics.geometricMean([4, 0.25]) - 1) < 1e-12)
    expect(abs(SampleStatistics.geometricMean([2, 8]) - 4) < 1e-12)
    expect(SampleStatistics.geometricMean([]), equals: 1)
  }

  @Test func distributionKeepsTheOrderOfItsSamples() {
    let distribution = Distribution([3, 1, 2])
    expect(distribution.samples, equals: [3, 1, 2])
    expect(distribution.median, equals: 2)
  }
}
