import Storage

/// A set of rows, each with the number of times that it occurs.
private final class CountedRows {
  private let table: RowTable
  private var arena: EvaluationArena
  private let environment: SubqueryRuns.Environment
  private let probe: UnsafeMutablePointer<QueryValue>
  private var counts: [Int] = []
  private let clause: MemoryClause

  init(_ environment: SubqueryRuns.Environment, _ clause: MemoryClause) {
    self.environment = environment
    self.clause = clause
    arena = EvaluationArena(capacity: 4096, environment.budget)
    table = RowTable([ValueOrder(environment.sharedKeys)], environment.budget)
    probe = .allocate(1, repeating: .missing)
  }

  deinit {
    environment.budget.giveBack(counts.count * MemoryLayout<Int>.stride)
    probe.deallocate()
  }

  /// Adds a row, and looks whether memory holds it. Returns whether it is new.
  ///
  /// - Throws: `memoryLimit`.
  func add(_ row: QueryValue) throws -> Bool {
    let isNew = count(row)
    try environment.budget.check(clause)
    return isNew
  }

  /// Adds a row. Returns whether it is new.
  private func count(_ row: QueryValue) -> Bool {
    probe.pointee = row
    let hash = table.hash(probe)
    if let number = table.find(probe, hash) {
      counts[number] += 1
      return false
    }
    table.add(UnsafePointer(arena.copy(probe, count: 1, environment.sharedKeys)), hash)
    counts.append(1)
    environment.budget.take(MemoryLayout<Int>.stride)
    return true
  }

  /// Adds a row. True if all rows have to go to temporary files (`removeAll`).
  ///
  /// - Throws: `memoryLimit` or `memoryBusy`.
  func isFull(adding row: QueryValue) throws -> Bool {
    _ = count(row)
    return try environment.budget.mustSpill(
      arena.allocatedBytes + table.allocatedBytes + counts.count * MemoryLayout<Int>.stride, clause)
  }

  /// Calls `body` with each row and its count, and removes them.
  func removeAll(_ body: (QueryValue, Int) throws -> Void) throws {
    for number in counts.indices { try body(table.row(number).pointee, counts[number]) }
    environment.budget.giveBack(counts.count * MemoryLayout<Int>.stride)
    counts = []
    table.removeAll(keepingMemory: false)
    arena = EvaluationArena(capacity: 4096, environment.budget)
  }

  /// Whether a row occurs.
  func contains(_ row: QueryValue) -> Bool {
    probe.pointee = row
    return table.find(probe, table.hash(probe)) != nil
  }

  /// Takes one occurrence of a row away. Returns whether there was one.
  func remove(_ row: QueryValue) -> Bool {
    probe.pointee = row
    guard let number = table.find(probe, table.hash(probe)), counts[number] > 0 else { return false }
    counts[number] -= 1
    return true
  }
}

/// Gives the rows that UNION, INTERSECT or EXCEPT makes of two others.
final class CombinationRunner: RowRunner {
  private let left: RowRunner
  private let right: RowRunner
  private let operation: SetOperator
  private let isAll: Bool
  private let environment: SubqueryRuns.Environment

  init(
    _ left: RowRunner, _ operation: SetOperator, isAll: Bool, _ right: RowRunner,
    _ environment: SubqueryRuns.Environment
  ) {
    self.left = left
    self.right = right
    self.operation = operation
    self.isAll = isAll
    self.environment = environment
  }

  override func forEachRow(
    _ captures: UnsafePointer<QueryValue>, _ before: QueryValue, _ body: (QueryValue) throws -> Bool
  ) throws -> Bool {
    let keeping = RowKeeping(environment)
    let seen = isAll ? nil : DistinctRows(compared: 1, width: 1, keeping, .combination)
    func take(_ row: QueryValue) throws -> Bool {
      if let seen, try !withUnsafePointer(to: row, { try seen.insert($0) }) { return true }
      return try body(row)
    }
    func takePostponed() throws -> Bool { try seen?.forEachPostponed { try body($0.pointee) } ?? true }
    if operation == .union {
      guard try left.forEachRow(captures, before, take) else { return false }
      return try right.forEachRow(captures, before, take) && takePostponed()
    }
    let others = CountedRows(environment, .combination)
    var postponed: ComparedRows?
    _ = try right.forEachRow(captures, before) { row in
      if try others.isFull(adding: row) {
        let compared = postponed ?? ComparedRows(keeping)
        postponed = compared
        try others.removeAll(compared.add(right:count:))
      }
      return true
    }
    if let postponed {
      try others.removeAll(postponed.add(right:count:))
      _ = try left.forEachRow(captures, before) { row in
        try postponed.add(left: row)
        return true
      }
      return try postponed.forEach(operation, isAll: isAll, body)
    }
    let goesOn = try left.forEachRow(captures, before) { row in
      let isThere = isAll ? others.remove(row) : others.contains(row)
      return try isThere == (operation == .intersect) ? take(row) : true
    }
    return try goesOn && takePostponed()
  }
}

