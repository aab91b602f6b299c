import Blobs
import Bytes
import Documents
import Fleece
import HTTP
import Touchstone
import Views

extension DatabaseCall {
  /// The answer to what concerns an attachment.
  func attachmentAnswer(_ id: String, _ name: String) throws -> HTTPAnswer {
    switch method {
    case "GET", "HEAD": return try readAttachment(id, name)
    case "PUT": return try putAttachment(id, name)
    default: return try deleteAttachment(id, name)
    }
  }

  /// A revision that a client has named, of a change, isn't there.
  static let missingRevision = CouchDBError(409, "not_found", "missing_rev")
  private static let missingAttachment = CouchDBError(404, "not_found", "Document is missing attachment")

  // MARK: Reading

  private func readAttachment(_ id: String, _ name: String) throws -> HTTPAnswer {
    let attachments = try attachments(of: id, try query["rev"].map { try IncomingDocument.Revision($0) })
    guard let attachment = attachments.first(where: { $0.name.hasSameBytes(as: name) }) else {
      throw Self.missingAttachment
    }
    let reader = try AttachmentReader(database, attachment)
    let tag = "\"\(base64(attachment.digest.bytes))\""
    if request.matches(tag) { return HTTPAnswer(status: 304, headers: [.init("ETag", tag)]) }
    var headers: [HTTPHeader] = [
      .init("ETag", tag), .init("Content-Type", attachment.headerType),
      // A page that somebody has attached gets no rights of this origin.
      .init("Content-Security-Policy", "sandbox"),
    ]
    if attachment.isCompressed {
      headers.append(.init("Accept-Ranges", "none"))
      headers.append(.init("Vary", "Accept-Encoding"))
      guard request.acceptsGzip else {
        return answer(headers, try method == "HEAD" ? decodedLength(attachment) : nil) { output in
          try AttachmentReader(database, attachment).readDecoded { try output.pass($0) }
        }
      }
      headers.append(.init("Content-Encoding", "gzip"))
      return answer(headers, reader.storedLength) { output in
        try AttachmentReader(database, attachment).readStored { try output.pass($0) }
      }
    }
    headers.append(.init("Accept-Ranges", "bytes"))
    let asked = request.wantsRange(of: tag) && method == "GET" ? request.headers.first("range") : nil
    switch ByteRanges(asked, length: reader.storedLength) {
    case .notSatisfiable:
      throw CouchDBError(416, "requested_range_not_satisfiable", "Requested range not satisfiable")
    case .some(let ranges) where ranges.count == 1:
      headers.append(.init("Content-Range", Self.contentRange(ranges[0], of: reader.storedLength)))
      return answer(headers, UInt64(ranges[0].count), status: 206) { output in
        try AttachmentReader(database, attachment).readStored(ranges[0]) { try output.pass($0) }
      }
    case .some(let ranges): return answer(ranges, of: attachment, reader.storedLength)
    case .whole:
      return answer(headers, reader.storedLength) { output in
        try AttachmentReader(database, attachment).readStored { try output.pass($0) }
      }
    }
  }

  /// The length of a compressed attachment after decompression; nil if nobody has said it, and to find it out takes long.
  private func decodedLength(_ attachment: StoredAttachment) throws -> UInt64? {
    // A client that has compressed it itself says nothing of that.
    guard attachment.length == attachment.storedLength else { return attachment.length }
    guard attachment.storedLength <= Self.countedBytes else { return nil }
    var length: UInt64 = 0
    try AttachmentReader(database, attachment).readDecoded { length += UInt64($0.count) }
    return length
  }

  /// The bytes of a compressed attachment may be counted for HEAD if there are no more of them.
  private static let countedBytes: UInt64 = 64 << 10

  private static func contentRange(_ range: Range<UInt64>, of length: UInt64) -> String {
    "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(length)"
  }

  private func answer(
    _ headers: [HTTPHeader], _ length: UInt64?, status: Int = 200,
    _ write: @escaping @Sendable (AnswerOutput) throws -> Void
  ) -> HTTPAnswer {
    let length = length.map { Int(clamping: $0) }
    // For HEAD nothing is read.
    if method == "HEAD" {
      return HTTPAnswer(status: status, headers: headers, body: .stream(length: length) { $0.fail() })
    }
    return HTTPAnswer(status: status, headers: headers, body: .written(length: length, write))
  }

  /// Several ranges are the parts of a multipart/byteranges.
  private func answer(_ ranges: [Range<UInt64>], of attachment: StoredAttachment, _ length: UInt64)
    -> HTTPAnswer
  {
    let boundary = MultipartAnswer.boundary()
    let database = database
    return answer([.init("Content-Type", "multipart/byteranges; boundary=\"\(boundary)\"")], nil, status: 206)
    { output in
      for (position, range) in ranges.enumerated() {
        output.append(raw: position > 0 ? "\r\n--\(boundary)" : "--\(boundary)")
        output.append(raw: "\r\nContent-Type: \(attachment.headerType)")
        output.append(raw: "\r\nContent-Range: \(Self.contentRange(range, of: length))\r\n\r\n")
        try AttachmentReader(database, attachment).readStored(range) { try output.pass($0) }
      }
      output.append(raw: "\r\n--\(boundary)--")
    }
  }

