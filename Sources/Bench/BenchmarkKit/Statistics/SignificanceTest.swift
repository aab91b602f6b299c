#if canImport(Glibc)
  import Glibc
#endif

/// Tests whether two sets of samples differ, without assumptions about their distribution.
package enum SignificanceTest {
  /// The two-sided Mann-Whitney U test: the probability of ranks at least as uneven as these, if both sets
  /// come from one distribution.
  ///
  /// The result is exact, by counting arrangements, if no two samples are equal and neither set has more than
  /// 30. Otherwise it is the normal approximation with corrections for ties and for continuity. 1 if a set is
  /// empty.
  ///
  /// Source: Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the
  /// other", 1947.
  package static func mannWhitney(_ left: [Double], _ right: [Double]) -> Double {
    guard !left.isEmpty, !right.isEmpty else { return 1 }
    let (rankSum, ties) = ranks(left, right)
    let m = left.count
    let n = right.count
    let u = rankSum - Double(m * (m + 1)) / 2
    if ties == 0, m <= 30, n <= 30 { return exact(Int(min(u, Double(m * n) - u).rounded()), m, n) }
    let total = Double(m + n)
    let variance = Double(m * n) / 12 * ((total + 1) - ties / (total * (total - 1)))
    guard variance > 0 else { return 1 }
    let distance = max(0, abs(u - Double(m * n) / 2) - 0.5)
    return min(1, erfc(distance / variance.squareRoot() / 2.0.squareRoot()))
  }

  /// Returns the sum of the ranks of `left` among all samples, where equal samples have their mean rank, and
  /// the sum of t³ - t over groups of t equal samples.
  private static func ranks(_ left: [Double], _ right: [Double]) -> (sum: Double, ties: Double) {
    let all = (left.map { ($0, true) } + right.map { ($0, false) }).sorted { $0.0 < $1.0 }
    var sum = 0.0
    var ties = 0.0
    var start = 0
    while start < all.count {
      var end = start
      while end < all.count, all[end].0 == all[start].0 { end += 1 }
      let rank = Double(start + 1 + end) / 2
      sum += rank * Double(all[start..<end].count { $0.1 })
      let size = Double(end - start)
      ties += size * size * size - size
      start = end
    }
    return (sum, ties)
  }

  /// Twice the share of the arrangements of m and n samples whose U is at most `u`.
  private static func exact(_ u: Int, _ m: Int, _ n: Int) -> Double {
    // ways[j][u] is the number of arrangements of i and j samples with that U. The greatest sample is either
    // in the first set, and then exceeds all j samples of the second, or in the second set.
    let limit = m * n
    var ways = [[Double]](repeating: [1.0] + [Double](repeating: 0, count: limit), count: n + 1)
    for _ in 0..<m {
      var next = [[Double]](repeating: [Double](repeating: 0, count: limit + 1), count: n + 1)
      for j in 0...n {
        for value in 0...limit {
          let first = value >= j ? ways[j][value - j] : 0
          next[j][value] = first + (j > 0 ? next[j - 1][value] : 0)
        }
      }
      ways = next
    }
    let total = ways[n].reduce(0, +)
    return min(1, 2 * ways[n][...u].reduce(0, +) / total)
  }

  /// Adjusts the probabilities of many tests, so that the family of tests has the error rate of a single
  /// test: Holm's step-down correction ("A simple sequentially rejective multiple test procedure", 1979).
  package static func holm(_ probabilities: [Double]) -> [Double] {
    let order = probabilities.indices.sorted { probabilities[$0] < probabilities[$1] }
    var adjusted = probabilities
    var greatest = 0.0
    for (position, index) in order.enumerated() {
      greatest = max(greatest, min(1, probabilities[index] * Double(probabilities.count - position)))
      adjusted[index] = greatest
    }
    return adjusted
  }
}
