import Fleece
import Storage

/// Compiles an expression to nodes. Names are resolved by a scope, constants are computed in advance, and
/// frequent conditions have nodes of their own.
struct ExpressionCompiler {
  let program: EvaluationProgram
  private let scope: any EvaluationScope
  /// The variables of the enclosing ANY and EVERY, the innermost last.
  private var variables: [ByteString] = []
  /// The number of aliases that are being resolved. It limits an alias that refers to itself.
  private var aliasDepth = 0

  init(_ program: EvaluationProgram, _ scope: some EvaluationScope) {
    self.program = program
    self.scope = scope
  }

  /// Compiles an expression under a collation. Nil when there is no COLLATE around it.
  mutating func compile(
    _ expression: QueryExpression, _ collation: Collation?
  ) throws(QueryError) -> CompiledExpression {
    if let slot = scope.slot(of: expression) { return program.slot(slot) }
    switch expression {
    case .literal(let literal): return constant(literal)
    case .parameter(let name):
      try scope.checkParameter(name)
      return ParameterNode(program.parameter(name))
    case .property(let reference): return try compile(reference, collation)
    case .star(let source): return program.property(try scope.source(source), [])
    case .meta(let source, let property): return program.meta(try scope.source(source), property)
    case .member(let base, let steps):
      return folded(MemberNode(try compile(base, collation), path: program.path(steps), steps, program))
    case .array(let items):
      return folded(ArrayNode(try compile(items, collation)))
    case .object(let members):
      var nodes: [(TextSlice, CompiledExpression)] = []
      for member in members {
        nodes.append((program.constants.copy(member.name), try compile(member.value, collation)))
      }
      return folded(ObjectNode(nodes, program))
    case .unary(let unary, let operand):
      let node = try compile(operand, collation)
      switch unary {
      case .not: return folded(NotNode(node))
      case .minus: return folded(SignNode(node, negates: true))
      case .plus: return folded(SignNode(node, negates: false))
      }
    case .binary(let binary, let left, let right): return try compile(binary, left, right, collation)
    case .test(let operand, let test, let negated):
      return folded(TestNode(try compile(operand, collation), test, negated: negated))
    case .between(let operand, let lower, let upper, let negated):
      let order = try program.collation(comparison(collation, operand, lower, upper))
      return folded(
        BetweenNode(
          try compile(operand, collation), try compile(lower, collation), try compile(upper, collation),
          order, negated: negated))
    case .contained(let operand, let collection, let negated):
      return try compile(operand, containedIn: collection, negated: negated, collation)
    case .like(let operand, let pattern, let negated):
      let node = LikeNode(
        try compile(operand, collation), try compile(pattern, collation),
        LikeOptions(comparison(collation, operand, pattern)), pattern: program.newPattern(),
        negated: negated)
      return folded(node)
    case .conditional(let operand, let branches, let otherwise):
      var compiled: [(CompiledExpression, CompiledExpression)] = []
      for branch in branches {
        compiled.append((try compile(branch.condition, collation), try compile(branch.result, collation)))
      }
      let otherwise = try compile(otherwise ?? .literal(.null), collation)
      guard let operand else { return ConditionalNode(compiled, otherwise) }
      let order = try program.collation(comparison(collation, operand))
      return MatchingNode(try compile(operand, collation), compiled, otherwise, order)
    case .quantified(let quantifier, let variable, let collection, let condition):
      let items = try compile(collection, collation)
      guard variables.count < FleeceLimits.depth else {
        throw QueryError(.tooDeep, "ANY and EVERY are nested deeper than \(FleeceLimits.depth)")
      }
      variables.append(variable)
      program.needsVariables(variables.count)
      defer { variables.removeLast() }
      return QuantifiedNode(
        quantifier, variable: variables.count - 1, items, try compile(condition, collation))
    case .iteration(let iteration): return try compile(iteration, collation)
    case .within(let operand, let collection, let negated):
      let order = try program.collation(comparison(collation, operand))
      return folded(
        InNode(
          try compile(operand, collation), try compile(collection, collation), order, isDeep: true,
          negated: negated))
    case .subscripted(let base, let inside):
      let kind: SubscriptNode.Kind =
        switch inside {
        case .element: .element
        case .field: .field
        case .slice(let start, let end): .slice(hasStart: start != nil, hasEnd: end != nil)
        }
      return folded(
        SubscriptNode(kind, try compile(base, collation), try compile(inside.parts, collation)))
    case .computedObject(let members):
      return folded(ComputedObjectNode(try compile(members.flatMap { [$0.name, $0.value] }, collation)))
    case .call(let call): return try compile(call, collation)
    case .collate(let operand, let inner): return try compile(operand, inner)
    case .exists, .subquery, .match, .rank: return try scope.compile(special: expression, &self)
    }
  }