  /// The attachments of a revision, or of the current one. Throws 404 if it isn't there.
  private func attachments(of id: String, _ revision: IncomingDocument.Revision?) throws -> [StoredAttachment]
  {
    try database.read { snapshot in
      guard let revisions = try snapshot.revisions(of: id) else { throw CouchDBError.missing }
      var index = 0
      if let revision {
        guard let found = try revision.id.flatMap({ try revisions.index(of: $0) }) else {
          throw CouchDBError.missing
        }
        index = found
      } else if revisions.document.isDeleted {
        throw CouchDBError.deleted
      }
      let found = try revisions.withBody(index) { try StoredAttachment.all(in: $0, $1) }
      guard let found else { throw CouchDBError.missing }
      return found
    }
  }

  // MARK: Writing

  private func putAttachment(_ id: String, _ name: String) throws -> HTTPAnswer {
    try checkWritable()
    try checkID(id)
    try IncomingAttachments.check(name)
    let seen = try seenRevision()
    let encoding = request.headers.first("content-encoding")?.trimmed.lowercased() ?? "identity"
    guard ["identity", "gzip"].contains(encoding) else {
      throw CouchDBError(
        415, "bad_content_type", "Only gzip and identity content-encodings are supported")
    }
    var text = try bodyWithAttachments(id, seen)
    // The bytes are read before the revision is checked by saving. So a client that can't stop sending gets its answer.
    let writer = try AttachmentWriter(
      self, name: name,
      contentType: request.headers.first("content-type").flatMap { $0.isEmpty ? nil : $0 }
        ?? StoredAttachment.defaultType,
      isCompressed: encoding == "gzip")
    while let bytes = try request.body.read() { try bytes.withUnsafeBytes { try writer.write($0) } }
    var new = try NewAttachments(self)
    var attachment = try writer.finish()
    new.claim(attachment)
    do {
      var settled = [attachment]
      let body = try settleStandIns(&settled, [.saved], body: text.body, &new)
      attachment = settled[0]
      if let body { text.body = body }
    } catch {
      new.discard()
      throw error
    }
    // Nobody has said how long it is when it is decoded.
    if attachment.isCompressed, encoding == "gzip" { attachment.length = attachment.storedLength }
    text.attachments.removeAll { $0.name.hasSameBytes(as: name) }
    text.attachments.append(attachment)
    let revision = try saveBody(id, seen, text.body, text.attachments, &new)
    return savedAnswer(id, revision, status: 201, headers: [.init("Location", location(id, name))])
  }

  private func deleteAttachment(_ id: String, _ name: String) throws -> HTTPAnswer {
    try checkWritable()
    try IncomingAttachments.check(name)
    let seen = try seenRevision()
    guard let seen else {
      // Without a revision there has to be no document, which then has no attachment either.
      guard try attachments(of: id, nil).contains(where: { $0.name.hasSameBytes(as: name) }) else {
        throw Self.missingAttachment
      }
      throw CouchDBError.updateConflict
    }
    var text = try bodyWithAttachments(id, seen)
    guard text.attachments.contains(where: { $0.name.hasSameBytes(as: name) }) else {
      throw Self.missingAttachment
    }
    text.attachments.removeAll { $0.name.hasSameBytes(as: name) }
    // What stands for a blob is there as long as the blob is.
    if let body = try BlobsAsAttachments.body(text.body, without: name, request.memory) { text.body = body }
    var new = try NewAttachments(self)
    let revision = try saveBody(id, seen, text.body, text.attachments, &new)
    return savedAnswer(id, revision, status: 200, headers: [])
  }

  /// Saves a document with these attachments. If it fails, those that are new are discarded.
  func saveBody(
    _ id: String, _ seen: IncomingDocument.Revision?, _ body: [UInt8], _ attachments: [StoredAttachment],
    _ new: inout NewAttachments
  ) throws -> String {
    do {
      var document = try parse(body)
      document.id = id
      document.revision = seen
      document.storedAttachments = StoredAttachment.stored(attachments)
      return try saved(document, body, isForeign: false, &new)
    } catch {
      new.discard()
      throw error
    }
  }

  /// The body of a revision without its attachments, and these. An empty one without a revision: then a document is made. Throws 409
  /// if the revision isn't there.
  func bodyWithAttachments(_ id: String, _ seen: IncomingDocument.Revision?) throws
    -> (body: [UInt8], attachments: [StoredAttachment])
  {
    guard let seen else { return (Array("{}".utf8), []) }
    return try database.read { snapshot in
      guard let revisions = try snapshot.revisions(of: id),
        let index = try seen.id.flatMap({ try revisions.index(of: $0) })
      else { throw Self.missingRevision }
      var text = Array("{\"_deleted\":false".utf8)
      var json = JSONWriter(capacity: 1024)
      let attachments = try revisions.withBody(index) { try RevisionRenderer.append(body: $0, $1, to: &json) }
      guard let attachments else { throw Self.missingRevision }
      json.write(to: &text)
      text.append(UInt8(ascii: "}"))
      return (text, attachments)
    }
  }
}

extension AnswerOutput {
  /// Writes bytes, and hands them on.
  func pass(_ bytes: UnsafeRawBufferPointer) throws {
    append([UInt8](bytes))
    try step()
  }
}
