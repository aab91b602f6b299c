// touchstone.h documents the functions.
// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation

import CTouchstone
import Fleece
import Storage
import Touchstone

/// A query that C has prepared.
final class QueryHandle: Sendable {
  let database: DatabaseHandle
  let query: Query
  /// Ends the runs that are going on. A cancelled one is replaced.
  private let cancellation = Lock(QueryCancellation())

  init(_ database: DatabaseHandle, _ query: Query) {
    self.database = database
    self.query = query
  }

  /// The cancellation of a run that begins now.
  var running: QueryCancellation { cancellation.withLock { $0 } }

  func cancel() {
    let ended = cancellation.withLock { cancellation in
      defer { cancellation = QueryCancellation() }
      return cancellation
    }
    ended.cancel()
  }
}

/// Reads the values of parameters.
func parameters(_ text: UnsafePointer<CChar>?, _ length: Int) throws -> [String: JSONValue] {
  let json = bytes(text, length)
  guard !json.isEmpty else { return [:] }
  guard case .object(let members) = try JSONValue(json: json) else {
    throw Misuse("the parameters aren't a JSON object", .badRequest)
  }
  return Dictionary(members.map { ($0.key, $0.value) }, uniquingKeysWith: { $1 })
}

extension DatabaseHandle {
  /// Reads rows as a stream, or in a batch of the thread at once.
  func stream(
    _ names: [String], _ produce: @escaping @Sendable (Database, RowStream.Sink) throws -> Void
  ) throws -> RowsHandle {
    guard isInBatch else {
      return RowsHandle(names, RowStream(names) { [database] in try produce(database, $0) })
    }
    // A stream's thread wouldn't see the writes of the batch.
    var rows: [AnyRow] = []
    try perform { database in
      try produce(database) { row in
        rows.append(row)
        return true
      }
    }
    let collected = CollectedRows(rows)
    return RowsHandle(
      names, RowStream(names) { sink in for row in collected.rows where try !sink(row) { return } })
  }
}

/// Rows that go to another thread. Nothing changes them.
private final class CollectedRows: @unchecked Sendable {
  let rows: [AnyRow]
  init(_ rows: [AnyRow]) { self.rows = rows }
}

@c @implementation
public func touchstone_query_new(
  _ database: OpaquePointer?, _ text: UnsafePointer<CChar>?, _ text_length: Int,
  _ options: UnsafePointer<CChar>?,
  _ options_length: Int, _ query: HandlePlace?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(query)
    let handle = try Handles.content(database, DatabaseHandle.self)
    var given = try Options(options, options_length)
    var options = Query.Options()
    if let uses = try given.bool("useIndexes") { options.usesIndexes = uses }
    if let limit = try given.int("memoryLimit") { options.memoryLimit = limit }
    if let limit = try given.int("temporaryFileLimit") { options.temporaryFileLimit = limit }
    options.temporaryDirectory = try given.string("temporaryDirectory")
    options.rowLimit = try given.int("rowLimit")
    options.timeLimit = try given.double("timeLimit").map { seconds in
      guard seconds >= 0, seconds < 1e9 else {
        throw Misuse("the option timeLimit is \(seconds); it is a number of seconds from 0 up", .badRequest)
      }
      return .seconds(seconds)
    }
    try given.end()
    let text = try string(text, text_length, "the query")
    let prepared = try handle.perform { try $0.query(text, options: options) }
    hand(QueryHandle(handle, prepared), to: query)
  }
}

@c @implementation
public func touchstone_query_free(_ query: OpaquePointer?) { Handles.free(query) }

@c @implementation
public func touchstone_query_describe(
  _ query: OpaquePointer?, _ json: TextPlace?, _ length: UnsafeMutablePointer<Int>?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    let query = try Handles.content(query, QueryHandle.self).query
    let description: JSONObject = [
      "columns": .array(query.columnNames.map { .string($0) }),
      "parameters": .array(query.parameterNames.map { .string($0) }),
    ]
    try hand(.object(description), to: json, length)
  }
}

