import Bytes
import Fleece
import Foundation
import HTTP
import Storage

// Documents as they are saved.
extension CouchModel {
  private static let members: Set<String> = ["_id", "_rev", "_revisions", "_deleted", "_attachments"]

  /// Reads a document that was made elsewhere. `parts` are the attachments that follow it.
  private func revision(_ value: JSONValue, _ parts: [[UInt8]], order: [String] = []) throws
    -> (String, Revision)
  {
    guard var members = value.object, let id = members["_id"]?.string else {
      throw Refused(400, "bad_request", "Document must be a JSON object")
    }
    for name in members.keys where name.hasPrefix("_") && !Self.members.contains(name) {
      throw Refused(400, "doc_validation", "Bad special document member: \(name)")
    }
    if id.hasPrefix("_"), !id.hasPrefix("_design/") { throw Refused(400, "illegal_docid", id) }
    if id.utf8.count > state.withLock({ $0.maximumIDBytes }) {
      throw Refused(413, "illegal_docid", "Document id is too long")
    }
    guard let start = members["_revisions"]?["start"].uint, let ids = members["_revisions"]?["ids"].array,
      !ids.isEmpty
    else { throw Refused(400, "bad_request", "no _revisions") }
    let history = try ids.enumerated().map { index, suffix in
      guard let text = suffix.string, UInt64(index) < start else {
        throw Refused(400, "bad_request", "Invalid rev format")
      }
      return "\(start - UInt64(index))-\(text)"
    }
    guard members["_rev"]?.string == history[0] else {
      throw Refused(400, "odd", "_rev isn't that of _revisions")
    }
    var attachments: [Attachment] = []
    var rest = parts[...]
    let known = state.withLock { state -> [Attachment] in
      for ancestor in history.dropFirst() {
        if let found = state.documents[id]?.revisions[ancestor] { return found.attachments }
      }
      return []
    }
    let entries = members["_attachments"]?.object ?? [:]
    for name in order.isEmpty ? entries.keys.sorted() : order {
      guard let entry = entries[name] else { continue }
      if let digest = entry["digest"].string, !digest.hasPrefix("md5-") {
        throw Refused(500, "odd", "the digest \(digest)")
      }
      if entry["stub"].bool == true {
        guard let found = known.first(where: { $0.name == name }),
          entry["revpos"].uint == nil || entry["revpos"].uint == found.revpos
        else { throw Refused(412, "missing_stub", "Invalid attachment stub in \(id) for \(name)") }
        attachments.append(found)
        continue
      }
      let isCompressed = entry["encoding"].string == "gzip"
      let bytes: [UInt8]
      if entry["follows"].bool == true {
        guard let part = rest.popFirst() else { throw Refused(400, "bad_request", "a part is missing") }
        bytes = part
        let expected = isCompressed ? entry["encoded_length"].uint : entry["length"].uint
        guard expected == UInt64(part.count) else { throw Refused(400, "bad_request", "attachment length") }
      } else {
        guard let data = entry["data"].string.flatMap({ Data(base64Encoded: $0) }), !isCompressed else {
          throw Refused(400, "bad_request", "data isn't base64")
        }
        bytes = [UInt8](data)
      }
      if bytes.count > state.withLock({ $0.maximumAttachmentBytes }) {
        throw Refused(413, "attachment_too_large", name)
      }
      attachments.append(
        Attachment(
          name: name, contentType: entry["content_type"].string ?? "", revpos: entry["revpos"].uint ?? start,
          bytes: bytes, length: Int(entry["length"].uint ?? UInt64(bytes.count)), isCompressed: isCompressed))
    }
    guard rest.isEmpty else { throw Refused(400, "odd", "more parts than attachments") }
    let isDeleted = members["_deleted"]?.bool ?? false
    for name in Self.members { members[name] = nil }
    return (id, Revision(history: history, isDeleted: isDeleted, body: members, attachments: attachments))
  }

