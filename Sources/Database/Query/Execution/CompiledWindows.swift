import Storage

/// The compiled windows of a query: what is kept of each row, and the functions that are computed over the kept
/// rows.
struct CompiledWindows {
  /// A term of an order of rows.
  struct Term: Hashable {
    /// The index of its value among the inputs.
    var input: Int
    var isDescending: Bool
    var collation: Int?
  }

  /// Windows with the same partitions and the same order.
  struct Arrangement: Hashable {
    var partition: [Term]
    var order: [Term]
  }

  /// A bound of a frame, with the index of its distance among the inputs.
  enum Bound {
    case unboundedPreceding, currentRow, unboundedFollowing
    case preceding(Int)
    case following(Int)
  }

  struct Frame {
    var unit: WindowFrame.Unit
    var start: Bound
    var end: Bound
    var exclusion: WindowFrame.Exclusion

    /// All rows of the partition.
    static let whole = Frame(
      unit: .rows, start: .unboundedPreceding, end: .unboundedFollowing, exclusion: .noOthers)
    /// The rows up to the last peer of the current one.
    static let running = Frame(
      unit: .range, start: .unboundedPreceding, end: .currentRow, exclusion: .noOthers)
  }

  enum Computation {
    case aggregate(Aggregator)
    case function(WindowFunctionKind)
  }

  struct Function {
    var computation: Computation
    /// The indexes of the arguments among the inputs. Empty for COUNT(*).
    var arguments: [Int]
    /// The index of FILTER's truth among the inputs.
    var filter: Int?
    var frame: Frame
    var countsFromLast: Bool
    var ignoresNulls: Bool
    /// The order of its argument's values.
    var collation: Int?
    /// The number of its arrangement.
    var arrangement: Int
    /// The slot for its result.
    var slot: Int
  }

  /// What is computed for each row and kept.
  private(set) var inputs: [CompiledExpression] = []
  /// The inputs that are put back into slots for results and their order.
  private(set) var captured: [(input: Int, slot: Int)] = []
  private(set) var arrangements: [Arrangement] = []
  private(set) var functions: [Function] = []
  /// Whether all functions can be computed as rows come, in the order of their only arrangement.
  private(set) var isStreaming = false

  private var inputNumbers: [QueryExpression: Int] = [:]

  /// Compiles the windows. It adds slots to `scope` for all that results and their order read of a row.
  init(_ plan: QueryPlan, _ program: EvaluationProgram, _ scope: inout PlanScope) throws(QueryError) {
    let query = plan.query
    let rowScope = scope
    scope = scope.ofGroups
    let outputs = query.columns.map(\.expression) + query.orderBy.map(\.expression)
    var calls: [QueryExpression] = []
    for output in outputs { output.collectWindowCalls(nil, into: &calls) }
    for expression in calls {
      let (inner, outer) = expression.uncollated
      guard case .call(let call) = inner, let window = call.window else { continue }
      try add(call, window, outer, scope.addSlot(expression, also: inner), program, rowScope)
    }
    var plain: [QueryExpression] = []
    for output in outputs { output.collectCaptured(scope, rowScope, into: &plain) }
    for expression in plain {
      captured.append((try input(expression, nil, program, rowScope), scope.addSlot(expression)))
    }
    isStreaming =
      plan.isWindowOrdered && arrangements.count == 1 && functions.allSatisfy(\.canStream)
  }

  private mutating func add(
    _ call: FunctionCall, _ window: WindowCall, _ collation: Collation?, _ slot: Int,
    _ program: EvaluationProgram, _ scope: PlanScope
  ) throws(QueryError) {
    let definition = window.definition
    var partition: [Term] = []
    var order: [Term] = []
    for expression in definition.partitionBy {
      partition.append(try term(Ordering(expression), program, scope))
    }
    for ordering in definition.orderBy { order.append(try term(ordering, program, scope)) }
    let arrangement = Arrangement(partition: partition, order: order)
    let number = arrangements.firstIndex(of: arrangement) ?? arrangements.count
    if number == arrangements.count { arrangements.append(arrangement) }
    let own = call.arguments.first?.uncollated.collation ?? collation
    let values = try program.collation(own)
    var arguments: [Int] = []
    if call.arguments != [.star(source: nil)] {
      for argument in call.arguments { arguments.append(try input(argument, own, program, scope)) }
    }
    let computation: Computation
    switch try QueryFunction.named(call).kind {
    case .aggregate(let kind):
      computation = .aggregate(Aggregator(kind, isDistinct: call.isDistinct, nil, collation: values))
    case .window(let kind): computation = .function(kind)
    case .scalar: throw QueryError(.invalidUse, "\(call.name) can't have OVER", at: call.position)
    }
    var frame: Frame =
      definition.orderBy.isEmpty || call.name == WindowFunctionKind.ratioToReport.rawValue
      ? .whole : .running
    if let given = definition.frame {
      frame = Frame(
        unit: given.unit, start: try bound(given.start, program, scope),
        end: try bound(given.end, program, scope), exclusion: given.exclusion)
    }
    var filter: Int?
    if let condition = call.filter { filter = try input(condition, collation, program, scope) }
    functions.append(
      Function(
        computation: computation, arguments: arguments, filter: filter, frame: frame,
        countsFromLast: window.countsFromLast, ignoresNulls: window.ignoresNulls, collation: values,
        arrangement: number, slot: slot))
  }

