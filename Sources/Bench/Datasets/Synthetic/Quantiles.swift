/// A distribution defined by its quantiles, with linear interpolation between neighbours.
struct Quantiles: Sendable {
  /// The shares of the quantiles in 1/65,536: 0, 10, 25, 50, 75, 90, 95, 99 and 100 percent.
  private static let shares = [0, 6_554, 16_384, 32_768, 49_152, 58_982, 62_259, 64_881, 65_536]

  private let values: [Int]

  /// Makes a distribution from the values of the nine quantiles, in ascending order.
  init(_ values: [Int]) {
    precondition(values.count == Quantiles.shares.count)
    self.values = values
  }

  func draw(_ random: inout SeededRandom) -> Int {
    let share = Int(random.next() >> 48)
    var index = 0
    while share >= Quantiles.shares[index + 1] { index += 1 }
    let low = values[index]
    let width = Quantiles.shares[index + 1] - Quantiles.shares[index]
    return low + (values[index + 1] - low) * (share - Quantiles.shares[index]) / width
  }
}
