import Fleece

/// Sorts rows: in memory while they fit, else with temporary files. Equal rows stay in the order in which they came. One thread uses it.
///
/// ```swift
/// let sorter = RowSorter(width: 2, RowKeeping(context), .orderBy) { order.compare($0[0], $1[0]) }
/// try sorter.add(values)                        // copies them
/// _ = try sorter.sorted().forEach { row in … }
/// ```
final class RowSorter {
  private let width: Int
  private let keeping: RowKeeping
  private let clause: MemoryClause
  private let compare: RowComparison
  private var arena: EvaluationArena
  private var rows: [UnsafeMutablePointer<QueryValue>] = []
  private var runs: SortedRuns?
  private static let rowBytes = MemoryLayout<UnsafeMutablePointer<QueryValue>>.stride

  /// - Parameter width: the number of values of a row.
  init(width: Int, _ keeping: RowKeeping, _ clause: MemoryClause, _ compare: @escaping RowComparison) {
    self.width = width
    self.keeping = keeping
    self.clause = clause
    self.compare = compare
    arena = EvaluationArena(capacity: 1024, keeping.budget)
  }

  deinit { keeping.budget.giveBack(rows.count * Self.rowBytes) }

  /// Adds a copy of a row.
  ///
  /// - Throws: `memoryLimit`, `diskLimit`, `memoryBusy`, or `StorageError` of a temporary file.
  func add(_ values: UnsafePointer<QueryValue>) throws {
    rows.append(arena.copy(values, count: width, keeping.sharedKeys))
    keeping.budget.take(Self.rowBytes)
    if try keeping.budget.mustSpill(arena.allocatedBytes + rows.count * Self.rowBytes, clause) { try spill() }
  }

  private func sort() throws {
    let (compare, cancellation) = (compare, keeping.cancellation)
    try rows.sort {
      try cancellation.check()
      return compare($0, $1) < 0
    }
  }

  private func spill() throws {
    try sort()
    let runs = try self.runs ?? SortedRuns(width: width, keeping, compare)
    self.runs = runs
    try runs.add { file in
      for row in rows { try file.append(row, keeping.sharedKeys) }
    }
    keeping.budget.giveBack(rows.count * Self.rowBytes)
    rows = []
    arena = EvaluationArena(capacity: 1024, keeping.budget)
  }

  /// All rows in their order. No row may be added after, and the rows live no longer than the sorter.
  func sorted() throws -> OrderedRows {
    guard let runs else {
      try sort()
      return RowsInMemory(self)
    }
    if !rows.isEmpty { try spill() }
    return try runs.merged()
  }

  /// The sorted rows of a sorter that wrote none.
  private final class RowsInMemory: OrderedRows {
    private let sorter: RowSorter
    private var position = 0

    init(_ sorter: RowSorter) { self.sorter = sorter }

    override func next() throws -> UnsafePointer<QueryValue>? {
      guard position < sorter.rows.count else { return nil }
      try sorter.keeping.cancellation.check()
      defer { position += 1 }
      return UnsafePointer(sorter.rows[position])
    }
  }
}