  @inline(never)
  private mutating func compile(
    _ iteration: Iteration, _ collation: Collation?
  ) throws(QueryError) -> CompiledExpression {
    let collections = try compile(iteration.bindings.map(\.collection), collation)
    let outer = variables.count
    guard outer < FleeceLimits.depth else {
      throw QueryError(.tooDeep, "loops are nested deeper than \(FleeceLimits.depth)")
    }
    var bindings: [IterationNode.Binding] = []
    for (binding, collection) in zip(iteration.bindings, collections) {
      variables.append(binding.variable)
      let variable = variables.count - 1
      if let position = binding.position { variables.append(position) }
      bindings.append(
        IterationNode.Binding(
          collection: collection, variable: variable, position: binding.position == nil ? nil : variable + 1,
          isDeep: binding.isDeep))
    }
    program.needsVariables(variables.count)
    defer { variables.removeLast(variables.count - outer) }
    return IterationNode(
      iteration.kind, bindings, name: try compile(iteration.name, collation),
      try compile(iteration.result, collation), condition: try compile(iteration.condition, collation))
  }

  private mutating func compile(
    _ expression: QueryExpression?, _ collation: Collation?
  ) throws(QueryError) -> CompiledExpression? {
    guard let expression else { return nil }
    let node: CompiledExpression = try compile(expression, collation)
    return node
  }

  /// Compiles each of several expressions.
  mutating func compile(
    _ expressions: [QueryExpression], _ collation: Collation?
  ) throws(QueryError) -> [CompiledExpression] {
    try expressions.map { expression throws(QueryError) in try compile(expression, collation) }
  }

  /// The collation of a comparison. An operand's own COLLATE takes precedence over the one around the
  /// comparison.
  private func comparison(_ collation: Collation?, _ operands: QueryExpression...) -> Collation? {
    operands.lazy.compactMap(\.uncollated.collation).first ?? collation
  }

  private func constant(_ literal: Literal) -> ConstantNode {
    let value: QueryValue =
      switch literal {
      case .missing: .missing
      case .null: .null
      case .bool(let value): .bool(value)
      case .int(let value): .int(value)
      case .uint(let value): QueryValue(value)
      case .double(let value): QueryValue(finite: value)
      case .string(let value): .string(program.constants.copy(value))
      }
    return ConstantNode(value, program)
  }

  private mutating func compile(
    _ reference: PropertyReference, _ collation: Collation?
  ) throws(QueryError) -> CompiledExpression {
    if case .name(let name)? = reference.steps.first, let variable = variables.lastIndex(of: name) {
      return VariableNode(variable, path(Array(reference.steps.dropFirst())))
    }
    switch try scope.resolve(reference) {
    case .path(let source, let steps):
      return program.property(source, steps)
    case .slot(let slot, let steps):
      return steps.isEmpty
        ? program.slot(slot) : MemberNode(program.slot(slot), path: program.path(steps), steps, program)
    case .expression(let expression, let steps):
      guard aliasDepth < 32 else {
        throw QueryError(
          .invalidUse, "the alias \"\(reference.pathText)\" is defined by itself", at: reference.position)
      }
      aliasDepth += 1
      defer { aliasDepth -= 1 }
      let node = try compile(expression, collation)
      return steps.isEmpty ? node : MemberNode(node, path: program.path(steps), steps, program)
    }
  }

  private func path(_ steps: [PathStep]) -> Int? { steps.isEmpty ? nil : program.path(steps) }

