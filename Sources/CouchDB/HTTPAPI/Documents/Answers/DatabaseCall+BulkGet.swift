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
    guard let body = value.object else {
      throw CouchDBError(400, "bad_request", "Request body must be a JSON object")
    }
    guard let wanted = body["docs"]?.array else {
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
        var next = 0
        while next < wanted.count {
          try checkWanted()
          for items in try answer.items(wanted[next...]) {
            if next > 0 { output.append(",") }
            try answer.json(wanted[next], items).write(to: output, database)
            next += 1
          }
        }
        output.append("]}\n")
      }
    }
    let boundary = "--" + MultipartAnswer.boundary()
    let type = HTTPHeader("Content-Type", "\(multipart); boundary=\"\(boundary)\"")
    return HTTPAnswer(
      status: 200, headers: [type],
      body: .written { output in
        var next = 0
        while next < wanted.count {
          try checkWanted()
          for items in try answer.items(wanted[next...]) {
            try answer.parts(items, boundary).write(to: output, database)
            next += 1
          }
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
  enum Item {
    case found(id: String, RevisionID, AnswerPieces, [StoredAttachment])
    case failed(id: JSONValue, revision: JSONValue, CouchDBError)
  }

  /// What an entry of the request asks for.
  private enum Entry {
    case read(id: String, RevisionOptions.Choice, RevisionOptions)
    case failed(Item)
  }

  /// How many entries that ask for revisions of one document are answered from one snapshot, unless the answers are longer than this.
  private static let entriesAtOnce = 256
  private static let bytesAtOnce = 1 << 18

  /// What the first entries lead to: one of them, or several in a row that ask for one revision each of the same document. A
  /// document may have thousands of revisions, and its tree is read once for all of them.
  func items(_ wanted: ArraySlice<JSONValue>) throws -> [[Item]] {
    guard let first = wanted.first else { return [] }
    let id: String
    switch try entry(first) {
    case .failed(let item): return [[item]]
    case .read(let wantedID, _, _): id = wantedID
    }
    return try call.database.read { snapshot in
      let revisions = try snapshot.revisions(of: id)
      var found: [[Item]] = []
      var bytes = 0
      for next in wanted.prefix(Self.entriesAtOnce) where bytes < Self.bytesAtOnce {
        guard case .read(let nextID, let choice, let options) = try entry(next), nextID.hasSameBytes(as: id)
        else { break }
        var isOne = false
        if case .one = choice { isOne = true }
        guard isOne || found.isEmpty else { break }
        let items = try items(next, id, revisions, choice, options)
        for case .found(_, _, let json, _) in items { bytes += json.textCount }
        found.append(items)
        guard isOne else { break }
      }
      return found
    }
  }

  private func items(
    _ wanted: JSONValue, _ id: String, _ revisions: DocumentRevisions?, _ choice: RevisionOptions.Choice,
    _ options: RevisionOptions
  ) throws -> [Item] {
    do {
      let renderer = try RevisionRenderer(call.database, options, isMultipart ? .following : .inline)
      let found = try RevisionSelection(revisions, choice, latest: options.latest).render(renderer)
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
      return [.failed(id: wanted["id"], revision: wanted.object?["rev"] ?? "undefined", error)]
    }
  }

  private func entry(_ wanted: JSONValue) throws -> Entry {
    func failed(_ error: CouchDBError, revision: JSONValue = .null) -> Entry {
      .failed(.failed(id: wanted["id"], revision: revision, error))
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
    return .read(id: id, choice, options)
  }

  private func error(_ id: JSONValue, _ revision: JSONValue, _ error: CouchDBError) throws -> [UInt8] {
    var members: JSONObject = [
      "rev": revision, "error": .string(error.error), "reason": .string(error.reason),
    ]
    // CouchDB leaves the ID out of parts.
    if !isMultipart { members["id"] = id }
    return try JSONValue.object(members).jsonText()
  }

  func json(_ wanted: JSONValue, _ items: [Item]) throws -> AnswerPieces {
    var pieces = AnswerPieces()
    pieces.append("{\"id\":")
    pieces.append(try wanted["id"].jsonText())
    pieces.append(",\"docs\":[")
    for (position, item) in items.enumerated() {
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

  func parts(_ items: [Item], _ boundary: String) throws -> AnswerPieces {
    var pieces = AnswerPieces()
    for item in items {
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