  /// The names of the attachments in the order of the text, in which their bytes follow.
  private static func order(of text: [UInt8]) throws -> [String] {
    try text.withUnsafeBytes { text in
      let invalid = Refused(400, "bad_request", "invalid UTF-8 JSON")
      var names: [String] = []
      var scanner = JSONScanner(text, nil, invalid: invalid)
      try scanner.object { scanner, member in
        let value = try scanner.value()
        guard text[member.name].elementsEqual("_attachments".utf8) else { return }
        var entries = JSONScanner(text, value, invalid: invalid)
        try entries.object { entries, member in
          _ = try entries.value()
          let quoted = UnsafeRawBufferPointer(
            rebasing: text[member.name.lowerBound - 1..<member.name.upperBound + 1])
          names.append(try JSONValue(json: quoted).string ?? "")
        }
      }
      return names
    }
  }

  private func refusal(_ id: String) -> String? {
    state.withLock { state in state.refused.first { id.hasPrefix($0.key) }?.value }
  }

  func bulkDocuments(_ request: MiniRequest) throws -> MiniAnswer {
    let value = try Self.value(request)
    guard value["new_edits"].bool == false, let docs = value["docs"].array else {
      throw Refused(400, "odd", "new_edits")
    }
    let limit = state.withLock { $0.maximumBytes }
    for doc in docs where ((try? doc.canonicalJSON().utf8.count) ?? 0) > limit {
      throw Refused(413, "document_too_large", doc["_id"].string ?? "")
    }
    var failures: [JSONValue] = []
    for (id, revision) in try docs.map({ try self.revision($0, []) }) {
      if let error = refusal(id) {
        failures.append(
          ["id": .string(id), "rev": .string(revision.id), "error": .string(error), "reason": "refused"])
      } else {
        add(id, revision)
      }
    }
    return Self.json(.array(failures), status: 201)
  }

  func put(_ request: MiniRequest, _ id: String) throws -> MiniAnswer {
    guard request.query["new_edits"] == "false" else { throw Refused(400, "odd", "new_edits") }
    let type = HTTPMediaType(request.headers.first("content-type") ?? "")
    var parts: [[UInt8]] = []
    if type.name == "multipart/related" {
      guard state.withLock({ $0.takesMultipart }) else {
        throw Refused(415, "bad_content_type", "no multipart")
      }
      var parser = try MultipartParser(boundary: type[parameter: "boundary"] ?? "")
      try request.body.withUnsafeBytes { bytes in
        try parser.parse(bytes) { event in
          switch event {
          case .begin: parts.append([])
          case .bytes(let bytes): parts[parts.count - 1].append(contentsOf: bytes)
          case .end: break
          }
        }
      }
      try parser.finish()
      guard parts.count > 1 else {
        throw Refused(400, "silent", "CouchDB 3.5 never answers to a document as the only part")
      }
    } else {
      parts = [request.body]
    }
    guard !parts.isEmpty, let value = parts[0].withUnsafeBytes({ try? JSONValue(json: $0) }) else {
      throw Refused(400, "bad_request", "invalid UTF-8 JSON")
    }
    let (own, revision) = try revision(value, Array(parts.dropFirst()), order: Self.order(of: parts[0]))
    guard own == id else { throw Refused(400, "bad_request", "Document id must match the path") }
    if let error = refusal(id) { throw Refused(error == "forbidden" ? 403 : 401, error, "refused") }
    add(id, revision)
    return Self.json(["ok": true, "id": .string(id), "rev": .string(revision.id)], status: 201)
  }

  func local(_ request: MiniRequest, _ name: String) throws -> MiniAnswer {
    if request.method == "GET" {
      guard let found = state.withLock({ $0.locals[name] }) else {
        throw Refused(404, "not_found", "missing")
      }
      return Self.json(.object(found))
    }
    var value = try Self.value(request).object ?? [:]
    guard value["_id"]?.string == "_local/" + name else {
      throw Refused(400, "odd", "_id of a local document")
    }
    let before = (value["_rev"]?.string ?? "0-0").dropFirst(2)
    guard let number = Int(before) else { throw Refused(400, "bad_request", "Invalid rev format") }
    value["_rev"] = .string("0-\(number + 1)")
    state.withLock { [value] in $0.locals[name] = value }
    return Self.json(
      ["ok": true, "id": .string("_local/" + name), "rev": .string("0-\(number + 1)")], status: 201)
  }
}
