extension Stall {
  /// A time is a stall when fewer operations ended than this share of the usual number.
  package static let share = 0.1
  /// The least median number of operations in a slot. Fewer say nothing about a slot without any.
  package static let leastMedian = 10.0

  /// Finds the times in which nearly nothing was done: slots with less than a tenth of the median slot's operations,
  /// joined with such neighbours.
  ///
  /// `counts` are the operations that ended in slots of `slot` seconds. If the median slot has fewer than ten, slots
  /// are joined until it has. Finds nothing if fewer than four slots would be left.
  package static func find(_ counts: [Int], slot: Double) -> [Stall] {
    var width = 1
    var joined = counts
    while joined.count >= 4, SampleStatistics.median(joined.map(Double.init)) < leastMedian {
      width += 1
      joined = stride(from: 0, through: counts.count - width, by: width).map { start in
        counts[start..<start + width].reduce(0, +)
      }
    }
    guard joined.count >= 4 else { return [] }
    let least = SampleStatistics.median(joined.map(Double.init)) * share
    let length = slot * Double(width)
    var stalls: [Stall] = []
    var begin: Int?
    for index in 0...joined.count {
      let isStalled = index < joined.count && Double(joined[index]) < least
      if isStalled {
        begin = begin ?? index
      } else if let first = begin {
        stalls.append(Stall(begin: Double(first) * length, seconds: Double(index - first) * length))
        begin = nil
      }
    }
    return stalls
  }
}
