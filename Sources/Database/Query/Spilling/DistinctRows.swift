import Fleece

/// The different rows so far: for DISTINCT, UNION, and IDs that several ways find.
///
/// When memory doesn't hold them all, those that came first stay in it, and tell at once whether a row is one of them. All other rows are
/// postponed: they go to temporary files, and the different ones come at the end, in the order in which they came.
final class DistinctRows {
  private let table: RowTable
  private var arena: EvaluationArena
  private let orders: [ValueOrder]
  private let width: Int
  private let sharedKeys: SharedKeys
  /// Nil between two runs of a query.
  @exclusivity(unchecked) private var keeping: RowKeeping!
  private let clause: MemoryClause
  private var late: RowSorter?
  /// Whether rows were postponed.
  private var wasLate = false
  private let probe: UnsafeMutablePointer<QueryValue>
  private var lateCount: Int64 = 0

  /// - Parameters:
  ///   - compared: how many of the first values of a row are compared.
  ///   - width: the number of values of a row. Those that aren't compared are given back with a postponed row.
  init(compared: Int, width: Int, _ keeping: RowKeeping, _ clause: MemoryClause) {
    self.width = width
    self.keeping = keeping
    sharedKeys = keeping.sharedKeys
    self.clause = clause
    arena = EvaluationArena(capacity: 4_096, keeping.budget)
    orders = Array(repeating: ValueOrder(keeping.sharedKeys), count: compared)
    table = RowTable(orders, keeping.budget)
    probe = .allocate(width + 1, repeating: .missing)
  }

  deinit { probe.deallocate() }

  // MARK: Reuse

  /// Begins another run without any rows. Returns false if it can't: after rows were postponed, or when the
  /// names of members are others.
  func begin(_ keeping: RowKeeping) -> Bool {
    guard !wasLate, keeping.sharedKeys === sharedKeys else { return false }
    self.keeping = keeping
    arena.begin(keeping.budget)
    table.begin(keeping.budget)
    return true
  }

  /// Ends a run. Returns false if it isn't worth keeping for another one, or can't be kept.
  func end() -> Bool {
    guard !wasLate, arena.allocatedBytes <= Self.keptBytes else { return false }
    arena.begin(nil)
    table.begin(nil)
    keeping = nil
    return true
  }

  /// Kept rows may have had so many bytes at most.
  private static let keptBytes = 16 << 10

  // MARK: Rows

  /// Whether rows that aren't in memory are postponed. Then all values of a row are kept, else only those that are compared.
  var isPostponing: Bool { late != nil }

  /// Adds a copy of a row. True if it is new. False if an equal row came before, or if the row is postponed.
  ///
  /// - Throws: `memoryLimit`, `diskLimit`, `memoryBusy`, or `StorageError` of a temporary file.
  func insert(_ values: UnsafePointer<QueryValue>) throws -> Bool {
    let hash = table.hash(values)
    if table.find(values, hash) != nil { return false }
    if let late {
      for index in 0..<width { probe[index] = values[index] }
      probe[width] = .int(lateCount)
      lateCount += 1
      try late.add(probe)
      return false
    }
    table.add(arena.copy(values, count: orders.count, sharedKeys), hash)
    if try keeping.budget.mustSpill(arena.allocatedBytes + table.allocatedBytes, clause) { postpone() }
    return true
  }

  private func postpone() {
    wasLate = true
    late = RowSorter(width: width + 1, keeping, clause) { [orders] left, right in
      for index in orders.indices {
        let order = orders[index].compare(left[index], right[index])
        if order != 0 { return order }
      }
      return 0
    }
  }

  /// Calls `body` with each postponed row that is new, until it returns false. Returns the last result of `body`, or true. No row may be
  /// inserted after.
  func forEachPostponed(_ body: (UnsafePointer<QueryValue>) throws -> Bool) throws -> Bool {
    guard isPostponing else { return true }
    // What is in memory isn't needed any more.
    table.removeAll(keepingMemory: false)
    arena = EvaluationArena(capacity: 64)
    return try newRows().sorted().forEach(body)
  }

  /// The first one of equal rows that were postponed, by the order in which they came. The files of the others are gone afterwards.
  private func newRows() throws -> RowSorter {
    let place = width
    let new = RowSorter(width: width + 1, keeping, clause) { left, right in
      compareNumbers(left[place], right[place])
    }
    guard let late else { return new }
    let keys = orders.enumerated().map { GroupedRows.Key(place: $0, order: $1) }
    let rows = GroupedRows(try late.sorted(), by: keys, keeping)
    while let first = try rows.nextGroup() { try new.add(first) }
    self.late = nil
    return new
  }

  /// Calls `body` with each row in the order in which they came, until it returns false; with the compared values only. Returns the last
  /// result of `body`, or true. No row may be inserted after.
  func forEach(_ body: (UnsafePointer<QueryValue>) throws -> Bool) throws -> Bool {
    for number in 0..<table.count where try !body(table.row(number)) { return false }
    return try forEachPostponed(body)
  }
}