  private mutating func compile(
    _ binary: BinaryOperator, _ left: QueryExpression, _ right: QueryExpression, _ collation: Collation?
  ) throws(QueryError) -> CompiledExpression {
    let first = try compile(left, collation)
    let second = try compile(right, collation)
    func order() throws(QueryError) -> Int? { try program.collation(comparison(collation, left, right)) }
    switch binary {
    case .and: return folded(AndNode(first, second))
    case .or: return folded(OrNode(first, second))
    case .equal: return try comparison(.equal, first, second, order())
    case .notEqual: return try comparison(.notEqual, first, second, order())
    case .identical: return folded(IdenticalNode(first, second, try order(), negated: false))
    case .notIdentical: return folded(IdenticalNode(first, second, try order(), negated: true))
    case .less: return try comparison(.less, first, second, order())
    case .lessOrEqual: return try comparison(.lessOrEqual, first, second, order())
    case .greater: return try comparison(.greater, first, second, order())
    case .greaterOrEqual: return try comparison(.greaterOrEqual, first, second, order())
    case .add: return folded(ArithmeticNode(.add, first, second))
    case .subtract: return folded(ArithmeticNode(.subtract, first, second))
    case .multiply: return folded(ArithmeticNode(.multiply, first, second))
    case .divide: return folded(ArithmeticNode(.divide, first, second))
    case .modulo: return folded(ArithmeticNode(.modulo, first, second))
    case .concatenate: return folded(ConcatenationNode([first, second]))
    }
  }

  /// A comparison. Those of a path with a constant have nodes of their own.
  private func comparison(
    _ comparison: ComparisonOperator, _ first: CompiledExpression, _ second: CompiledExpression,
    _ collation: Int?
  ) -> CompiledExpression {
    if let path = first as? PathNode, let number = path.path, let constant = second.constant {
      if constant.type == .number {
        return PathNumberNode(path.source, number, constant, comparison, program)
      }
      if case .string(let text) = constant, collation == nil, comparison == .equal || comparison == .notEqual
      {
        return PathIsTextNode(path.source, number, text, program, negated: comparison == .notEqual)
      }
    }
    return folded(ComparisonNode(comparison, first, second, collation))
  }

  private mutating func compile(
    _ operand: QueryExpression, containedIn collection: QueryExpression, negated: Bool,
    _ collation: Collation?
  ) throws(QueryError) -> CompiledExpression {
    let order = try program.collation(comparison(collation, operand))
    let value = try compile(operand, collation)
    guard scope.slot(of: collection) == nil, case .array(let items) = collection else {
      let items = try compile(collection, collation)
      if let rows = items as? SubqueryNode, rows.isKept, order == nil {
        return RowsInNode(value, rows, negated: negated)
      }
      return folded(InNode(value, items, order, negated: negated))
    }
    let nodes = try compile(items, collation)
    let constants = nodes.compactMap(\.constant)
    if constants.count == nodes.count, order == nil {
      return folded(ConstantListNode(value, constants, program, negated: negated))
    }
    return folded(ListNode(value, nodes, order, negated: negated))
  }

  private mutating func compile(
    _ call: FunctionCall, _ collation: Collation?
  ) throws(QueryError) -> CompiledExpression {
    if InternalName.isCall(call.name) { return try compile(internal: call, collation) }
    let function = try QueryFunction.named(call)
    if FullTextFunctions.names.contains(call.name) { return try scope.compile(special: .call(call), &self) }
    guard case .scalar(let scalar) = function.kind else {
      return try scope.compile(special: .call(call), &self)
    }
    let arguments = try compile(call.arguments, collation)
    let effective = call.arguments.lazy.compactMap(\.uncollated.collation).first ?? collation
    let site = CallSite(
      collation: try program.collation(effective), like: LikeOptions(effective),
      pattern: function.usesPattern ? program.newPattern() : 0)
    let node = CallNode(scalar, arguments, site)
    return function.volatility == .immutable ? folded(node) : node
  }

  private mutating func compile(
    internal call: FunctionCall, _ collation: Collation?
  ) throws(QueryError) -> CompiledExpression {
    if let number = InternalName.subqueryNumber(call.name) {
      return try scope.compile(
        subquery: number, try compile(call.arguments, nil),
        isConstant: call.arguments.allSatisfy(\.isConstant))
    }
    return ExclusionNode(
      try compile(call.arguments[0], collation), Array(call.arguments.dropFirst()), program)
  }

  /// Replaces a node by a constant when all of its parts are constants. Otherwise returns the node.
  func folded(_ node: CompiledExpression & FoldableNode) -> CompiledExpression {
    guard node.parts.allSatisfy({ $0.constant != nil }) else { return node }
    guard let context = try? EvaluationContext(program, limits: .ofConstants) else { return node }
    context.begin(.empty)
    let value = node.evaluate(context)
    guard context.failure == nil else { return node }
    return ConstantNode(program.constants.copy(value, .empty), program)
  }
}

/// A node whose value depends only on its parts.
protocol FoldableNode {
  var parts: [CompiledExpression] { get }
}
