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
    _ given: GivenStatement, _ limits: Query.Options, isDryRun: Bool
  ) throws -> HTTPAnswer {
    try checkChange(given)
    let results: ChangeResults
    do {
      results = try database.execute(
        given.text, given.parameters, isDryRun: isDryRun, options: limits,
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
    return .json { output in try output.append(results) }
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
    if let body = change.body { try checkSize(body.jsonText().count, reason: change.id) }
    try checkAttachments(change)
    guard try database.hasDesignValidations else { return }
    let history = change.stored.map { [$0.revisionID] } ?? []
    let new = try ScriptedRevision(
      id: change.id, history: history, isDeleted: change.deletes, change.body?.object ?? [:])
    do {
      try database.validate(new, replacing: try database.replaced(change.id, history), by: validationUser())
    } catch { throw CouchDBError(refused: error) }
  }

  /// Throws 400 unless the attachments are some of those that the document has. New ones need checks that only their own requests make.
  private func checkAttachments(_ change: StatementChange) throws {
    let member = "_attachments"
    guard let attachments = change.body?[member], !attachments.isNull else { return }
    let stored = try change.stored.map { try MutableDocument($0).body[member] }
    let isKnown =
      attachments.object?.allSatisfy { name, attachment in
        stored?.object?[name].map { $0 == attachment } ?? false
      } ?? false
    guard isKnown else {
      throw CouchDBError(
        400, "bad_request",
        "a statement can remove attachments of the document \(change.id), and can't make or change them")
    }
  }
}

extension AnswerOutput {
  /// Writes what a statement has changed. The rows count as memory of queries until they are written.
  fileprivate func append(_ results: ChangeResults) throws {
    append("{\"documents\":[")
    for (number, document) in results.documents.enumerated() {
      if number > 0 { append(",") }
      append("{\"id\":")
      append(jsonString: document.id)
      append(",\"change\":")
      append(jsonString: document.kind.rawValue)
      append("}")
      try step()
    }
    append("],\"columns\":")
    try write { try $0.append(JSONValue.array(results.columnNames.map { .string($0) })) }
    append(",\"rows\":[")
    var text: [UInt8] = []
    for (number, row) in results.rows.enumerated() {
      text.removeAll(keepingCapacity: true)
      if number > 0 { append(",") }
      try row.writeJSON(into: &text)
      append(text)
      try step()
    }
    append("]}\n")
  }
}
