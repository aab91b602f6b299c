import Fleece

/// Groups rows and passes one row for each group to the next sink. It uses a hash table. When the rows of a
/// group come one after the other, it keeps one group at a time. What memory doesn't hold goes to temporary files (`SpilledGroups`).
final class GroupingSink: RowSink {
  private let grouping: CompiledGrouping
  private let context: EvaluationContext
  private let next: RowSink
  private let table: RowTable
  private var arena: EvaluationArena
  private let states: AggregateStates
  /// What the groups in memory have taken of it, in bytes.
  private var kept = 0
  private var spilled: SpilledGroups?
  private var isStreaming: Bool
  private let keys: ExpressionList
  private let aggregators: [Aggregator]
  private let additions: Additions
  /// Whether the only aggregate is a row count.
  private let countsRows: Bool
  private let probe: UnsafeMutablePointer<QueryValue>
  private let keyCount: Int
  private let width: Int
  private var isDone = false
  private let budget: QueryMemoryBudget
  /// Whether groups replace values. The memory of replaced values is lost until `compact`.
  private let replacesValues: Bool
  /// The size of the arena, in bytes, above which it is compacted.
  private var compactionLimit: Int
  private let leastCompacted: Int

  init(_ grouping: CompiledGrouping, _ context: EvaluationContext, _ next: RowSink) {
    self.grouping = grouping
    self.context = context
    self.next = next
    keyCount = grouping.keys.count
    keys = ExpressionList(grouping.keys.map(\.expression))
    aggregators = grouping.aggregates.map(\.aggregator)
    additions = Additions(grouping)
    countsRows = aggregators.count == 1 && aggregators[0].argument == nil && aggregators[0].filter == nil
    width = grouping.keys.count + grouping.captured.count
    budget = context.budget
    leastCompacted = min(4 << 20, context.budget.limit / 4)
    compactionLimit = leastCompacted
    arena = EvaluationArena(capacity: 16_384, budget)
    states = AggregateStates(budget)
    isStreaming = grouping.isStreaming
    table = RowTable(grouping.keys.map { context.order($0.collation) }, budget)
    replacesValues = grouping.aggregates.contains {
      $0.aggregator.kind == .minimum || $0.aggregator.kind == .maximum
    }
    probe = .allocate(keyCount, repeating: .missing)
  }

  deinit { probe.deallocate() }

  override func row() throws -> Bool {
    keys.evaluate(context, to: probe)
    // Without keys there is one group. When groups come one after the other, there is only one to compare with. Neither needs a hash.
    let isOne = keyCount == 0 || isStreaming
    let hash = isOne ? 0 : table.hash(probe)
    let count = aggregators.count
    let number: Int
    var used = budget.used
    if let found = isOne ? table.first(equalTo: probe) : table.find(probe, hash) {
      number = found
      if let capturing = grouping.capturing, !grouping.captured.isEmpty {
        let aggregator = grouping.aggregates[capturing].aggregator
        let before = aggregator.result(of: states.start[number * count + capturing], context, arena)
        add(number)
        let after = aggregator.result(of: states.start[number * count + capturing], context, arena)
        if !context.order(aggregator.collation).areEqual(before, after) { capture(number) }
        kept += budget.used - used
        return try checkKept()
      }
    } else {
      if isStreaming, table.count > 0 {
        // The new keys are in the context's arena. It has to stay until the group is emitted.
        guard try emit(keepingArena: true) else {
          isDone = true
          return false
        }
        table.removeAll(keepingMemory: true)
        states.removeAll(keepingMemory: true)
        arena.reset()
        kept = 0
        compactionLimit = leastCompacted
        used = budget.used
      }
      let row = arena.allocate(max(1, width), of: QueryValue.self)
      for index in 0..<keyCount { row[index] = arena.copy(probe[index], context.sharedKeys) }
      number = table.add(row, hash)
      states.append(count)
      capture(number)
    }
    add(number)
    kept += budget.used - used
    return try checkKept()
  }

  /// Checks for errors and the memory limit after a row. Always returns true.
  private func checkKept() throws -> Bool {
    try context.check()
    if _slowPath(replacesValues && arena.allocatedBytes > compactionLimit) { compact() }
    if try budget.mustSpill(kept, .groupBy) { try spill() }
    return true
  }

