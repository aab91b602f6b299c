import Documents
import Fleece
import Storage

/// Where a query reads: a database, as the query sees it.
public struct QuerySource: Sendable {
  /// The database's name, which FROM may use.
  public let name: String
  /// What is known of its indexes: one for all queries of the database.
  public let knowledge: PlanningKnowledge
  /// Runs its argument on one snapshot, or in the batch of the calling thread.
  public let read: @Sendable (_ body: (DocumentSnapshot) throws -> Void) throws -> Void

  /// A source; see the properties.
  public init(
    name: String, knowledge: PlanningKnowledge,
    read: @escaping @Sendable (_ body: (DocumentSnapshot) throws -> Void) throws -> Void
  ) {
    self.name = name
    self.knowledge = knowledge
    self.read = read
  }
}

/// A query that is prepared once and run any number of times, with other parameters, on any thread.
///
/// ```swift
/// let hotels = try travel.query("SELECT name FROM _ WHERE type = $type ORDER BY name LIMIT 10")
/// for row in try hotels.run(["type": "hotel"]) { print(row["name"].string ?? "-") }
/// ```
///
/// Each run is on one snapshot; inside a batch of the same thread it sees what the batch has written. It is planned
/// anew when indexes were made or removed.
public final class Query: Sendable {
  /// What EXPLAIN asks for.
  enum Purpose: Sendable {
    case rows
    case plan(analyze: Bool)
  }

  /// How a query is planned and run.
  public struct Options: Sendable {
    /// Whether value indexes, and lookups by ID, may be used. Off for tests and measurements.
    public var usesIndexes: Bool
    /// How many bytes one run may take for rows that it has to keep: those that ORDER BY sorts, DISTINCT tells apart,
    /// GROUP BY groups and a hash join finds. Past it the run throws `memoryLimit`, which names the clause. The rows that
    /// `run` returns don't count. What is computed for one row may take as much once more.
    public var memoryLimit: Int

    /// The default of `memoryLimit`: 256 MiB.
    public static let defaultMemoryLimit = 256 << 20

    /// Options; see the properties.
    public init(usesIndexes: Bool = true, memoryLimit: Int = Options.defaultMemoryLimit) {
      self.usesIndexes = usesIndexes
      self.memoryLimit = memoryLimit
    }
  }

  /// A plan, and what it was made for.
  private struct Prepared {
    var knowledge: IndexKnowledge
    var compiled: CompiledQuery
  }

  /// Contexts that no run uses at the moment.
  private struct Idle: @unchecked Sendable {
    var compiled: CompiledQuery?
    var contexts: [EvaluationContext] = []
  }

  /// The query.
  public let statement: SelectStatement
  /// The text it was made from; nil when it was built.
  public let text: String?
  private let source: QuerySource
  private let purpose: Purpose
  private let options: Options
  private let resolved: ResolvedQuery
  private let columns: ResultColumns
  private let prepared = Lock<Prepared?>(nil)
  private let idle = Lock(Idle())

  /// Prepares a query from its text, which may begin with EXPLAIN.
  ///
  /// - Throws: a `QueryError` that says what is wrong, where, and what was expected.
  public convenience init(_ text: String, in source: QuerySource, options: Options = Options()) throws {
    switch try Statement(parsing: text) {
    case .select(let statement): try self.init(statement, text, .rows, source, options)
    case .explain(let statement, let analyze):
      try self.init(statement, text, .plan(analyze: analyze), source, options)
    }
  }

  /// Prepares a query that was built.
  ///
  /// - Throws: a `QueryError` that says what is wrong, and where in the text of what was built.
  public convenience init(_ statement: SelectStatement, in source: QuerySource, options: Options = Options())
    throws
  {
    let statement = try statement.bounded()
    do { try self.init(statement, nil, .rows, source, options) } catch let error as QueryError
      where error.location == nil
    {
      throw statement.located(error, databaseName: source.name)
    }
  }

  private init(
    _ statement: SelectStatement, _ text: String?, _ purpose: Purpose, _ source: QuerySource,
    _ options: Options
  ) throws {
    self.statement = statement
    self.text = text
    self.purpose = purpose
    self.source = source
    self.options = options
    resolved = try NameResolver.resolve(statement, databaseName: source.name, text: text)
    columns = ResultColumns(resolved.columns.map(\.name.string))
    // Mistakes that only compiling finds are told now, not at the first run, which then has its plan.
    _ = try read { try prepare($0, QueryCancellation()) }
  }

