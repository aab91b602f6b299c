import Storage

/// A set of rows, each with the number of times that it occurs.
private final class CountedRows {
  private let table: RowTable
  private let arena: EvaluationArena
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

  /// Adds a row. Returns whether it is new.
  ///
  /// - Throws: `memoryLimit`.
  func add(_ row: QueryValue) throws -> Bool {
    probe.pointee = row
    let hash = table.hash(probe)
    if let number = table.find(probe, hash) {
      counts[number] += 1
      return false
    }
    table.add(UnsafePointer(arena.copy(probe, count: 1, environment.sharedKeys)), hash)
    counts.append(1)
    environment.budget.take(MemoryLayout<Int>.stride)
    try environment.budget.check(clause)
    return true
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
    let seen = isAll ? nil : CountedRows(environment, .combination)
    func take(_ row: QueryValue) throws -> Bool {
      if let seen, try !seen.add(row) { return true }
      return try body(row)
    }
    if operation == .union {
      guard try left.forEachRow(captures, before, take) else { return false }
      return try right.forEachRow(captures, before, take)
    }
    let others = CountedRows(environment, .combination)
    _ = try right.forEachRow(captures, before) { row in
      _ = try others.add(row)
      return true
    }
    return try left.forEachRow(captures, before) { row in
      let isThere = isAll ? others.remove(row) : others.contains(row)
      return try isThere == (operation == .intersect) ? take(row) : true
    }
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
