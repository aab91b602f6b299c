import Bytes
import Fleece
import Foundation
import HTTP
import Storage

extension CouchModel {
  private struct Refused: Error {
    let status: Int
    let error: String
    let reason: String
    init(_ status: Int, _ error: String, _ reason: String) {
      (self.status, self.error, self.reason) = (status, error, reason)
    }
  }

  private static func json(_ value: JSONValue, status: Int = 200) -> MiniAnswer {
    MiniAnswer(status, ((try? value.canonicalJSON()) ?? "null") + "\n")
  }

  private static func value(_ request: MiniRequest) throws -> JSONValue {
    guard request.headers.first("content-type") == "application/json" else {
      throw Refused(415, "bad_content_type", "Content-Type must be application/json")
    }
    guard let value = request.body.withUnsafeBytes({ try? JSONValue(json: $0) }) else {
      throw Refused(400, "bad_request", "invalid UTF-8 JSON")
    }
    return value
  }

  /// Answers a request as CouchDB does.
  func answer(_ request: MiniRequest) -> MiniAnswer {
    do { return try answering(request) } catch let refused as Refused {
      let isWanted = state.withLock { $0.missing.values.contains(refused.status) }
      if !isWanted && ![404, 401, 403, 409, 412, 413, 415, 405, 429, 501, 500].contains(refused.status)
        || refused.error == "odd"
      {
        state.withLock {
          $0.complaints.append("\(request.method) \(request.path): \(refused.error) \(refused.reason)")
        }
      }
      return Self.json(
        ["error": .string(refused.error), "reason": .string(refused.reason)], status: refused.status)
    } catch { return MiniAnswer(500, "{\"error\":\"model\",\"reason\":\"\(error)\"}") }
  }

  private func answering(_ request: MiniRequest) throws -> MiniAnswer {
    let segments = request.segments
    if segments == ["_session"] {
      var answer = Self.json(["ok": true, "name": "admin", "roles": ["_admin"]])
      answer.headers.append(("Set-Cookie", "AuthSession=abc; Version=1; Path=/; HttpOnly"))
      return answer
    }
    guard segments.first == name else { throw Refused(404, "not_found", "Database does not exist.") }
    if segments.count == 1 {
      if request.method == "PUT" {
        let isNew = state.withLock { state in
          defer { state.exists = true }
          return !state.exists
        }
        if !isNew { throw Refused(412, "file_exists", "The database could not be created") }
        return MiniAnswer(201)
      }
      guard state.withLock({ $0.exists }) else { throw Refused(404, "not_found", "Database does not exist.") }
      return Self.json([
        "db_name": .string(name), "update_seq": state.withLock { sequence($0.sequence, $0) },
        "instance_start_time": .string(instanceStartTime),
      ])
    }
    guard state.withLock({ $0.exists }) else { throw Refused(404, "not_found", "Database does not exist.") }
    let isBusy = state.withLock { state in
      state.busy -= state.busy > 0 ? 1 : 0
      return state.busy > 0
    }
    if isBusy {
      var answer = MiniAnswer(429, "{\"error\":\"too_many_requests\"}")
      answer.headers.append(("Retry-After", "0"))
      return answer
    }
    if let status = state.withLock({ $0.missing[segments[1]] }) {
      throw Refused(status, "not_found", "missing")
    }
    switch segments[1] {
    case "_changes": return try changes(request)
    case "_bulk_get": return try bulkGet(request)
    case "_revs_diff": return try difference(request)
    case "_bulk_docs": return try bulkDocuments(request)
    case "_ensure_full_commit":
      guard request.headers.first("content-type") == "application/json" else {
        throw Refused(415, "odd", "Content-Type must be application/json")
      }
      return Self.json(["ok": true, "instance_start_time": .string(instanceStartTime)], status: 201)
    case "_local": return try local(request, segments.dropFirst(2).joined(separator: "/"))
    default: break
    }
    var rest = segments.dropFirst()
    var id = rest.removeFirst()
    if id == "_design", let name = rest.popFirst() { id += "/" + name }
    if request.method == "PUT" { return try put(request, id) }
    if rest.isEmpty { return try read(request, id) }
    return try attachment(request, id, rest.joined(separator: "/"))
  }

  // MARK: Changes

  private var instanceStartTime: String {
    state.withLock { $0.tellsInstance ? "17\($0.instance)" : "0" }
  }

  private static func mark(_ state: State) -> String {
    "-g1AAAA\(String(repeating: "B", count: 40))\(state.instance)"
  }

  private func sequence(_ number: Int, _ state: State) -> JSONValue {
    state.givesNumbers ? .int(Int64(number)) : .string("\(number)\(Self.mark(state))")
  }

