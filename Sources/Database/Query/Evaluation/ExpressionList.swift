/// A list of expressions that are evaluated together for many rows. None is retained for a row.
final class ExpressionList: Sendable {
  private let owned: [CompiledExpression]
  // Unowned pointers to the elements of `owned`, which never changes.
  private nonisolated(unsafe) let nodes: UnsafeMutablePointer<Unmanaged<CompiledExpression>>
  let count: Int
  /// The numbers of the slots, when all expressions are slots. Nil otherwise.
  let slots: [Int]?

  init(_ expressions: [CompiledExpression]) {
    owned = expressions
    count = expressions.count
    nodes = .allocate(capacity: max(1, count))
    for (index, expression) in expressions.enumerated() {
      (nodes + index).initialize(to: .passUnretained(expression))
    }
    let slots = expressions.compactMap { ($0 as? SlotNode)?.slot }
    self.slots = slots.count == count ? slots : nil
  }

  deinit { nodes.deallocate() }

  /// Writes the value of each expression to `values`.
  @inline(__always)
  func evaluate(_ context: EvaluationContext, to values: UnsafeMutablePointer<QueryValue>) {
    for index in 0..<count {
      values[index] = nodes[index]._withUnsafeGuaranteedRef { $0.evaluate(context) }
    }
  }
}
