import Bytes
import Fleece

/// The groups of GROUP BY that memory doesn't hold. What there is of them is written to temporary files whenever memory is full. At the
/// end, the parts of each group are brought together.
///
/// A group has a record with the states of its aggregates, and one more for each value that an aggregate keeps: those of DISTINCT and
/// MEDIAN in their order, so that nothing of them has to be in memory, those of ARRAY_AGG in the order in which they came.
final class SpilledGroups {
  //   record := key* part item number captured* state*
  //   part   := -1, with number, captured and states, or the number of the aggregate that keeps `item`
  //   number := of the group, in the order in which groups came; that of its first record counts
  //   state  := AggregateState.write

  private let grouping: CompiledGrouping
  private let context: EvaluationContext
  private let keeping: RowKeeping
  private let runs: SortedRuns
  private let record: UnsafeMutablePointer<QueryValue>
  private let keyCount: Int
  private let width: Int
  /// How many groups came before those that are in memory.
  private var before: Int64 = 0
  private var part: Int { keyCount }
  private var item: Int { keyCount + 1 }
  private var number: Int { keyCount + 2 }
  private var captured: Int { keyCount + 3 }
  private var states: Int { captured + grouping.captured.count }

  init(_ grouping: CompiledGrouping, _ context: EvaluationContext) throws {
    self.grouping = grouping
    self.context = context
    keeping = RowKeeping(context)
    keyCount = grouping.keys.count
    width = keyCount + 3 + grouping.captured.count + grouping.aggregates.count
    record = .allocate(width, repeating: .missing)
    let keyOrders = grouping.keys.map { context.order($0.collation) }
    let itemOrders = grouping.aggregates.map { $0.aggregator.itemOrder(context) }
    let keyCount = keyCount
    do {
      runs = try SortedRuns(width: width, keeping) { left, right in
        for index in 0..<keyCount {
          let order = keyOrders[index].compare(left[index], right[index])
          if order != 0 { return order }
        }
        let order = compareNumbers(left[keyCount], right[keyCount])
        guard order == 0, case .int(let part) = left[keyCount], part >= 0 else { return order }
        return itemOrders[Int(part)]?.compare(left[keyCount + 1], right[keyCount + 1]) ?? 0
      }
    } catch {
      record.deallocate()
      throw error
    }
  }

  deinit { record.deallocate() }

  // MARK: Writing

  /// Writes groups: their keys and captured values by their numbers, and their states, those of one group after the other.
  func add(_ table: RowTable, _ first: UnsafePointer<AggregateState>) throws {
    let orders = grouping.keys.map { context.order($0.collation) }
    let cancellation = context.cancellation
    let numbers = try (0..<table.count).sorted { left, right in
      try cancellation.check()
      for index in 0..<keyCount {
        let order = orders[index].compare(table.row(left)[index], table.row(right)[index])
        if order != 0 { return order < 0 }
      }
      return false
    }
    let arena = EvaluationArena(capacity: 1_024, keeping.budget)
    try runs.add { file in
      for number in numbers {
        try cancellation.check()
        arena.reset()
        try write(table.row(number), number, first + number * grouping.aggregates.count, to: file, arena)
      }
    }
    before += Int64(table.count)
  }

  private func write(
    _ row: UnsafePointer<QueryValue>, _ group: Int, _ first: UnsafePointer<AggregateState>, to file: RowFile,
    _ arena: EvaluationArena
  ) throws {
    for index in 0..<keyCount { record[index] = row[index] }
    record[part] = .int(-1)
    record[item] = .missing
    record[number] = .int(before + Int64(group))
    for index in grouping.captured.indices { record[captured + index] = row[keyCount + index] }
    for (index, aggregate) in grouping.aggregates.enumerated() {
      var bytes = ByteBuffer(capacity: 64)
      first[index].write(aggregate.aggregator, to: &bytes, keeping.sharedKeys)
      record[states + index] = .data(arena.copy(TextSlice(bytes.bytes)))
    }
    try file.append(record, keeping.sharedKeys)
    for index in number..<width { record[index] = .missing }
    for (index, aggregate) in grouping.aggregates.enumerated() where aggregate.aggregator.keepsItems {
      record[part] = .int(Int64(index))
      var items = first[index].keptItems
      if let order = aggregate.aggregator.itemOrder(context) {
        try items.sort {
          try context.cancellation.check()
          return order.compare($0, $1) < 0
        }
      }
      for value in items {
        record[item] = value
        try file.append(record, keeping.sharedKeys)
      }
    }
  }

  // MARK: Reading

