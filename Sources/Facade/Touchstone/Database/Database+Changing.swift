import Documents
import Fleece
import Query
import Storage

// Statements that change documents: UPDATE, DELETE, INSERT, UPSERT, MERGE (docs/query-changes.md). Those that change indexes are
// in Database+IndexStatements.swift.

extension Database {
  /// Runs a statement that changes documents or indexes, in one transaction, all or nothing.
  ///
  /// ```swift
  /// let changed = try travel.execute("UPDATE _ SET stars = stars + 1 WHERE type = 'hotel' AND city = $city", ["city": "Rome"])
  /// print(changed.documents.count)
  /// ```
  ///
  /// All documents are found before the first one is changed. Each change is a new revision, as `save` and
  /// `delete` make it: validation functions are asked, blobs are kept, and indexes are brought up to date.
  /// Inside of `inBatch` the statement sees the writes of the batch, and joins it.
  ///
  /// - Parameters:
  ///   - statement: the text of an UPDATE, DELETE, INSERT, UPSERT, MERGE, CREATE INDEX, DROP INDEX or BUILD INDEX.
  ///   - parameters: the values of its parameters, by their names without `$`.
  ///   - isDryRun: whether everything is undone at the end. The results tell what would have changed. It isn't
  ///     possible inside of a batch.
  ///   - options: the limits of the queries that find documents. The time limit is that of the whole statement.
  ///   - cancellation: ends the statement before its commit, and nothing has changed then.
  /// - Throws: a `QueryError` for a mistake in the statement, and the errors of `Query.run`. `conflict` for an
  ///   INSERT of a document that exists. The errors of `save` and `delete`.
  @discardableResult
  public func execute(
    _ statement: String, _ parameters: [String: JSONValue] = [:], isDryRun: Bool = false,
    options: Query.Options? = nil, cancellation: QueryCancellation = QueryCancellation()
  ) throws -> ChangeResults {
    try execute(
      statement, parameters, isDryRun: isDryRun, options: options, cancellation: cancellation,
      allowing: nil)
  }

  /// Runs a statement that changes documents, with parameters of any type that has a JSON form.
  @discardableResult
  @_disfavoredOverload
  public func execute(
    _ statement: String, _ parameters: [String: any JSONConvertible], isDryRun: Bool = false,
    options: Query.Options? = nil, cancellation: QueryCancellation = QueryCancellation()
  ) throws -> ChangeResults {
    try execute(
      statement, parameters.jsonValues, isDryRun: isDryRun, options: options, cancellation: cancellation)
  }

  /// The same. `allowing` is called before each change, and can throw to undo all.
  package func execute(
    _ statement: String, _ parameters: [String: JSONValue], isDryRun: Bool, options: Query.Options?,
    cancellation: QueryCancellation, allowing: ((StatementChange) throws -> Void)?
  ) throws -> ChangeResults {
    let store = try writable
    if isDryRun, store.isInBatch {
      throw StorageError(
        .invalidArgument, "a dry run undoes what it did, and so can't be a part of a transaction", path: path)
    }
    let given = try expanded(statement, parameters, options: options)
    let index = given.index
    try index?.check(databaseName: name, in: given.text)
    let options = options ?? queryOptions
    let change = index == nil ? try PreparedChange(given.text, in: querySource, options: options) : nil
    func run(_ cancellation: QueryCancellation) throws -> ChangeResults {
      try store.inBatch {
        var results = ChangeResults()
        if let index { results.indexes = try perform(index) }
        if let change { results = try perform(change, given.parameters, options, cancellation, allowing) }
        if isDryRun { throw DryRun(results: results) }
        return results
      }
    }
    do {
      guard let timeLimit = options.timeLimit else { return try run(cancellation) }
      return try cancellation.withTimeLimit(timeLimit, run)
    } catch let dryRun as DryRun { return dryRun.results }
  }

  /// Undoes the transaction of a dry run.
  private struct DryRun: Error {
    let results: ChangeResults
  }

  private func perform(
    _ change: PreparedChange, _ parameters: [String: JSONValue], _ options: Query.Options,
    _ cancellation: QueryCancellation, _ allowing: ((StatementChange) throws -> Void)?
  ) throws -> ChangeResults {
    let store = try writable
    // Who has to allow a change needs its whole body.
    let paths = allowing == nil ? change.plan.propertyPaths : nil
    let memory = StatementMemory(options)
    let returned = KeptRows(memory)
    var results = ChangeResults()
    results.memory = memory
    results.columnNames = change.returning?.columnNames ?? []
    let rows = try change.selection.run(parameters, cancellation: cancellation, keepingIn: memory)
    func add(_ id: String, _ kind: ChangeResults.Kind) throws {
      try memory.take(
        MemoryLayout<ChangeResults.Document>.stride + (id.utf8.count > 15 ? id.utf8.count + 32 : 0))
      results.documents.append(.init(id: id, kind: kind))
    }
    func returning(_ id: String) throws {
      guard let query = change.returning else { return }
      var values = parameters
      values[ChangePlan.idParameter] = .string(id)
      try query.run(values, cancellation: cancellation, addingTo: returned)
    }
    try change.plan.forEachChange(of: rows) { id, request in
      try cancellation.check()
      let stored = try document(id)
      switch request {
      case .update(let terms):
        // A tombstone stays one.
        guard let stored else { return }
        if let paths, !stored.isDeleted,
          try store.save(stored, changing: AppliedTerm.changes(terms, at: paths)) != nil
        {
          try add(id, .updated)
          return try returning(id)
        }
        var document = try MutableDocument(stored)
        AppliedTerm.apply(terms, to: &document.body)
        let change = StatementChange(id: id, stored: stored, body: document.body)
        try allowing?(change)
        try save(&document, onConflict: .fail)
        try add(id, change.deletes ? .deleted : .updated)
        try returning(id)
      case .delete:
        guard let stored else { return }
        try allowing?(StatementChange(id: id, stored: stored, body: nil))
        try returning(id)
        try delete(id, basedOn: stored.revisionID, onConflict: .fail)
        try add(id, .deleted)
      case .insert(let body, let replaces):
        if stored != nil, !replaces {
          throw DocumentError(
            .conflict, "INSERT found a document with that ID; UPSERT replaces it", documentID: id)
        }
        let change = StatementChange(id: id, stored: stored, body: body)
        try allowing?(change)
        try save(id, .value(body), basedOn: stored?.revisionID)
        let kind: ChangeResults.Kind = stored == nil ? .inserted : .updated
        try add(id, change.deletes ? .deleted : kind)
        try returning(id)
      }
    }
    results.rows = returned.rows
    return results
  }
}

extension Database {
  /// Runs a statement that changes documents, in one transaction, on the database's thread for asynchronous
  /// writes. See the synchronous `execute`.
  ///
  /// If the task is cancelled before the commit, everything is rolled back.
  @discardableResult
  public func execute(
    _ statement: String, _ parameters: [String: JSONValue] = [:], options: Query.Options? = nil
  ) async throws -> ChangeResults {
    try await inBatch { try self.execute(statement, parameters, options: options) }
  }
}
