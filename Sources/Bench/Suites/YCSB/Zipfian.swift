import Datasets

#if canImport(Glibc)
  import Glibc
#endif

/// Zipfian ranks from 0 to `count` - 1. The probability of rank k is proportional to 1 / (k + 1)^theta.
///
/// The method takes constant time: Gray, Sundaresan, Englert, Baclawski and Weinberger, "Quickly Generating
/// Billion-Record Synthetic Databases" (SIGMOD 1994), figure 7. The first two ranks have exactly that
/// probability. The others come from a continuous approximation.
struct Zipfian: Sendable {
  /// The skew of YCSB's workloads.
  static let standardTheta = 0.99

  private(set) var count: Int
  let theta: Double
  /// The sum of 1 / k^theta for k from 1 to `count`.
  private(set) var zeta: Double
  private let alpha: Double
  /// The same sum for k of 1 and 2.
  private let zetaOfTwo: Double
  private var eta: Double

  /// Ranks below `count`, which is at least 1. `theta` is above 0 and below 1.
  init(_ count: Int, theta: Double = standardTheta) {
    self.count = count
    self.theta = theta
    zeta = Zipfian.zeta(count, theta)
    zetaOfTwo = Zipfian.zeta(2, theta)
    alpha = 1 / (1 - theta)
    eta = 0
    eta = Zipfian.eta(count, theta, zeta, zetaOfTwo)
  }

  /// Adds ranks.
  mutating func grow(to count: Int) {
    guard count > self.count else { return }
    for rank in self.count + 1...count { zeta += pow(Double(rank), -theta) }
    self.count = count
    eta = Zipfian.eta(count, theta, zeta, zetaOfTwo)
  }

  /// The rank for a uniform number from 0 to 1, excluding 1.
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

  /// The sum of 1 / k^theta for k from 1 to `count`, to at least 12 digits. The first thousand terms are
  /// added one by one. The rest comes from the Euler-Maclaurin formula, so ten billion terms take no longer.
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

/// Numbers from 0 to `count` - 1 with zipfian frequencies. The frequent numbers are spread over the whole
/// range: a hash maps ranks below ten billion to numbers (YCSB's `ScrambledZipfianGenerator`). The
/// probabilities change little with `count`.
struct ScrambledZipfian: Sendable {
  /// The number of ranks before hashing.
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

  /// The number for a rank.
  static func number(_ rank: Int, below count: Int) -> Int {
    Int(FNV1a.hash(UInt64(rank)).asMagnitude % UInt64(count))
  }
}

/// The 64-bit FNV-1a hash (Fowler, Noll, Vo) of a number's eight bytes, the lowest first.
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
  /// The magnitude of the hash as a signed number, as in YCSB.
  var asMagnitude: UInt64 { UInt64(Int64(bitPattern: self).magnitude) }
}

extension SeededRandom {
  /// A number from 0 to 1, excluding 1, with 53 bits.
  mutating func uniform() -> Double { Double(next() >> 11) * 0x1p-53 }
}
