import Fleece

/// Computes functions over windows, and passes each row on with their results. It keeps all rows, unless the functions
/// can be computed as rows come; in a temporary file if memory doesn't hold them (`SpilledWindows`). Rows leave in the order in which they
/// came.
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
  /// All rows, when memory doesn't hold them.
  private var file: RowFile?

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
    if let file {
      try file.append(probe, context.sharedKeys)
      return true
    }
    rows.append(arena.copy(probe, count: inputs.count, context.sharedKeys))
    budget.take(Self.rowBytes)
    if try budget.mustSpill(arena.allocatedBytes + rows.count * Self.rowBytes, .window) { try spill() }
    return true
  }

  /// Moves all rows to a temporary file.
  private func spill() throws {
    let file = try RowFile(width: inputs.count, RowKeeping(context).files, budget)
    for row in rows { try file.append(row, context.sharedKeys) }
    self.file = file
    budget.giveBack(rows.count * Self.rowBytes)
    rows = []
    arena = EvaluationArena(capacity: 64, budget)
  }

  override func finish() throws {
    if stream == nil {
      // The results take memory too.
      let results =
        rows.count * (windows.functions.count * MemoryLayout<QueryValue>.stride + WindowPartition.rowBytes)
      if budget.canSpill, budget.used + results > budget.limit, !rows.isEmpty { try spill() }
      if let file { try emit(file) } else { try emit() }
    }
    try next.finish()
  }

  private func emit(_ file: RowFile) throws {
    let spilled = SpilledWindows(windows, context, file)
    try spilled.forEachRow { row, results in
      context.arena.reset()
      for (input, slot) in windows.captured { context.slots[slot] = row[input] }
      for (index, function) in windows.functions.enumerated() {
        let value = results[index]
        context.slots[function.slot] = value.isMissing ? .null : value
      }
      return try next.row()
    }
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
          try WindowEvaluation(function, partition, context, arena, emptiesArena: false).compute {
            values[partition.numbers[$0]] = $1
          }
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
