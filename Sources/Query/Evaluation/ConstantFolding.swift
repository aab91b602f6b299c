import Fleece
import Storage

extension Expression {
  /// The expression with every part that is constant computed: `1 + 2` is 3, `UPPER('a') = name` is `'A' = name`.
  /// Values that no literal stands for, arrays and objects, stay as they are written.
  func foldingConstants() -> Expression {
    if isConstantExpression, let literal = constantLiteral { return .literal(literal) }
    return mappingParts { $0.foldingConstants() }
  }

  /// Whether it has one value always: literals and functions of them only.
  var isConstantExpression: Bool {
    switch self {
    case .literal: return true
    case .parameter, .property, .star, .meta, .exists, .match, .rank, .quantified: return false
    case .call(let call):
      guard let function = QueryFunction.named(call.name), !function.isAggregate, function.isDeterministic
      else { return false }
    default: break
    }
    var isConstant = true
    forEachPart { if !$0.isConstantExpression { isConstant = false } }
    return isConstant
  }

  private var constantLiteral: Literal? {
    if case .literal(let literal) = self { return literal }
    let program = EvaluationProgram()
    guard let node = try? program.compile(self, in: EmptyScope()),
      let context = try? EvaluationContext(program, limits: .ofConstants)
    else { return nil }
    context.begin(.empty)
    let value = node.evaluate(context)
    guard context.failure == nil else { return nil }
    switch value {
    case .missing: return .missing
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .int(let value): return .int(value)
    case .uint(let value): return .uint(value)
    case .double(let value): return .double(value)
    case .string(let text): return .string(ByteString(text.utf8))
    default: return nil
    }
  }

  /// The paths that it reads, as they are written; variables of its own ANY and EVERY aren't among them.
  var propertyReferences: Set<PropertyReference> {
    var references: Set<PropertyReference> = []
    collect(&references, [])
    return references
  }

  private func collect(_ references: inout Set<PropertyReference>, _ variables: Set<ByteString>) {
    switch self {
    case .property(let reference):
      if case .name(let name)? = reference.steps.first, variables.contains(name) { return }
      references.insert(reference)
    case .quantified(_, let variable, let collection, let condition):
      collection.collect(&references, variables)
      condition.collect(&references, variables.union([variable]))
    default: forEachPart { $0.collect(&references, variables) }
    }
  }
}
