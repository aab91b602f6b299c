import Documents
import Fleece
import HTTP
import Query
import Touchstone
import Views

// `POST /{db}/_query` with UPDATE, DELETE, INSERT, UPSERT, MERGE, or CREATE, DROP or BUILD INDEX (docs/http-reading.md).
//
//   request := as for a query, and "dry_run": bool?
//   answer  := {"documents": [ { "id": ID, "change": "inserted" | "updated" | "deleted" }* ], "columns": [ name* ], "rows": [ row* ]}
//           | {"indexes": [ { "name": NAME, "change": "created" | "dropped" | "unchanged" }* ]}

extension DatabaseCall {
  /// Runs a statement that changes documents, as one transaction.
  func changeDocuments(
    _ given: GivenStatement, _ limits: Query.Options, _ request: JSONObject
  ) throws -> HTTPAnswer {
    try checkChange(given)
    let results: ChangeResults
    do {
      results = try database.execute(
        given.text, given.parameters, isDryRun: request["dry_run"]?.bool == true, options: limits,
        cancellation: cancellation(), allowing: check)
    } catch let error as QueryError {
      return try .queryError(error)
    } catch let error as DocumentError { throw CouchDBError(refused: error) }
    guard results.indexes.isEmpty else {
      return try .json([
        "indexes": .array(
          results.indexes.map { ["name": .string($0.name), "change": .string($0.kind.rawValue)] })
      ])
    }
    return try .json([
      "documents": .array(
        results.documents.map { ["id": .string($0.id), "change": .string($0.kind.rawValue)] }),
      "columns": .array(results.columnNames.map { .string($0) }),
      "rows": .array(try results.rows.map { try $0.jsonValue() }),
    ])
  }

  /// Throws when the client may not run a statement that changes documents or indexes.
  func checkChange(_ given: GivenStatement) throws {
    try checkWritable()
    guard given.index != nil else { return }
    guard !name.hasPrefix("_") else {
      throw CouchDBError(403, "forbidden", "a statement can't change databases of the server")
    }
    // As for indexes that are design documents.
    try checkDesignWriter()
  }

  /// Asks the validation functions of design documents, as each save over HTTP does. Documents with a meaning for
  /// the server are changed by their own requests.
  private func check(_ change: StatementChange) throws {
    guard !IncomingID.isDesign(change.id), !name.hasPrefix("_") else {
      throw CouchDBError(
        403, "forbidden", "a statement can't change design documents and databases of the server")
    }
    if try isPartitioned(), change.stored == nil { try Self.checkPartitioned(change.id) }
    guard try database.hasDesignValidations else { return }
    let history = change.stored.map { [$0.revisionID] } ?? []
    let new = try ScriptedRevision(
      id: change.id, history: history, isDeleted: change.body == nil, change.body?.object ?? [:])
    do {
      try database.validate(new, replacing: try database.replaced(change.id, history), by: validationUser())
    } catch { throw CouchDBError(refused: error) }
  }
}
