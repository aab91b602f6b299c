// Aggregates over frames whose two bounds move, or which leave rows out. Adding up each row's frame anew would take
// time in proportion to the rows times the size of the frames.
//
// - COUNT, COUNTN, SUM and AVG: the sums of the first rows of the partition (`FrameSums`), of which a frame is a
//   difference.
// - MIN and MAX: a queue of the rows that can still be the extreme of a frame. If bounds go back, or rows are left out, a
//   tree of extremes (`ExtremeTree`).
//
// The results are the ones of adding up each frame, bit for bit. MEDIAN, variances, ARRAY_AGG and DISTINCT do that.

/// The rows of a frame: up to three ranges of positions, in order.
private struct FrameParts {
  var first: Range<Int>
  var middle = 0..<0
  var last = 0..<0
}

extension WindowEvaluation {
  /// Whether frames do more than grow from row to row.
  var slides: Bool {
    if function.frame.exclusion != .noOthers { return true }
    if case .unboundedPreceding = function.frame.start { return false }
    if case .unboundedFollowing = function.frame.end { return false }
    return true
  }

  /// Gives the results of an aggregate. False if it has to add up each frame.
  func slide(_ aggregator: Aggregator, _ put: Receiver) throws -> Bool {
    switch aggregator.kind {
    case .minimum, .maximum:
      try putExtremes(aggregator, put)
      return true
    case .count, .countNumbers, .sum, .average:
      return try !aggregator.isDistinct && putSums(aggregator, put)
    default: return false
    }
  }

  /// The frame of a row without the rows that EXCLUDE leaves out.
  private func parts(of position: Int) throws -> FrameParts {
    let frame = try frame(of: position)
    var excluded = partition.peers(of: position)
    switch function.frame.exclusion {
    case .noOthers: return FrameParts(first: frame)
    case .currentRow: excluded = position..<(position + 1)
    case .group, .ties: break
    }
    let hole = excluded.clamped(to: frame)
    var parts = FrameParts(first: frame.lowerBound..<hole.lowerBound)
    if function.frame.exclusion == .ties, frame.contains(position) {
      parts.middle = position..<(position + 1)
    }
    parts.last = hole.upperBound..<frame.upperBound
    return parts
  }

  private func passesFilter(_ position: Int) -> Bool {
    function.filter.map { partition.rows[position][$0].truth == .true } ?? true
  }

  // MARK: Sums

  /// Whether an aggregate counts a row.
  private func counts(_ position: Int, _ kind: AggregateKind) -> Bool {
    guard passesFilter(position) else { return false }
    guard !function.arguments.isEmpty else { return true }
    let value = argument(0, position)
    return kind == .count ? !value.isUnknown : value.type == .number
  }

  private func putSums(_ aggregator: Aggregator, _ put: Receiver) throws -> Bool {
    let (kind, cancellation) = (aggregator.kind, context.cancellation)
    let adds = kind == .sum || kind == .average
    var scale = FixedScale()
    if adds {
      for position in partition.rows.indices where counts(position, kind) {
        try cancellation.check()
        if case .double(let value) = argument(0, position) { scale.include(value) }
      }
      guard scale.isExact else { return false }
    }
    let rows = partition.rows.count
    let bytes = (rows + 1) * (MemoryLayout<Int>.stride + (adds ? MemoryLayout<FrameSums>.stride : 0))
    context.budget.take(bytes)
    defer { context.budget.giveBack(bytes) }
    try context.budget.check(.window)
    var numbers = [0]
    var sums = [FrameSums()]
    numbers.reserveCapacity(rows + 1)
    if adds { sums.reserveCapacity(rows + 1) }
    for position in partition.rows.indices {
      try cancellation.check()
      let isCounted = counts(position, kind)
      numbers.append(numbers[position] + (isCounted ? 1 : 0))
      guard adds else { continue }
      var next = sums[position]
      if isCounted { next.add(argument(0, position), scale) }
      sums.append(next)
    }
    for position in partition.rows.indices {
      try cancellation.check()
      let parts = try parts(of: position)
      var count = 0
      var sum = FrameSums()
      func include(_ part: Range<Int>) {
        if part.isEmpty { return }
        count += numbers[part.upperBound] - numbers[part.lowerBound]
        if adds { sum.add(sums[part.upperBound], without: sums[part.lowerBound]) }
      }
      include(parts.first)
      include(parts.middle)
      include(parts.last)
      let state = AggregateState(
        count: count, integers: sum.integers, hasUnsigned: sum.unsigned > 0,
        doubles: sum.doubles > 0 ? DoubleExpansion(sum.units, scale) : nil)
      try put(position, aggregator.result(of: state, context, arena))
      try context.check()
    }
    return true
  }

