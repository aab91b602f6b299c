/// Computes one function for the rows of one partition.
struct WindowEvaluation {
  /// Takes the result for the row at a position. The value is valid during the call, and as long as the rows and the arena; with
  /// `emptiesArena` only during the call.
  typealias Receiver = (_ position: Int, _ value: QueryValue) throws -> Void

  let function: CompiledWindows.Function
  /// The index of the first argument among the inputs.
  private let firstInput: Int
  let partition: WindowPartition
  let context: EvaluationContext
  /// Owns the values of aggregates.
  let arena: EvaluationArena
  /// Whether the arena is emptied when a frame is added up anew.
  let emptiesArena: Bool
  /// The positions of the rows whose value of ORDER BY is a number, for distances of RANGE. They follow each other.
  private let numeric: Range<Int>

  init(
    _ function: CompiledWindows.Function, _ partition: WindowPartition, _ context: EvaluationContext,
    _ arena: EvaluationArena, emptiesArena: Bool
  ) {
    self.emptiesArena = emptiesArena
    self.function = function
    firstInput = function.arguments.first ?? 0
    self.partition = partition
    self.context = context
    self.arena = arena
    guard case .range = function.frame.unit, let term = partition.distance else {
      numeric = 0..<0
      return
    }
    let isNumber = { partition.rows[$0][term.input].type == .number }
    let (first, last) = (
      partition.rows.indices.first(where: isNumber), partition.rows.indices.last(where: isNumber)
    )
    numeric = first.flatMap { first in last.map { first..<($0 + 1) } } ?? 0..<0
  }

  /// Gives the result for each row, in any order of the rows.
  func compute(_ put: Receiver) throws {
    switch function.computation {
    case .aggregate(let aggregator): try aggregate(aggregator, put)
    case .function(.firstValue), .function(.lastValue), .function(.nthValue): try pick(put)
    case .function(.ratioToReport): try ratio(put)
    case .function(let kind):
      for position in partition.rows.indices {
        try put(position, value(kind, position))
        try context.check()
        try context.cancellation.check()
      }
    }
  }

  func argument(_ index: Int, _ position: Int) -> QueryValue {
    partition.rows[position][index == 0 ? firstInput : function.arguments[index]]
  }

  // MARK: Functions of the position

  private func value(_ kind: WindowFunctionKind, _ position: Int) -> QueryValue {
    let count = partition.rows.count
    let peers = partition.peers(of: position)
    switch kind {
    case .rowNumber: return .int(Int64(position + 1))
    case .rank: return .int(Int64(peers.lowerBound + 1))
    case .denseRank: return .int(Int64(partition.groups[position] + 1))
    case .percentRank: return .double(count > 1 ? Double(peers.lowerBound) / Double(count - 1) : 0)
    case .cumulativeDistribution: return .double(Double(peers.upperBound) / Double(count))
    case .tile: return tile(position, count)
    case .lag: return neighbour(position, -1)
    case .lead: return neighbour(position, 1)
    default: return .null
    }
  }

  /// NTILE: the first tiles have one row more when the rows can't be divided.
  private func tile(_ position: Int, _ count: Int) -> QueryValue {
    guard let tiles = argument(0, 0).integer, tiles >= 1 else { return .null }
    let wanted = Int(min(tiles, Int64(count)))
    let (size, larger) = (count / wanted, count % wanted)
    let inLarger = larger * (size + 1)
    return .int(
      Int64(position < inLarger ? position / (size + 1) : larger + (position - inLarger) / size) + 1)
  }

  /// LAG and LEAD.
  private func neighbour(_ position: Int, _ direction: Int) -> QueryValue {
    var left = 1
    if function.arguments.count > 1 {
      guard let given = StringFunctions.wholeNumber(argument(1, position)), given >= 0 else { return .null }
      left = given
    }
    // Rows may be read from a file, so no value is held while others are read.
    var otherwise: QueryValue { function.arguments.count > 2 ? argument(2, position) : .null }
    if left == 0 { return argument(0, position) }
    guard function.ignoresNulls else {
      let (place, overflow) = position.addingReportingOverflow(left &* direction)
      return !overflow && left < partition.rows.count && partition.rows.indices.contains(place)
        ? argument(0, place) : otherwise
    }
    var place = position + direction
    while partition.rows.indices.contains(place), context.goesOn {
      if !argument(0, place).isUnknown {
        left -= 1
        if left == 0 { return argument(0, place) }
      }
      place += direction
    }
    return otherwise
  }

  // MARK: Frames

  /// The positions of a row's frame, before rows are left out.
  func frame(of position: Int) throws -> Range<Int> {
    let start = try bound(function.frame.start, position, isEnd: false)
    let end = try bound(function.frame.end, position, isEnd: true)
    guard let start, let end, start < end else { return 0..<0 }
    return start..<end
  }

  /// The position of a bound: of the first row in the frame, or of the first row behind it. Nil for an empty frame.
  private func bound(_ bound: CompiledWindows.Bound, _ position: Int, isEnd: Bool) throws -> Int? {
    let count = partition.rows.count
    let distance: Int
    let sign: Int
    switch bound {
    case .unboundedPreceding: return 0
    case .unboundedFollowing: return count
    case .currentRow:
      if case .rows = function.frame.unit { return isEnd ? position + 1 : position }
      return isEnd ? partition.peers(of: position).upperBound : partition.peers(of: position).lowerBound
    case .preceding(let input): (distance, sign) = (input, -1)
    case .following(let input): (distance, sign) = (input, 1)
    }
    let value = partition.rows[position][distance]
    if case .range = function.frame.unit { return try rangeBound(value, sign, position, isEnd: isEnd) }
    guard let steps = StringFunctions.wholeNumber(value), steps >= 0 else { throw unfit(value) }
    let reach = min(steps, count) * sign
    if case .rows = function.frame.unit { return max(0, min(count, position + reach + (isEnd ? 1 : 0))) }
    let group = partition.groups[position] + reach
    let groups = partition.starts.count - 1
    if group < 0 { return 0 }
    if group >= groups { return count }
    return isEnd ? partition.starts[group + 1] : partition.starts[group]
  }

