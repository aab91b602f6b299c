import Datasets
import Foundation

/// Ranks from 0 to `count` - 1, of which the kth is drawn in proportion to 1 / (k + 1)^theta.
///
/// By the method of Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly Generating Billion-Record Synthetic
/// Databases" (SIGMOD 1994), figure 7, in constant time: the first two ranks have just that probability, those behind
/// them come from a continuous curve, which stays close to it.
struct Zipfian: Sendable {
  /// The skew of YCSB's workloads.
  static let standardTheta = 0.99

  private(set) var count: Int
  let theta: Double
  /// The sum of 1 / k^theta for k from 1 to `count`.
  private(set) var zeta: Double
  private let alpha: Double
  /// The same sum for the first two.
  private let zetaOfTwo: Double
  private var eta: Double

  /// Ranks below `count`, at least 1; `theta` is above 0 and below 1.
  init(_ count: Int, theta: Double = standardTheta) {
    self.count = count
    self.theta = theta
    zeta = Zipfian.zeta(count, theta)
    zetaOfTwo = Zipfian.zeta(2, theta)
    alpha = 1 / (1 - theta)
    eta = 0
    eta = Zipfian.eta(count, theta, zeta, zetaOfTwo)
  }

  /// Has more ranks from now on.
  mutating func grow(to count: Int) {
    guard count > self.count else { return }
    for rank in self.count + 1...count { zeta += pow(Double(rank), -theta) }
    self.count = count
    eta = Zipfian.eta(count, theta, zeta, zetaOfTwo)
  }

  /// The rank that a number of the uniform distribution from 0 to 1 (not 1 itself) stands for.
  func rank(_ uniform: Double) -> Int {
    let scaled = uniform * zeta
    if scaled < 1 { return 0 }
    if scaled < zetaOfTwo { return min(1, count - 1) }
    return min(count - 1, Int(Double(count) * pow(eta * uniform - eta + 1, alpha)))
  }

  func next(_ random: inout SeededRandom) -> Int { rank(random.uniform()) }

  private static func eta(_ count: Int, _ theta: Double, _ zeta: Double, _ zetaOfTwo: Double) -> Double {
    guard count > 2 else { return 1 }
    return (1 - pow(2 / Double(count), 1 - theta)) / (1 - zetaOfTwo / zeta)
  }

  /// The sum of 1 / k^theta for k from 1 to `count`, to 12 digits at least: the first thousand terms one by one, the
  /// others by the formula of Euler and Maclaurin, so that ten billion take no longer.
  static func zeta(_ count: Int, _ theta: Double) -> Double {
    let single = min(count, 1_000)
    var sum = 0.0
    for rank in 1...single { sum += pow(Double(rank), -theta) }
    guard count > single else { return sum }
    let (first, last) = (Double(single), Double(count))
    sum += (pow(last, 1 - theta) - pow(first, 1 - theta)) / (1 - theta)
    sum += (pow(last, -theta) - pow(first, -theta)) / 2
    sum += theta / 12 * (pow(first, -theta - 1) - pow(last, -theta - 1))
    return sum
  }
}

/// Numbers from 0 to `count` - 1 as often as zipfian ranks are, with the frequent ones anywhere among them: ranks below
/// ten billion, spread by a hash (YCSB's `ScrambledZipfianGenerator`). Which number is the most frequent one doesn't
/// change much with `count`.
struct ScrambledZipfian: Sendable {
  /// Ranks that are drawn before they are spread.
  static let ranks = 10_000_000_000

  let count: Int
  private let zipfian: Zipfian

  init(_ count: Int, theta: Double = Zipfian.standardTheta) {
    self.count = count
    zipfian = Zipfian(ScrambledZipfian.ranks, theta: theta)
  }

  func next(_ random: inout SeededRandom) -> Int {
    ScrambledZipfian.number(zipfian.next(&random), below: count)
  }

  /// Where a rank lies.
  static func number(_ rank: Int, below count: Int) -> Int {
    Int(FNV1a.hash(UInt64(rank)).asMagnitude % UInt64(count))
  }
}

/// The 64-bit hash of Fowler, Noll and Vo, variant 1a, of a number's eight bytes, the lowest first.
enum FNV1a {
  static func hash(_ number: UInt64) -> UInt64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for shift in stride(from: UInt64(0), to: 64, by: 8) {
      hash = (hash ^ (number >> shift & 0xFF)) &* 0x100_0000_01B3
    }
    return hash
  }
}

extension UInt64 {
  /// Without the sign, taken for a signed number: what YCSB makes of a hash.
  var asMagnitude: UInt64 { UInt64(Int64(bitPattern: self).magnitude) }
}

extension SeededRandom {
  /// A number from 0 to 1, not 1 itself, with 53 bits.
  mutating func uniform() -> Double { Double(next() >> 11) * 0x1p-53 }
}
