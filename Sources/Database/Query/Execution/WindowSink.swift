import Fleece

/// Computes functions over windows, and passes each row on with their results. It keeps all rows, unless the functions
/// can be computed as rows come. Rows leave in the order in which they came.
final class WindowSink: RowSink {
  private let windows: CompiledWindows
  private let context: EvaluationContext
  private let next: RowSink
  private let inputs: ExpressionList
  private var arena: EvaluationArena
  private let budget: QueryMemoryBudget
  private var rows: [UnsafeMutablePointer<QueryValue>] = []
  private static let rowBytes = MemoryLayout<UnsafeMutablePointer<QueryValue>>.stride
  private let probe: UnsafeMutablePointer<QueryValue>
  private var stream: WindowStream?

  init(_ windows: CompiledWindows, _ context: EvaluationContext, _ next: RowSink) {
    self.windows = windows
    self.context = context
    self.next = next
    inputs = ExpressionList(windows.inputs)
    budget = context.budget
    arena = EvaluationArena(capacity: 16_384, budget)
    probe = .allocate(windows.inputs.count, repeating: .missing)
    if windows.isStreaming { stream = WindowStream(windows, context) }
  }

  deinit {
    probe.deallocate()
    budget.giveBack(rows.count * Self.rowBytes)
  }

  override func row() throws -> Bool {
    inputs.evaluate(context, to: probe)
    try context.check()
    if let stream {
      try stream.take(probe)
      for (input, slot) in windows.captured { context.slots[slot] = probe[input] }
      return try next.row()
    }
    rows.append(arena.copy(probe, count: inputs.count, context.sharedKeys))
    budget.take(Self.rowBytes)
    try budget.check(.window)
    return true
  }

  override func finish() throws {
    if stream == nil { try emit() }
    try next.finish()
  }

  private func emit() throws {
    guard !rows.isEmpty else { return }
    let results = try windows.arrangements.indices.reduce(into: [Int: UnsafeMutablePointer<QueryValue>]()) {
      results, number in
      var partitions = WindowPartitions(windows.arrangements[number], rows, context)
      try partitions.sort()
      for (index, function) in windows.functions.enumerated() where function.arrangement == number {
        let values = arena.allocate(rows.count, of: QueryValue.self)
        try budget.check(.window)
        try partitions.forEach { partition in
          try WindowEvaluation(function, partition, context, arena).compute(into: values)
          try budget.check(.window)
        }
        results[index] = values
      }
    }
    for number in rows.indices {
      try context.cancellation.check()
      context.arena.reset()
      let row = rows[number]
      for (input, slot) in windows.captured { context.slots[slot] = row[input] }
      for (index, function) in windows.functions.enumerated() {
        // A window gives no MISSING: an empty frame, and a missing value in it, are null.
        let value = results[index].map { $0[number] } ?? .null
        context.slots[function.slot] = value.isMissing ? .null : value
      }
      guard try next.row() else { return }
    }
  }
}

/// The rows of an arrangement in their order, by partitions.
struct WindowPartitions {
  let arrangement: CompiledWindows.Arrangement
  let rows: [UnsafeMutablePointer<QueryValue>]
  let context: EvaluationContext
  /// The numbers of the rows, in order.
  private(set) var numbers: [Int]

  init(
    _ arrangement: CompiledWindows.Arrangement, _ rows: [UnsafeMutablePointer<QueryValue>],
    _ context: EvaluationContext
  ) {
    self.arrangement = arrangement
    self.rows = rows
    self.context = context
    numbers = Array(rows.indices)
  }

  /// Brings the rows into their order. Equal rows stay in the order in which they came. Rows that come in order take
  /// time in proportion to their number.
  mutating func sort() throws {
    let terms = (arrangement.partition + arrangement.order).map { ($0, context.order($0.collation)) }
    let rows = rows
    let cancellation = context.cancellation
    try numbers.sort { left, right in
      try cancellation.check()
      for (term, order) in terms {
        let result = order.compare(rows[left][term.input], rows[right][term.input])
        if result != 0 { return (result < 0) != term.isDescending }
      }
      return false
    }
  }

