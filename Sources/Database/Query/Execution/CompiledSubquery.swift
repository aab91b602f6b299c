import Storage

/// A query inside another one, with its expressions compiled.
final class CompiledSubquery: @unchecked Sendable {
  let rows: CompiledRows
  let form: ResolvedSubquery.Form
  let isShared: Bool
  /// The slot for the result of an EXISTS that is computed before the rows. Nil for other queries.
  let slot: Int?

  /// Compiles an inner query. The outer program gets its parameters, and the outer scope a slot if needed.
  init(
    _ subquery: ResolvedSubquery, _ number: Int, _ context: PlanningContext, _ program: EvaluationProgram,
    _ scope: inout PlanScope
  ) throws(QueryError) {
    rows = try CompiledRows(subquery.rows, context)
    form = subquery.form
    isShared = subquery.isShared
    for query in rows.queries {
      // A subquery has the parameters of the whole query.
      for name in query.program.parameterNames where !InternalName.isCapture(name) {
        _ = program.parameter(name)
      }
    }
    if case .exists = form, subquery.captureCount == 0 {
      slot = scope.addSlot(InternalName.reference(InternalName.subquery(number)))
    } else {
      slot = nil
    }
  }

  /// The lines of EXPLAIN for this query.
  func explained(_ number: Int) -> [String] {
    let name = slot != nil ? "EXISTS" : "QUERY\(number + 1)"
    return rows.explained.enumerated().map { index, line in index == 0 ? "\(name): \(line)" : "   \(line)" }
  }
}

/// Where rows of an inner query come from, compiled.
indirect enum CompiledRows {
  case query(CompiledQuery)
  case combined(CompiledRows, SetOperator, isAll: Bool, CompiledRows)
  case recursive(first: CompiledRows, next: CompiledRows, isAll: Bool, RecursionBounds)

  init(_ rows: ResolvedRows, _ context: PlanningContext) throws(QueryError) {
    switch rows {
    case .query(let query): self = .query(try CompiledQuery(Planner.plan(query, context), context))
    case .combined(let left, let operation, let isAll, let right):
      self = .combined(
        try CompiledRows(left, context), operation, isAll: isAll, try CompiledRows(right, context))
    case .recursive(let first, let next, let isAll, let bounds):
      self = .recursive(
        first: try CompiledRows(first, context), next: try CompiledRows(next, context), isAll: isAll, bounds)
    }
  }

  var queries: [CompiledQuery] {
    switch self {
    case .query(let query): [query]
    case .combined(let left, _, _, let right): left.queries + right.queries
    case .recursive(let first, let next, _, _): first.queries + next.queries
    }
  }

  fileprivate var explained: [String] {
    switch self {
    case .query(let query): QueryExplanation(query, nil).lines
    case .combined(let left, let operation, let isAll, let right):
      CompiledRows.tree(operation.rawValue + (isAll ? " ALL" : ", by hash"), left, right)
    case .recursive(let first, let next, let isAll, _):
      CompiledRows.tree(
        "Again and again, until there is no new row" + (isAll ? "" : ", by hash"), first, next)
    }
  }

  private static func tree(_ name: String, _ left: CompiledRows, _ right: CompiledRows) -> [String] {
    [name]
      + left.explained.enumerated().map { ($0 == 0 ? "├─ " : "│  ") + $1 }
      + right.explained.enumerated().map { ($0 == 0 ? "└─ " : "   ") + $1 }
  }
}

extension PlanScope {
  func compile(
    subquery number: Int, _ captures: [CompiledExpression], isConstant: Bool
  ) throws(QueryError) -> CompiledExpression {
    guard subqueries.indices.contains(number) else {
      throw QueryError(.unsupported, "a query inside parentheses can't be used here")
    }
    return SubqueryNode(
      number, captures, isConstant: isConstant, isShared: subqueries[number].isShared)
  }
}

