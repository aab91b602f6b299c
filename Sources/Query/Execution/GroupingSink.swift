import Fleece

/// Makes groups of rows and hands one row for each to the next sink: by a hash table, or where the rows of a group
/// come one after the other, one group at a time.
final class GroupingSink: RowSink {
  /// What a group has, apart from its keys and captured values, which lie in its row.
  private struct Group {
    var row: UnsafeMutablePointer<QueryValue>
    var states: Int
  }

  private let grouping: CompiledGrouping
  private let context: EvaluationContext
  private let next: RowSink
  private let table: RowTable
  private let arena = EvaluationArena(capacity: 16_384)
  private var states: [AggregateState] = []
  private let probe: UnsafeMutablePointer<QueryValue>
  private let keyCount: Int
  private let width: Int
  private var isDone = false

  init(_ grouping: CompiledGrouping, _ context: EvaluationContext, _ next: RowSink) {
    self.grouping = grouping
    self.context = context
    self.next = next
    keyCount = grouping.keys.count
    width = grouping.keys.count + grouping.captured.count
    table = RowTable(grouping.keys.map { context.order($0.collation) })
    probe = .allocate(capacity: max(1, keyCount))
    probe.initialize(repeating: .missing, count: max(1, keyCount))
  }

  deinit { probe.deallocate() }

  override func row() throws -> Bool {
    for index in 0..<keyCount { probe[index] = grouping.keys[index].expression.evaluate(context) }
    let hash = table.hash(probe)
    let count = grouping.aggregates.count
    let number: Int
    if let found = table.find(probe, hash) {
      number = found
      if let capturing = grouping.capturing, !grouping.captured.isEmpty {
        let aggregator = grouping.aggregates[capturing].aggregator
        let before = aggregator.result(of: states[number * count + capturing], context, arena)
        add(number)
        let after = aggregator.result(of: states[number * count + capturing], context, arena)
        if !context.order(aggregator.collation).areEqual(before, after) { capture(number) }
        try context.check()
        return true
      }
    } else {
      if grouping.isStreaming, table.count > 0 {
        // What the keys are of lies in the context's arena, which stays until the group is given.
        guard try emit(keepingArena: true) else {
          isDone = true
          return false
        }
        table.removeAll()
        states.removeAll(keepingCapacity: true)
        arena.reset()
      }
      let row = arena.allocate(max(1, width), of: QueryValue.self)
      for index in 0..<keyCount { row[index] = arena.copy(probe[index], context.sharedKeys) }
      number = table.add(row, hash)
      for _ in 0..<count { states.append(AggregateState()) }
      capture(number)
    }
    add(number)
    try context.check()
    return true
  }

  @inline(__always)
  private func add(_ number: Int) {
    let first = number * grouping.aggregates.count
    for index in grouping.aggregates.indices {
      grouping.aggregates[index].aggregator.add(to: &states[first + index], context, arena)
    }
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
      for _ in grouping.aggregates { states.append(AggregateState()) }
    }
    for number in 0..<table.count {
      let row = table.row(number)
      for (index, key) in grouping.keys.enumerated() { context.slots[key.slot] = row[index] }
      for (index, captured) in grouping.captured.enumerated() {
        context.slots[captured.slot] = row[keyCount + index]
      }
      let first = number * grouping.aggregates.count
      for (index, aggregate) in grouping.aggregates.enumerated() {
        context.slots[aggregate.slot] = aggregate.aggregator.result(of: states[first + index], context, arena)
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
