import Fleece

/// Sorts rows. Without LIMIT it keeps all rows. With LIMIT it keeps only the needed ones in a heap, and
/// refuses other rows without copying them. What memory doesn't hold is sorted in parts, which are merged at the end.
///
/// A kept row is a copy of its columns, followed by its sort keys. Rows with equal keys keep their order of
/// arrival.
final class SortingSink: RowSink {
  private struct Row: BitwiseCopyable {
    var values: UnsafeMutablePointer<QueryValue>
    /// The position in the order of arrival.
    var number: Int
  }

  private let context: EvaluationContext
  private let columns: [CompiledExpression]
  private let orderings: [CompiledOrdering]
  private let orders: [ValueOrder]
  private let window: RowWindow
  private let needed: Int?
  private let output: RowOutput
  private let distinct: DistinctRows?
  private var arena: EvaluationArena
  private var rows: [Row] = []
  private var number = 0
  /// The sorted parts in temporary files.
  private var runs: SortedRuns?
  private let budget: QueryMemoryBudget
  private static let rowBytes = MemoryLayout<Row>.stride
  /// The size of the arena, in bytes, above which it is compacted.
  private var compactionLimit: Int
  private let leastCompacted: Int
  private let probe: UnsafeMutablePointer<QueryValue>

  init(
    _ compiled: CompiledQuery, _ context: EvaluationContext, _ window: RowWindow,
    _ output: RowOutput
  ) {
    self.context = context
    budget = context.budget
    leastCompacted = min(1 << 20, context.budget.limit / 4)
    compactionLimit = leastCompacted
    arena = EvaluationArena(capacity: 16_384, budget)
    columns = compiled.columns
    orderings = compiled.orderBy
    orders = compiled.orderBy.map { context.order($0.collation) }
    self.window = window
    needed = window.needed
    self.output = output
    distinct = DistinctRows(compiled, context, with: compiled.orderBy.count)
    probe = .allocate(compiled.columns.count + compiled.orderBy.count, repeating: .missing)
  }

  deinit {
    probe.deallocate()
    budget.giveBack(rows.count * Self.rowBytes)
  }

  override func row() throws -> Bool {
    if needed == 0 { return false }
    if let distinct {
      for index in columns.indices { probe[index] = columns[index].evaluate(context) }
      if distinct.isPostponing { evaluateKeys() }
      try context.check()
      guard try distinct.insert(probe) else { return true }
    }
    evaluateKeys()
    return try take()
  }

  private func evaluateKeys() {
    for index in orderings.indices {
      probe[columns.count + index] = orderings[index].expression.evaluate(context)
    }
  }

  /// Takes the row whose keys are in `probe`; with DISTINCT its columns too.
  private func take() throws -> Bool {
    let width = columns.count
    number += 1
    if let needed, rows.count == needed {
      // The top of the heap is the last of the rows that are kept.
      guard precedes(probe + width, number, rows[0].values + width, rows[0].number) else {
        try context.check()
        return true
      }
      try keep(isProjected: distinct != nil)
      rows[0] = Row(values: last, number: number)
      siftDown(0)
      if arena.allocatedBytes > compactionLimit { compact() }
      if try mustSpill() { try spill() }
      return true
    }
    try keep(isProjected: distinct != nil)
    rows.append(Row(values: last, number: number))
    budget.take(Self.rowBytes)
    if needed != nil { siftUp(rows.count - 1) }
    if try mustSpill() { try spill() }
    return true
  }

  @inline(__always)
  private func mustSpill() throws -> Bool {
    try budget.mustSpill(arena.allocatedBytes + rows.count * Self.rowBytes, .orderBy)
  }

