import Bytes
import Documents
import Fleece
import HTTP
import Views

extension DatabaseCall {
  /// The answer to `_bulk_get`: JSON, or multipart if the client takes no JSON.
  func bulkGetAnswer() throws -> HTTPAnswer {
    try checkContentType()
    let value = try jsonBody()
    guard let wanted = value.object?["docs"]?.array else {
      throw CouchDBError(400, "bad_request", "Missing JSON list of 'docs'.")
    }
    guard wanted.count <= Self.maximumBulkCount else {
      throw CouchDBError(413, "max_bulk_get_count_exceeded", String(Self.maximumBulkCount))
    }
    for name in Self.optionsOfEntries where query.items.contains(where: { $0.name == ByteString(name) }) {
      throw CouchDBError(400, "bad_request", "\"\(name)\" query parameter is not acceptable")
    }
    let options = try RevisionOptions(query)
    let multipart =
      request.accepts("application/json") ? nil : Self.multipartTypes.first { request.accepts($0) }
    let answer = try BulkGet(self, options, isMultipart: multipart != nil)
    let database = database
    // Each document is read when those before it have been taken.
    guard let multipart else {
      return .json { output in
        output.append("{\"results\":[")
        for (position, item) in wanted.enumerated() {
          try checkWanted()
          if position > 0 { output.append(",") }
          try answer.json(item).write(to: output, database)
        }
        output.append("]}\n")
      }
    }
    let boundary = "--" + MultipartAnswer.boundary()
    let type = HTTPHeader("Content-Type", "\(multipart); boundary=\"\(boundary)\"")
    return HTTPAnswer(
      status: 200, headers: [type],
      body: .written { output in
        for item in wanted {
          try checkWanted()
          try answer.parts(item, boundary).write(to: output, database)
        }
        output.append(raw: wanted.isEmpty ? "--\(boundary)--\r\n" : "\r\n--\(boundary)--\r\n")
      })
  }

  /// Options of other requests that mean one document. Entries of the body name revisions.
  private static let optionsOfEntries = ["open_revs", "new_edits", "w", "rev", "atts_since"]
  private static let multipartTypes = ["multipart/mixed", "multipart/related"]
}

/// Writes the results of `_bulk_get`.
private struct BulkGet: Sendable {
  private let call: DatabaseCall
  private var options: RevisionOptions
  private let isMultipart: Bool

  init(_ call: DatabaseCall, _ options: RevisionOptions, isMultipart: Bool) throws {
    self.call = call
    self.options = options
    // Multipart is there for the attachments.
    if isMultipart { self.options.attachments = true }
    self.isMultipart = isMultipart
  }

  /// What an entry of the request leads to.
  private enum Item {
    case found(id: String, RevisionID, AnswerPieces, [StoredAttachment])
    case failed(id: JSONValue, revision: JSONValue, CouchDBError)
  }

  private func items(_ wanted: JSONValue) throws -> [Item] {
    func failed(_ error: CouchDBError, revision: JSONValue = .null) -> [Item] {
      [.failed(id: wanted["id"], revision: revision, error)]
    }
    guard let members = wanted.object, members.count > 0 else {
      return failed(CouchDBError(400, "bad_request", "document must be a JSON object"))
    }
    guard let given = members["id"] else {
      return failed(CouchDBError(400, "bad_request", "document id missed"))
    }
    guard let id = given.string else {
      return failed(CouchDBError(400, "illegal_docid", "Document id must be a string"))
    }
    do { try call.checkID(id) } catch let error as CouchDBError { return failed(error) }
    var choice = RevisionOptions.Choice.leaves
    if let given = members["rev"] {
      guard let revision = given.string.flatMap({ try? IncomingDocument.Revision($0) }) else {
        return failed(.invalidRevision, revision: given)
      }
      choice = .one(revision)
    }
    var options = options
    if let given = members["atts_since"] {
      guard let list = given.array else {
        let error = CouchDBError(400, "bad_request", "att_since value must be array of revs.")
        return failed(error, revision: given)
      }
      if let bad = list.first(where: { $0.string.flatMap { try? IncomingDocument.Revision($0) } == nil }) {
        return failed(.invalidRevision, revision: bad)
      }
      try options.setAttachmentsSince(given)
    }
    do {
      let renderer = try RevisionRenderer(call.database, options, isMultipart ? .following : .inline)
      let found = try call.database.read { snapshot in
        try RevisionSelection(snapshot.revisions(of: id), choice, latest: options.latest).render(renderer)
      }
      guard let found else {
        return [.failed(id: .string(id), revision: "undefined", .missing)]
      }
      return found.map { item in
        switch item {
        case .found(let revision, let json, let following): .found(id: id, revision, json, following)
        case .missing(let revision): .failed(id: .string(id), revision: .string(revision), .missing)
        }
      }
    } catch let error as CouchDBError {
      return failed(error, revision: members["rev"] ?? "undefined")
    }
  }

  private func error(_ id: JSONValue, _ revision: JSONValue, _ error: CouchDBError) throws -> [UInt8] {
    var members: JSONObject = [
      "rev": revision, "error": .string(error.error), "reason": .string(error.reason),
    ]
    // CouchDB leaves the ID out of parts.
    if !isMultipart { members["id"] = id }
    return try JSONValue.object(members).jsonText()
  }

  func json(_ wanted: JSONValue) throws -> AnswerPieces {
    var pieces = AnswerPieces()
    pieces.append("{\"id\":")
    pieces.append(try wanted["id"].jsonText())
    pieces.append(",\"docs\":[")
    for (position, item) in try items(wanted).enumerated() {
      if position > 0 { pieces.append(",") }
      switch item {
      case .found(_, _, let json, _):
        pieces.append("{\"ok\":")
        pieces.append(json)
      case .failed(let id, let revision, let error):
        pieces.append("{\"error\":")
        pieces.append(try self.error(id, revision, error))
      }
      pieces.append("}")
    }
    pieces.append("]}")
    return pieces
  }

  func parts(_ wanted: JSONValue, _ boundary: String) throws -> AnswerPieces {
    var pieces = AnswerPieces()
    for item in try items(wanted) {
      pieces.append("\r\n--\(boundary)\r\n")
      switch item {
      case .found(let id, let revision, let json, let following):
        guard !following.isEmpty else {
          pieces.append("Content-Type: application/json\r\n\r\n")
          pieces.append(json)
          continue
        }
        let inner = "--" + MultipartAnswer.boundary()
        pieces.append("X-Doc-Id: \(DatabaseCall.headerText(id))\r\nX-Rev-Id: \(revision)\r\n")
        pieces.append("Content-Type: multipart/related; boundary=\(inner)\r\n\r\n")
        MultipartAnswer.append(json, following, inner, to: &pieces)
      case .failed(let id, let revision, let error):
        pieces.append("Content-Type: application/json; error=\"true\"\r\n\r\n")
        pieces.append(try self.error(id, revision, error))
      }
    }
    return pieces
  }
}

extension DatabaseCall {
  /// Text as the value of a header: what would end it becomes a blank.
  static func headerText(_ text: String) -> String {
    String(decoding: text.utf8.map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }, as: UTF8.self)
  }
}
