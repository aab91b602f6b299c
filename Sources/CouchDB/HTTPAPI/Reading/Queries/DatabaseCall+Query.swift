import Bytes
import Fleece
import HTTP
import Storage
import Touchstone
import Views

// `POST /{db}/_query` runs a N1QL query (docs/http-reading.md).
//
//   request := { "query": text or JSON, "parameters": { name: value }?, "row_limit": n?, "timeout": milliseconds?, "explain": bool? }
//   answer  := '{"columns":[' name* '],"rows":[' CR LF  [ row ( ',' CR LF row )* ]  CR LF ']}' LF
//   row     := an object with the columns that aren't missing; with SELECT RAW a value
//
// A statement that changes documents is run by who may write (DatabaseCall+Changing.swift).

extension DatabaseCall {
  /// The answer of a N1QL query. Its rows are written while it runs.
  func runQuery() throws -> HTTPAnswer {
    let members = try JSONValue(body: jsonBytes())
    guard let request = members.object else {
      throw CouchDBError(400, "bad_request", "Request body must be a JSON object")
    }
    var parameters = try parameters(request["parameters"])
    let milliseconds = min(
      try count(request, "timeout") ?? .max,
      Int(clamping: Int64(service.configuration.requestSeconds * 1_000)))
    var limits = Query.Options(
      memoryLimit: min(Query.Options.defaultMemoryLimit, service.queryMemory.total / 2),
      rowLimit: try count(request, "row_limit"), timeLimit: .milliseconds(milliseconds))
    limits.sharedMemory = service.queryMemory
    limits.temporaryFileLimit = min(Query.Options.defaultTemporaryFileLimit, service.queryFiles.total)
    limits.sharedFiles = service.queryFiles
    limits.statementOwner = statementOwner
    let explains = try flag(request, "explain")
    let query: Query
    do {
      if let json = request["query"], json.array != nil || json.object != nil {
        // The JSON form of LiteCore (docs/query-json.md).
        query = try database.query(SelectStatement(json: json), options: limits)
      } else {
        guard let text = request["query"]?.string else {
          throw CouchDBError(400, "bad_request", "`query` must be a string, an array or an object.")
        }
        let given = try database.expanded(text, parameters, options: limits)
        // Who prepares a statement may run it.
        if let prepared = given.prepared, prepared.changes { try checkChange(prepared) }
        if given.changes {
          guard !explains else {
            throw CouchDBError(
              400, "bad_request", "`explain` is for a query; `dry_run` shows what a statement would change.")
          }
          return try changeDocuments(given, limits, isDryRun: try flag(request, "dry_run"))
        }
        parameters = given.parameters
        query = try database.query(given.text, options: limits)
      }
    } catch let error as QueryError { return try .queryError(error) }
    if explains {
      let cancellation = cancellation()
      do {
        let plan = try query.explain(parameters, cancellation: cancellation)
        return try .json(["plan": .string(plan.description)])
      } catch let error as QueryError { return try .queryError(error) }
    }
    return .queryRows { [parameters] output in
      let cancellation = cancellation()
      output.append("{\"columns\":")
      try output.write { try $0.append(JSONValue.array(query.columnNames.map { .string($0) })) }
      output.append(",\"rows\":[\r\n")
      try QueryRows(query, parameters, cancellation).write(to: output)
      output.append("\r\n]}\n")
    }
  }

  /// Ends a run when nobody waits for the answer any more.
  func cancellation() -> QueryCancellation {
    let cancellation = QueryCancellation()
    request.onCancel { cancellation.cancel() }
    return cancellation
  }

  /// Whose prepared statements a client finds. The user of a token or of a proxy may be somebody else than the user of the server with that
  /// name. Names of users have no colon.
  private var statementOwner: String {
    let context = request.context
    guard let name = context.name else { return "" }
    return context.bringsRoles ? "token:" + name : name
  }

