import Documents
import Fleece
import Storage

/// The inner queries of one run of a query. It belongs to the run's evaluation context, and is used by the
/// thread of that run.
final class SubqueryRuns {
  /// What the runs of inner queries share with the run of the outer one.
  struct Environment {
    let snapshot: DocumentSnapshot
    let sharedKeys: SharedKeys
    let parameters: [String: JSONValue]
    let cancellation: QueryCancellation
    let budget: QueryMemoryBudget
  }

  /// The kept rows of one inner query.
  private final class Kept {
    let arena: EvaluationArena
    let value: QueryValue
    /// The rows for IN, once it has asked.
    var set: RowSet?

    init(_ arena: EvaluationArena, _ value: QueryValue) {
      self.arena = arena
      self.value = value
    }
  }

  /// The rows of a query that isn't evaluated for each outer row, to look values up in.
  struct RowSet {
    let values: ValueSet
    let isEmpty: Bool
    let hasNull: Bool
  }

  private let compiled: [CompiledSubquery]
  private let environment: Environment
  private var runners: [RowRunner?]
  private var kept: [Kept?]

  init(_ compiled: [CompiledSubquery], _ environment: Environment) {
    self.compiled = compiled
    self.environment = environment
    runners = Array(repeating: nil, count: compiled.count)
    kept = Array(repeating: nil, count: compiled.count)
  }

  /// Forgets what depends on values of a query around the outer one. A query without captures depends on
  /// nothing but the snapshot and the parameters.
  func beginAgain(keeping isIndependent: (Int) -> Bool) {
    for number in kept.indices where !isIndependent(number) { kept[number] = nil }
  }

  /// The value of an inner query: whether it has rows, or the array of its rows. With `isKept` it is computed
  /// once in the run. Otherwise it is in the arena of `context`.
  func value(
    _ number: Int, _ captures: UnsafePointer<QueryValue>, _ context: EvaluationContext, isKept: Bool
  ) throws -> QueryValue {
    if let known = kept[number] { return known.value }
    if case .exists = compiled[number].form {
      var found = false
      _ = try forEachRow(number, captures, needsValues: false) { _ in
        found = true
        return false
      }
      return .bool(found)
    }
    guard isKept else { return try array(number, captures, context.arena) }
    let arena = EvaluationArena(capacity: 1024, environment.budget)
    let value = try array(number, captures, arena)
    kept[number] = Kept(arena, value)
    return value
  }

  /// The rows of an inner query as a set. It is computed once in the run.
  func set(
    _ number: Int, _ captures: UnsafePointer<QueryValue>, _ context: EvaluationContext
  ) throws -> RowSet {
    if let known = kept[number]?.set { return known }
    let rows = try value(number, captures, context, isKept: true)
    let values = ValueSet(minimumCapacity: min(rows.count, 1 << 20), environment.budget)
    let order = context.order(nil)
    var hasNull = false
    rows.forEachItem { row in
      if row.isUnknown { hasNull = true } else { values.insert(row, order) }
      return true
    }
    try environment.budget.check(.subquery)
    let set = RowSet(values: values, isEmpty: rows.count == 0, hasNull: hasNull)
    kept[number]?.set = set
    return set
  }

  /// Calls `body` with each row of an inner query, until it returns false. Returns the last result of `body`, or
  /// true. A row is valid until `body` returns. Unless `needsValues`, the rows may have any value.
  func forEachRow(
    _ number: Int, _ captures: UnsafePointer<QueryValue>, needsValues: Bool,
    _ body: (QueryValue) throws -> Bool
  ) throws -> Bool {
    let runner = try runners[number] ?? RowRunner.make(compiled[number].rows, environment)
    // While it runs, the same query may be asked for again. That takes a runner of its own.
    runners[number] = nil
    defer { runners[number] = runner }
    runner.needsValues = needsValues
    return try runner.forEachRow(captures, .missing, body)
  }

  private func array(
    _ number: Int, _ captures: UnsafePointer<QueryValue>, _ arena: EvaluationArena
  ) throws -> QueryValue {
    var values: [QueryValue] = []
    _ = try forEachRow(number, captures, needsValues: true) { row in
      values.append(arena.copy(row, environment.sharedKeys))
      try environment.budget.check(.subquery)
      return true
    }
    return arena.array(values)
  }
}

/// Gives the rows of an inner query, any number of times.
class RowRunner {
  /// Whether rows need their values. Without, they may have any.
  final var needsValues = true

