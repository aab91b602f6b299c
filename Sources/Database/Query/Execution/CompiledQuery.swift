import Storage

/// A plan with its expressions compiled. It is made once, and can be run many times, on any thread.
final class CompiledQuery: @unchecked Sendable {
  let plan: QueryPlan
  let program: EvaluationProgram
  let sourceCount: Int
  let slotCount: Int
  let steps: [CompiledStep]
  /// Conditions that don't depend on rows. They are checked once, before any row.
  let constantFilter: CompiledExpression?
  let grouping: CompiledGrouping?
  let windows: CompiledWindows?
  let columns: [CompiledExpression]
  /// The same columns, to be evaluated together.
  let columnList: ExpressionList
  let columnNames: [ByteString]
  let orderBy: [CompiledOrdering]
  let limit: CompiledExpression?
  let offset: CompiledExpression?
  /// The queries inside this one. The index of each is its number in contexts.
  let subqueries: [CompiledSubquery]
  /// The MATCHes of the query. The index of each is its number in contexts.
  let matches: [CompiledMatch]

  /// Throws a `QueryError` for an expression that can't be compiled.
  init(_ plan: QueryPlan, _ context: PlanningContext) throws(QueryError) {
    self.plan = plan
    let program = EvaluationProgram()
    self.program = program
    let query = plan.query
    var scope = PlanScope(query)
    for (number, subquery) in query.subqueries.enumerated() {
      scope.subqueries.append(try CompiledSubquery(subquery, number, context, program, &scope))
    }
    subqueries = scope.subqueries
    scope.matches = try CompiledMatch.compile(plan, context, program, scope)
    matches = scope.matches
    for step in plan.steps {
      guard case .index(let access) = step.access, access.isCovering || !access.entryFilter.isEmpty else {
        continue
      }
      for (position, key) in access.index.keys.enumerated() {
        let name = InternalName.reference(InternalName.indexKey(position, of: step.source.name))
        scope.addSlot(name, also: access.isCovering ? key : nil)
      }
    }
    var steps: [CompiledStep] = []
    for step in plan.steps {
      steps.append(try CompiledStep(step, program, scope, isFirst: steps.isEmpty))
    }
    self.steps = steps
    constantFilter = try program.compile(all: plan.constantConditions, in: scope)
    // LIMIT and OFFSET are computed before the rows. Only the results of EXISTS are in slots then.
    let constantScope = scope.ofGroups
    grouping = try query.isGrouped ? CompiledGrouping(plan, program, &scope) : nil
    windows = try query.hasWindows ? CompiledWindows(plan, program, &scope) : nil
    columns = try program.compile(query.columns.map(\.expression), in: scope)
    columnList = ExpressionList(columns)
    columnNames = query.columns.map(\.name)
    let orderBy = try query.orderBy.map { ordering throws(QueryError) in
      try CompiledOrdering(ordering, query, program, scope)
    }
    self.orderBy = plan.isOrdered ? [] : orderBy
    limit = try query.limit.map { expression throws(QueryError) in
      try program.compile(expression, in: constantScope)
    }
    offset = try query.offset.map { expression throws(QueryError) in
      try program.compile(expression, in: constantScope)
    }
    sourceCount = query.sources.count
    slotCount = scope.slotCount
    for step in steps {
      if case .index(let access) = step.access { access.settle(program, step.source) }
    }
  }
}

/// Resolves the names in the expressions of a plan.
struct PlanScope: EvaluationScope {
  private var sources: [ByteString: Int] = [:]
  private var slots: [QueryExpression: Int] = [:]
  private(set) var slotCount = 0
  var matches: [CompiledMatch] = []
  var subqueries: [CompiledSubquery] = []

  init(_ query: ResolvedQuery) {
    for (number, source) in query.sources.enumerated() { sources[source.name] = number }
  }

  /// Reserves a slot for the value of an expression.
  @discardableResult
  mutating func addSlot(_ expression: QueryExpression, also other: QueryExpression? = nil) -> Int {
    if let slot = slots[expression] { return slot }
    slots[expression] = slotCount
    if let other, slots[other] == nil { slots[other] = slotCount }
    slotCount += 1
    return slotCount - 1
  }

