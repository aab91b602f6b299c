import Fleece

/// Computes one aggregate over the rows of a group. `AggregateState` holds the state of a group.
///
/// ```swift
/// var state = AggregateState()
/// aggregator.add(to: &state, context, arena)      // for each row of the group
/// let value = aggregator.result(of: state, context, arena)
/// ```
final class Aggregator: Sendable {
  let kind: AggregateKind
  let isDistinct: Bool
  /// The argument. Nil counts rows.
  let argument: CompiledExpression?
  /// The condition of FILTER, which rows have to meet.
  let filter: CompiledExpression?
  /// The collation by which MIN, MAX and DISTINCT compare text.
  let collation: Int?

  init(
    _ kind: AggregateKind, isDistinct: Bool, _ argument: CompiledExpression?,
    filter: CompiledExpression? = nil, collation: Int?
  ) {
    self.kind = kind
    self.isDistinct = isDistinct
    self.argument = argument
    self.filter = filter
    self.collation = collation
  }

  /// Adds the current row. Values that are kept are copied to `arena`, which belongs to the group.
  func add(to state: inout AggregateState, _ context: EvaluationContext, _ arena: EvaluationArena) {
    if let filter, filter.truth(context) != .true { return }
    guard let argument else {
      state.count += 1
      return
    }
    add(argument.evaluate(context), to: &state, context, arena)
  }

  /// Adds a value.
  @inline(__always)
  func add(
    _ value: QueryValue, to state: inout AggregateState, _ context: EvaluationContext,
    _ arena: EvaluationArena
  ) {
    switch kind {
    case .count, .minimum, .maximum: if value.isUnknown { return }
    case .arrayAggregate: if value.isMissing { return }
    default: guard value.type == .number else { return }
    }
    if isDistinct && kind != .minimum && kind != .maximum {
      let values = state.values ?? ValueSet(context.budget)
      state.values = values
      let isNew = values.insert(value, context.order(collation)) { arena.copy($0, context.sharedKeys) }
      if kind == .sum || kind == .average {
        return state.add(distinctNumber: value, isNew: isNew, context)
      }
      if !isNew { return }
      // The set of values holds the items of ARRAY_AGG and MEDIAN.
      if kind == .arrayAggregate || kind == .median { return }
    }
    switch kind {
    case .count, .countNumbers: state.count += 1
    case .sum, .average: state.add(number: value, context)
    case .minimum:
      if state.count == 0 || context.order(collation).compare(value, state.value) < 0 {
        state.value = arena.copy(value, context.sharedKeys)
      }
      state.count = 1
    case .maximum:
      if state.count == 0 || context.order(collation).compare(value, state.value) > 0 {
        state.value = arena.copy(value, context.sharedKeys)
      }
      state.count = 1
    case .arrayAggregate: state.append(arena.copy(value, context.sharedKeys), arena)
    case .median: state.append(value, arena)
    default: state.add(toVariance: value, context)
    }
  }

  /// The result for the group. Without any value, COUNT gives 0, ARRAY_AGG gives [], MEDIAN and variances give NULL,
  /// and the others give MISSING. The result may point into the arenas.
  func result(
    of state: AggregateState, _ context: EvaluationContext, _ arena: EvaluationArena
  ) -> QueryValue {
    switch kind {
    case .count, .countNumbers: return .int(Int64(state.count))
    case .sum: return state.count == 0 ? .missing : state.sum
    case .average:
      guard state.count > 0 else { return .missing }
      // The sum may not be finite.
      guard let sum = state.sum.number else { return .null }
      return QueryValue(finite: sum / Double(state.count))
    case .minimum, .maximum: return state.count == 0 ? .missing : state.value
    case .median: return state.median
    case .deviation, .variance: return state.variance(kind, divisor: max(1, state.count - 1))
    case .sampleDeviation, .sampleVariance: return state.variance(kind, divisor: state.count - 1)
    case .populationDeviation, .populationVariance: return state.variance(kind, divisor: state.count)
    case .arrayAggregate:
      if let values = state.values {
        let items = arena.allocate(values.count, of: QueryValue.self)
        for index in 0..<values.count { items[index] = values[index] }
        return arena.array(items, values.count)
      }
      guard let items = state.items else { return arena.array(arena.allocate(0, of: QueryValue.self), 0) }
      return arena.array(asIs: items, state.count)
    }
  }
}

/// The state of one aggregate of a group.
struct AggregateState {
  /// The number of rows or values so far. For MIN and MAX it is 0 or 1.
  fileprivate(set) var count = 0
  fileprivate var value = QueryValue.missing
  /// The different values so far, for DISTINCT.
  fileprivate var values: ValueSet?
  fileprivate var items: UnsafeMutablePointer<QueryValue>?
  private var capacity = 0
  /// The exact sum of the integers. 2⁶³ integers of 64 bits fit.
  private var integers: Int128 = 0
  private var hasUnsigned = false
  /// The exact sum of the doubles, as far as it fits, and what doesn't fit. For variances, the sums of all numbers and of their squares.
  private var doubles = DoubleExpansion()
  private var moments: ExactMoments?
  private var isInteger = true

