import Fleece

/// Makes groups of rows and hands one row for each to the next sink: by a hash table, or where the rows of a group
/// come one after the other, one group at a time.
final class GroupingSink: RowSink {
  private let grouping: CompiledGrouping
  private let context: EvaluationContext
  private let next: RowSink
  private let table: RowTable
  private let arena = EvaluationArena(capacity: 16_384)
  private let states = AggregateStates()
  private let keys: ExpressionList
  private let aggregators: [Aggregator]
  /// Whether all that is asked is how many rows each group has.
  private let countsRows: Bool
  private let probe: UnsafeMutablePointer<QueryValue>
  private let keyCount: Int
  private let width: Int
  private var isDone = false

  init(_ grouping: CompiledGrouping, _ context: EvaluationContext, _ next: RowSink) {
    self.grouping = grouping
    self.context = context
    self.next = next
    keyCount = grouping.keys.count
    keys = ExpressionList(grouping.keys.map(\.expression))
    aggregators = grouping.aggregates.map(\.aggregator)
    countsRows = aggregators.count == 1 && aggregators[0].argument == nil
    width = grouping.keys.count + grouping.captured.count
    table = RowTable(grouping.keys.map { context.order($0.collation) })
    probe = .allocate(capacity: max(1, keyCount))
    probe.initialize(repeating: .missing, count: max(1, keyCount))
  }

  deinit { probe.deallocate() }

  override func row() throws -> Bool {
    keys.evaluate(context, to: probe)
    // Where groups come one after the other there is one to compare with, and nothing to be looked up.
    let isStreaming = grouping.isStreaming
    let hash = isStreaming ? 0 : table.hash(probe)
    let count = aggregators.count
    let number: Int
    if let found = isStreaming ? table.first(equalTo: probe) : table.find(probe, hash) {
      number = found
      if let capturing = grouping.capturing, !grouping.captured.isEmpty {
        let aggregator = grouping.aggregates[capturing].aggregator
        let before = aggregator.result(of: states.start[number * count + capturing], context, arena)
        add(number)
        let after = aggregator.result(of: states.start[number * count + capturing], context, arena)
        if !context.order(aggregator.collation).areEqual(before, after) { capture(number) }
        try context.check()
        return true
      }
    } else {
      if isStreaming, table.count > 0 {
        // What the keys are of lies in the context's arena, which stays until the group is given.
        guard try emit(keepingArena: true) else {
          isDone = true
          return false
        }
        table.removeAll()
        states.removeAll()
        arena.reset()
      }
      let row = arena.allocate(max(1, width), of: QueryValue.self)
      for index in 0..<keyCount { row[index] = arena.copy(probe[index], context.sharedKeys) }
      number = table.add(row, hash)
      states.append(count)
      capture(number)
    }
    add(number)
    try context.check()
    return true
  }

  @inline(__always)
  private func add(_ number: Int) {
    let first = states.start + number &* aggregators.count
    if countsRows { return first.pointee.countRow() }
    for index in aggregators.indices { aggregators[index].add(to: &first[index], context, arena) }
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

  /// Gives the groups. False when no more are wanted.
  private func emit(keepingArena: Bool) throws -> Bool {
    // Without GROUP BY there is one group, of no rows if need be.
    if keyCount == 0, table.count == 0 {
      let row = arena.allocate(max(1, width), of: QueryValue.self)
      for index in 0..<width { row[index] = .missing }
      table.add(row, table.hash(row))
      states.append(aggregators.count)
    }
    for number in 0..<table.count {
      let row = table.row(number)
      for (index, key) in grouping.keys.enumerated() { context.slots[key.slot] = row[index] }
      for (index, captured) in grouping.captured.enumerated() {
        context.slots[captured.slot] = row[keyCount + index]
      }
      let first = number * grouping.aggregates.count
      for (index, aggregate) in grouping.aggregates.enumerated() {
        context.slots[aggregate.slot] = aggregate.aggregator.result(
          of: states.start[first + index], context, arena)
      }
      if !keepingArena { context.arena.reset() }
      if let having = grouping.having, having.truth(context) != .true {
        try context.check()
        continue
      }
      guard try next.row() else { return false }
    }
    return true
  }
}

/// What groups keep for their aggregates, those of a group side by side.
private final class AggregateStates {
  @exclusivity(unchecked) private(set) var start: UnsafeMutablePointer<AggregateState>
  @exclusivity(unchecked) private var count = 0
  @exclusivity(unchecked) private var capacity = 64

  init() { start = .allocate(capacity: capacity) }

  deinit {
    start.deinitialize(count: count)
    start.deallocate()
  }

  /// Adds those of a new group.
  func append(_ more: Int) {
    if count + more > capacity {
      capacity = max(capacity * 2, count + more)
      let larger = UnsafeMutablePointer<AggregateState>.allocate(capacity: capacity)
      larger.moveInitialize(from: start, count: count)
      start.deallocate()
      start = larger
    }
    (start + count).initialize(repeating: AggregateState(), count: more)
    count += more
  }

  func removeAll() {
    start.deinitialize(count: count)
    count = 0
  }
}