  /// The bound of a distance in the value of ORDER BY.
  private func rangeBound(_ distance: QueryValue, _ sign: Int, _ position: Int, isEnd: Bool) throws -> Int? {
    guard let number = distance.number, number >= 0 else { throw unfit(distance) }
    guard let term = partition.distance, numeric.contains(position) else { return nil }
    let own = partition.rows[position][term.input]
    let isUp = (sign > 0) != term.isDescending
    let limit = (isUp ? Arithmetic.add : .subtract).apply(own, distance)
    guard limit.type == .number else { return sign > 0 ? numeric.upperBound : numeric.lowerBound }
    var (low, high) = (numeric.lowerBound, numeric.upperBound)
    while low < high {
      let middle = (low + high) / 2
      let order = compareNumbers(partition.rows[middle][term.input], limit) * (term.isDescending ? -1 : 1)
      if isEnd ? order <= 0 : order < 0 { low = middle + 1 } else { high = middle }
    }
    return low
  }

  private func unfit(_ value: QueryValue) -> QueryError {
    QueryError(
      .evaluation,
      "the distance of a frame's bound must be a\(function.frame.unit == .range ? "" : " whole") number, at least 0, "
        + "not of type \(value.type.name)\(value.type == .number ? " with another value" : "")")
  }

  /// Whether a row of the frame is left out.
  private func isExcluded(_ other: Int, _ position: Int) -> Bool {
    switch function.frame.exclusion {
    case .noOthers: false
    case .currentRow: other == position
    case .group: partition.groups[other] == partition.groups[position]
    case .ties: other != position && partition.groups[other] == partition.groups[position]
    }
  }

  // MARK: Aggregates

  private func add(_ position: Int, _ aggregator: Aggregator, to state: inout AggregateState) {
    if let filter = function.filter, partition.rows[position][filter].truth != .true { return }
    guard !function.arguments.isEmpty else { return state.countRow() }
    aggregator.add(argument(0, position), to: &state, context, arena)
  }

  private func aggregate(_ aggregator: Aggregator, _ put: Receiver) throws {
    if slides, try slide(aggregator, put) { return }
    var state = AggregateState()
    var known = 0..<0
    var result: QueryValue?
    let excludes = function.frame.exclusion != .noOthers
    // A frame up to the end grows from row to row when the last row comes first.
    var isBackward = false
    if case .unboundedFollowing = function.frame.end, aggregator.kind != .arrayAggregate {
      if case .unboundedPreceding = function.frame.start { isBackward = false } else { isBackward = true }
    }
    let count = partition.rows.count
    for step in 0..<count {
      let position = isBackward ? count - 1 - step : step
      let frame = try frame(of: position)
      if excludes || result == nil || frame != known {
        let grows =
          !excludes && result != nil
          && (isBackward
            ? frame.upperBound == known.upperBound && frame.lowerBound <= known.lowerBound
            : frame.lowerBound == known.lowerBound && frame.upperBound >= known.upperBound)
        if !grows {
          state = AggregateState()
          if emptiesArena { arena.reset() }
        }
        let new =
          !grows
          ? frame
          : isBackward ? frame.lowerBound..<known.lowerBound : known.upperBound..<frame.upperBound
        for other in new where !excludes || !isExcluded(other, position) {
          add(other, aggregator, to: &state)
          if !context.goesOn { break }
        }
        known = frame
        result = aggregator.result(of: state, context, arena)
        try context.check()
        try context.budget.check(.window)
      }
      try put(position, result ?? .null)
      try context.cancellation.check()
    }
  }

  // MARK: Values of the frame

  /// FIRST_VALUE, LAST_VALUE and NTH_VALUE. For RANGE and GROUPS, peers are in the order of their values, so that the
  /// result doesn't depend on the order in which rows came.
  private func pick(_ put: Receiver) throws {
    var arranged = Array(partition.rows.indices)
    if function.frame.unit != .rows {
      let order = context.order(function.collation)
      for group in 0..<(partition.starts.count - 1) {
        try arranged[partition.starts[group]..<partition.starts[group + 1]].sort {
          try context.cancellation.check()
          return order.compare(argument(0, $0), argument(0, $1)) < 0
        }
      }
    }
    var isFromLast = function.countsFromLast
    if case .function(.lastValue) = function.computation { isFromLast = true }
    for position in partition.rows.indices {
      var wanted = 1
      if function.arguments.count > 1 {
        guard let given = StringFunctions.wholeNumber(argument(1, position)), given >= 1 else {
          try put(position, .null)
          continue
        }
        wanted = given
      }
      let frame = try frame(of: position)
      var found = QueryValue.null
      for step in 0..<frame.count where context.goesOn {
        let other = arranged[isFromLast ? frame.upperBound - 1 - step : frame.lowerBound + step]
        if isExcluded(other, position) || function.ignoresNulls && argument(0, other).isUnknown { continue }
        wanted -= 1
        if wanted == 0 {
          found = argument(0, other)
          break
        }
      }
      try put(position, found)
      try context.check()
    }
  }

  private func ratio(_ put: Receiver) throws {
    try aggregate(Aggregator(.sum, isDistinct: false, nil, collation: nil)) { position, sum in
      guard let own = argument(0, position).number, let sum = sum.number, sum != 0 else {
        return try put(position, .null)
      }
      try put(position, QueryValue(finite: own / sum))
    }
  }
}
