import Bytes
import Fleece
import Foundation
import HTTP
import Storage

// Documents and attachments as they are read.
extension CouchModel {
  /// Where the bytes of an attachment are in an answer.
  private enum Place { case elsewhere, inText, behindText }

  private func render(
    _ id: String, _ revision: Revision, _ place: (Attachment) -> Place = { _ in .elsewhere }
  )
    -> JSONObject
  {
    var members = revision.body
    members["_id"] = .string(id)
    members["_rev"] = .string(revision.id)
    if revision.isDeleted { members["_deleted"] = true }
    members["_revisions"] = [
      "start": .int(Int64(Self.generation(revision.id))),
      "ids": .array(revision.history.map { .string(String($0.drop { $0 != "-" }.dropFirst())) }),
    ]
    guard !revision.attachments.isEmpty else { return members }
    let isUntold = state.withLock { $0.encoding == .isUntold }
    var entries: JSONObject = [:]
    for attachment in revision.attachments {
      var entry: JSONObject = [
        "content_type": .string(attachment.contentType), "revpos": JSONValue(attachment.revpos),
        "digest": .string(MD5.text(attachment.bytes)), "length": JSONValue(UInt64(attachment.length)),
      ]
      switch place(attachment) {
      case .elsewhere: entry["stub"] = true
      case .behindText: entry["follows"] = true
      case .inText:
        entry["length"] = nil
        entry["data"] = .string(Data(attachment.plainBytes).base64EncodedString())
      }
      if attachment.isCompressed, !isUntold {
        entry["encoding"] = "gzip"
        entry["encoded_length"] = JSONValue(UInt64(attachment.bytes.count))
      }
      entries[attachment.name] = .object(entry)
    }
    members["_attachments"] = .object(entries)
    return members
  }

  /// The leaves that descend from a revision; itself if it is one.
  private func latest(_ id: String, _ revision: String) -> [Revision] {
    state.withLock { state in
      guard let document = state.documents[id] else { return [] }
      return document.leaves.compactMap { document.revisions[$0] }.filter { $0.history.contains(revision) }
    }
  }

  func bulkGet(_ request: MiniRequest) throws -> MiniAnswer {
    guard request.query["revs"] == "true", request.query["latest"] == "true" else {
      throw Refused(400, "odd", "revs")
    }
    let results = try (Self.value(request)["docs"].array ?? []).map { wanted -> JSONValue in
      guard let id = wanted["id"].string, let revision = wanted["rev"].string else {
        throw Refused(400, "bad_request", "document must be a JSON object")
      }
      let found = latest(id, revision)
      let missing: JSONValue = [
        "error": ["id": .string(id), "rev": .string(revision), "error": "not_found", "reason": "missing"]
      ]
      let docs = found.isEmpty ? [missing] : found.map { ["ok": .object(render(id, $0))] }
      return ["id": .string(id), "docs": .array(docs)]
    }
    guard state.withLock({ $0.givesMixedBulk }) else { return Self.json(["results": .array(results)]) }
    // As Sync Gateway.
    var text = ""
    for document in results.flatMap({ $0["docs"].array ?? [] }) {
      if let error = document["error"].object {
        text += "--o\r\nContent-Type: application/json; error=\"true\"\r\n\r\n"
        text += try JSONValue.object(error).canonicalJSON()
      } else {
        text += "--o\r\nContent-Type: application/json\r\n\r\n\(try document["ok"].canonicalJSON())"
      }
      text += "\r\n"
    }
    var answer = MiniAnswer(200, text + "--o--")
    answer.headers = [("Content-Type", "multipart/mixed; boundary=\"o\"")]
    return answer
  }

  /// A document with the bytes of attachments, as a relay asks for it.
  private func related(_ request: MiniRequest, _ id: String, _ asked: String) throws -> MiniAnswer {
    guard request.query["revs"] == "true" else { throw Refused(400, "odd", "a revision without revs") }
    guard let revision = state.withLock({ $0.documents[id]?.revisions[asked] }) else {
      throw Refused(404, "not_found", "missing")
    }
    let since = try request.query["atts_since"].map { text -> [String] in
      guard let list = try? JSONValue(json: text).array else {
        throw Refused(400, "bad_request", "atts_since")
      }
      return list.compactMap(\.string)
    }
    let known = revision.history.first { (since ?? []).contains($0) }.map(Self.generation) ?? 0
    func isNew(_ attachment: Attachment) -> Bool { attachment.revpos > UInt64(known) }
    let following = revision.attachments.sorted { $0.name > $1.name }.filter(isNew)
    let takes = request.headers.first("accept")?.contains("multipart/related") ?? false
    guard takes, !following.isEmpty, state.withLock({ $0.givesMultipart }) else {
      guard request.query["att_encoding_info"] == nil || takes else { throw Refused(400, "odd", "encoding") }
      var plain = revision
      for index in plain.attachments.indices where isNew(plain.attachments[index]) {
        let attachment = plain.attachments[index]
        (plain.attachments[index].bytes, plain.attachments[index].isCompressed) = (
          attachment.plainBytes, false
        )
      }
      return Self.json(.object(render(id, plain) { isNew($0) ? .inText : .elsewhere }))
    }
    // The bytes follow in the order of the text.
    var members = render(id, revision) { isNew($0) ? .behindText : .elsewhere }
    let entries = members.removeValue(forKey: "_attachments")?.object ?? [:]
    var text = try JSONValue.object(members).canonicalJSON()
    let listed = try revision.attachments.sorted { $0.name > $1.name }.map { attachment in
      try JSONValue.string(attachment.name).canonicalJSON() + ":"
        + (entries[attachment.name] ?? .null).canonicalJSON()
    }
    text.removeLast()
    text += ",\"_attachments\":{\(listed.joined(separator: ","))}}"
    var body = Array("--related\r\nContent-Type: application/json\r\n\r\n\(text)".utf8)
    for attachment in following {
      let name = "\r\n--related\r\nContent-Disposition: attachment; filename=\"\(attachment.name)\"\r\n"
      body += Array("\(name)Content-Length: \(attachment.bytes.count)\r\n\r\n".utf8) + attachment.bytes
    }
    var answer = MiniAnswer(200)
    answer.headers = [("Content-Type", "multipart/related; boundary=\"related\"")]
    answer.body = body + Array("\r\n--related--".utf8)
    return answer
  }