  /// Writes the kept rows to a temporary file, in their order.
  private func spill() throws {
    try sort()
    let width = columns.count
    let runs =
      try self.runs
      ?? SortedRuns(width: width + orderings.count, RowKeeping(context)) { [orders, orderings] in
        for index in orders.indices {
          let order = orders[index].compare($0[width + index], $1[width + index])
          if order != 0 { return orderings[index].isDescending ? -order : order }
        }
        return 0
      }
    self.runs = runs
    try runs.add { file in
      for row in rows { try file.append(row.values, context.sharedKeys) }
    }
    budget.giveBack(rows.count * Self.rowBytes)
    rows = []
    arena = EvaluationArena(capacity: 16_384, budget)
    compactionLimit = leastCompacted
  }

  private func sort() throws {
    let cancellation = context.cancellation
    try rows.sort {
      try cancellation.check()
      return precedes($0, $1)
    }
  }

  private var last: UnsafeMutablePointer<QueryValue> = UnsafeMutablePointer(bitPattern: 8).unsafelyUnwrapped

  /// Copies the current row, whose keys are in `probe`, to `last`.
  private func keep(isProjected: Bool) throws {
    let width = columns.count
    let values = arena.allocate(width + orderings.count, of: QueryValue.self)
    let sharedKeys = context.sharedKeys
    for index in 0..<width {
      values[index] = arena.copy(
        isProjected ? probe[index] : columns[index].evaluate(context), sharedKeys)
    }
    for (index, ordering) in orderings.enumerated() {
      if let column = ordering.column {
        values[width + index] = values[column]
      } else {
        values[width + index] = arena.copy(probe[width + index], sharedKeys)
      }
    }
    try context.check()
    last = values
  }

  /// Copies the kept rows to a fresh arena, and so frees the memory of dropped rows.
  private func compact() {
    let fresh = EvaluationArena(capacity: 16_384, budget)
    let width = columns.count + orderings.count
    for index in rows.indices {
      rows[index].values = fresh.copy(rows[index].values, count: width, context.sharedKeys)
    }
    arena = fresh
    compactionLimit = max(leastCompacted, fresh.allocatedBytes * 2)
  }

  @inline(__always)
  private func precedes(
    _ left: UnsafePointer<QueryValue>, _ leftNumber: Int, _ right: UnsafePointer<QueryValue>,
    _ rightNumber: Int
  ) -> Bool {
    for index in orders.indices {
      let order = orders[index].compare(left[index], right[index])
      if order != 0 { return (order < 0) != orderings[index].isDescending }
    }
    return leftNumber < rightNumber
  }

  private func precedes(_ left: Row, _ right: Row) -> Bool {
    let width = columns.count
    return precedes(left.values + width, left.number, right.values + width, right.number)
  }

  // MARK: The heap, with the last row on top

  private func siftUp(_ start: Int) {
    var child = start
    while child > 0 {
      let parent = (child - 1) / 2
      guard precedes(rows[parent], rows[child]) else { return }
      rows.swapAt(parent, child)
      child = parent
    }
  }

  private func siftDown(_ start: Int) {
    var parent = start
    while true {
      var greatest = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < rows.count && precedes(rows[greatest], rows[child]) {
        greatest = child
      }
      guard greatest != parent else { return }
      rows.swapAt(parent, greatest)
      parent = greatest
    }
  }

  override func finish() throws {
    if let distinct, needed != 0 {
      _ = try distinct.forEachPostponed { row in
        probe.update(from: row, count: columns.count + orderings.count)
        return try take()
      }
    }
    if let runs {
      try spill()
      return try put(runs.merged())
    }
    try sort()
    let cancellation = context.cancellation
    let end = min(rows.count, needed ?? .max)
    guard window.offset < end else { return }
    for row in rows[window.offset..<end] {
      try cancellation.check()
      guard try output.take(row.values, context.sharedKeys) else { return }
    }
  }

  /// Puts out the rows that are wanted.
  private func put(_ rows: OrderedRows) throws {
    var position = 0
    while needed.map({ position < $0 }) ?? true, let row = try rows.next() {
      defer { position += 1 }
      if position < window.offset { continue }
      guard try output.take(row, context.sharedKeys) else { return }
    }
  }
}
