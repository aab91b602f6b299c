import Bytes
import Documents
import Fleece
import HTTP
import Views

// Local documents keep their checkpoints for replicators. A revision is `0-N`: one more than the number that the client sent, which
// isn't checked.

extension DatabaseCall {
  /// The answer to what concerns a local document. `id` begins with `_local/`.
  func localAnswer(_ id: String) throws -> HTTPAnswer {
    switch method {
    case "GET", "HEAD":
      if let revision = query["rev"] { _ = try IncomingDocument.Revision(revision) }
      guard let document = try local(id) else { throw CouchDBError.missing }
      var json = JSONWriter()
      json.append(literal: "{\"_id\":")
      json.append(string: id)
      json.append(literal: ",\"_rev\":\"0-")
      json.append(document.generation)
      json.append(literal: "\"")
      for (name, value) in document.body.object ?? [:] {
        json.append(literal: ",")
        json.append(string: name)
        json.append(literal: ":")
        try json.append(value)
      }
      if query["revs"] == "true" {
        json.append(literal: ",\"_revisions\":{\"start\":0,\"ids\":[\"")
        json.append(document.generation)
        json.append(literal: "\"]}")
      }
      json.append(literal: "}\n")
      var text: [UInt8] = []
      json.write(to: &text)
      let tag = Self.localTag(document)
      if request.matches(tag) { return HTTPAnswer(status: 304, headers: [.init("ETag", tag)]) }
      return .json(text: text, headers: [.init("ETag", tag)])
    case "PUT": return try putDocument(id)
    case "DELETE":
      try checkWritable()
      guard try local(id) != nil else { throw CouchDBError.missing }
      try database.deleteLocalDocument(Self.localName(id), onConflict: .lastWriteWins)
      return savedAnswer(id, "0-0", status: 200, headers: [.init("ETag", "\"0-0\"")])
    case "COPY": return try copyDocument(id)
    // CouchDB takes forms of its former web pages here.
    default: throw CouchDBError(400, "bad_request", "Referer header required.")
    }
  }

  /// The local document; nil if there is none.
  func local(_ id: String) throws -> LocalDocument? {
    do { return try database.localDocument(Self.localName(id)) } catch let error as DocumentError
      where error.code == .invalidDocumentID
    { return nil }
  }

  /// Saves a local document, and returns its revision. Its attachments are dropped, as in CouchDB.
  func saveLocal(_ document: IncomingDocument, _ text: [UInt8]) throws -> String {
    let name = Self.localName(document.id ?? "")
    var document = document
    document.storedAttachments = []
    if document.isDeleted {
      do { try database.deleteLocalDocument(name, onConflict: .lastWriteWins) } catch let error
        as DocumentError
        where error.code == .notFound
      {}
      return "0-0"
    }
    var seen: UInt64 = 0
    if let revision = document.revision {
      guard revision.generation == 0, let number = UInt64(revision.text.dropFirst(2)),
        number < UInt64(Int64.max)
      else {
        throw CouchDBError.invalidRevision
      }
      seen = number
    }
    try withBodyObject(of: document, text) { body in
      try database.replicatingChanges { try $0.saveLocalDocument(name, .object(body), generation: seen + 1) }
    }
    return "0-\(seen + 1)"
  }

  private static func localName(_ id: String) -> String {
    String(decoding: id.utf8.dropFirst(IncomingID.localPrefix.utf8.count), as: UTF8.self)
  }

  /// A local document has no revision that tells its content.
  private static func localTag(_ document: LocalDocument) -> String {
    let body = Array(((try? document.body.canonicalJSON()) ?? "").utf8)
    let hash = body.withUnsafeBytes { ByteHash.of($0, Int(clamping: document.generation)) }
    return "\"\(Hex.text(hash, digits: 16))\""
  }
}