  init() {}

  /// The state of SUM or AVG after `count` numbers. `doubles` is the sum of those that aren't integers. Nil if all are.
  init(count: Int, integers: Int128, hasUnsigned: Bool, doubles: DoubleExpansion?) {
    self.count = count
    self.integers = integers
    self.hasUnsigned = hasUnsigned
    self.doubles = doubles ?? DoubleExpansion()
    isInteger = doubles == nil
  }

  /// Counts a row.
  @inline(__always)
  mutating func countRow() { count &+= 1 }

  /// The sum. It is an integer when all numbers are integers and 64 bits can hold it, else a double. An
  /// unsigned result needs a number above `Int64.max`, as with `+`.
  fileprivate var sum: QueryValue {
    let integer = Int64(exactly: integers)
    if isInteger {
      if let integer { return .int(integer) }
      if hasUnsigned, let unsigned = UInt64(exactly: integers) { return .uint(unsigned) }
    }
    return QueryValue(finite: moments.map { $0.total(integers) } ?? doubles.plus(integers))
  }

  /// Takes a number for MIN or MAX if the extreme so far is a number too. False if it isn't, and for another value.
  @inline(__always)
  mutating func replaceNumber(_ new: QueryValue, ifBelow: Bool) -> Bool {
    guard count > 0, new.type == .number, value.type == .number else { return false }
    let order = compareNumbers(new, value)
    if ifBelow ? order < 0 : order > 0 { value = new }
    return true
  }

  @inline(__always)
  mutating func add(number: QueryValue, _ context: EvaluationContext) {
    count += 1
    if case .int(let value) = number { return integers &+= Int128(value) }
    if case .uint(let value) = number {
      hasUnsigned = true
      return integers &+= Int128(value)
    }
    guard let value = number.number else { return }
    isInteger = false
    if let moments { return moments.add(value) }
    if _fastPath(doubles.add(value)) { return }
    let moments = ExactMoments(context.budget)
    moments.add(doubles)
    moments.add(value)
    self.moments = moments
  }

  /// Adds a number for a sum of different numbers. Equal numbers count once. Which of 1 and 1.0 comes first
  /// depends on the order of rows, but the sum doesn't: it is a double when one of them is, and whole numbers
  /// are added as integers.
  fileprivate mutating func add(distinctNumber number: QueryValue, isNew: Bool, _ context: EvaluationContext)
  {
    guard case .double(let value) = number else {
      if isNew { add(number: number, context) }
      return
    }
    isInteger = false
    guard isNew else { return }
    if let integer = Int64(exactly: value) {
      add(number: .int(integer), context)
    } else {
      add(number: number, context)
    }
  }

  /// Adds a number to the sums of numbers and of squares.
  @inline(__always)
  fileprivate mutating func add(toVariance number: QueryValue, _ context: EvaluationContext) {
    count += 1
    let sums = moments ?? ExactMoments(context.budget)
    sums.add(withSquare: number)
    moments = sums
  }

  fileprivate func variance(_ kind: AggregateKind, divisor: Int) -> QueryValue {
    guard let moments, divisor > 0 else { return .null }
    switch kind {
    case .deviation, .sampleDeviation, .populationDeviation:
      return QueryValue(finite: moments.variance(count, divisor: divisor, isRoot: true))
    default: return QueryValue(finite: moments.variance(count, divisor: divisor, isRoot: false))
    }
  }

  /// The middle of the numbers, or the mean of the two in the middle.
  fileprivate var median: QueryValue {
    var numbers: [QueryValue] = []
    if let values {
      numbers = (0..<values.count).map { values[$0] }
    } else if let items {
      numbers = Array(UnsafeBufferPointer(start: items, count: count))
    }
    guard !numbers.isEmpty else { return .null }
    numbers.sort { compareNumbers($0, $1) < 0 }
    let middle = numbers[numbers.count / 2]
    if numbers.count % 2 == 1 { return middle }
    guard let above = middle.number, let below = numbers[numbers.count / 2 - 1].number else { return .null }
    return QueryValue(finite: below / 2 + above / 2)
  }

  /// Copies everything that the state points at to another arena.
  mutating func move(to arena: EvaluationArena, _ sharedKeys: SharedKeys) {
    value = arena.copy(value, sharedKeys)
    values?.replaceValues { arena.copy($0, sharedKeys) }
    guard let items else { return }
    let copies = arena.allocate(capacity, of: QueryValue.self)
    for index in 0..<count { copies[index] = arena.copy(items[index], sharedKeys) }
    self.items = copies
  }

  fileprivate mutating func append(_ value: QueryValue, _ arena: EvaluationArena) {
    if count == capacity {
      let larger = arena.allocate(max(8, capacity * 2), of: QueryValue.self)
      if let items { larger.update(from: items, count: count) }
      items = larger
      capacity = max(8, capacity * 2)
    }
    items?[count] = value
    count += 1
  }
}
