import Documents
import Fleece
import Logs
import Storage

/// The database that a query reads.
package struct QuerySource: Sendable {
  /// The database's name. FROM may use it.
  package let name: String
  /// The planner's knowledge of the indexes. All queries of a database share it.
  package let knowledge: PlanningKnowledge
  /// The threads of asynchronous runs.
  package let readers: Workers
  /// Runs `body` on one snapshot. Inside a batch of the calling thread, the snapshot is that of the batch.
  package let read: @Sendable (_ body: (DocumentSnapshot) throws -> Void) throws -> Void

  /// Where runs are logged; nil if they aren't.
  let log: QueryLog?
  /// The time from which a run is slow, in nanoseconds; nil if none is.
  let slowThreshold: UInt64?

  /// Creates a source. See the properties.
  package init(
    name: String, knowledge: PlanningKnowledge, readers: Workers, log: QueryLog? = nil,
    slowThreshold: UInt64? = nil,
    read: @escaping @Sendable (_ body: (DocumentSnapshot) throws -> Void) throws -> Void
  ) {
    self.name = name
    self.knowledge = knowledge
    self.readers = readers
    self.log = log
    self.slowThreshold = slowThreshold
    self.read = read
  }
}

/// A prepared query. It can be run any number of times, with different parameters, on any thread.
///
/// ```swift
/// let hotels = try travel.query("SELECT name FROM _ WHERE type = $type ORDER BY name LIMIT 10")
/// for row in try hotels.run(["type": "hotel"]) { print(row["name"].string ?? "-") }
/// ```
///
/// Each run reads one snapshot. Inside a batch of the same thread, it sees the writes of the batch. The query
/// is planned again after indexes were created or removed.
///
/// The synchronous calls run on the calling thread. The asynchronous ones run on threads of the database and
/// are cancelled with their task.
public final class Query: Sendable {
  /// What a run returns: rows, or for EXPLAIN the plan.
  enum Purpose: Sendable {
    case rows
    case plan(analyze: Bool)
    /// The lines of ADVISE.
    case advice
    /// The name that PREPARE gives to a statement.
    case prepare(name: ByteString, replaces: Bool, QueryStatement)

    /// The name of the only column, whose values are lines. Nil for rows.
    var column: String? {
      switch self {
      case .rows: nil
      case .plan: "plan"
      case .advice: "advice"
      case .prepare: "name"
      }
    }
  }

  /// A compiled plan, and the knowledge it was made with.
  private struct Prepared {
    var knowledge: IndexKnowledge
    var compiled: CompiledQuery
    /// The version of the last snapshot in which the knowledge was found to be valid, if that is known.
    var version: SnapshotVersion?
  }

  /// Resources of the runs of one plan that no run is using.
  private struct Idle: @unchecked Sendable {
    var compiled: CompiledQuery?
    var resources: [RunResources] = []
  }

  /// The syntax tree of the query.
  public let statement: SelectStatement
  /// The text of the query. Nil when it was built.
  public let text: String?
  let source: QuerySource
  private let purpose: Purpose
  let options: Options
  /// The values that EXECUTE gives to parameters.
  private let fixed: [String: JSONValue]
  private let inference: InferStatement?
  /// The sources about the database that it reads.
  private let systemKeyspaces: Set<SystemKeyspace>
  private let resolved: ResolvedQuery
  let columns: ResultColumns
  private let prepared = Lock<Prepared?>(nil)
  private let idle = Lock(Idle())

  /// Prepares a query from its text, which may begin with EXPLAIN, or be JSON (`SelectStatement(json:)`).
  ///
  /// - Throws: a `QueryError` with the mistake, its position, and what was expected.
  package convenience init(_ text: String, in source: QuerySource, options: Options = Options()) throws {
    if SelectStatement.isJSON(text) {
      try self.init(SelectStatement(jsonText: text), in: source, options: options)
      return
    }
    var statement = try QueryStatement(parsing: text)
    var text = text
    var fixed: [String: JSONValue] = [:]
    if case .execute(let name, let using) = statement {
      fixed = try QuerySource.values(of: using, in: text)
      statement = try source.knowledge.statements.statement(name, of: options.statementOwner, in: text)
      text = statement.description
    }
    let (select, purpose, inference) = try Self.form(of: statement, text, source, options)
    try self.init(select, text, purpose, source, options, fixed: fixed, inference: inference)
  }

