import Fleece

/// The state of one aggregate of a group.
struct AggregateState {
  /// The number of rows or values so far. For MIN and MAX it is 0 or 1.
  var count = 0
  var value = QueryValue.missing
  /// The different values so far, for DISTINCT.
  var values: ValueSet?
  var items: UnsafeMutablePointer<QueryValue>?
  private var capacity = 0
  /// The exact sum of the integers. 2⁶³ integers of 64 bits fit.
  var integers: Int128 = 0
  var hasUnsigned = false
  /// The exact sum of the doubles, as far as it fits, and what doesn't fit. For variances, the sums of all numbers and of their squares.
  var doubles = DoubleExpansion()
  var moments: ExactMoments?
  var isInteger = true

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
  var sum: QueryValue {
    let integer = Int64(exactly: integers)
    if isInteger {
      if let integer { return .int(integer) }
      if hasUnsigned, let unsigned = UInt64(exactly: integers) { return .uint(unsigned) }
    }
    return QueryValue(finite: moments.map { $0.total(integers) } ?? doubles.plus(integers))
  }

  /// Adds a value to the different ones, after `copy` has made a copy to keep. False if an equal one is there.
  @inline(__always)
  mutating func insert(
    _ value: QueryValue, _ order: ValueOrder, _ budget: QueryMemoryBudget, copy: (QueryValue) -> QueryValue
  ) -> Bool {
    // The set isn't retained for each value.
    guard let known = values.map({ Unmanaged.passUnretained($0) }) else {
      let made = ValueSet(budget)
      values = made
      return made.insert(value, order, copy: copy)
    }
    return known._withUnsafeGuaranteedRef { $0.insert(value, order, copy: copy) }
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
    doubles = DoubleExpansion()
    self.moments = moments
  }

  /// Adds a number for a sum of different numbers. Equal numbers count once. Which of 1 and 1.0 comes first
  /// depends on the order of rows, but the sum doesn't: it is a double when one of them is, and whole numbers
  /// are added as integers.
  mutating func add(distinctNumber number: QueryValue, isNew: Bool, _ context: EvaluationContext) {
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
  mutating func add(toVariance number: QueryValue, _ context: EvaluationContext) {
    count += 1
    let sums = moments ?? ExactMoments(context.budget)
    sums.add(withSquare: number)
    moments = sums
  }

  func variance(_ kind: AggregateKind, divisor: Int) -> QueryValue {
    guard let moments, divisor > 0 else { return .null }
    switch kind {
    case .deviation, .sampleDeviation, .populationDeviation:
      return QueryValue(finite: moments.variance(count, divisor: divisor, isRoot: true))
    default: return QueryValue(finite: moments.variance(count, divisor: divisor, isRoot: false))
    }
  }

  /// The middle of the numbers, or the mean of the two in the middle.
  var median: QueryValue {
    var numbers: [QueryValue] = []
    if let values {
      numbers = (0..<values.count).map { values[$0] }
    } else if let items {
      numbers = Array(UnsafeBufferPointer(start: items, count: count))
    }
    guard !numbers.isEmpty else { return .null }
    numbers.sort { compareNumbers($0, $1) < 0 }
    let middle = numbers.count / 2
    return Self.median(below: numbers.count % 2 == 1 ? nil : numbers[middle - 1], numbers[middle])
  }

  /// The median of sorted numbers: the middle one, or the mean of the two in the middle.
  static func median(below: QueryValue?, _ middle: QueryValue) -> QueryValue {
    guard let below else { return middle }
    guard let below = below.number, let above = middle.number else { return .null }
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

  mutating func append(_ value: QueryValue, _ arena: EvaluationArena) {
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
