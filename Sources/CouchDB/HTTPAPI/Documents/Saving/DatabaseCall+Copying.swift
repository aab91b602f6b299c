import Bytes
import Documents
import Fleece
import HTTP
import Views

extension DatabaseCall {
  /// The answer to `COPY` of a document: what `Destination` names gets its body and its attachments.
  func copyDocument(_ id: String) throws -> HTTPAnswer {
    try checkWritable()
    let (target, seen) = try destination()
    try checkID(target)
    let text: [UInt8]
    var isDeleted = false
    if IncomingID.isLocal(id) {
      guard let local = try local(id) else { throw CouchDBError.missing }
      text = try local.body.jsonText()
    } else {
      (text, isDeleted) = try bodyOfSource(id)
    }
    var document = try parse(text)
    document.id = target
    // Of a tombstone a tombstone is made, as in CouchDB.
    document.isDeleted = isDeleted
    document.revision = seen
    // The source has the attachments in the form in which they are stored.
    if let range = document.attachments, !IncomingID.isLocal(target) {
      document.storedAttachments = Array(text[range])
      document.keepsGenerations = true
    }
    var new = try NewAttachments(self)
    let revision = try saved(document, text, isForeign: false, &new)
    return savedAnswer(
      target, revision, status: 201,
      headers: [.init("ETag", "\"\(revision)\""), .init("Location", location(target))])
  }

  /// The body of the document, or of the revision of it that the query or `If-Match` names, and whether that is a tombstone.
  private func bodyOfSource(_ id: String) throws -> ([UInt8], isDeleted: Bool) {
    try database.read { snapshot in
      guard let revisions = try snapshot.revisions(of: id) else { throw CouchDBError.missing }
      let wanted = try seenRevision()
      let index = try wanted.map { try $0.id.flatMap { try revisions.index(of: $0) } } ?? 0
      guard let index else { throw CouchDBError.missing }
      if wanted == nil, revisions.document.isDeleted { throw CouchDBError.deleted }
      let text = try revisions.withBody(index) { root, sharedKeys in
        var json = JSONWriter()
        try json.append(root.unsafeValue, sharedKeys: sharedKeys)
        var text: [UInt8] = []
        json.write(to: &text)
        return text
      }
      guard let text else { throw CouchDBError.missing }
      return (text, revisions.isDeleted(index))
    }
  }

  /// What `Destination` names: a document and the revision of it that is replaced.
  private func destination() throws -> (String, IncomingDocument.Revision?) {
    guard let header = request.headers.first("destination") else {
      throw CouchDBError(400, "bad_request", "Destination header is mandatory for COPY.")
    }
    let lower = header.lowercased()
    guard !lower.hasPrefix("http://"), !lower.hasPrefix("https://") else {
      throw CouchDBError(400, "bad_request", "Destination URL must be relative.")
    }
    let parts = header.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    guard let path = HTTPTarget.decode(ArraySlice(parts[0].utf8), plusIsBlank: true) else {
      throw CouchDBError(400, "bad_request", "the Destination header isn't percent-encoded properly")
    }
    var seen: IncomingDocument.Revision?
    if parts.count == 2 {
      guard parts[1].hasPrefix("rev=") else {
        throw CouchDBError(400, "bad_request", "the Destination header has an option that isn't known")
      }
      seen = try IncomingDocument.Revision(String(parts[1].dropFirst(4)))
    }
    return (String(decoding: path, as: UTF8.self), seen)
  }
}