  /// The names of the columns, in their order.
  public var columnNames: [String] { if case .plan = purpose { ["plan"] } else { columns.names } }

  /// The names of the parameters it uses, in order of first use.
  public var parameterNames: [String] { statement.parameterNames }

  // MARK: Running

  /// Runs the query, and returns all of its rows. It begins again when the engine says that its snapshot has expired.
  ///
  /// - Throws: `QueryError`: `unsetParameter` names a parameter that has no value; `cancelled` and `timedOut`;
  ///   `memoryLimit`; `evaluation`.
  public func run(
    _ parameters: [String: JSONValue] = [:], cancellation: QueryCancellation = QueryCancellation()
  )
    throws -> QueryResults
  {
    if case .plan(let analyze) = purpose {
      let storage = ResultStorage(ResultColumns(["plan"]))
      let explanation = try explain(analyze: analyze, parameters, cancellation: cancellation)
      for line in explanation.lines { storage.append(text: line) }
      return QueryResults(storage)
    }
    return try read { try run(parameters, on: $0, cancellation: cancellation) }
  }

  /// Runs the query, which isn't EXPLAIN, on a snapshot of its database.
  func run(
    _ parameters: [String: JSONValue], on snapshot: DocumentSnapshot, cancellation: QueryCancellation
  ) throws -> QueryResults {
    let storage = ResultStorage(columns)
    try execute(parameters, cancellation, on: snapshot) { _ in .storage(storage) }
    return QueryResults(storage)
  }

  /// Whether its rows depend on when documents expire.
  package var readsExpirations: Bool { resolved.readsExpirations }

  /// What tells which commits can matter to its rows; nil when all can.
  package func relevance() throws -> QueryRelevance? {
    guard case .rows = purpose else { return nil }
    return try QueryRelevance(resolved, in: source)
  }

  /// Runs the query, unless nothing has changed since the last call that can matter to its rows: then the result is nil.
  package func runIfConcerned(
    by relevance: QueryRelevance, purged: [String], _ parameters: [String: JSONValue],
    cancellation: QueryCancellation
  ) throws -> QueryResults? {
    try read { snapshot in
      // On one snapshot: what the rows are of, is what is known then.
      let concerns: Bool
      do { concerns = try relevance.mayConcern(snapshot, purged: purged, parameters, cancellation) } catch {
        // A condition that can't be computed of a document, which the query itself may never look at.
        relevance.forget()
        concerns = true
      }
      guard concerns else { return nil }
      do { return try run(parameters, on: snapshot, cancellation: cancellation) } catch {
        // The changes that were noted have given no rows.
        relevance.forget()
        throw error
      }
    }
  }

  /// Runs the query, and calls `body` with each row until it returns false. Memory doesn't grow with the number of
  /// rows, but for what has to be sorted or grouped. The snapshot is open meanwhile: in a batch nothing can be
  /// written inside of `body`.
  ///
  /// - Throws: what `run` throws, and what `body` does. `StorageError.snapshotExpired` when the engine says so after
  ///   `body` has had a row: the rows of a new snapshot would not belong to those. (SQLite and LMDB never say so.)
  public func forEach(
    _ parameters: [String: JSONValue] = [:], cancellation: QueryCancellation = QueryCancellation(),
    _ body: (QueryRow) throws -> Bool
  ) throws {
    if case .plan = purpose {
      for row in try run(parameters, cancellation: cancellation) {
        guard try body(row) else { return }
      }
      return
    }
    var storage = ResultStorage(columns)
    var hasHandedOut = false
    try withoutActuallyEscaping(body) { body in
      try read(while: { !hasHandedOut }) { snapshot in
        try execute(parameters, cancellation, on: snapshot) { [columns] sharedKeys in
          .receiver { values in
            // Rows share memory in turns of some kilobytes; those that are kept keep theirs.
            if storage.allocatedBytes > 4096 || !isKnownUniquelyReferenced(&storage) {
              storage = ResultStorage(columns, capacity: 1024)
            }
            hasHandedOut = true
            return try body(QueryRow(storage, storage.copy(values, sharedKeys)))
          }
        }
      }
    }
  }

  /// Runs `body` on a snapshot. When the engine says that it has expired, `body` is run again on a new one, as long as
  /// `isRepeatable` says so.
  private func read<Result>(
    while isRepeatable: () -> Bool = { true }, _ body: (DocumentSnapshot) throws -> Result
  ) throws -> Result {
    var result: Result?
    try repeating(.snapshotExpired, while: isRepeatable) {
      try source.read { result = try body($0) }
    }
    // The source ran the body, or threw.
    return result.unsafelyUnwrapped
  }