  func forEach(_ body: (WindowPartition) throws -> Void) throws {
    let orders = arrangement.partition.map { ($0.input, context.order($0.collation)) }
    var start = 0
    while start < numbers.count {
      var end = start + 1
      while end < numbers.count,
        orders.allSatisfy({ $1.areEqual(rows[numbers[end]][$0], rows[numbers[start]][$0]) })
      {
        end += 1
      }
      try context.cancellation.check()
      try body(WindowPartition(self, Array(numbers[start..<end])))
      start = end
    }
  }
}

/// The rows of one partition, in order, and the groups of peers among them.
struct WindowPartition {
  let rows: [UnsafeMutablePointer<QueryValue>]
  /// The numbers of the rows in the order of arrival.
  let numbers: [Int]
  /// The term by which distances of RANGE are measured.
  let distance: CompiledWindows.Term?
  /// For each row, the number of its group of peers.
  let groups: [Int]
  /// For each group, the position of its first row, and last the number of rows.
  let starts: [Int]

  init(_ all: WindowPartitions, _ numbers: [Int]) {
    self.numbers = numbers
    rows = numbers.map { all.rows[$0] }
    distance = all.arrangement.order.last
    let orders = all.arrangement.order.map { ($0.input, all.context.order($0.collation)) }
    var groups = [0]
    var starts = [0]
    for position in rows.indices.dropFirst() {
      let isPeer = orders.allSatisfy {
        $1.areEqual(all.rows[numbers[position]][$0], all.rows[numbers[position - 1]][$0])
      }
      if !isPeer { starts.append(position) }
      groups.append(starts.count - 1)
    }
    self.groups = groups
    self.starts = starts + [rows.count]
  }

  /// The positions of the peers of a row.
  func peers(of position: Int) -> Range<Int> { starts[groups[position]]..<starts[groups[position] + 1] }
}

/// Functions that are computed as rows come in the order of their window.
final class WindowStream {
  private let windows: CompiledWindows
  private let context: EvaluationContext
  private let partition: [(input: Int, order: ValueOrder)]
  private let order: [(input: Int, order: ValueOrder)]
  private let last: UnsafeMutablePointer<QueryValue>
  private var keys = EvaluationArena(capacity: 256)
  private var arena: EvaluationArena
  private var states: [AggregateState]
  /// The position of the row in its partition, from 1. 0 before the first row.
  private var position: Int64 = 0
  private var rank: Int64 = 0
  private var denseRank: Int64 = 0

  init(_ windows: CompiledWindows, _ context: EvaluationContext) {
    self.windows = windows
    self.context = context
    partition = windows.arrangements[0].partition.map { ($0.input, context.order($0.collation)) }
    order = windows.arrangements[0].order.map { ($0.input, context.order($0.collation)) }
    last = .allocate(windows.inputs.count, repeating: .missing)
    arena = EvaluationArena(capacity: 1024, context.budget)
    states = Array(repeating: AggregateState(), count: windows.functions.count)
  }

  deinit { last.deallocate() }

  /// Takes the inputs of a row, and sets the slots of all results.
  func take(_ row: UnsafePointer<QueryValue>) throws {
    let isNew = position == 0 || !partition.allSatisfy { $0.order.areEqual(row[$0.input], last[$0.input]) }
    let isPeer = !isNew && order.allSatisfy { $0.order.areEqual(row[$0.input], last[$0.input]) }
    if isNew {
      (position, rank, denseRank) = (0, 0, 0)
      arena = EvaluationArena(capacity: 1024, context.budget)
      states = Array(repeating: AggregateState(), count: windows.functions.count)
    }
    position += 1
    if !isPeer {
      rank = position
      denseRank += 1
      keys.reset()
      for (input, _) in partition + order { last[input] = keys.copy(row[input], context.sharedKeys) }
    }
    for (index, function) in windows.functions.enumerated() {
      let value: QueryValue
      switch function.computation {
      case .function(.rank): value = .int(rank)
      case .function(.denseRank): value = .int(denseRank)
      case .function: value = .int(position)
      case .aggregate(let aggregator):
        if function.filter.map({ row[$0].truth == .true }) ?? true {
          if let argument = function.arguments.first {
            aggregator.add(row[argument], to: &states[index], context, arena)
          } else {
            states[index].countRow()
          }
        }
        value = aggregator.result(of: states[index], context, arena)
        try context.budget.check(.window)
      }
      context.slots[function.slot] = value.isMissing ? .null : value
    }
    try context.check()
  }
}