  /// The query that gives the rows of a statement, and what is returned of it.
  private static func form(
    of statement: QueryStatement, _ text: String, _ source: QuerySource, _ options: Options
  ) throws -> (SelectStatement, Purpose, InferStatement?) {
    switch statement {
    case .select(let select): return (select, .rows, nil)
    case .change(let change):
      throw QueryError(
        .invalidUse, "\(change.word) changes documents, and a query only reads; run it with execute",
        at: SourcePosition(0), in: text)
    case .index:
      throw QueryError(
        .invalidUse, "this statement changes indexes, and a query only reads; run it with execute",
        at: SourcePosition(0), in: text)
    case .explain(let select, let analyze): return (select, .plan(analyze: analyze), nil)
    case .advise(let select): return (select, .advice, nil)
    case .infer(let inference):
      let known: [ByteString] = ["_", "_default", ByteString(source.name)]
      guard known.contains(inference.source.name) else {
        throw QueryError(
          .unknownName,
          "there is no \"\(inference.source.name)\"; the documents of the database are _ or \(source.name)",
          at: inference.source.position, in: text)
      }
      let schema = SystemKeyspace.schema
      var select = SelectStatement(
        results: [ResultColumn(.star(source: nil), as: nil)],
        source: DataSource(ByteString(schema.name), as: ByteString(schema.rawValue)))
      select.isRaw = true
      return (select, .rows, inference)
    case .prepare(let name, let replaces, let inner):
      var select = SelectStatement(results: [ResultColumn(.literal(.null), as: nil)])
      // Mistakes are found now.
      let innerText = inner.description
      switch inner {
      case .change: _ = try PreparedChange(innerText, in: source, options: options)
      case .index(let index): try index.check(databaseName: source.name, in: innerText)
      default: select = try Self.form(of: inner, text, source, options).0
      }
      let made = name ?? ByteString("p" + String(UInt64.random(in: 0 ... .max), radix: 16))
      return (select, .prepare(name: made, replaces: replaces, inner), nil)
    case .execute:
      throw QueryError(.invalidUse, "EXECUTE can't name another EXECUTE", at: SourcePosition(0), in: text)
    }
  }

  /// Prepares a query that a program built.
  ///
  /// - Throws: a `QueryError` with the mistake, and its position in the text that the statement prints as.
  package convenience init(_ statement: SelectStatement, in source: QuerySource, options: Options = Options())
    throws
  {
    let statement = try statement.bounded()
    do { try self.init(statement, nil, .rows, source, options) } catch let error as QueryError
      where error.location == nil
    {
      throw statement.located(error, databaseName: source.name)
    }
  }

  /// Prepares a part of a statement with that text.
  convenience init(
    _ statement: SelectStatement, text: String, in source: QuerySource, options: Options
  ) throws {
    try self.init(statement, text, .rows, source, options)
  }

  private init(
    _ statement: SelectStatement, _ text: String?, _ purpose: Purpose, _ source: QuerySource,
    _ options: Options, fixed: [String: JSONValue] = [:], inference: InferStatement? = nil
  ) throws {
    self.statement = statement
    self.text = text
    self.purpose = purpose
    self.source = source
    self.options = options
    self.fixed = fixed
    self.inference = inference
    let resolved = try NameResolver.resolve(
      statement, databaseName: source.name, starColumnName: options.starColumnName, text: text)
    self.resolved = resolved
    systemKeyspaces = resolved.systemKeyspaces
    columns = ResultColumns(resolved)
    // Reports errors of compilation now instead of at the first run. The plan is ready for the first run
    // then.
    _ = try read { try prepare($0, QueryCancellation()) }
  }