  // MARK: Extremes

  /// MIN and MAX. Of equal values, the first one in the frame counts.
  private func putExtremes(_ aggregator: Aggregator, _ put: Receiver) throws {
    let order = context.order(aggregator.collation)
    let sign = aggregator.kind == .minimum ? 1 : -1
    func isBetter(_ later: Int, than earlier: Int) -> Bool {
      order.compare(argument(0, later), argument(0, earlier)) * sign < 0
    }
    let rows = partition.rows.count
    let bytes = rows * MemoryLayout<Int>.stride
    context.budget.take(bytes)
    defer { context.budget.giveBack(bytes) }
    try context.budget.check(.window)
    // The rows from `head` on: each is the extreme of the rows from it to the end of the frame.
    var queue: [Int] = []
    var head = 0
    var known = 0..<0
    var tree: ExtremeTree?
    defer { if let tree { context.budget.giveBack(tree.bytes) } }
    for position in partition.rows.indices {
      try context.cancellation.check()
      let parts = try parts(of: position)
      let frame = parts.first
      var best: Int?
      if tree == nil, function.frame.exclusion == .noOthers,
        frame.isEmpty || (frame.lowerBound >= known.lowerBound && frame.upperBound >= known.upperBound)
      {
        if !frame.isEmpty {
          while head < queue.count, queue[head] < frame.lowerBound { head += 1 }
          for other in max(known.upperBound, frame.lowerBound)..<frame.upperBound
          where counts(other, .count) {
            try context.cancellation.check()
            while queue.count > head, isBetter(other, than: queue[queue.count - 1]) { queue.removeLast() }
            queue.append(other)
          }
          if head > 1_024, head > queue.count / 2 {
            queue.removeFirst(head)
            head = 0
          }
          known = frame
          best = head < queue.count ? queue[head] : nil
        }
      } else {
        if tree == nil {
          let bytes = ExtremeTree.bytes(rows)
          context.budget.take(bytes)
          tree = ExtremeTree(rows)
          try context.budget.check(.window)
          for other in 0..<rows where counts(other, .count) { tree?.set(other) }
          try tree?.build {
            try context.cancellation.check()
            return isBetter($0, than: $1)
          }
        }
        for part in [parts.first, parts.middle, parts.last] where !part.isEmpty {
          guard let found = tree?.best(in: part, isBetter) else { continue }
          if best.map({ isBetter(found, than: $0) }) ?? true { best = found }
        }
      }
      try put(position, best.map { argument(0, $0) } ?? .missing)
      try context.check()
    }
  }
}

/// The sums of the numbers of some rows.
private struct FrameSums {
  /// The sum of the integers.
  var integers: Int128 = 0
  /// The sum of the other numbers, in units of a `FixedScale`.
  var units: Int128 = 0
  /// How many integers are above `Int64.max`.
  var unsigned = 0
  /// How many numbers aren't integers.
  var doubles = 0

  mutating func add(_ number: QueryValue, _ scale: FixedScale) {
    switch number {
    case .int(let value): integers &+= Int128(value)
    case .uint(let value):
      integers &+= Int128(value)
      unsigned += 1
    case .double(let value):
      units &+= scale.units(value)
      doubles += 1
    default: break
    }
  }

  mutating func add(_ more: FrameSums, without less: FrameSums) {
    integers &+= more.integers &- less.integers
    units &+= more.units &- less.units
    unsigned += more.unsigned - less.unsigned
    doubles += more.doubles - less.doubles
  }
}