  /// Calls `body` with the keys and captured values of each group, and the results of its aggregates, in the order in which groups came,
  /// until it returns false. No group may be added after. Returns the last result of `body`, or true.
  func forEach(_ body: (UnsafePointer<QueryValue>, UnsafePointer<QueryValue>) throws -> Bool) throws -> Bool {
    // The keys and captured values, the results, and the number.
    let (first, count) = (keyCount + grouping.captured.count, grouping.aggregates.count)
    let place = first + count
    let groups = RowSorter(width: place + 1, keeping, .groupBy) { compareNumbers($0[place], $1[place]) }
    let row = UnsafeMutablePointer<QueryValue>.allocate(place + 1, repeating: .missing)
    defer { row.deallocate() }
    let keys = grouping.keys.enumerated().map {
      GroupedRows.Key(place: $0, order: context.order($1.collation))
    }
    let records = GroupedRows(try runs.merged(), by: keys, keeping)
    while let begin = try records.nextGroup() {
      row[place] = begin[number]
      let group = GatheredGroup(grouping, context)
      while let record = try records.next() {
        guard case .int(let part) = record[part] else { throw keeping.files.damaged }
        if part < 0 {
          try group.add(states: record + states, captured: record + captured)
        } else {
          try group.add(item: record[item], of: Int(part))
        }
        try context.check()
        try keeping.budget.check(.groupBy)
      }
      for index in 0..<keyCount { row[index] = records.keys[index] }
      for index in grouping.captured.indices { row[keyCount + index] = group.captured[index] }
      for index in 0..<count { row[first + index] = try group.result(index) }
      // It has the values of the row.
      try withExtendedLifetime(group) { try groups.add(row) }
    }
    return try groups.sorted().forEach { try body($0, $0 + first) }
  }
}

/// A group whose parts are brought together.
private final class GatheredGroup {
  let captured: UnsafeMutablePointer<QueryValue>
  private let grouping: CompiledGrouping
  private let context: EvaluationContext
  private let keeping: RowKeeping
  private let arena: EvaluationArena
  private var states: [AggregateState]
  /// The numbers of MEDIAN, in their order.
  private var numbers: [Int: RowSorter] = [:]
  private var counts: [Int: Int] = [:]
  /// The last different item of each aggregate.
  private var lastItems: [QueryValue?]
  private var lastArenas: [EvaluationArena?]
  private var isFirst = true

  init(_ grouping: CompiledGrouping, _ context: EvaluationContext) {
    self.grouping = grouping
    self.context = context
    keeping = RowKeeping(context)
    arena = EvaluationArena(capacity: 1_024, context.budget)
    captured = arena.allocate(max(1, grouping.captured.count), of: QueryValue.self)
    states = Array(repeating: AggregateState(), count: grouping.aggregates.count)
    lastItems = Array(repeating: nil, count: states.count)
    lastArenas = Array(repeating: nil, count: states.count)
  }

  func add(states more: UnsafePointer<QueryValue>, captured other: UnsafePointer<QueryValue>) throws {
    var takesCaptured = isFirst
    for (index, aggregate) in grouping.aggregates.enumerated() {
      guard case .data(let bytes) = more[index] else { throw keeping.files.damaged }
      let aggregator = aggregate.aggregator
      let isNew = try states[index].merge(aggregator, bytes.bytes, context, arena)
      if grouping.capturing == index, isNew { takesCaptured = true }
    }
    if takesCaptured {
      for index in grouping.captured.indices {
        captured[index] = arena.copy(other[index], context.sharedKeys)
      }
    }
    isFirst = false
  }

  func add(item: QueryValue, of index: Int) throws {
    let aggregator = grouping.aggregates[index].aggregator
    guard aggregator.kind != .arrayAggregate else {
      return aggregator.add(item, to: &states[index], context, arena)
    }
    if aggregator.isDistinct {
      if let last = lastItems[index], context.order(aggregator.collation).areEqual(last, item) { return }
      let copies = lastArenas[index] ?? EvaluationArena(capacity: 256, context.budget)
      lastArenas[index] = copies
      copies.reset()
      lastItems[index] = copies.copy(item, context.sharedKeys)
    }
    guard aggregator.kind == .median else { return states[index].add(new: item, aggregator, context) }
    let sorter = numbers[index] ?? RowSorter(width: 1, keeping, .groupBy) { _, _ in 0 }
    numbers[index] = sorter
    counts[index, default: 0] += 1
    try withUnsafePointer(to: item) { try sorter.add($0) }
  }

  func result(_ index: Int) throws -> QueryValue {
    let aggregator = grouping.aggregates[index].aggregator
    guard aggregator.kind == .median else { return aggregator.result(of: states[index], context, arena) }
    guard let count = counts[index], let sorter = numbers[index] else { return .null }
    var below = QueryValue.null
    var position = 0
    let sorted = try sorter.sorted()
    while let row = try sorted.next() {
      if position == count / 2 {
        return AggregateState.median(below: count % 2 == 1 ? nil : below, row.pointee)
      }
      below = row.pointee
      position += 1
    }
    return .null
  }
}