  /// The names of the columns, in order.
  public var columnNames: [String] { purpose.column.map { [$0] } ?? columns.names }

  /// The index of the column that identifies rows.
  ///
  /// - Throws: `unknownName` when there is no column of this name.
  package func columnIndex(ofKey name: String) throws -> Int {
    let names = columnNames
    guard let index = names.firstIndex(where: { ByteString($0) == ByteString(name) }) else {
      throw QueryError(
        .unknownName,
        "the query has no column \"\(name)\" whose values identify rows; its columns are "
          + names.joined(separator: ", "))
    }
    return index
  }

  /// The names of the parameters that the query uses, in order of first use.
  public var parameterNames: [String] {
    if case .prepare = purpose { return [] }
    return statement.parameterNames.filter { fixed[$0] == nil }
  }

  // MARK: Running

  /// Runs the query and returns all rows. When the engine reports that the snapshot has expired, the run
  /// begins again on a new snapshot.
  ///
  /// - Throws: a `QueryError`: `unsetParameter`, which names a parameter without a value, `cancelled`,
  ///   `timedOut`, `memoryLimit`, `rowLimit` or `evaluation`.
  public func run(
    _ parameters: [String: JSONValue] = [:], cancellation: QueryCancellation = QueryCancellation()
  )
    throws -> QueryResults
  {
    if let column = purpose.column {
      let storage = ResultStorage(ResultColumns([column]))
      for line in try lines(parameters, cancellation) { storage.append(text: line) }
      return QueryResults(storage)
    }
    return try limited(cancellation) { cancellation in
      try read { try run(parameters, on: $0, cancellation: cancellation) }
    }
  }

  /// Calls `body` with a cancellation that also ends after the time limit of the query's options.
  func limited<Result>(
    _ cancellation: QueryCancellation, _ body: (QueryCancellation) throws -> Result
  ) rethrows -> Result {
    guard let timeLimit = options.timeLimit else { return try body(cancellation) }
    return try cancellation.withTimeLimit(timeLimit, body)
  }

  /// Runs a query that isn't EXPLAIN on a snapshot of its database.
  func run(
    _ parameters: [String: JSONValue], on snapshot: DocumentSnapshot, cancellation: QueryCancellation
  ) throws -> QueryResults {
    let storage = ResultStorage(columns)
    try execute(parameters, cancellation, on: snapshot, rows: { storage.count }) { _ in .storage(storage) }
    if let limit = options.rowLimit, storage.count > limit { throw Options.rowLimitError(limit) }
    return QueryResults(storage)
  }

  /// Whether the rows depend on the expiration times of documents.
  package var readsExpirations: Bool { resolved.readsExpirations }

  /// Creates the filter that tells which commits can change the rows of the query. Nil when every commit can.
  package func relevance() throws -> QueryRelevance? {
    guard case .rows = purpose, systemKeyspaces.isEmpty else { return nil }
    return try QueryRelevance(resolved, in: source)
  }

  /// Runs the query, unless no change since the last call can affect its rows. Then the result is nil.
  package func runIfConcerned(
    by relevance: QueryRelevance, purged: [String], _ parameters: [String: JSONValue],
    cancellation: QueryCancellation
  ) throws -> QueryResults? {
    try read { snapshot in
      // The check and the run use the same snapshot, so `relevance` and the rows agree.
      let concerns: Bool
      do {
        concerns = try relevance.mayConcern(
          snapshot, purged: purged, parameters.merging(fixed) { _, value in value }, cancellation)
      } catch {
        // A condition failed for a document. The query itself may never look at that document.
        relevance.forget()
        concerns = true
      }
      guard concerns else { return nil }
      do {
        return try limited(cancellation) { try run(parameters, on: snapshot, cancellation: $0) }
      } catch {
        // The changes were recorded, but produced no rows.
        relevance.forget()
        throw error
      }
    }
  }

