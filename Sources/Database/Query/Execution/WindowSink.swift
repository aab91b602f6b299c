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
  private let stream: WindowStream?
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
    stream = windows.isStreaming ? WindowStream(windows, context) : nil
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

  /// Rows whose numbers are counted need nothing else but the columns.
  override var direct: DirectRows? {
    guard let stream, stream.onlyNumbers, var rows = next.direct, rows.stream == nil else { return nil }
    for (column, slot) in rows.slots.enumerated() {
      if windows.functions.contains(where: { $0.slot == slot }) {
        rows.slots[column] = DirectRows.number
      } else if let captured = windows.captured.first(where: { $0.slot == slot }),
        let node = windows.inputs[captured.input] as? SlotNode
      {
        rows.slots[column] = node.slot
      } else {
        return nil
      }
    }
    rows.stream = stream
    return rows.areDifferent ? rows : nil
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
        rows.count
        * (windows.functions.count * MemoryLayout<QueryValue>.stride + WindowPartition.rowBytes
          + WindowPartitions.rowBytes)
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
      let partitions = WindowPartitions(windows.arrangements[number], rows, context)
      for (index, function) in windows.functions.enumerated() where function.arrangement == number {
        let values = arena.allocate(rows.count, of: QueryValue.self)
        try budget.check(.window)
        try partitions.forEach { partition in
          let numbers = partition.numbers
          try WindowEvaluation(function, partition, context, arena, emptiesArena: false).compute {
            values[numbers[$0]] = $1
          }
          try budget.check(.window)
        }
        results[index] = values
      }
    }
    let columns = windows.functions.indices.map { (slot: windows.functions[$0].slot, values: results[$0]) }
    let cancellation = context.cancellation
    for number in rows.indices {
      try cancellation.check()
      context.arena.reset()
      let row = rows[number]
      for (input, slot) in windows.captured { context.slots[slot] = row[input] }
      for column in columns {
        // A window gives no MISSING: an empty frame, and a missing value in it, are null.
        let value = column.values.map { $0[number] } ?? .null
        context.slots[column.slot] = value.isMissing ? .null : value
      }
      guard try next.row() else { return }
    }
  }
}

/// Functions that are computed as rows come in the order of their window.
final class WindowStream {
  /// A function, and where its result goes.
  private struct Step: BitwiseCopyable {
    enum Kind { case number, rank, denseRank, aggregate }
    var kind: Kind
    var slot: Int
  }

  /// A value of a row by which it is in a partition, or in the order.
  private struct Term: BitwiseCopyable {
    var input: Int
    var order: ValueOrder
  }

  private let windows: CompiledWindows
  private let context: EvaluationContext
  private let steps: UnsafeMutableBufferPointer<Step>
  /// The terms of the partition, and behind them those of the order, if a function asks for peers.
  private let terms: UnsafeMutableBufferPointer<Term>
  private let partitionTerms: Int
  /// The terms' values in the row before.
  private let last: UnsafeMutablePointer<QueryValue>
  private let keys = EvaluationArena(capacity: 256)
  @exclusivity(unchecked) private var arena: EvaluationArena
  @exclusivity(unchecked) private var states: [AggregateState]
  /// The position of the row in its partition, from 1. 0 before the first row.
  @exclusivity(unchecked) private var position: Int64 = 0
  @exclusivity(unchecked) private var rank: Int64 = 0
  @exclusivity(unchecked) private var denseRank: Int64 = 0
  /// Whether all functions number the rows, all of which are in one partition.
  let onlyNumbers: Bool

  init(_ windows: CompiledWindows, _ context: EvaluationContext) {
    self.windows = windows
    self.context = context
    steps = .allocate(capacity: windows.functions.count)
    var hasPeers = false
    for (index, function) in windows.functions.enumerated() {
      let kind: Step.Kind =
        switch function.computation {
        case .function(.rank): .rank
        case .function(.denseRank): .denseRank
        case .function: .number
        case .aggregate: .aggregate
        }
      if kind == .rank || kind == .denseRank { hasPeers = true }
      steps.initializeElement(at: index, to: Step(kind: kind, slot: function.slot))
    }
    let arrangement = windows.arrangements[0]
    let compared = arrangement.partition + (hasPeers ? arrangement.order : [])
    terms = .allocate(capacity: compared.count)
    for (index, term) in compared.enumerated() {
      terms.initializeElement(
        at: index, to: Term(input: term.input, order: context.order(term.collation)))
    }
    partitionTerms = arrangement.partition.count
    onlyNumbers = partitionTerms == 0 && steps.allSatisfy { $0.kind == .number }
    last = .allocate(compared.count, repeating: .missing)
    arena = EvaluationArena(capacity: 1024, context.budget)
    states = Array(repeating: AggregateState(), count: windows.functions.count)
  }

  deinit {
    steps.deallocate()
    terms.deallocate()
    last.deallocate()
  }

  /// Takes a row without its inputs, and returns its number. All functions number the rows.
  @inline(__always)
  func takeNumber() -> QueryValue {
    position &+= 1
    return .int(position)
  }

  /// How many of the first terms the row has in common with the row before.
  @inline(__always)
  private func commonTerms(_ row: UnsafePointer<QueryValue>) -> Int {
    for index in 0..<terms.count
    where !terms[index].order.areEqual(row[terms[index].input], last[index]) { return index }
    return terms.count
  }

  /// Takes the inputs of a row, and sets the slots of all results.
  func take(_ row: UnsafePointer<QueryValue>) throws {
    let common = position == 0 ? 0 : commonTerms(row)
    let isNew = position == 0 || common < partitionTerms
    if isNew {
      (position, rank, denseRank) = (0, 0, 0)
      if steps.contains(where: { $0.kind == .aggregate }) {
        arena = EvaluationArena(capacity: 1024, context.budget)
        states = Array(repeating: AggregateState(), count: windows.functions.count)
      }
    }
    position += 1
    if isNew || common < terms.count {
      rank = position
      denseRank += 1
      keys.reset()
      for index in 0..<terms.count {
        last[index] = keys.copy(row[terms[index].input], context.sharedKeys)
      }
    }
    for index in 0..<steps.count {
      let step = steps[index]
      switch step.kind {
      case .number: context.slots[step.slot] = .int(position)
      case .rank: context.slots[step.slot] = .int(rank)
      case .denseRank: context.slots[step.slot] = .int(denseRank)
      case .aggregate: context.slots[step.slot] = try aggregate(index, row)
      }
    }
    try context.check()
  }

  /// Adds a row to the aggregate of a function, and returns its result.
  private func aggregate(_ index: Int, _ row: UnsafePointer<QueryValue>) throws -> QueryValue {
    let function = windows.functions[index]
    guard case .aggregate(let aggregator) = function.computation else { return .null }
    if function.filter.map({ row[$0].truth == .true }) ?? true {
      if let argument = function.arguments.first {
        aggregator.add(row[argument], to: &states[index], context, arena)
      } else {
        states[index].countRow()
      }
    }
    let value = aggregator.result(of: states[index], context, arena)
    try context.budget.check(.window)
    return value.isMissing ? .null : value
  }
}
