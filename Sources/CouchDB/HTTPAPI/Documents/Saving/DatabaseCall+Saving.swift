import Bytes
import Documents
import Fleece
import HTTP
import Views

extension DatabaseCall {
  /// The answer to `PUT` of a document: JSON, or multipart/related with attachments.
  func putDocument(_ id: String) throws -> HTTPAnswer {
    try checkWritable()
    try checkID(id)
    var new = try NewAttachments(self)
    do {
      var document: IncomingDocument
      let text: [UInt8]
      let isForeign = query["new_edits"] == "false"
      let seen = try seenRevision()
      if let boundary = multipartBoundary {
        var received: [StoredAttachment] = []
        (document, text, received) = try receiveMultipart(boundary, isForeign: isForeign, &new)
        try prepare(&document, id, seen, isForeign: isForeign)
        try settleAttachments(of: &document, text, isForeign: isForeign, received: received, &new)
      } else {
        text = try bodyBytes(isReadInPieces: true)
        document = try parse(text)
        try prepare(&document, id, seen, isForeign: isForeign)
        try settleAttachments(of: &document, text, isForeign: isForeign, &new)
      }
      return try saveOne(document, text, isForeign: isForeign, &new)
    } catch {
      new.discard()
      throw error
    }
  }

  /// The answer to `POST` of a document to the database.
  func postDocument() throws -> HTTPAnswer {
    try checkContentType()
    try checkWritable()
    var new = try NewAttachments(self)
    do {
      let text = try bodyBytes(isReadInPieces: true)
      var document = try parse(text)
      let id = document.id ?? DocumentUUID.make()
      try checkID(id)
      try prepare(&document, id, nil, isForeign: false)
      try settleAttachments(of: &document, text, isForeign: false, &new)
      let revision = try saved(document, text, isForeign: false, &new)
      if query["batch"] == "ok" { return batchAnswer(id) }
      return savedAnswer(id, revision, status: 201, headers: [.init("Location", location(id))])
    } catch {
      new.discard()
      throw error
    }
  }

  /// The answer to `DELETE` of a document.
  func deleteDocument(_ id: String) throws -> HTTPAnswer {
    try checkWritable()
    let seen = try seenRevision()
    guard let document = try database.read({ try $0.document(id, includeDeleted: true) }) else {
      throw CouchDBError.missing
    }
    guard !document.isDeleted else { throw CouchDBError.deleted }
    guard let seen else { throw CouchDBError.updateConflict }
    let text = Array("{\"_deleted\":true}".utf8)
    var tombstone = try parse(text)
    tombstone.id = id
    tombstone.revision = seen
    var new = try NewAttachments(self)
    let revision = try saved(tombstone, text, isForeign: false, &new)
    if query["batch"] == "ok" { return batchAnswer(id) }
    return savedAnswer(id, revision, status: 200, headers: [.init("ETag", "\"\(revision)\"")])
  }

  // MARK: Pieces

  /// Reads the one document that a body is.
  func parse(_ text: [UInt8]) throws -> IncomingDocument {
    try text.withUnsafeBytes { bytes in
      var scanner = JSONScanner(bytes)
      let document = try IncomingDocument(&scanner, request.memory)
      try scanner.finish()
      return document
    }
  }

  /// Gives a document its ID and the revision that it replaces. Throws 400 if two are named, and 413 if it is too large.
  func prepare(
    _ document: inout IncomingDocument, _ id: String, _ seen: IncomingDocument.Revision?, isForeign: Bool
  ) throws {
    document.id = id
    try checkSize(document, reason: "")
    if let seen {
      if let own = document.revision, own != seen {
        let reason =
          query["rev"] == nil
          ? "Document rev and etag have different values"
          : "Document rev from request body and query string have different values"
        throw CouchDBError(400, "bad_request", reason)
      }
      document.revision = seen
    }
    if isForeign, !IncomingID.isLocal(id) { _ = try document.foreignHistory() }
  }

  /// The revision that the query, or `If-Match`, names; nil if neither does. Throws 400 if they differ or can't be read.
  func seenRevision() throws -> IncomingDocument.Revision? {
    let inQuery = try query["rev"].map { try IncomingDocument.Revision($0) }
    var tag = request.headers.first("if-match")?.trimmed ?? ""
    if tag.utf8.count >= 2, tag.utf8.first == UInt8(ascii: "\""), tag.utf8.last == UInt8(ascii: "\"") {
      tag = String(tag.dropFirst().dropLast())
    }
    guard !tag.isEmpty else { return inQuery }
    let inHeader = try IncomingDocument.Revision(tag)
    if let inQuery, inQuery != inHeader {
      throw CouchDBError(400, "bad_request", "Document rev and etag have different values")
    }
    return inHeader
  }

  /// Saves one document. Throws the error with which it is refused.
  func saved(
    _ document: IncomingDocument, _ text: [UInt8], isForeign: Bool, _ new: inout NewAttachments
  ) throws -> String {
    var claims = [new]
    defer { new = claims[0] }
    return try save([document], text, isForeign: isForeign, claims: &claims)[0].get()
  }

  /// Saves one document, and makes the answer to its `PUT`.
  private func saveOne(
    _ document: IncomingDocument, _ text: [UInt8], isForeign: Bool, _ new: inout NewAttachments
  ) throws -> HTTPAnswer {
    let id = document.id ?? ""
    let revision = try saved(document, text, isForeign: isForeign, &new)
    if query["batch"] == "ok" { return batchAnswer(id) }
    return savedAnswer(
      id, revision, status: document.isDeleted ? 200 : 201,
      headers: [.init("ETag", "\"\(revision)\""), .init("Location", location(id))])
  }

  /// `{"ok":true,"id":…,"rev":…}`
  func savedAnswer(_ id: String, _ revision: String, status: Int, headers: [HTTPHeader]) -> HTTPAnswer {
    var json = JSONWriter()
    Self.append(saved: id, revision, to: &json)
    json.append(literal: "\n")
    var text: [UInt8] = []
    json.write(to: &text)
    return .json(text: text, status: status, headers: headers)
  }

  static func append(saved id: String, _ revision: String, to json: inout JSONWriter) {
    json.append(literal: "{\"ok\":true,\"id\":")
    json.append(string: id)
    json.append(literal: ",\"rev\":")
    json.append(string: revision)
    json.append(literal: "}")
  }

  private func batchAnswer(_ id: String) -> HTTPAnswer {
    var text = Array("{\"ok\":true,\"id\":".utf8)
    text += Array(id.jsonText.utf8)
    text += Array("}\n".utf8)
    return .json(text: text, status: 202)
  }

  /// The URL of a document or, with further parts, of an attachment.
  func location(_ id: String, _ parts: String...) -> String {
    ([baseURL] + ([name, id] + parts).map(\.pathSegment)).joined(separator: "/")
  }
}