  /// Runs the query and calls `body` with each row until it returns false.
  ///
  /// Memory doesn't grow with the number of rows, except for sorting and grouping. The snapshot stays open
  /// during the call. Inside a batch, `body` must not write.
  ///
  /// - Throws: the errors of `run`, and those of `body`. `rowLimit` comes after `body` has received as many
  ///   rows as allowed. `StorageError.snapshotExpired` when the snapshot expires after `body` has received a
  ///   row, because the rows of a new snapshot would not fit the earlier ones. (SQLite and LMDB never report
  ///   this.)
  public func forEach(
    _ parameters: [String: JSONValue] = [:], cancellation: QueryCancellation = QueryCancellation(),
    _ body: (QueryRow) throws -> Bool
  ) throws {
    if purpose.column != nil {
      for row in try run(parameters, cancellation: cancellation) {
        guard try body(row) else { return }
      }
      return
    }
    var storage = ResultStorage(columns)
    var count = 0
    try withoutActuallyEscaping(body) { body in
      try limited(cancellation) { cancellation in
        try read(while: { count == 0 }) { snapshot in
          try execute(parameters, cancellation, on: snapshot, rows: { nil }) {
            [columns, options] sharedKeys in
            .receiver { values in
              if let limit = options.rowLimit, count >= limit { throw Options.rowLimitError(limit) }
              // Rows share blocks of a few kilobytes. A row that the caller keeps also keeps its block.
              if storage.allocatedBytes > 4096 || !isKnownUniquelyReferenced(&storage) {
                storage = ResultStorage(columns, capacity: 1024)
              }
              count += 1
              return try body(QueryRow(storage, storage.copy(values, sharedKeys)))
            }
          }
        }
      }
    }
  }

  /// Runs `body` on a snapshot. When the engine reports that the snapshot has expired, `body` runs again on a
  /// new one, as long as `isRepeatable` returns true.
  func read<Result>(
    while isRepeatable: () -> Bool = { true }, _ body: (DocumentSnapshot) throws -> Result
  ) throws -> Result {
    var result: Result?
    try repeating(.snapshotExpired, while: isRepeatable) {
      try source.read { result = try body($0) }
    }
    // `source.read` either ran the body or threw.
    return result.unsafelyUnwrapped
  }

  func execute(
    _ parameters: [String: JSONValue], _ cancellation: QueryCancellation, on snapshot: DocumentSnapshot,
    rows: () -> Int?, _ output: (SharedKeys) -> RowOutput
  ) throws {
    let begin = source.log?.begin(source.slowThreshold) ?? 0
    guard begin != 0, let log = source.log else {
      _ = try execute(parameters, cancellation, on: snapshot, output)
      return
    }
    do {
      let run = try execute(parameters, cancellation, on: snapshot, output)
      log.end(begin, source.slowThreshold, self, run.compiled, rows: rows(), parameters)
    } catch {
      log.hasFailed(self, error)
      throw error
    }
  }

  private func execute(
    _ parameters: [String: JSONValue], _ cancellation: QueryCancellation, on snapshot: DocumentSnapshot,
    isTimed: Bool = false, _ output: (SharedKeys) -> RowOutput
  ) throws -> (compiled: CompiledQuery, counts: [QueryExecution.StepCounts], fileBytes: Int) {
    let compiled = try prepare(snapshot, cancellation)
    var parameters = parameters
    if !fixed.isEmpty { parameters.merge(fixed) { _, value in value } }
    for keyspace in systemKeyspaces {
      parameters[keyspace.name] = try keyspace.rows(snapshot, source, options, inference, cancellation)
    }
    let resources = try takeResources(compiled)
    let sharedKeys = try snapshot.sharedKeys
    let budget = budget
    let counts = try QueryExecution.run(
      compiled, resources, snapshot, sharedKeys, parameters, cancellation,
      budget, rowLimit: isTimed ? nil : options.rowLimit, isTimed: isTimed,
      output: output(sharedKeys))
    // After an error they aren't used again.
    giveBack(resources, compiled)
    return (compiled, counts, budget.fileBytes)
  }

  /// The memory of one run.
  private var budget: QueryMemoryBudget { options.budget }