  private func parameters(_ value: JSONValue?) throws -> [String: JSONValue] {
    guard let value, !value.isNull else { return [:] }
    guard let members = value.object else {
      throw CouchDBError(400, "bad_request", "`parameters` must be an object.")
    }
    var parameters: [String: JSONValue] = [:]
    for (name, value) in members {
      parameters[name.utf8.first == UInt8(ascii: "$") ? String(name.dropFirst()) : name] = value
    }
    return parameters
  }

  private func flag(_ request: JSONObject, _ name: String) throws -> Bool {
    guard let value = request[name], !value.isNull else { return false }
    guard let flag = value.bool else {
      throw CouchDBError(400, "bad_request", "`\(name)` must be true or false.")
    }
    return flag
  }

  private func count(_ request: JSONObject, _ name: String) throws -> Int? {
    guard let value = request[name], !value.isNull else { return nil }
    guard let number = value.int, number >= 0 else {
      throw CouchDBError(400, "bad_request", "`\(name)` must be an integer of at least 0.")
    }
    return Int(number)
  }
}

/// Writes the rows of a query.
///
/// The snapshot of a query lasts as long as it runs. So that a slow client doesn't keep it, up to `AnswerOutput.heldBytes` wait for the client.
private struct QueryRows {
  private let query: Query
  private let parameters: [String: JSONValue]
  private let cancellation: QueryCancellation

  init(_ query: Query, _ parameters: [String: JSONValue], _ cancellation: QueryCancellation) {
    self.query = query
    self.parameters = parameters
    self.cancellation = cancellation
  }

  func write(to output: AnswerOutput) throws {
    var row: [UInt8] = []
    var isFirst = true
    try query.forEach(parameters, cancellation: cancellation) { found in
      row.removeAll(keepingCapacity: true)
      if !isFirst { row += [0x2C, 0x0D, 0x0A] }
      isFirst = false
      try found.writeJSON(into: &row)
      output.append(row)
      try output.step(holding: AnswerOutput.heldBytes)
      return true
    }
  }
}

extension AnswerOutput {
  /// How much of an answer waits in memory for a slow client while a snapshot is held.
  static let heldBytes = 8 << 20
}

extension HTTPAnswer {
  /// The answer to a query that is wrong or fails: an error as CouchDB's, and the kind and the place in the text.
  static func queryError(_ error: QueryError) throws -> HTTPAnswer {
    var body: JSONObject = [
      "error": "query_error", "reason": .string(words(of: error.message)),
      "code": .string(error.code.rawValue),
    ]
    if let location = error.location {
      body["line"] = JSONValue(location.line)
      body["column"] = JSONValue(location.column)
      body["offset"] = JSONValue(location.offset)
      body["excerpt"] = .string(location.excerpt)
    }
    let status =
      switch error.code {
      case .timedOut: 408
      case .memoryLimit, .diskLimit, .rowLimit: 413
      case .memoryBusy: 503
      case .cancelled, .snapshotEnded: 500
      default: 400
      }
    return try .json(
      .object(body), status: status, headers: status == 503 ? [.init("Retry-After", "1")] : [])
  }

  /// A message without the names of the library's settings, which clients don't have.
  private static func words(of message: String) -> String {
    let table = [
      ("set a higher Query.Options.rowLimit", "ask for a higher row_limit"),
      (", or set a higher Query.Options.memoryLimit", ""),
      (", or set a higher Query.Options.temporaryFileLimit", ""),
    ]
    return table.reduce(message) { message, entry in
      guard let range = message.firstRange(of: entry.0) else { return message }
      return String(message[..<range.lowerBound]) + entry.1 + String(message[range.upperBound...])
    }
  }

  /// An answer of rows that are written. A `QueryError` before the first piece has left is the answer.
  fileprivate static func queryRows(_ write: @escaping @Sendable (AnswerOutput) throws -> Void) -> HTTPAnswer
  {
    .json { output in
      do { try write(output) } catch let error as QueryError {
        guard !output.hasBegun else { throw error }
        throw AnswerInstead(answer: try .queryError(error))
      }
    }
  }
}

/// An answer that takes the place of the one that was being written.
struct AnswerInstead: Error {
  let answer: HTTPAnswer
}
