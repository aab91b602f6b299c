import Bytes
import HTTP
import Views

extension DatabaseCall {
  /// The answer to `DOC`, `DOC/ATTACHMENT` and `_local/…`.
  func documentAnswer() throws -> HTTPAnswer {
    guard let first = path.first else { throw CouchDBError.missing }
    try check(.member)
    if let position = path.firstIndex(where: { String(validating: $0.bytes, as: UTF8.self) == nil }) {
      let isOfID = position == 0 || position == 1 && ["_design", "_local"].contains(first.string)
      throw isOfID
        ? CouchDBError(400, "illegal_docid", "the path isn't UTF-8")
        : CouchDBError(400, "bad_request", "Attachment name is not UTF-8 encoded")
    }
    var id = first.string
    var rest = path.dropFirst()
    // `_design/x` and `_local/x` are IDs; their slash may be escaped.
    if id == "_design" || id == "_local", let next = rest.popFirst() { id += "/" + next.string }
    guard id != "_local", id != IncomingID.localPrefix else {
      throw CouchDBError(400, "bad_request", "Invalid _local document id.")
    }
    if IncomingID.isLocal(id) {
      guard rest.isEmpty else {
        throw CouchDBError(400, "bad_request", "_local documents do not accept attachments.")
      }
      return try Routes.localDocument.answer(self, method, [id])
    }
    if first.string.utf8.starts(with: IncomingID.designPrefix.utf8), method == "GET" || method == "HEAD" {
      return redirect(to: id, rest.map(\.string))
    }
    try checkOwnUser(id)
    guard rest.isEmpty else {
      return try Routes.attachment.answer(self, method, [id, rest.map(\.string).joined(separator: "/")])
    }
    return try Routes.document.answer(self, method, [id])
  }

  /// Throws 404 for a document of `_users` that is neither that of who asks nor for an administrator.
  private func checkOwnUser(_ id: String) throws {
    guard name.hasSameBytes(as: UserDocument.database), try !isDatabaseAdmin() else { return }
    guard let own = request.context.ownName, id.hasSameBytes(as: UserDocument.idPrefix + own) else {
      throw CouchDBError.missing
    }
  }

  /// The answer to what concerns a document.
  func documentAnswer(_ id: String) throws -> HTTPAnswer {
    switch method {
    case "GET", "HEAD": return try readDocument(id)
    case "PUT": return try putDocument(id)
    case "DELETE": return try deleteDocument(id)
    case "COPY": return try copyDocument(id)
    default: return try postForm(id)
    }
  }

  /// Leads from `_design%2Fx` to `_design/x`, so that relative links in attachments of design documents work.
  private func redirect(to id: String, _ rest: [String]) -> HTTPAnswer {
    let name = String(decoding: id.utf8.dropFirst(IncomingID.designPrefix.utf8.count), as: UTF8.self)
    var url = "\(baseURL)/\(self.name.pathSegment)/_design/\(name.pathSegment)"
    for part in rest { url += "/" + part.pathSegment }
    if let raw = request.target.rawQuery { url += "?" + String(decoding: raw, as: UTF8.self) }
    return HTTPAnswer(status: 301, headers: [.init("Location", url)])
  }
}