  /// Writes all groups to temporary files.
  private func spill() throws {
    let spilled = try self.spilled ?? SpilledGroups(grouping, context)
    self.spilled = spilled
    try spilled.add(table, states.start)
    table.removeAll(keepingMemory: false)
    states.removeAll(keepingMemory: false)
    arena = EvaluationArena(capacity: 16_384, budget)
    kept = 0
    compactionLimit = leastCompacted
    // The next rows may belong to the group that came last.
    isStreaming = false
  }

  /// Copies all values of the groups to a fresh arena, and so frees the replaced ones.
  private func compact() {
    kept -= arena.allocatedBytes
    let fresh = EvaluationArena(capacity: 16_384, budget)
    for number in 0..<table.count {
      table.move(number, to: fresh.copy(table.row(number), count: width, context.sharedKeys))
    }
    states.move(to: fresh, context.sharedKeys)
    arena = fresh
    kept = max(0, kept + fresh.allocatedBytes)
    compactionLimit = max(leastCompacted, fresh.allocatedBytes * 2)
  }

  @inline(__always)
  private func add(_ number: Int) {
    let first = states.start + number &* aggregators.count
    if countsRows { return first.pointee.countRow() }
    additions.add(to: first, context, arena)
  }

  private func capture(_ number: Int) {
    let row = UnsafeMutablePointer(mutating: table.row(number))
    for index in grouping.captured.indices {
      row[keyCount + index] = arena.copy(
        grouping.captured[index].expression.evaluate(context), context.sharedKeys)
    }
  }

  override func countRows(_ count: Int) throws {
    for aggregate in grouping.aggregates { context.slots[aggregate.slot] = .int(Int64(count)) }
    isDone = true
    if let having = grouping.having, having.truth(context) != .true { return try context.check() }
    _ = try next.row()
  }

  override func finish() throws {
    if !isDone { _ = try emit(keepingArena: false) }
    try next.finish()
  }

  /// Adds the groups that there are without rows: the only one of a query without GROUP BY, and one for each empty
  /// grouping set.
  private func addGroupsOfNothing() {
    func add(_ key: (Int) -> QueryValue) {
      let row = arena.allocate(max(1, width), of: QueryValue.self)
      for index in 0..<width { row[index] = index < keyCount ? key(index) : .missing }
      table.add(row, table.hash(row))
      states.append(aggregators.count)
    }
    if keyCount == 0 { add { _ in .missing } }
    // The last key is the number of the set. An empty set has no other.
    for set in grouping.emptySets { add { $0 == keyCount - 1 ? .int(Int64(set)) : .null } }
  }

  /// Passes the groups to the next sink. False when it wants no more.
  private func emit(keepingArena: Bool) throws -> Bool {
    if let spilled {
      if table.count > 0 { try spill() }
      return try spilled.forEach { row, results in
        try pass(row, keepingArena: false) { results[$0] }
      }
    }
    if table.count == 0 { addGroupsOfNothing() }
    for number in 0..<table.count {
      try context.cancellation.check()
      let first = states.start + number * aggregators.count
      let goesOn = try pass(table.row(number), keepingArena: keepingArena) {
        aggregators[$0].result(of: first[$0], context, arena)
      }
      guard goesOn else { return false }
    }
    return true
  }

  /// Passes a group with its keys, captured values and results to the next sink. False when it wants no more.
  @inline(__always)
  private func pass(
    _ row: UnsafePointer<QueryValue>, keepingArena: Bool, _ result: (Int) -> QueryValue
  ) throws -> Bool {
    for (index, key) in grouping.keys.enumerated() { context.slots[key.slot] = row[index] }
    for (index, captured) in grouping.captured.enumerated() {
      context.slots[captured.slot] = row[keyCount + index]
    }
    for (index, aggregate) in grouping.aggregates.enumerated() {
      context.slots[aggregate.slot] = result(index)
    }
    try budget.check(.groupBy)
    if !keepingArena { context.arena.reset() }
    if let having = grouping.having, having.truth(context) != .true {
      try context.check()
      return true
    }
    return try next.row()
  }
}

/// Adds the current row to the aggregates of a group. Each argument is computed once a row, and no object is retained.
private final class Additions {
  private struct Step {
    enum Kind { case rows, values, numbers, sum, least, greatest, other, filtered }
    var kind: Kind
    /// The index of the argument.
    var argument: Int
    // Unowned: the grouping has it.
    var aggregator: Unmanaged<Aggregator>
  }

  private let grouping: CompiledGrouping
  private let arguments: ExpressionList
  private let values: UnsafeMutablePointer<QueryValue>
  private let steps: UnsafeMutablePointer<Step>
  private let count: Int

