import Bytes
import Fleece
import HTTP
import Storage
import Touchstone
import Views

extension DatabaseCall {
  /// The answer of a view.
  func view(_ design: String, _ name: String) throws -> HTTPAnswer {
    let options =
      try method == "POST"
      ? CouchDBViewOptions(body: jsonBytes(), query: textQuery) : CouchDBViewOptions(query: textQuery)
    let view = try inPartitionOfView(design).couchDBView(design, name)
    if method == "HEAD" { return .headOfJSON() }
    return .json { output in try view.answer(options) { try output.append(piece: $0) } }
  }

  /// The answer of several queries of a view.
  func viewQueries(_ design: String, _ name: String) throws -> HTTPAnswer {
    let queries = try CouchDBViewOptions.queries(body: jsonBytes(), query: textQuery)
    let view = try inPartitionOfView(design).couchDBView(design, name)
    return .json { output in try view.answer(queries: queries) { try output.append(piece: $0) } }
  }

  private func couchDBView(_ design: String, _ name: String) throws -> CouchDBView {
    do {
      var view = try database.couchDBView(design, name)
      let attachments = AttachmentContents(database)
      view.documentPrefix = documentPrefix
      view.contents = attachments.reader
      let database = database
      let service = service
      let origin = request.origin
      view.isWanted = {
        // Not whether its client still waits: the next one needs the same rows.
        database.isOpenForReplication && !database.isClosing && !service.isStopping.withLock { $0 }
      }
      // A close waits for the slice that is read, not for the client.
      view.around = { slice in
        if origin.isCancelled { throw HTTPBodyError.clientGone }
        attachments.begin()
        try database.replicating { _ in try slice() }
      }
      return view
    } catch let error as DocumentError where error.code == .invalidDocumentID {
      throw CouchDBError(404, "not_found", "missing")
    }
  }

  /// `_info`: what the views of a design document have.
  func designInformation(_ design: String) throws -> HTTPAnswer {
    guard let information = try database.designInformation(design) else {
      throw CouchDBError(404, "not_found", "missing")
    }
    return try .json([
      "name": .string(design),
      "view_index": [
        "updates_pending": [
          "minimum": JSONValue(information.pendingChanges),
          "preferred": JSONValue(information.pendingChanges),
          "total": JSONValue(information.pendingChanges),
        ],
        "waiting_commit": false, "waiting_clients": 0, "updater_running": false,
        "update_seq": JSONValue(information.sequence),
        "sizes": ["file": 0, "external": 0, "active": 0],
        "signature": .string(information.signature), "purge_seq": JSONValue(information.purge),
        "language": .string(information.language), "compact_running": false,
        "collator_versions": .array(information.collators.map { .string($0) }),
      ],
    ])
  }

  /// `_view_cleanup` drops the rows of views whose design documents are gone or don't have them any more.
  func cleanViews() throws -> HTTPAnswer {
    try checkWritable()
    try checkContentType()
    try database.removeUnusedViews()
    return .ok(status: 202)
  }

  /// `_temp_view`, as in CouchDB 1.x: a view whose functions come with the request, and that is made and dropped for it. Only if
  /// the service allows it, because it looks at all documents.
  func temporaryView() throws -> HTTPAnswer {
    guard service.configuration.allowsTemporaryViews else {
      throw CouchDBError(410, "gone", "Temporary views are not supported in CouchDB")
    }
    guard method == "POST" else { throw MethodNotAllowed(["POST"]) }
    let body = try JSONValue(body: jsonBytes())
    guard let map = body.object?["map"]?.string else {
      throw CouchDBError(400, "bad_request", "a temporary view needs `map`")
    }
    var definition: JSONObject = ["map": .string(map)]
    definition["reduce"] = body.object?["reduce"]
    var design: JSONObject = ["views": [:]]
    design["views"] = .object([TemporaryCouchDBView.viewName: .object(definition)])
    for name in ["language", "options"] { design[name] = body.object?[name] }
    try database.checkDesign("", design)
    // The rest are options of the query.
    var rest = body.object ?? JSONObject()
    for name in ["map", "reduce", "language", "options"] { rest[name] = nil }
    let options = try CouchDBViewOptions(body: JSONValue.object(rest).jsonText(), query: textQuery)
    let view = try database.temporaryCouchDBView(design)
    return .json { output in
      try view.view.answer(options) { try output.append(piece: $0) }
    }
  }
}

extension AnswerOutput {
  /// Writes a piece as it is. Some of them are written while a snapshot is held.
  func append(piece: UnsafeRawBufferPointer) throws {
    write { $0.append(json: piece) }
    try step(holding: Self.heldBytes)
  }
}