  private func changes(_ request: MiniRequest) throws -> MiniAnswer {
    let since = request.query["since"] ?? "0"
    let (mark, instance, givesNumbers) = state.withLock { (Self.mark($0), $0.instance, $0.givesNumbers) }
    guard since == "0" || since.contains("-g1") != givesNumbers, let number = Int(since.prefix { $0 != "-" })
    else {
      throw Refused(400, "bad_request", "Malformed sequence supplied in 'since' parameter: \(since)")
    }
    // Of another database's sequence it knows nothing.
    let start = givesNumbers || since.hasSuffix(mark) ? number : 0
    let style = request.query["style"] ?? "main_only"
    guard ["all_docs", "main_only"].contains(style) else { throw Refused(400, "odd", "style") }
    let limit = request.query["limit"].flatMap { Int($0) } ?? Int.max
    var body: JSONValue = [:]
    if request.method == "POST" { body = try Self.value(request) }
    if request.query["feed"] == "longpoll" {
      // As long as nothing has changed.
      for _ in 0..<2_000
      where state.withLock({ $0.sequence <= start && $0.instance == instance && !$0.isClosed }) {
        usleep(5_000)
      }
    }
    return state.withLock { state in
      let all = state.documents.filter { id, document in
        guard document.sequence > start else { return false }
        switch request.query["filter"] {
        case "_doc_ids": return body["doc_ids"].array?.contains(.string(id)) ?? false
        case "_selector":
          guard let winner = document.leaves.first.flatMap({ document.revisions[$0] }) else { return false }
          return (body["selector"].object ?? [:]).allSatisfy { winner.body[$0.key] == $0.value }
        case "app/type":
          guard let winner = document.leaves.first.flatMap({ document.revisions[$0] }) else { return false }
          return winner.body["type"]?.string == request.query["type"]
        default: return true
        }
      }.sorted { $0.value.sequence < $1.value.sequence }
      let rows = all.prefix(limit).map { id, document -> String in
        let leaves = document.leaves
        let isDeleted = document.revisions[leaves[0]]?.isDeleted ?? false
        let shown = style == "main_only" ? leaves.prefix(1) : leaves[...]
        let revisions = shown.map { "{\"rev\":\"\($0)\"}" }.joined(separator: ",")
        let name = (try? JSONValue.string(id).canonicalJSON()) ?? "\"\""
        let sequence = (try? sequence(document.sequence, state).canonicalJSON()) ?? ""
        return "{\"seq\":\(sequence),\"id\":\(name),\"changes\":[\(revisions)]"
          + (isDeleted ? ",\"deleted\":true}" : "}")
      }
      let last = sequence(all.count > limit ? all[limit - 1].value.sequence : state.sequence, state)
      return MiniAnswer(
        200,
        "{\"results\":[\n\(rows.joined(separator: ",\n"))\n],\n\"last_seq\":\((try? last.canonicalJSON()) ?? ""),\"pending\":\(all.count - rows.count)}\n"
      )
    }
  }

  // MARK: Reading

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

  private func bulkGet(_ request: MiniRequest) throws -> MiniAnswer {
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

  private func read(_ request: MiniRequest, _ id: String) throws -> MiniAnswer {
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

  private func attachment(_ request: MiniRequest, _ id: String, _ name: String) throws -> MiniAnswer {
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

  private func difference(_ request: MiniRequest) throws -> MiniAnswer {
    var result: JSONObject = [:]
    for (id, list) in try Self.value(request).object ?? [:] {
      let revisions = (list.array ?? []).compactMap(\.string)
      state.withLock { state in
        let document = state.documents[id]
        let missing = revisions.filter { document?.parents[$0] == nil }
        guard let highest = missing.map(Self.generation).max() else { return }
        var entry: JSONObject = ["missing": .array(missing.map { .string($0) })]
        let ancestors = (document?.leaves ?? []).filter { Self.generation($0) < highest }
        if !ancestors.isEmpty { entry["possible_ancestors"] = .array(ancestors.map { .string($0) }) }
        result[id] = .object(entry)
      }
    }
    return Self.json(.object(result))
  }

  // MARK: Writing

  private static let members: Set<String> = ["_id", "_rev", "_revisions", "_deleted", "_attachments"]

  /// Reads a document that was made elsewhere. `parts` are the attachments that follow it.
  private func revision(_ value: JSONValue, _ parts: [[UInt8]]) throws -> (String, Revision) {
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
    for name in entries.keys.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
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

  private func refusal(_ id: String) -> String? {
    state.withLock { state in state.refused.first { id.hasPrefix($0.key) }?.value }
  }

  private func bulkDocuments(_ request: MiniRequest) throws -> MiniAnswer {
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

  private func put(_ request: MiniRequest, _ id: String) throws -> MiniAnswer {
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
    } else {
      parts = [request.body]
    }
    guard !parts.isEmpty, let value = parts[0].withUnsafeBytes({ try? JSONValue(json: $0) }) else {
      throw Refused(400, "bad_request", "invalid UTF-8 JSON")
    }
    let (own, revision) = try revision(value, Array(parts.dropFirst()))
    guard own == id else { throw Refused(400, "bad_request", "Document id must match the path") }
    if let error = refusal(id) { throw Refused(error == "forbidden" ? 403 : 401, error, "refused") }
    add(id, revision)
    return Self.json(["ok": true, "id": .string(id), "rev": .string(revision.id)], status: 201)
  }

  private func local(_ request: MiniRequest, _ name: String) throws -> MiniAnswer {
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
