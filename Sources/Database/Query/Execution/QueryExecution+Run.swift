import Documents
import Fleece

extension QueryExecution {
  /// Runs a query on a snapshot. No other run may use `context`, which belongs to the query's program. With
  /// `rowLimit`, at most one row more than that is put out. Returns the counts of each step.
  @discardableResult
  static func run(
    _ compiled: CompiledQuery, _ context: EvaluationContext, _ snapshot: DocumentSnapshot,
    _ sharedKeys: SharedKeys, _ parameters: [String: JSONValue],
    _ cancellation: QueryCancellation, _ budget: QueryMemoryBudget, rowLimit: Int? = nil,
    isTimed: Bool = false,
    output: RowOutput
  ) throws -> [StepCounts] {
    context.begin(sharedKeys)
    context.begin(cancellation, budget)
    context.arena.reset()
    try context.bind(parameters)
    if !compiled.matches.isEmpty { try beginMatches(compiled, context, snapshot) }
    context.revisionID = { row in
      guard row.isDocument else { return nil }
      return try DocumentSnapshot.revisionID(ofRecord: row.record.bytes).description
    }
    context.expiration = { id in
      try snapshot.expiration(ofBytes: id.bytes.bytes)
    }
    defer {
      context.revisionID = nil
      context.expiration = nil
      context.matches = []
    }
    for index in 0..<compiled.sourceCount { context.rows[index] = SourceRow() }
    for (subquery, slot) in compiled.subqueries {
      context.slots[slot] = .bool(
        try exists(subquery, snapshot, sharedKeys, parameters, cancellation, budget))
    }
    var window = try RowWindow(compiled, context)
    if let rowLimit, rowLimit < window.limit ?? .max { window.limit = rowLimit + 1 }
    let projection: RowSink =
      compiled.orderBy.isEmpty
      ? ProjectingSink(compiled, context, window, output)
      : SortingSink(compiled, context, window, output)
    let sink = compiled.grouping.map { GroupingSink($0, context, projection) } ?? projection
    let execution = try QueryExecution(
      compiled, context, snapshot, sharedKeys, sink, cancellation, isTimed: isTimed)
    try execution.run()
    return compiled.steps.indices.map { execution.counts[$0] }
  }

  /// Whether a query inside EXISTS returns a row.
  private static func exists(
    _ compiled: CompiledQuery, _ snapshot: DocumentSnapshot, _ sharedKeys: SharedKeys,
    _ parameters: [String: JSONValue], _ cancellation: QueryCancellation, _ budget: QueryMemoryBudget
  ) throws -> Bool {
    let context = try EvaluationContext(
      compiled.program, sources: compiled.sourceCount, slots: compiled.slotCount)
    var found = false
    let output = RowOutput.receiver { _ in
      found = true
      return false
    }
    try run(
      compiled, context, snapshot, sharedKeys, parameters, cancellation, budget, output: output)
    return found
  }
}
