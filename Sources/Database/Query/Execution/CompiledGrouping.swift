import Storage

/// The compiled grouping of a query: the keys that tell groups apart, and the aggregates that are computed
/// over each group.
struct CompiledGrouping {
  struct Key {
    var expression: CompiledExpression
    var collation: Int?
    var slot: Int
  }

  struct Aggregate {
    var aggregator: Aggregator
    /// The index of its argument among `arguments`. Nil for a row count, and with a filter.
    var argument: Int?
    var slot: Int
  }

  /// A value of one row of the group. With exactly one MIN or MAX, it is the last row that changed the
  /// extreme. Otherwise it is the first row.
  struct Captured {
    var expression: CompiledExpression
    var slot: Int
  }

  var keys: [Key] = []
  var aggregates: [Aggregate] = []
  /// The arguments of the aggregates without a filter, each once.
  var arguments: [CompiledExpression] = []
  var captured: [Captured] = []
  /// The index of the only MIN or MAX. Its row gives the captured values.
  var capturing: Int?
  var having: CompiledExpression?
  var isStreaming = false
  /// The numbers of the grouping sets without keys. Each is a group even without rows.
  var emptySets: [Int] = []

  /// Compiles the grouping. It adds slots to `scope` for all values of a group.
  init(_ plan: QueryPlan, _ program: EvaluationProgram, _ scope: inout PlanScope) throws(QueryError) {
    let query = plan.query
    let rowScope = scope
    scope = scope.ofGroups
    if case .streaming? = plan.grouping { isStreaming = true }
    emptySets = query.emptyGroupingSets
    for expression in query.groupBy ?? [] {
      let (plain, collation) = expression.uncollated
      keys.append(
        Key(
          expression: try program.compile(plain, in: rowScope, collation: collation),
          collation: try program.collation(collation),
          slot: scope.addSlot(expression, also: plain.isSameUnderCollations ? plain : nil)))
    }
    var calls: [QueryExpression] = []
    var argumentNumbers: [QueryExpression: Int] = [:]
    var outputs = query.columns.map(\.expression) + query.orderBy.map(\.expression)
    if let having = query.having { outputs.append(having) }
    for output in outputs { output.collectAggregates(nil, into: &calls) }
    for expression in calls {
      let (inner, outer) = expression.uncollated
      guard case .call(let call) = inner, let argument = call.arguments.first,
        case .aggregate(let kind) = try QueryFunction.named(call).kind
      else { continue }
      let collation = argument.uncollated.collation ?? outer
      let isRowCount = argument == .star(source: nil)
      let key = collation.map { QueryExpression.collate(argument, $0) } ?? argument
      let isShared = call.filter == nil && !isRowCount
      var number = isShared && !argument.isVolatile ? argumentNumbers[key] : nil
      var compiled = number.map { arguments[$0] }
      if compiled == nil, !isRowCount {
        compiled = try program.compile(argument, in: rowScope, collation: collation)
      }
      if isShared, number == nil, let compiled {
        number = arguments.count
        arguments.append(compiled)
        argumentNumbers[key] = number
      }
      let aggregator = Aggregator(
        kind, isDistinct: call.isDistinct, compiled,
        filter: try call.filter.map { filter throws(QueryError) in
          try program.compile(filter, in: rowScope, collation: outer)
        },
        collation: try program.collation(collation))
      aggregates.append(
        Aggregate(aggregator: aggregator, argument: number, slot: scope.addSlot(expression, also: inner)))
    }
    let extremes = aggregates.indices.filter {
      aggregates[$0].aggregator.kind == .minimum || aggregates[$0].aggregator.kind == .maximum
    }
    if extremes.count == 1 { capturing = extremes[0] }
    var plain: [QueryExpression] = []
    for output in outputs { output.collectRowValues(scope, into: &plain) }
    for expression in plain {
      captured.append(
        Captured(expression: try program.compile(expression, in: rowScope), slot: scope.addSlot(expression)))
    }
    having = try query.having.map { expression throws(QueryError) in
      try program.compile(expression, in: scope)
    }
  }
}

extension QueryExpression {
  /// Collects the aggregates in this expression, each once. An aggregate under a COLLATE is collected
  /// together with the COLLATE.
  fileprivate func collectAggregates(_ collation: Collation?, into calls: inout [QueryExpression]) {
    switch self {
    case .call(let call) where call.window == nil && AggregateFunctions.names.contains(call.name):
      let found = collation.map { QueryExpression.collate(self, $0) } ?? self
      if !calls.contains(found) { calls.append(found) }
    case .collate(let operand, let own): operand.collectAggregates(own, into: &calls)
    default: forEachPart { $0.collectAggregates(collation, into: &calls) }
    }
  }

  /// Collects what the expression reads of a row besides the values of the group, each once.
  func collectRowValues(
    _ scope: PlanScope, except variables: Set<ByteString> = [], into plain: inout [QueryExpression]
  ) {
    if scope.slot(of: self) != nil { return }
    switch self {
    case .property(let path):
      if case .name(let name)? = path.steps.first, variables.contains(name) { return }
      if !plain.contains(self) { plain.append(self) }
    case .star, .meta, .match, .rank: if !plain.contains(self) { plain.append(self) }
    case .call(let call) where FullTextFunctions.names.contains(call.name):
      if !plain.contains(self) { plain.append(self) }
    case .quantified(_, let variable, let collection, let condition):
      collection.collectRowValues(scope, except: variables, into: &plain)
      condition.collectRowValues(scope, except: variables.union([variable]), into: &plain)
    case .iteration(let iteration):
      for binding in iteration.bindings {
        binding.collection.collectRowValues(scope, except: variables, into: &plain)
      }
      let inner = variables.union(iteration.variables)
      for part in iteration.inner { part.collectRowValues(scope, except: inner, into: &plain) }
    default: forEachPart { $0.collectRowValues(scope, except: variables, into: &plain) }
    }
  }
}