  private func execute(
    _ parameters: [String: JSONValue], _ cancellation: QueryCancellation, on snapshot: DocumentSnapshot,
    _ output: (SharedKeys) -> RowOutput
  ) throws {
    let compiled = try prepare(snapshot, cancellation)
    let context = try takeContext(compiled)
    let sharedKeys = try snapshot.sharedKeys
    try QueryExecution.run(
      compiled, context, snapshot, sharedKeys, parameters, cancellation,
      MemoryBudget(limit: options.memoryLimit), output: output(sharedKeys))
    giveBack(context, compiled)
  }

  // MARK: Plans

  /// The plan for a snapshot: the last one when nothing has changed that it depends on.
  private func prepare(_ snapshot: DocumentSnapshot, _ cancellation: QueryCancellation) throws
    -> CompiledQuery
  {
    let knowledge = try source.knowledge.of(snapshot)
    if let known = prepared.withLock({ $0 }), known.knowledge === knowledge {
      return known.compiled
    }
    var context = PlanningContext(knowledge, usesIndexes: options.usesIndexes)
    if resolved.usesFullText {
      try context.addFullText(
        of: resolved, snapshot, text: text, cancellation, MemoryBudget(limit: options.memoryLimit))
    }
    let compiled = try CompiledQuery(Planner.plan(resolved, context), context)
    prepared.withLock { $0 = Prepared(knowledge: knowledge, compiled: compiled) }
    return compiled
  }

  private func takeContext(_ compiled: CompiledQuery) throws -> EvaluationContext {
    let known = idle.withLock { idle -> Transferred? in
      guard idle.compiled === compiled else { return nil }
      return idle.contexts.popLast().map(Transferred.init)
    }
    if let known { return known.context }
    return try EvaluationContext(compiled.program, sources: compiled.sourceCount, slots: compiled.slotCount)
  }

  private func giveBack(_ context: EvaluationContext, _ compiled: CompiledQuery) {
    let transferred = Transferred(context: context)
    idle.withLock { idle in
      if idle.compiled !== compiled {
        idle.compiled = compiled
        idle.contexts = []
      }
      if idle.contexts.count < 4 { idle.contexts.append(transferred.context) }
    }
  }

  /// A context on its way to a run, which alone uses it.
  private struct Transferred: @unchecked Sendable {
    let context: EvaluationContext
  }

  /// How the rows would be found; with `analyze` the query is run, and each step tells its rows and its time.
  public func explain(
    analyze: Bool = false, _ parameters: [String: JSONValue] = [:],
    cancellation: QueryCancellation = QueryCancellation()
  ) throws -> QueryExplanation {
    try read { snapshot in
      let compiled = try prepare(snapshot, cancellation)
      guard analyze else { return QueryExplanation(compiled, nil) }
      let context = try takeContext(compiled)
      let sharedKeys = try snapshot.sharedKeys
      var rows = 0
      let begin = ContinuousClock.now
      let counts = try QueryExecution.run(
        compiled, context, snapshot, sharedKeys, parameters, cancellation,
        MemoryBudget(limit: options.memoryLimit), isTimed: true,
        output: .receiver { _ in
          rows += 1
          return true
        })
      let time = begin.duration(to: .now).wholeNanoseconds
      giveBack(context, compiled)
      return QueryExplanation(
        compiled, QueryExplanation.Measured(steps: counts, rows: rows, nanoseconds: time))
    }
  }
}

extension SelectStatement {
  /// The names of its parameters, in order of first use.
  public var parameterNames: [String] { parameters.map(\.string) }

  private var parameters: [ByteString] {
    var names: [ByteString] = []
    func collect(_ expression: Expression) {
      if case .parameter(let name) = expression, !names.contains(name) { names.append(name) }
      if case .exists(let inner) = expression {
        for name in inner.parameters where !names.contains(name) { names.append(name) }
      }
      expression.forEachPart(collect)
    }
    for result in results { collect(result.expression) }
    for join in joins {
      switch join {
      case .join(_, _, let condition): if let condition { collect(condition) }
      case .unnest(let array, _, _): collect(array)
      }
    }
    for part in [condition, having, limit, offset].compactMap({ $0 }) + groupBy + orderBy.map(\.expression) {
      collect(part)
    }
    return names
  }
}
