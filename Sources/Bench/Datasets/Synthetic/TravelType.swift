/// The five types of document in travel-sample, in the order of their IDs.
enum TravelType: Int, CaseIterable {
  case airline, airport, hotel, landmark, route

  var name: String { "\(self)" }

  /// The number of documents in the published data set.
  var publishedCount: Int {
    switch self {
    case .airline: 187
    case .airport: 1_968
    case .hotel: 917
    case .landmark: 4_495
    case .route: 24_024
    }
  }

  static let publishedTotal = allCases.reduce(0) { $0 + $1.publishedCount }

  /// The number of documents of each type in a set of `total` documents: the published shares, rounded by
  /// largest remainder. Each type has at least one document if there are as many documents as types.
  static func counts(for total: Int) -> [Int] {
    var counts = allCases.map { total * $0.publishedCount / publishedTotal }
    let remainders = allCases.map { total * $0.publishedCount % publishedTotal }
    let byRemainder = allCases.indices.sorted { (remainders[$1], $0) < (remainders[$0], $1) }
    for index in byRemainder.prefix(total - counts.reduce(0, +)) { counts[index] += 1 }
    if total >= allCases.count {
      for index in counts.indices where counts[index] == 0 {
        counts[index] = 1
        counts[TravelType.route.rawValue] -= 1
      }
    }
    return counts
  }

  /// The numbers in the IDs of a type. They are spaced as in the published data and have equal length, so IDs
  /// are generated in sorted order.
  func numbering(count: Int) -> TravelNumbering {
    let (digits, step) =
      switch self {
      case .airline: (4, 40)
      case .airport: (4, 4)
      case .hotel: (5, 30)
      case .landmark: (5, 15)
      case .route: (5, 3)
      }
    var first = 1
    for _ in 1..<digits { first *= 10 }
    while count * step > first * 9 { first *= 10 }
    return TravelNumbering(type: self, first: first, step: step)
  }
}

/// Maps the index of a document to the number in its ID.
struct TravelNumbering {
  let type: TravelType
  let first: Int
  let step: Int

  func number(_ index: Int, seed: UInt64) -> Int {
    var random = SeededRandom(
      seed: seed, stream: 0x100 + UInt64(type.rawValue), index: UInt64(truncatingIfNeeded: index))
    return first + index * step + random.below(step)
  }
}