/// The value of an inner query.
final class SubqueryNode: CompiledExpression, @unchecked Sendable {
  let number: Int
  let isShared: Bool
  private let captures: [CompiledExpression]
  private let isConstant: Bool

  /// Whether the rows are the same for all rows of the outer query.
  var isKept: Bool { isConstant || isShared }

  init(_ number: Int, _ captures: [CompiledExpression], isConstant: Bool, isShared: Bool) {
    self.number = number
    self.captures = captures
    self.isConstant = isConstant
    self.isShared = isShared
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    guard context.failure == nil, let subqueries = context.subqueries else { return .missing }
    do {
      return try subqueries.value(number, values(context), context, isKept: isKept)
    } catch { return context.fail(error) }
  }

  /// Calls `body` with each row, until it returns false. Returns the last result of `body`, or true. Unless `needsValues`, the rows may have
  /// any value.
  func forEachRow(
    _ context: EvaluationContext, needsValues: Bool, _ body: (QueryValue) throws -> Bool
  ) throws -> Bool {
    guard let subqueries = context.subqueries else { return true }
    let captures = values(context)
    try context.check()
    return try subqueries.forEachRow(number, captures, needsValues: needsValues, body)
  }

  /// The rows as a set. Nil after an error.
  func set(_ context: EvaluationContext) -> SubqueryRuns.RowSet? {
    guard context.failure == nil, let subqueries = context.subqueries else { return nil }
    do { return try subqueries.set(number, values(context), context) } catch {
      context.fail(error)
      return nil
    }
  }

  private func values(_ context: EvaluationContext) -> UnsafePointer<QueryValue> {
    let values = context.arena.allocate(max(1, captures.count), of: QueryValue.self)
    for index in captures.indices { values[index] = captures[index].evaluate(context) }
    return UnsafePointer(values)
  }
}

/// `x IN (SELECT …)` with a query that is computed once.
final class RowsInNode: ConditionNode, @unchecked Sendable {
  private let operand: CompiledExpression
  private let rows: SubqueryNode
  private let negated: Bool

  init(_ operand: CompiledExpression, _ rows: SubqueryNode, negated: Bool) {
    self.operand = operand
    self.rows = rows
    self.negated = negated
  }

  override func truth(_ context: EvaluationContext) -> Truth {
    let value = operand.evaluate(context)
    if value.isMissing { return .missing }
    guard let set = rows.set(context) else { return .missing }
    var found: Truth = set.hasNull ? .null : .false
    if case .null = value {
      found = set.isEmpty ? .false : .null
    } else if set.values.contains(value, context.order(nil)) {
      found = .true
    }
    return negated ? found.negated : found
  }
}

/// An object without some of its members.
final class ExclusionNode: CompiledExpression, @unchecked Sendable {
  private let value: CompiledExpression
  private let paths: [[TextSlice]]
  /// Owns the names.
  private let owner: EvaluationProgram

  init(_ value: CompiledExpression, _ paths: [QueryExpression], _ program: EvaluationProgram) {
    self.value = value
    owner = program
    self.paths = paths.map { path in
      guard case .array(let names) = path else { return [] }
      return names.compactMap {
        if case .literal(.string(let name)) = $0 { program.constants.copy(name) } else { nil }
      }
    }
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    without(value.evaluate(context), paths[...].map { $0[...] }, context)
  }

  private func without(
    _ value: QueryValue, _ paths: [ArraySlice<TextSlice>], _ context: EvaluationContext
  ) -> QueryValue {
    guard value.type == .object, !paths.isEmpty else { return value }
    let members = context.arena.allocate(value.count, of: ComputedObject.Member.self)
    var count = 0
    value.forEachMember(context.sharedKeys) { name, member in
      let about = paths.filter { $0.first?.equals(name) ?? false }
      if about.contains(where: { $0.count == 1 }) { return }
      members[count] = ComputedObject.Member(
        name: name, value: without(member, about.map { $0.dropFirst() }, context))
      count += 1
    }
    return context.arena.object(members, count)
  }
}