  func read(_ request: MiniRequest, _ id: String) throws -> MiniAnswer {
    if let revision = request.query["rev"], request.query["attachments"] == "true" {
      return try related(request, id, revision)
    }
    guard let text = request.query["open_revs"], let wanted = try? JSONValue(json: text).array else {
      throw Refused(400, "odd", "a document without open_revs")
    }
    guard request.query["latest"] == "true", request.query["revs"] == "true" else {
      throw Refused(400, "odd", "open_revs without latest or revs")
    }
    let since = try request.query["atts_since"].map { text -> [String] in
      guard let list = try? JSONValue(json: text).array else {
        throw Refused(400, "bad_request", "atts_since")
      }
      return list.compactMap(\.string)
    }
    func isNew(_ attachment: Attachment, _ revision: Revision) -> Bool {
      let known = revision.history.first { (since ?? []).contains($0) }.map(Self.generation) ?? 0
      return attachment.revpos > UInt64(known)
    }
    let isMixed = request.headers.first("accept")?.contains("multipart/mixed") ?? false
    let isUntold = state.withLock { $0.encoding == .isUntold }
    guard isMixed, state.withLock({ $0.givesMultipart }) else {
      let results = wanted.compactMap(\.string).flatMap { revision -> [JSONValue] in
        let found = latest(id, revision)
        guard !found.isEmpty else { return [["missing": .string(revision)]] }
        return found.map { revision in
          let document = render(id, revision) {
            since != nil && (isUntold || !$0.isCompressed) && isNew($0, revision) ? .inText : .elsewhere
          }
          return ["ok": .object(document)]
        }
      }
      return Self.json(.array(results))
    }
    var body = Array("--outer".utf8)
    func append(_ text: String) { body += Array(text.utf8) }
    for asked in wanted.compactMap(\.string) {
      let found = latest(id, asked)
      if found.isEmpty {
        append(
          "\r\nContent-Type: application/json; error=\"true\"\r\n\r\n{\"missing\":\"\(asked)\"}\r\n--outer")
      }
      for revision in found {
        let following = revision.attachments.filter { isNew($0, revision) }
        let document = render(id, revision) { isNew($0, revision) ? .behindText : .elsewhere }
        let text = try JSONValue.object(document).canonicalJSON()
        guard !following.isEmpty else {
          append("\r\nContent-Type: application/json\r\n\r\n\(text)\r\n--outer")
          continue
        }
        append("\r\nContent-Type: multipart/related; boundary=\"inner\"\r\n\r\n--inner\r\n")
        append("Content-Type: application/json\r\n\r\n\(text)")
        for attachment in following {
          // As CouchDB: the name is as it is.
          append("\r\n--inner\r\nContent-Disposition: attachment; filename=\"\(attachment.name)\"\r\n")
          let (bytes, isCompressed) =
            isUntold ? (attachment.plainBytes, false) : sent(attachment, accepts: true)
          append("Content-Type: \(attachment.contentType)\r\nContent-Length: \(bytes.count)\r\n")
          append(isCompressed ? "Content-Encoding: gzip\r\n\r\n" : "\r\n")
          body += bytes
        }
        append("\r\n--inner--\r\n--outer")
      }
    }
    append("--")
    var answer = MiniAnswer(200)
    answer.headers = [("Content-Type", "multipart/mixed; boundary=\"outer\"")]
    answer.body = body
    return answer
  }

  func attachment(_ request: MiniRequest, _ id: String, _ name: String) throws -> MiniAnswer {
    let found = state.withLock { state in
      state.documents[id]?.revisions[request.query["rev"] ?? ""]?.attachments.first { $0.name == name }
    }
    guard let found else { throw Refused(404, "not_found", "Document is missing attachment") }
    var answer = MiniAnswer(200)
    answer.headers = [("Content-Type", found.contentType)]
    let accepts = request.headers.first("accept-encoding")?.contains("gzip") == true
    // But for a blob, which is plain here.
    if found.isCompressed, !accepts, !name.hasPrefix("blob_"), state.withLock({ $0.encoding == .asCouchDB }) {
      throw Refused(400, "odd", "a compressed attachment is asked for plain")
    }
    let isCompressed: Bool
    (answer.body, isCompressed) = sent(found, accepts: accepts)
    if isCompressed { answer.headers.append(("Content-Encoding", "gzip")) }
    return answer
  }

  /// The bytes of an attachment as they are sent, and whether they are gzip.
  private func sent(_ attachment: Attachment, accepts: Bool) -> ([UInt8], isCompressed: Bool) {
    switch state.withLock({ $0.encoding }) {
    case .asCouchDB, .isUntold:
      let isCompressed = attachment.isCompressed && accepts
      return (isCompressed ? attachment.bytes : attachment.plainBytes, isCompressed)
    case .always:
      return (
        attachment.isCompressed ? attachment.bytes : (try? Gzip.encoded(attachment.bytes)) ?? [], true
      )
    case .never: return (attachment.plainBytes, false)
    }
  }
}