  private mutating func term(
    _ ordering: Ordering, _ program: EvaluationProgram, _ scope: PlanScope
  ) throws(QueryError) -> Term {
    let (plain, collation) = ordering.expression.uncollated
    return Term(
      input: try input(plain, collation, program, scope), isDescending: ordering.isDescending,
      collation: try program.collation(collation))
  }

  private mutating func bound(
    _ bound: WindowFrame.Bound, _ program: EvaluationProgram, _ scope: PlanScope
  ) throws(QueryError) -> Bound {
    switch bound {
    case .unboundedPreceding: .unboundedPreceding
    case .unboundedFollowing: .unboundedFollowing
    case .currentRow: .currentRow
    case .preceding(let offset): .preceding(try input(offset, nil, program, scope))
    case .following(let offset): .following(try input(offset, nil, program, scope))
    }
  }

  /// The index of an expression among the inputs.
  private mutating func input(
    _ expression: QueryExpression, _ collation: Collation?, _ program: EvaluationProgram, _ scope: PlanScope
  ) throws(QueryError) -> Int {
    let key = collation.map { QueryExpression.collate(expression, $0) } ?? expression
    if let known = inputNumbers[key], !expression.isVolatile { return known }
    inputs.append(try program.compile(expression, in: scope, collation: collation))
    inputNumbers[key] = inputs.count - 1
    return inputs.count - 1
  }
}

extension CompiledWindows.Function {
  /// Whether the result for a row depends on it and the rows before it only, one after the other.
  fileprivate var canStream: Bool {
    switch computation {
    case .function(.rowNumber), .function(.rank), .function(.denseRank): return true
    case .function: return false
    case .aggregate:
      guard case .rows = frame.unit, case .unboundedPreceding = frame.start, case .currentRow = frame.end
      else {
        return false
      }
      return frame.exclusion == .noOthers
    }
  }
}

extension QueryExpression {
  /// Collects the calls over windows in this expression, each once. A call under a COLLATE is collected together
  /// with the COLLATE.
  fileprivate func collectWindowCalls(_ collation: Collation?, into calls: inout [QueryExpression]) {
    switch self {
    case .call(let call) where call.window != nil:
      let found = collation.map { QueryExpression.collate(self, $0) } ?? self
      if !calls.contains(found) { calls.append(found) }
    case .collate(let operand, let own): operand.collectWindowCalls(own, into: &calls)
    default: forEachPart { $0.collectWindowCalls(collation, into: &calls) }
    }
  }

  /// Collects what the expression reads of a row besides the results of windows, each once.
  fileprivate func collectCaptured(
    _ scope: PlanScope, _ rows: PlanScope, except variables: Set<ByteString> = [],
    into plain: inout [QueryExpression]
  ) {
    if scope.slot(of: self) != nil { return }
    func take() { if !plain.contains(self) { plain.append(self) } }
    // A value of a group.
    if rows.slot(of: self) != nil { return take() }
    switch self {
    case .property(let path):
      if case .name(let name)? = path.steps.first, variables.contains(name) { return }
      take()
    case .star, .meta, .match, .rank: take()
    case .call(let call) where FullTextFunctions.names.contains(call.name): take()
    case .quantified(_, let variable, let collection, let condition):
      collection.collectCaptured(scope, rows, except: variables, into: &plain)
      condition.collectCaptured(scope, rows, except: variables.union([variable]), into: &plain)
    case .iteration(let iteration):
      for binding in iteration.bindings {
        binding.collection.collectCaptured(scope, rows, except: variables, into: &plain)
      }
      let inner = variables.union(iteration.variables)
      for part in iteration.inner { part.collectCaptured(scope, rows, except: inner, into: &plain) }
    default: forEachPart { $0.collectCaptured(scope, rows, except: variables, into: &plain) }
    }
  }
}