/// The rows of INTERSECT or EXCEPT when memory doesn't hold those of the right side. They are sorted together with those of the left side.
private final class ComparedRows {
  //   row := value isLeft number        the number of a row of the left side; how often one of the right side occurs

  private let keeping: RowKeeping
  private let sorter: RowSorter
  private let probe = UnsafeMutablePointer<QueryValue>.allocate(3, repeating: .missing)
  private var number: Int64 = 0

  init(_ keeping: RowKeeping) {
    self.keeping = keeping
    let order = ValueOrder(keeping.sharedKeys)
    // Those of the right side were added before, so they are before equal ones of the left side.
    sorter = RowSorter(width: 3, keeping, .combination) { order.compare($0[0], $1[0]) }
  }

  deinit { probe.deallocate() }

  private func add(_ row: QueryValue, isLeft: Bool, _ number: Int64) throws {
    probe[0] = row
    probe[1] = .bool(isLeft)
    probe[2] = .int(number)
    try sorter.add(probe)
  }

  func add(right row: QueryValue, count: Int) throws { try add(row, isLeft: false, Int64(count)) }

  func add(left row: QueryValue) throws {
    try add(row, isLeft: true, number)
    number += 1
  }

  /// Calls `body` with the rows of the left side that are in the result, in the order in which they came.
  func forEach(
    _ operation: SetOperator, isAll: Bool, _ body: (QueryValue) throws -> Bool
  ) throws -> Bool {
    let order = ValueOrder(keeping.sharedKeys)
    let found = RowSorter(width: 2, keeping, .combination) { compareNumbers($0[1], $1[1]) }
    let rows = GroupedRows(try sorter.sorted(), by: [.init(place: 0, order: order)], keeping)
    while try rows.nextGroup() != nil {
      var count: Int64 = 0
      var isTaken = false
      while let row = try rows.next() {
        guard case .bool(let isLeft) = row[1], case .int(let number) = row[2] else {
          throw keeping.files.damaged
        }
        guard isLeft else {
          count += number
          continue
        }
        let isThere = count > 0
        if isAll { count -= 1 }
        guard isThere == (operation == .intersect), isAll || !isTaken else { continue }
        isTaken = true
        probe[0] = row[0]
        probe[1] = .int(number)
        try found.add(probe)
      }
    }
    return try found.sorted().forEach { try body($0.pointee) }
  }
}

/// Gives the rows of a recursive query: those of its first part, then what its second part makes of the rows
/// that came last, until it makes no more.
final class RecursionRunner: RowRunner {
  private let first: RowRunner
  private let next: RowRunner
  private let isAll: Bool
  private let bounds: RecursionBounds
  private let environment: SubqueryRuns.Environment

  init(
    _ first: RowRunner, _ next: RowRunner, isAll: Bool, _ bounds: RecursionBounds,
    _ environment: SubqueryRuns.Environment
  ) {
    self.first = first
    self.next = next
    self.isAll = isAll
    self.bounds = bounds
    self.environment = environment
  }

  override func forEachRow(
    _ captures: UnsafePointer<QueryValue>, _ before: QueryValue, _ body: (QueryValue) throws -> Bool
  ) throws -> Bool {
    let seen = isAll ? nil : CountedRows(environment, .recursion)
    var arena = EvaluationArena(capacity: 1024, environment.budget)
    var found: [QueryValue] = []
    var count = 0
    var goesOn = true
    func take(_ row: QueryValue) throws -> Bool {
      if let seen, try !seen.add(row) { return true }
      if let limit = bounds.rows, count >= limit {
        goesOn = false
        return false
      }
      count += 1
      found.append(arena.copy(row, environment.sharedKeys))
      try environment.budget.check(.recursion)
      goesOn = try body(row)
      return goesOn
    }
    guard bounds.rows != 0 else { return true }
    _ = try first.forEachRow(captures, .missing, take)
    var level = 0
    while goesOn, !found.isEmpty, level < bounds.levels ?? .max {
      level += 1
      guard level <= RecursionBounds.mostLevels else {
        throw QueryError(
          .evaluation,
          "a recursive query still finds rows after \(RecursionBounds.mostLevels) steps; UNION without ALL ends"
            + " at rows that were there before, and OPTIONS {\"levels\": …} ends after so many steps")
      }
      try environment.cancellation.check()
      // The rows of the step before stay until this step is done.
      let last = arena
      let rows = last.array(found)
      arena = EvaluationArena(capacity: 1024, environment.budget)
      found = []
      try withExtendedLifetime(last) { _ = try next.forEachRow(captures, rows, take) }
    }
    if let limit = bounds.rows, count >= limit { return true }
    return goesOn
  }
}
