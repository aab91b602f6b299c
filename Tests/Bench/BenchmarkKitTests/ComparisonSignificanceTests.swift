import Expectations
import Testing

@testable import BenchmarkKit

/// The rank test against tables and against counting all arrangements.
struct ComparisonSignificanceTests {
  /// All arrangements of the ranks, one by one.
  private func counted(_ left: [Double], _ right: [Double]) -> Double {
    let all = left + right
    func statistic(_ chosen: [Double], _ others: [Double]) -> Double {
      chosen.reduce(0) { sum, value in
        sum + others.reduce(0) { $0 + ($1 < value ? 1 : $1 == value ? 0.5 : 0) }
      }
    }
    let middle = Double(left.count * right.count) / 2
    let distance = abs(statistic(left, right) - middle)
    var extreme = 0
    var total = 0
    for bits in 0..<(1 << all.count) where bits.nonzeroBitCount == left.count {
      let chosen = all.indices.filter { bits >> $0 & 1 == 1 }.map { all[$0] }
      let others = all.indices.filter { bits >> $0 & 1 == 0 }.map { all[$0] }
      total += 1
      if abs(statistic(chosen, others) - middle) >= distance - 1e-9 { extreme += 1 }
    }
    return Double(extreme) / Double(total)
  }

  @Test func exactProbabilitiesAreThoseOfAllArrangements() {
    var random = ResamplingRandom(seed: 4)
    for _ in 0..<40 {
      let left = (0..<(1 + random.below(5))).map { _ in Double(random.below(1_000_000)) }
      let right = (0..<(1 + random.below(5))).map { _ in Double(random.below(1_000_000)) }
      let found = SignificanceTest.mannWhitney(left, right)
      expect(abs(found - counted(left, right)) < 1e-9, "\(left) \(right)")
    }
  }

  @Test func criticalValuesAreThoseOfTheTables() {
    // Two-sided 5% for 9 and 9 is U = 17, for 5 and 5 U = 2 (any table of the test).
    func probability(_ u: Int, _ n: Int) -> Double {
      // n samples that exceed none of the others but the greatest, which exceeds u.
      var left = (0..<n).map { Double(-$0 - 1) }
      let right = (0..<n).map { Double($0) }
      for step in 0..<u { left[step / n] = Double(step % n) + 0.5 + Double(n - step / n) / 100 }
      return SignificanceTest.mannWhitney(left, right)
    }
    expect(probability(17, 9) <= 0.05 && probability(18, 9) > 0.05)
    expect(probability(2, 5) <= 0.05 && probability(3, 5) > 0.05)
  }

  @Test func manySamplesAndTiesGoByTheNormalApproximation() {
    // scipy.stats.mannwhitneyu(left, right, method='asymptotic').pvalue
    let ties = SignificanceTest.mannWhitney([1, 2, 2, 3, 4, 5, 5], [3, 4, 5, 6, 7, 7, 8])
    expect(abs(ties - 0.028413318438283604) < 1e-7, "\(ties)")
    expect(SignificanceTest.mannWhitney([1, 1, 1], [1, 1]), equals: 1)
    expect(SignificanceTest.mannWhitney([], [1]), equals: 1)
    let left = (0..<40).map(Double.init)
    expect(SignificanceTest.mannWhitney(left, left.map { $0 + 30.5 }) < 1e-6)
    expect(SignificanceTest.mannWhitney(left, left.map { $0 + 0.5 }) > 0.5)
  }

  @Test func correctionStepsDownAndNeverFalls() {
    let adjusted = SignificanceTest.holm([0.01, 0.04, 0.03, 0.005])
    let expected = [0.03, 0.06, 0.06, 0.02]
    for (found, value) in zip(adjusted, expected) { expect(abs(found - value) < 1e-12) }
    expect(SignificanceTest.holm([0.9, 0.8]), equals: [1, 1])
    expect(SignificanceTest.holm([]), equals: [])
  }
}
