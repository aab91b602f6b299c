import Documents
import Fleece

extension QueryExecution {
  /// Runs a query on a snapshot. No other run may use `resources`, which belong to the query. With `rowLimit`,
  /// at most one row more than that is put out. Returns the counts of each step of a timed run.
  @discardableResult
  static func run(
    _ compiled: CompiledQuery, _ resources: RunResources, _ snapshot: DocumentSnapshot,
    _ sharedKeys: SharedKeys, _ parameters: [String: JSONValue],
    _ cancellation: QueryCancellation, _ budget: QueryMemoryBudget, rowLimit: Int? = nil,
    isTimed: Bool = false,
    output: RowOutput
  ) throws -> [StepCounts] {
    let context = resources.context
    defer { end(context) }
    try begin(
      compiled, context,
      SubqueryRuns.Environment(
        snapshot: snapshot, sharedKeys: sharedKeys, parameters: parameters, cancellation: cancellation,
        budget: budget))
    resources.begin(try snapshot.version)
    let execution = try QueryExecution(
      compiled, resources, snapshot, sharedKeys,
      try sink(compiled, resources, output, rowLimit: rowLimit), cancellation, isTimed: isTimed)
    try execution.run()
    return isTimed ? compiled.steps.indices.map { execution.counts[$0] } : []
  }

  /// Prepares a context for runs of a query, with its parameters and its inner queries.
  static func begin(
    _ compiled: CompiledQuery, _ context: EvaluationContext, _ environment: SubqueryRuns.Environment
  ) throws {
    let snapshot = environment.snapshot
    context.begin(environment.sharedKeys)
    context.begin(environment.cancellation, environment.budget)
    context.arena.reset()
    try context.bind(environment.parameters)
    if !compiled.matches.isEmpty { try beginMatches(compiled, context, snapshot) }
    context.revisionID = { row in
      guard row.isDocument else { return nil }
      return try DocumentSnapshot.revisionID(ofRecord: row.record.bytes).description
    }
    context.expiration = { id in
      try snapshot.expiration(ofBytes: id.bytes.bytes)
    }
    for index in 0..<compiled.sourceCount { context.rows[index] = SourceRow() }
    guard !compiled.subqueries.isEmpty else { return }
    let subqueries = SubqueryRuns(compiled.subqueries, environment)
    context.subqueries = subqueries
    // The results of EXISTS that are the same for all rows.
    for (number, subquery) in compiled.subqueries.enumerated() {
      guard let slot = subquery.slot else { continue }
      let none = context.arena.allocate(1, of: QueryValue.self)
      context.slots[slot] = try subqueries.value(number, none, context, isKept: false)
    }
  }

  /// Ends the runs in a context.
  static func end(_ context: EvaluationContext) {
    context.revisionID = nil
    context.expiration = nil
    context.matches = []
    context.subqueries = nil
  }

  /// The operations after the last step: groups, order, results.
  private static func sink(
    _ compiled: CompiledQuery, _ resources: RunResources, _ output: RowOutput, rowLimit: Int? = nil
  ) throws -> RowSink {
    let context = resources.context
    var window = try RowWindow(compiled, context)
    if let rowLimit, rowLimit < window.limit ?? .max { window.limit = rowLimit + 1 }
    let projection: RowSink =
      compiled.orderBy.isEmpty
      ? ProjectingSink(
        compiled, context, window, resources.values, resources.distinctRows(), output)
      : SortingSink(compiled, context, window, output)
    let windowed = compiled.windows.map { WindowSink($0, context, projection) } ?? projection
    return compiled.grouping.map { GroupingSink($0, context, windowed) } ?? windowed
  }

  /// Runs the query once more in its context, with other values of captures.
  func runAgain(_ output: RowOutput) throws {
    begin(try QueryExecution.sink(compiled, resources, output))
    defer { begin(RowSink()) }
    try run()
  }
}