  init(_ grouping: CompiledGrouping) {
    self.grouping = grouping
    arguments = ExpressionList(grouping.arguments)
    // Steps without an argument look at a value too.
    values = .allocate(max(1, grouping.arguments.count), repeating: .missing)
    count = grouping.aggregates.count
    steps = .allocate(capacity: max(1, count))
    for (index, aggregate) in grouping.aggregates.enumerated() {
      (steps + index).initialize(
        to: Step(
          kind: Self.kind(aggregate), argument: aggregate.argument ?? 0,
          aggregator: .passUnretained(aggregate.aggregator)))
    }
  }

  deinit {
    values.deallocate()
    steps.deallocate()
  }

  private static func kind(_ aggregate: CompiledGrouping.Aggregate) -> Step.Kind {
    let aggregator = aggregate.aggregator
    if aggregator.filter != nil { return .filtered }
    if aggregate.argument == nil { return .rows }
    switch aggregator.kind {
    case .minimum: return .least
    case .maximum: return .greatest
    case .count where !aggregator.isDistinct: return .values
    case .countNumbers where !aggregator.isDistinct: return .numbers
    case .sum where !aggregator.isDistinct, .average where !aggregator.isDistinct: return .sum
    default: return .other
    }
  }

  /// `arena` isn't retained for aggregates that keep no values.
  @inline(__always)
  func add(
    to states: UnsafeMutablePointer<AggregateState>, _ context: EvaluationContext,
    _ arena: @autoclosure () -> EvaluationArena
  ) {
    arguments.evaluate(context, to: values)
    for index in 0..<count {
      let step = steps + index
      let state = states + index
      let value = values[step.pointee.argument]
      switch step.pointee.kind {
      case .rows: state.pointee.countRow()
      case .values: if !value.isUnknown { state.pointee.countRow() }
      case .numbers: if value.type == .number { state.pointee.countRow() }
      case .sum: if value.type == .number { state.pointee.add(number: value, context) }
      case .least where state.pointee.replaceNumber(value, ifBelow: true): break
      case .greatest where state.pointee.replaceNumber(value, ifBelow: false): break
      case .least, .greatest, .other:
        step.pointee.aggregator._withUnsafeGuaranteedRef {
          $0.add(value, to: &state.pointee, context, arena())
        }
      case .filtered:
        step.pointee.aggregator._withUnsafeGuaranteedRef { $0.add(to: &state.pointee, context, arena()) }
      }
    }
  }
}

/// The aggregate states of all groups. Those of one group are adjacent.
private final class AggregateStates {
  @exclusivity(unchecked) private(set) var start: UnsafeMutablePointer<AggregateState>
  @exclusivity(unchecked) private var count = 0
  @exclusivity(unchecked) private var capacity = AggregateStates.leastCapacity
  private let budget: QueryMemoryBudget
  private static let stateBytes = MemoryLayout<AggregateState>.stride
  private static let leastCapacity = 64

  init(_ budget: QueryMemoryBudget) {
    self.budget = budget
    start = .allocate(capacity: capacity)
    budget.take(capacity * Self.stateBytes)
  }

  deinit {
    start.deinitialize(count: count)
    start.deallocate()
    budget.giveBack(capacity * Self.stateBytes)
  }

  /// Copies all that the states point at to another arena.
  func move(to arena: EvaluationArena, _ sharedKeys: SharedKeys) {
    for index in 0..<count { start[index].move(to: arena, sharedKeys) }
  }

  /// Adds the states of a new group.
  func append(_ more: Int) {
    if count + more > capacity {
      let wanted = max(capacity * 2, count + more)
      budget.take((wanted - capacity) * Self.stateBytes)
      capacity = wanted
      let larger = UnsafeMutablePointer<AggregateState>.allocate(capacity: capacity)
      larger.moveInitialize(from: start, count: count)
      start.deallocate()
      start = larger
    }
    (start + count).initialize(repeating: AggregateState(), count: more)
    count += more
  }

  /// Removes the states. With `keepingMemory` there stays room for as many.
  func removeAll(keepingMemory: Bool) {
    start.deinitialize(count: count)
    count = 0
    guard !keepingMemory, capacity > Self.leastCapacity else { return }
    start.deallocate()
    budget.giveBack((capacity - Self.leastCapacity) * Self.stateBytes)
    capacity = Self.leastCapacity
    start = .allocate(capacity: capacity)
  }
}