@c @implementation
public func touchstone_query_run(
  _ query: OpaquePointer?, _ parameters: UnsafePointer<CChar>?, _ parameters_length: Int,
  _ rows: HandlePlace?,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(rows)
    let handle = try Handles.content(query, QueryHandle.self)
    let values = try TouchstoneC.parameters(parameters, parameters_length)
    let results = try handle.database.perform { _ in
      try handle.query.run(values, cancellation: handle.running)
    }
    hand(RowsHandle(results), to: rows)
  }
}

@c @implementation
public func touchstone_query_stream(
  _ query: OpaquePointer?, _ parameters: UnsafePointer<CChar>?, _ parameters_length: Int,
  _ rows: HandlePlace?,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(rows)
    let handle = try Handles.content(query, QueryHandle.self)
    let values = try TouchstoneC.parameters(parameters, parameters_length)
    let names = handle.query.columnNames
    if handle.database.isInBatch {
      let results = try handle.database.perform { _ in
        try handle.query.run(values, cancellation: handle.running)
      }
      return hand(RowsHandle(results), to: rows)
    }
    // Freeing the rows ends this run alone.
    let cancellation = QueryCancellation()
    let all = handle.running
    let query = handle.query
    let stream = RowStream(names, cancellation) { sink in
      try query.forEach(values, cancellation: cancellation) { row in
        if all.isCancelled { cancellation.cancel() }
        return try sink(.query(row))
      }
    }
    hand(RowsHandle(names, stream), to: rows)
  }
}

@c @implementation
public func touchstone_query_cancel(_ query: OpaquePointer?) {
  value(of: query, QueryHandle.self, otherwise: ()) { $0.cancel() }
}

@c @implementation
public func touchstone_documents(
  _ database: OpaquePointer?, _ options: UnsafePointer<CChar>?, _ options_length: Int, _ rows: HandlePlace?,
  _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(rows)
    let handle = try Handles.content(database, DatabaseHandle.self)
    var options = try Options(options, options_length)
    let hasBodies = try options.bool("bodies") ?? false
    var selection = AllDocuments()
    selection.mode =
      try options.choice(
        "mode", [("live", .live), ("includingDeleted", .includingDeleted), ("onlyConflicts", .onlyConflicts)])
      ?? .live
    selection.order = try options.choice("order", [("id", .id), ("sequence", .sequence)]) ?? .id
    selection.startID = try options.string("from")
    selection.endID = try options.string("to")
    selection.prefix = try options.string("prefix")
    selection.keys = try options.strings("ids")
    selection.isDescending = try options.bool("descending") ?? false
    selection.skip = try options.int("skip") ?? 0
    selection.limit = try options.int("limit") ?? .max
    try options.end()
    let (chosen, names) = (selection, ["id", "revision", "sequence", "deleted", "conflicted", "body"])
    let result = try handle.stream(names) { database, sink in
      try database.enumerate(chosen) { document in
        var body = RowValue.missing
        if hasBodies {
          var json: [UInt8] = []
          try document.writeJSON(into: &json)
          body = .json(json)
        }
        return try sink(
          .computed([
            .text(document.id), .text(document.revisionID().description),
            .int(Int64(clamping: document.sequence)), .bool(document.isDeleted), .bool(document.isConflicted),
            body,
          ]))
      }
    }
    hand(result, to: rows)
  }
}

@c @implementation
public func touchstone_changes(
  _ database: OpaquePointer?, _ sequence: UInt64, _ rows: HandlePlace?, _ error: ErrorPlace?
) -> Int32 {
  status(error) {
    try check(rows)
    let handle = try Handles.content(database, DatabaseHandle.self)
    let result = try handle.stream(["sequence", "id", "deleted", "conflicted", "fromSync"]) {
      database, sink in
      try database.forEachChange(since: sequence) { change in
        try sink(
          .computed([
            .int(Int64(clamping: change.sequence)), .text(change.documentID), .bool(change.isDeleted),
            .bool(change.isConflicted), .bool(change.isFromSync),
          ]))
      }
    }
    hand(result, to: rows)
  }
}
