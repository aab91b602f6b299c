/// An expression that is ready for evaluation. It is a tree of nodes, which is compiled once. It can be
/// evaluated for many rows, on any thread.
///
/// Each kind of node is a final class, so that its properties are read without retaining it.
class CompiledExpression: @unchecked Sendable {
  /// The value for the current rows. It is valid until the arena is reset, its scope ends, or a row is left.
  func evaluate(_ context: EvaluationContext) -> QueryValue { .missing }

  /// The value as a condition.
  func truth(_ context: EvaluationContext) -> Truth { evaluate(context).truth }

  /// Tests of a source's document that all have to pass for this expression to be TRUE. Parameters have
  /// values.
  func scanTests(_ source: Int, _ context: EvaluationContext) -> [ScanTest] { [] }

  /// The value, if it doesn't depend on rows, parameters or slots.
  var constant: QueryValue? { nil }
}

/// A node that computes a truth value.
class ConditionNode: CompiledExpression, @unchecked Sendable {
  final override func evaluate(_ context: EvaluationContext) -> QueryValue { truth(context).value }
  override func truth(_ context: EvaluationContext) -> Truth { .missing }
}
