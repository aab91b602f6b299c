/// A list of expressions that are evaluated together for many rows. None is retained for a row, and properties are read without a call.
final class ExpressionList: Sendable {
  private struct Item: BitwiseCopyable {
    let node: Unmanaged<CompiledExpression>
    /// The source and the path of a property. The path is -1 for other expressions.
    let source: Int32
    let path: Int32
  }

  private let owned: [CompiledExpression]
  // Unowned pointers to the elements of `owned`, which never changes.
  private nonisolated(unsafe) let items: UnsafeMutablePointer<Item>
  let count: Int
  /// The numbers of the slots, when all expressions are slots. Nil otherwise.
  let slots: [Int]?

  init(_ expressions: [CompiledExpression]) {
    owned = expressions
    count = expressions.count
    items = .allocate(capacity: max(1, count))
    for (index, expression) in expressions.enumerated() {
      let property = expression as? PathNode
      (items + index).initialize(
        to: Item(
          node: .passUnretained(expression), source: Int32(property?.source ?? 0),
          path: Int32(property?.path ?? -1)))
    }
    let slots = expressions.compactMap { ($0 as? SlotNode)?.slot }
    self.slots = slots.count == count ? slots : nil
  }

  deinit { items.deallocate() }

  /// Writes the value of each expression to `values`.
  @inline(__always)
  func evaluate(_ context: EvaluationContext, to values: UnsafeMutablePointer<QueryValue>) {
    for index in 0..<count {
      let item = items[index]
      if item.path >= 0 {
        values[index] = context.property(Int(item.source), Int(item.path))
      } else {
        values[index] = item.node._withUnsafeGuaranteedRef { $0.evaluate(context) }
      }
    }
  }
}
