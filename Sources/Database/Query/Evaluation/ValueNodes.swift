import Fleece

// Nodes for values: constants, values of rows and slots, arrays, objects, CASE.

/// A literal, or a constant computed in advance.
final class ConstantNode: CompiledExpression, @unchecked Sendable {
  private let value: QueryValue
  private let asTruth: Truth
  /// Owns the memory that the value points at.
  private let owner: EvaluationProgram

  init(_ value: QueryValue, _ owner: EvaluationProgram) {
    self.value = value
    asTruth = value.truth
    self.owner = owner
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue { value }
  override func truth(_ context: EvaluationContext) -> Truth { asTruth }
  override var constant: QueryValue? { value }
}

/// A parameter: `$name`.
final class ParameterNode: CompiledExpression, @unchecked Sendable {
  private let number: Int
  init(_ number: Int) { self.number = number }
  override func evaluate(_ context: EvaluationContext) -> QueryValue { context.parameters[number] }
}

/// The value of a slot.
final class SlotNode: CompiledExpression, @unchecked Sendable {
  let slot: Int
  init(_ slot: Int) { self.slot = slot }
  override func evaluate(_ context: EvaluationContext) -> QueryValue { context.slots[slot] }
}

/// A property of a source's row, or the whole row.
final class PathNode: CompiledExpression, @unchecked Sendable {
  let source: Int
  let path: Int?

  init(_ source: Int, _ path: Int?) {
    self.source = source
    self.path = path
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    guard let path else { return context.rows[source].value }
    return context.property(source, path)
  }
}

/// A variable of ANY or EVERY, or a property of it.
final class VariableNode: CompiledExpression, @unchecked Sendable {
  private let variable: Int
  private let path: Int?

  init(_ variable: Int, _ path: Int?) {
    self.variable = variable
    self.path = path
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    guard let path else { return context.variables[variable] }
    return context.variables[variable].follow(context.paths[path])
  }
}

/// A property of the value of an expression.
final class MemberNode: CompiledExpression, FoldableNode, @unchecked Sendable {
  private let base: CompiledExpression
  private let path: Int

  init(_ base: CompiledExpression, path: Int, _ steps: [PathStep], _ program: EvaluationProgram) {
    self.base = base
    self.path = path
  }

  var parts: [CompiledExpression] { [base] }
  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    base.evaluate(context).follow(context.paths[path])
  }
}

/// A member of META, such as `META().id`. Without a property, the whole META object.
final class MetaNode: CompiledExpression, @unchecked Sendable {
  private let source: Int
  private let property: MetaProperty?

  init(_ source: Int, _ property: MetaProperty?) {
    self.source = source
    self.property = property
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    guard context.rows[source].isDocument else { return .missing }
    if property == .id { return .string(context.rows[source].id) }
    let row = context.rows[source]
    guard let property else { return object(row, context) }
    return value(property, row, context)
  }

  private func value(
    _ property: MetaProperty, _ row: SourceRow, _ context: EvaluationContext
  ) -> QueryValue {
    switch property {
    case .id: return .string(row.id)
    case .sequence: return QueryValue(row.sequence)
    case .deleted: return .bool(row.isDeleted)
    case .expiration:
      guard let expiration = context.expiration else { return .missing }
      do { return try expiration(row.id).map { .int($0) } ?? .missing } catch { return context.fail(error) }
    case .revisionID:
      guard let revisionID = context.revisionID else { return .missing }
      do {
        return try revisionID(row).map { .string(context.arena.copy($0)) } ?? .missing
      } catch { return context.fail(error) }
    }
  }

  private func object(_ row: SourceRow, _ context: EvaluationContext) -> QueryValue {
    let members = context.arena.allocate(MetaProperty.allCases.count, of: ComputedObject.Member.self)
    for (index, property) in MetaProperty.allCases.enumerated() {
      members[index] = ComputedObject.Member(
        name: context.arena.copy(property.rawValue), value: value(property, row, context))
    }
    return context.arena.object(members, MetaProperty.allCases.count)
  }
}

/// `[a, b]`. Missing items become null.
final class ArrayNode: CompiledExpression, FoldableNode, @unchecked Sendable {
  let parts: [CompiledExpression]
  init(_ parts: [CompiledExpression]) { self.parts = parts }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    let items = context.arena.allocate(parts.count, of: QueryValue.self)
    for index in parts.indices { items[index] = parts[index].evaluate(context) }
    return context.arena.array(items, parts.count)
  }
}

/// `{"name": value}`. Members with a missing value are left out.
final class ObjectNode: CompiledExpression, FoldableNode, @unchecked Sendable {
  private let members: [(name: TextSlice, value: CompiledExpression)]
  private let owner: EvaluationProgram

  init(_ members: [(TextSlice, CompiledExpression)], _ owner: EvaluationProgram) {
    self.members = members.map { (name: $0.0, value: $0.1) }
    self.owner = owner
  }

  var parts: [CompiledExpression] { members.map(\.value) }
  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    let values = context.arena.allocate(members.count, of: ComputedObject.Member.self)
    for index in members.indices {
      values[index] = ComputedObject.Member(
        name: members[index].name, value: members[index].value.evaluate(context))
    }
    return context.arena.object(values, members.count)
  }
}

/// `CASE WHEN condition THEN …`.
final class ConditionalNode: CompiledExpression, @unchecked Sendable {
  private let branches: [(condition: CompiledExpression, result: CompiledExpression)]
  private let otherwise: CompiledExpression

  init(_ branches: [(CompiledExpression, CompiledExpression)], _ otherwise: CompiledExpression) {
    self.branches = branches.map { (condition: $0.0, result: $0.1) }
    self.otherwise = otherwise
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    for branch in branches where branch.condition.truth(context) == .true {
      return branch.result.evaluate(context)
    }
    return otherwise.evaluate(context)
  }
}

/// `CASE operand WHEN value THEN …`. The values are compared by `=`.
final class MatchingNode: CompiledExpression, @unchecked Sendable {
  private let operand: CompiledExpression
  private let branches: [(value: CompiledExpression, result: CompiledExpression)]
  private let otherwise: CompiledExpression
  private let collation: Int?

  init(
    _ operand: CompiledExpression, _ branches: [(CompiledExpression, CompiledExpression)],
    _ otherwise: CompiledExpression, _ collation: Int?
  ) {
    self.operand = operand
    self.branches = branches.map { (value: $0.0, result: $0.1) }
    self.otherwise = otherwise
    self.collation = collation
  }

  override func evaluate(_ context: EvaluationContext) -> QueryValue {
    let value = operand.evaluate(context)
    for branch in branches {
      let other = branch.value.evaluate(context)
      if ComparisonOperator.equal.apply(value, other, context.order(collation)) == .true {
        return branch.result.evaluate(context)
      }
    }
    return otherwise.evaluate(context)
  }
}
