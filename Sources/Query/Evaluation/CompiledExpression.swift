/// An expression that is ready to be evaluated: a tree of nodes, compiled once, evaluated for many rows on any thread.
///
/// Each kind of node is a final class: what a node knows is read without retaining it.
class CompiledExpression: @unchecked Sendable {
  /// The value for the rows at hand. It is valid until the arena is reset or a row is left.
  func evaluate(_ context: EvaluationContext) -> QueryValue { .missing }

  /// What the value says as a condition.
  func truth(_ context: EvaluationContext) -> Truth { evaluate(context).truth }

  /// What has to hold of a source's document for this to be TRUE, all of it: parameters are bound.
  func scanTests(_ source: Int, _ context: EvaluationContext) -> [ScanTest] { [] }

  /// The value if it doesn't depend on rows, parameters or slots.
  var constant: QueryValue? { nil }
}

/// A node whose value is a truth.
class ConditionNode: CompiledExpression, @unchecked Sendable {
  final override func evaluate(_ context: EvaluationContext) -> QueryValue { truth(context).value }
  override func truth(_ context: EvaluationContext) -> Truth { .missing }
}