  /// The same names after grouping. The values of indexes are no longer available there.
  var ofGroups: PlanScope {
    var copy = self
    copy.slots = slots.filter { expression, _ in
      guard case .property(let path) = expression, case .name(let name)? = path.steps.first else {
        return false
      }
      return InternalName.isSubquery(name)
    }
    return copy
  }

  /// The same names, without any values in slots.
  var withoutSlots: PlanScope {
    var copy = self
    copy.slots = [:]
    return copy
  }

  func slot(of expression: QueryExpression) -> Int? { slots.isEmpty ? nil : slots[expression] }

  func sourceNumber(_ name: ByteString) -> Int? { sources[name] }

  func resolve(_ reference: PropertyReference) throws(QueryError) -> ResolvedReference {
    guard case .name(let name)? = reference.steps.first, let source = sources[name] else {
      throw QueryError(.unknownName, "there is no \"\(reference.pathText)\" here", at: reference.position)
    }
    return .path(source: source, Array(reference.steps.dropFirst()))
  }

  func source(_ name: SourceName?) throws(QueryError) -> Int {
    guard let name, let source = sources[name.name] else {
      throw QueryError(
        .unknownName, "there is no source \"\(name?.name.string ?? "")\"", at: name?.position ?? .init())
    }
    return source
  }
}

extension EvaluationProgram {
  /// Compiles expressions in one scope.
  func compile(
    _ expressions: [QueryExpression], in scope: some EvaluationScope
  ) throws(QueryError) -> [CompiledExpression] {
    try expressions.map { expression throws(QueryError) in try compile(expression, in: scope) }
  }

  /// Compiles conditions that all have to be true. Nil when there are none.
  func compile(all conditions: [QueryExpression], in scope: PlanScope) throws(QueryError)
    -> CompiledExpression?
  {
    // Cheap conditions come first.
    let sorted = conditions.enumerated().sorted {
      ($0.element.effort, $0.offset) < ($1.element.effort, $1.offset)
    }
    guard !sorted.isEmpty else { return nil }
    return try compile(.grouped(.and, sorted.map(\.element)[...]), in: scope)
  }
}

extension QueryExpression {
  /// A rough estimate of the work that a condition takes.
  fileprivate var effort: Int {
    switch self {
    case .binary(.equal, .property, .literal), .binary(.equal, .literal, .property): return 0
    case .literal, .parameter: return 0
    case .property, .meta: return 1
    case .like: return 8
    case .quantified, .iteration, .within: return 20
    case .call(let call) where InternalName.subqueryNumber(call.name) != nil: return 100
    case .call: return 6
    default:
      var effort = 1
      forEachPart { effort += $0.effort }
      return effort
    }
  }
}

/// A compiled term of ORDER BY.
struct CompiledOrdering {
  var expression: CompiledExpression
  var isDescending: Bool
  var collation: Int?
  /// The column that has the same value, if there is one. The value isn't computed twice then.
  var column: Int?

  init(
    _ ordering: Ordering, _ query: ResolvedQuery, _ program: EvaluationProgram, _ scope: PlanScope
  ) throws(QueryError) {
    let (expression, inside) = ordering.expression.uncollated
    collation = try program.collation(inside)
    self.expression = try program.compile(expression, in: scope, collation: inside)
    isDescending = ordering.isDescending
    if inside == nil || expression.isSameUnderCollations {
      column = query.columns.firstIndex { $0.expression == expression }
    }
  }
}

extension QueryExpression {
  /// The operand and the order of a COLLATE. Other expressions are their own operands.
  var uncollated: (operand: QueryExpression, collation: Collation?) {
    if case .collate(let operand, let collation) = self { (operand, collation) } else { (self, nil) }
  }

  /// Whether a COLLATE around the expression can't change its value, because nothing in it compares.
  var isSameUnderCollations: Bool {
    switch self {
    case .literal, .parameter, .property, .star, .meta: true
    default: false
    }
  }
}