  // MARK: Plans

  /// The plan for a snapshot. The last plan is reused when nothing that it depends on has changed.
  private func prepare(_ snapshot: DocumentSnapshot, _ cancellation: QueryCancellation) throws
    -> CompiledQuery
  {
    let version = try snapshot.version
    let last = prepared.withLock { $0 }
    if let last, let version, last.version == version { return last.compiled }
    let knowledge = try source.knowledge.of(snapshot)
    if let last, last.knowledge === knowledge {
      prepared.withLock { prepared in
        if prepared?.compiled === last.compiled { prepared?.version = version }
      }
      return last.compiled
    }
    var context = PlanningContext(knowledge, usesIndexes: options.usesIndexes)
    if resolved.usesFullText {
      try context.addFullText(
        of: resolved, snapshot, text: text, cancellation, budget)
    }
    let compiled = try CompiledQuery(Planner.plan(resolved, context), context)
    prepared.withLock { $0 = Prepared(knowledge: knowledge, compiled: compiled, version: version) }
    if Log.isWritten(.verbose, .query) { source.log?.planned(self, compiled) }
    return compiled
  }

  private func takeResources(_ compiled: CompiledQuery) throws -> RunResources {
    let known = idle.withLock { idle -> Transferred? in
      guard idle.compiled === compiled else { return nil }
      return idle.resources.popLast().map(Transferred.init)
    }
    if let known { return known.resources }
    return try RunResources(compiled)
  }

  private func giveBack(_ resources: RunResources, _ compiled: CompiledQuery) {
    resources.end()
    let transferred = Transferred(resources: resources)
    idle.withLock { idle in
      if idle.compiled !== compiled {
        idle.compiled = compiled
        idle.resources = []
      }
      if idle.resources.count < 4 { idle.resources.append(transferred.resources) }
    }
  }

  /// Resources that are handed to a run. Only that run uses them.
  private struct Transferred: @unchecked Sendable {
    let resources: RunResources
  }

  /// Explains how the query finds its rows. With `analyze` the query is also run, and each step reports its
  /// rows and its time. The row limit of the options doesn't apply.
  public func explain(
    analyze: Bool = false, _ parameters: [String: JSONValue] = [:],
    cancellation: QueryCancellation = QueryCancellation()
  ) throws -> QueryExplanation {
    try limited(cancellation) { cancellation in
      try read { try explain(analyze: analyze, parameters, on: $0, cancellation) }
    }
  }

  /// The lines of EXPLAIN or ADVISE.
  private func lines(
    _ parameters: [String: JSONValue], _ cancellation: QueryCancellation
  ) throws -> [String] {
    switch purpose {
    case .rows: []
    case .plan(let analyze): try explain(analyze: analyze, parameters, cancellation: cancellation).lines
    case .advice: try read { try QueryAdvice(prepare($0, cancellation)).lines }
    case .prepare(let name, let replaces, let statement): try register(name, statement, replaces)
    }
  }

  private func register(_ name: ByteString, _ statement: QueryStatement, _ replaces: Bool) throws -> [String]
  {
    try source.knowledge.statements.set(name, statement, of: options.statementOwner, replaces: replaces)
    return [name.string]
  }

  private func explain(
    analyze: Bool, _ parameters: [String: JSONValue], on snapshot: DocumentSnapshot,
    _ cancellation: QueryCancellation
  ) throws -> QueryExplanation {
    guard analyze else { return QueryExplanation(try prepare(snapshot, cancellation), nil) }
    var rows = 0
    var begin = ContinuousClock.now
    let run = try execute(parameters, cancellation, on: snapshot, isTimed: true) { _ in
      begin = .now
      return .receiver { _ in
        rows += 1
        return true
      }
    }
    let time = begin.duration(to: .now).wholeNanoseconds
    return QueryExplanation(
      run.compiled,
      QueryExplanation.Measured(
        steps: run.counts, rows: rows, nanoseconds: time, fileBytes: run.fileBytes))
  }
}