/// Doubles as whole multiples of the lowest bit that any of them has. Sums of such multiples are exact.
///
/// `isExact` tells whether 126 bits hold the sum of any of the doubles.
struct FixedScale {
  /// The exponent of the lowest bit.
  private var lowest = Int.max
  private var magnitude = 0.0

  mutating func include(_ value: Double) {
    guard value != 0 else { return }
    lowest = min(lowest, Int(value.exponent) - value.significandWidth)
    magnitude += abs(value)
  }

  /// Whether sums of the included numbers are exact. `magnitude` is rounded at each addition, by much less than half of it.
  var isExact: Bool {
    if lowest == .max { return true }
    return magnitude < 0x1p1000 && magnitude <= Double(sign: .plus, exponent: lowest + 124, significand: 1)
  }

  /// An included number as a multiple of the lowest bit.
  func units(_ value: Double) -> Int128 {
    guard value != 0 else { return 0 }
    let isNormal = value.exponentBitPattern != 0
    let significand = value.significandBitPattern | (isNormal ? 1 << 52 : 0)
    let shift = max(1, Int(value.exponentBitPattern)) - 1_075 - lowest
    let units = shift >= 0 ? Int128(significand) << Int128(shift) : Int128(significand >> UInt64(-shift))
    return value < 0 ? -units : units
  }

  /// A sum of multiples, rounded to the nearest double.
  func double(_ units: Int128) -> Double {
    if units == 0 { return 0 }
    if let small = Int64(exactly: units) {
      return Double(sign: .plus, exponent: lowest, significand: Double(small))
    }
    // The highest 64 bits. The last one also stands for all bits below it, so that the number is rounded once.
    let magnitude = units.magnitude
    let shift = 64 - magnitude.leadingZeroBitCount
    var high = UInt64(truncatingIfNeeded: magnitude >> UInt128(shift))
    if magnitude & ((1 << UInt128(shift)) - 1) != 0 { high |= 1 }
    return Double(sign: units < 0 ? .minus : .plus, exponent: lowest + shift, significand: Double(high))
  }
}

/// The extremes of ranges of rows, in a binary tree: an inner node has the better one of its two children.
private struct ExtremeTree {
  private let leaves: Int
  /// The root is at 1. A node has the position of a row, or -1.
  private var nodes: [Int]

  private static func leaves(_ rows: Int) -> Int {
    var leaves = 1
    while leaves < rows { leaves *= 2 }
    return leaves
  }

  static func bytes(_ rows: Int) -> Int { 2 * leaves(rows) * MemoryLayout<Int>.stride }
  var bytes: Int { nodes.count * MemoryLayout<Int>.stride }

  init(_ rows: Int) {
    leaves = Self.leaves(rows)
    nodes = Array(repeating: -1, count: 2 * leaves)
  }

  /// Makes a row count.
  mutating func set(_ position: Int) { nodes[leaves + position] = position }

  mutating func build(_ isBetter: (_ later: Int, _ earlier: Int) throws -> Bool) rethrows {
    for node in (1..<leaves).reversed() {
      nodes[node] = try better(nodes[2 * node], nodes[2 * node + 1], isBetter)
    }
  }

  /// The first one of the best rows in a range. Nil if none counts.
  func best(in range: Range<Int>, _ isBetter: (_ later: Int, _ earlier: Int) -> Bool) -> Int? {
    var (left, right) = (-1, -1)
    var (low, high) = (leaves + range.lowerBound, leaves + range.upperBound)
    while low < high {
      if low % 2 == 1 {
        left = better(left, nodes[low], isBetter)
        low += 1
      }
      if high % 2 == 1 {
        high -= 1
        right = better(nodes[high], right, isBetter)
      }
      low /= 2
      high /= 2
    }
    let found = better(left, right, isBetter)
    return found < 0 ? nil : found
  }

  private func better(
    _ earlier: Int, _ later: Int, _ isBetter: (_ later: Int, _ earlier: Int) throws -> Bool
  ) rethrows -> Int {
    if earlier < 0 { return later }
    if later < 0 { return earlier }
    return try isBetter(later, earlier) ? later : earlier
  }
}