  /// Calls `body` with each row until it returns false. Returns the last result of `body`, or true. `captures`
  /// are the values of the outer query, and `before` the rows of the last step of a recursive query.
  func forEachRow(
    _ captures: UnsafePointer<QueryValue>, _ before: QueryValue, _ body: (QueryValue) throws -> Bool
  ) throws -> Bool { true }

  static func make(_ rows: CompiledRows, _ environment: SubqueryRuns.Environment) throws -> RowRunner {
    switch rows {
    case .query(let query): try QueryRunner(query, environment)
    case .combined(let left, let operation, let isAll, let right):
      CombinationRunner(
        try make(left, environment), operation, isAll: isAll, try make(right, environment), environment)
    case .recursive(let first, let next, let isAll, let bounds):
      RecursionRunner(
        try make(first, environment), try make(next, environment), isAll: isAll, bounds, environment)
    }
  }
}

/// Gives the rows of one query.
final class QueryRunner: RowRunner {
  private let compiled: CompiledQuery
  private let context: EvaluationContext
  private let execution: QueryExecution
  /// The parameters that are captures, and the numbers of these.
  private var captured: [(parameter: Int, capture: Int)] = []
  private var recursion: Int?
  private let shape: RowShape
  private let isRaw: Bool

  init(_ compiled: CompiledQuery, _ environment: SubqueryRuns.Environment) throws {
    self.compiled = compiled
    isRaw = compiled.plan.query.isRaw
    shape = RowShape(compiled.columnNames.map { compiled.program.constants.copy($0) })
    for (parameter, name) in compiled.program.parameterNames.enumerated() where InternalName.isCapture(name) {
      if name == InternalName.recursion {
        recursion = parameter
      } else if let number = InternalName.captureNumber(name) {
        captured.append((parameter, number))
      }
    }
    let resources = try RunResources(compiled)
    context = resources.context
    try QueryExecution.begin(compiled, context, environment)
    resources.begin(nil)
    execution = try QueryExecution(
      compiled, resources, environment.snapshot, environment.sharedKeys, RowSink(), environment.cancellation)
  }

  deinit { QueryExecution.end(context) }

  override func forEachRow(
    _ captures: UnsafePointer<QueryValue>, _ before: QueryValue, _ body: (QueryValue) throws -> Bool
  ) throws -> Bool {
    for (parameter, capture) in captured { context.parameters[parameter] = captures[capture] }
    if let recursion { context.parameters[recursion] = before }
    context.arena.reset()
    context.subqueries?.beginAgain { compiled.plan.query.subqueries[$0].captureCount == 0 }
    var goesOn = true
    let needsValues = needsValues
    try withoutActuallyEscaping(body) { body in
      try execution.runAgain(
        .receiver { [shape, isRaw, context] values in
          if isRaw || !needsValues {
            goesOn = try body(values[0])
            return goesOn
          }
          return try context.arena.scope {
            goesOn = try body(shape.object(of: values, in: context.arena))
            return goesOn
          }
        })
    }
    return goesOn
  }
}

/// The columns of a query in the order in which an object has them.
private final class RowShape {
  private struct Column: BitwiseCopyable {
    var name: TextSlice
    var number: Int
    /// Whether the column before it has the same name.
    var isRepeated: Bool
  }

  private let columns: UnsafeMutableBufferPointer<Column>

  /// - Parameter names: their bytes have to live as long as this object.
  init(_ names: [TextSlice]) {
    // Of equal names, the first one stays first.
    let order = names.indices.sorted { left, right in
      let order = names[left].compare(names[right])
      return order != 0 ? order < 0 : left < right
    }
    columns = .allocate(capacity: names.count)
    for (place, number) in order.enumerated() {
      let isRepeated = place > 0 && names[order[place - 1]].equals(names[number])
      columns.initializeElement(
        at: place, to: Column(name: names[number], number: number, isRepeated: isRepeated))
    }
  }

  deinit { columns.deallocate() }

  /// Makes an object of a row. Missing values are left out, and of several columns with the same name the first one is kept.
  @inline(__always)
  func object(of values: UnsafePointer<QueryValue>, in arena: EvaluationArena) -> QueryValue {
    let members = arena.allocate(columns.count, of: ComputedObject.Member.self)
    var count = 0
    for place in 0..<columns.count {
      let column = columns[place]
      let value = values[column.number]
      if value.isMissing { continue }
      if column.isRepeated, count > 0, members[count - 1].name.equals(column.name) { continue }
      members[count] = ComputedObject.Member(name: column.name, value: value)
      count += 1
    }
    return arena.object(inOrder: members, count)
  }
}

extension InternalName {
  /// The number of a capture by the name of its parameter.
  static func captureNumber(_ name: ByteString) -> Int? { Int(name.string.dropFirst(6)) }
}
