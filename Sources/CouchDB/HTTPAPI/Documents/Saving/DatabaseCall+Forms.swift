import Blobs
import Bytes
import Documents
import Fleece
import HTTP
import Views

// A form of a web page (RFC 7578) with files for a document. Its fields are those of CouchDB:
//
//   _rev          the revision of the document that gets the files; or
//   _doc          the JSON of the document
//   _attachments  a file, whose name is that of the attachment. There may be several

extension DatabaseCall {
  /// The answer to `POST` of a form to a document. Forms of pages of other origins are refused: a browser sends them without asking.
  func postForm(_ id: String) throws -> HTTPAnswer {
    try checkReferer()
    try checkWritable()
    try checkID(id)
    let type = HTTPMediaType(request.headers.first("content-type") ?? "")
    guard type.name == "multipart/form-data", let boundary = type[parameter: "boundary"] else {
      throw CouchDBError(415, "bad_content_type", "Content-Type must be multipart/form-data")
    }
    let form = try FormReceiver(self)
    do {
      try parseMultipart(boundary) { try form.take($0) }
      let revision: String
      if let text = form.document {
        revision = try save(id, text, form.files, &form.new)
      } else if let text = form.revision {
        let seen = try IncomingDocument.Revision(String(decoding: text, as: UTF8.self).trimmed)
        revision = try add(form.files, to: id, seen, &form.new)
      } else {
        throw CouchDBError(400, "bad_request", "the form has neither _rev nor _doc")
      }
      return savedAnswer(id, revision, status: 201, headers: [.init("ETag", "\"\(revision)\"")])
    } catch {
      form.new.discard()
      throw error
    }
  }

  /// Throws 400 unless the page that has sent the request is of this origin.
  private func checkReferer() throws {
    guard let referer = request.headers.first("referer") else {
      throw CouchDBError(400, "bad_request", "Referer header required.")
    }
    func host(_ url: String) -> Substring {
      guard let slashes = url.firstRange(of: "://") else { return "" }
      return url[slashes.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    }
    guard host(referer).utf8.elementsEqual(host(baseURL).utf8) else {
      throw CouchDBError(400, "bad_request", "Referer header must match host.")
    }
  }

  /// Adds files to a revision, in the place of attachments with their names.
  private func add(
    _ files: [StoredAttachment], to id: String, _ seen: IncomingDocument.Revision,
    _ new: inout NewAttachments
  ) throws -> String {
    var files = files
    var (body, attachments) = try bodyWithAttachments(id, seen)
    let changes = files.map { _ in BlobStandIn.Change.saved }
    if let settled = try settleStandIns(&files, changes, body: body, &new) { body = settled }
    attachments.removeAll { old in files.contains { $0.name.hasSameBytes(as: old.name) } }
    return try saveBody(id, seen, body, files + attachments, &new)
  }

  /// Saves a document with its own attachments and these files.
  private func save(
    _ id: String, _ text: [UInt8], _ files: [StoredAttachment], _ new: inout NewAttachments
  ) throws -> String {
    try request.memory?.hold(2 * text.withUnsafeBytes { JSONValue.memory(of: $0) })
    guard var object = try JSONValue(body: text).object else {
      throw CouchDBError(400, "bad_request", "Document must be a JSON object")
    }
    // The files are like the parts that follow a document in multipart/related.
    var attachments = object["_attachments"]?.object ?? JSONObject()
    for file in files {
      attachments[file.name] = [
        "follows": true, "content_type": .string(file.contentType), "length": JSONValue(file.length),
      ]
    }
    if !attachments.isEmpty { object["_attachments"] = .object(attachments) }
    let text = try JSONValue.object(object).jsonText()
    var document = try parse(text)
    try prepare(&document, id, try seenRevision(), isForeign: false)
    var received: [StoredAttachment] = []
    if let range = document.attachments {
      let incoming = try text.withUnsafeBytes { try IncomingAttachments($0, range, request.memory) }
      for entry in incoming.following {
        guard let file = files.first(where: { $0.name.hasSameBytes(as: entry.name) }) else {
          throw IncomingAttachments.invalidData(entry.name)
        }
        received.append(file)
      }
    }
    try settleAttachments(of: &document, text, isForeign: false, received: received, &new)
    return try saved(document, text, isForeign: false, &new)
  }
}

/// Takes the parts of a form. Files go to the blobs as they arrive.
private final class FormReceiver {
  private enum Part {
    case revision
    case document
    case file(AttachmentWriter)
    case other
  }

  private let call: DatabaseCall
  var new: NewAttachments
  private(set) var revision: [UInt8]?
  private(set) var document: [UInt8]?
  /// Of several with one name, the last one.
  private(set) var files: [StoredAttachment] = []
  private var part = Part.other
  private var text: [UInt8] = []

  init(_ call: DatabaseCall) throws {
    self.call = call
    new = try NewAttachments(call)
  }

  func take(_ event: MultipartParser.Event) throws {
    switch event {
    case .begin(let headers): try begin(headers)
    case .bytes(let bytes): try add(bytes)
    case .end: try end()
    }
  }

  private func begin(_ headers: HTTPHeaders) throws {
    text = []
    part = .other
    let field = HTTPMediaType(headers.first("content-disposition") ?? "")
    switch field[parameter: "name"] {
    case "_rev": part = .revision
    case "_doc": part = .document
    case "_attachments":
      // Of a field without a file, browsers send an empty name.
      guard let name = field[parameter: "filename"], !name.isEmpty else { return }
      try IncomingAttachments.check(name)
      part = .file(
        try AttachmentWriter(
          call, name: name, contentType: headers.first("content-type") ?? StoredAttachment.defaultType))
    default: break
    }
  }

  private func add(_ bytes: UnsafeRawBufferPointer) throws {
    switch part {
    case .other: return
    case .file(let writer): try writer.write(bytes)
    case .revision, .document:
      try call.gather(bytes, into: &text)
    }
  }

  private func end() throws {
    switch part {
    case .other: break
    case .revision: revision = text
    case .document: document = text
    case .file(let writer):
      let file = try writer.finish()
      new.claim(file)
      let replaced = files.filter { $0.name.hasSameBytes(as: file.name) }
      files.removeAll { $0.name.hasSameBytes(as: file.name) }
      files.append(file)
      for old in replaced where !files.contains(where: { $0.digest == old.digest }) { new.release(old) }
    }
    part = .other
  }
}
