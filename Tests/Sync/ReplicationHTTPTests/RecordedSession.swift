import Fleece
import Foundation
import HTTP
import Storage
import Testing
import Touchstone

/// The revisions that a recorded session has transferred, whichever way: in the order in which they went, by database and step.
struct RecordedSession {
  typealias Item = (id: String, revision: CouchModel.Revision)

  /// By the name of the database: the revisions of each step.
  private(set) var databases: [String: [[Item]]] = [:]

  static var directory: String? {
    ProcessInfo.processInfo.environment["TOUCHSTONE_DATA"].map { $0 + "/http-transcripts/" }
  }

  private var step = -1
  /// Documents whose attachments come by themselves: PouchDB asks for each.
  private var waiting: [(database: String, step: Int, value: JSONValue)] = []
  private var loose: [String: (bytes: [UInt8], type: String, isCompressed: Bool)] = [:]

  init(_ name: String) throws {
    let path = try #require(Self.directory) + name + ".jsonl"
    for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
      let event = try JSONValue(json: String(line))
      if event["type"].string == "step" { step += 1 }
      if event["type"].string == "http" { take(event) }
    }
    let loose = loose
    for (database, step, value) in waiting { add(database, step, value) { loose[$0 + "@" + $1] } }
  }

  private static func bytes(_ message: JSONValue) -> [UInt8] {
    if let text = message["body"].string { return Array(text.utf8) }
    return message["body_base64"].string.flatMap { Data(base64Encoded: $0) }.map { [UInt8]($0) } ?? []
  }

  private static func header(_ message: JSONValue, _ name: String) -> String? {
    message["headers"].array?.first { $0[0].string?.lowercased() == name }?[1].string
  }

  private mutating func take(_ event: JSONValue) {
    let (request, answer) = (event["req"], event["res"])
    guard let path = request["path"].string, let status = answer["status"].int, (200..<300).contains(status),
      event["answered_by_proxy"].isNull
    else { return }
    let segments = path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
    guard segments.count > 1, let database = segments.first else { return }
    let method = request["method"].string ?? ""
    let query = request["query"].string ?? ""
    switch (method, segments[1]) {
    case ("POST", "_bulk_get"):
      guard let value = Self.bytes(answer).withUnsafeBytes({ try? JSONValue(json: $0) }) else { return }
      for result in value["results"].array ?? [] {
        for doc in result["docs"].array ?? [] where !doc["ok"].isNull {
          waiting.append((database, step, doc["ok"]))
        }
      }
    case ("POST", "_bulk_docs"):
      guard let value = Self.bytes(request).withUnsafeBytes({ try? JSONValue(json: $0) }),
        value["new_edits"].bool == false
      else { return }
      for doc in value["docs"].array ?? [] { waiting.append((database, step, doc)) }
    case ("PUT", _) where query.contains("new_edits=false"):
      takeMultipart(Self.bytes(request), Self.header(request, "content-type") ?? "application/json", database)
    case ("GET", let second) where query.contains("open_revs") && !second.hasPrefix("_local"):
      takeMultipart(Self.bytes(answer), Self.header(answer, "content-type") ?? "", database)
    case ("GET", _) where query.hasPrefix("rev=") && segments.count > 2:
      let revision = query.dropFirst(4).prefix { $0 != "&" }
      let name = segments.dropFirst(2).joined(separator: "/")
      loose["\(segments[1])/\(name)@\(revision)"] = (
        Self.bytes(answer), Self.header(answer, "content-type") ?? "",
        Self.header(answer, "content-encoding") == "gzip"
      )
    default: break
    }
  }

  private static func parts(_ body: [UInt8], _ type: HTTPMediaType) -> [(
    headers: HTTPHeaders, bytes: [UInt8]
  )] {
    var parts: [(headers: HTTPHeaders, bytes: [UInt8])] = []
    guard var parser = try? MultipartParser(boundary: type[parameter: "boundary"] ?? "") else { return [] }
    try? body.withUnsafeBytes { bytes in
      try parser.parse(bytes) { event in
        switch event {
        case .begin(let headers): parts.append((headers, []))
        case .bytes(let bytes): parts[parts.count - 1].bytes.append(contentsOf: bytes)
        case .end: break
        }
      }
    }
    return parts
  }

  private mutating func takeMultipart(_ body: [UInt8], _ contentType: String, _ database: String) {
    let type = HTTPMediaType(contentType)
    switch type.name {
    case "multipart/mixed":
      for part in Self.parts(body, type) {
        takeMultipart(part.bytes, part.headers.first("content-type") ?? "", database)
      }
    case "multipart/related":
      let parts = Self.parts(body, type)
      guard let first = parts.first, let value = first.bytes.withUnsafeBytes({ try? JSONValue(json: $0) })
      else { return }
      var named: [String: [UInt8]] = [:]
      for part in parts.dropFirst() {
        let name = HTTPMediaType(part.headers.first("content-disposition") ?? "")[parameter: "filename"] ?? ""
        named[name] = part.bytes
      }
      add(database, step, value) { path, _ in
        let name = path.split(separator: "/", maxSplits: 1).last.map(String.init) ?? path
        return named[name].map { ($0, "", false) }
      }
    case "application/json":
      guard let value = body.withUnsafeBytes({ try? JSONValue(json: $0) }) else { return }
      if let items = value.array {
        for item in items where !item["ok"].isNull { waiting.append((database, step, item["ok"])) }
      } else if !value["_id"].isNull {
        waiting.append((database, step, value))
      }
    default: break
    }
  }

  private mutating func add(
    _ database: String, _ step: Int, _ value: JSONValue,
    _ content: (String, String) -> (bytes: [UInt8], type: String, isCompressed: Bool)?
  ) {
    guard var members = value.object, let id = members["_id"]?.string,
      let start = members["_revisions"]?["start"].uint,
      let ids = members["_revisions"]?["ids"].array, start > 0
    else { return }
    let history = ids.enumerated().map { "\(start - UInt64($0))-\($1.string ?? "")" }
    let before = (databases[database] ?? []).flatMap { $0 }.filter {
      $0.id == id && history.contains($0.revision.id)
    }
    var attachments: [CouchModel.Attachment] = []
    for (name, entry) in members["_attachments"]?.object ?? [:] {
      let isCompressed = entry["encoding"].string == "gzip"
      let type = entry["content_type"].string ?? ""
      let revpos = entry["revpos"].uint ?? start
      if let data = entry["data"].string.flatMap({ Data(base64Encoded: $0) }) {
        attachments.append(
          .init(
            name: name, contentType: type, revpos: revpos, bytes: [UInt8](data), length: data.count,
            isCompressed: false))
      } else if let found = content("\(id)/\(name)", history[0]) {
        let packed = isCompressed || found.isCompressed
        let length = entry["length"].uint.map { Int($0) } ?? found.bytes.count
        attachments.append(
          .init(
            name: name, contentType: type, revpos: revpos, bytes: found.bytes, length: length,
            isCompressed: packed))
      } else if let found = before.last?.revision.attachments.first(where: { $0.name == name }) {
        attachments.append(found)
      } else {
        // Another answer has its bytes.
        return
      }
    }
    let isDeleted = members["_deleted"]?.bool ?? false
    for name in members.keys where name.hasPrefix("_") { members[name] = nil }
    var steps = databases[database] ?? []
    while steps.count <= max(0, step) { steps.append([]) }
    steps[max(0, step)].append(
      (id, .init(history: history, isDeleted: isDeleted, body: members, attachments: attachments)))
    databases[database] = steps
  }
}

/// A recorded answer that is an error.
struct RecordedError: CustomStringConvertible {
  let method: String
  /// Empty for the database, the name of an endpoint, or `document`.
  let kind: String
  let answer: MiniAnswer
  var description: String {
    "\(method) \(kind) \(answer.status) \(String(decoding: answer.body, as: UTF8.self))"
  }
}

extension MiniRequest {
  var kind: String { Self.kind(path) }

  static func kind(_ path: String) -> String {
    let segments = path.split(separator: "/")
    guard segments.count > 1 else { return segments.first == "_session" ? "_session" : "" }
    return segments[1].hasPrefix("_") && segments[1] != "_design" ? String(segments[1]) : "document"
  }
}

extension RecordedSession {
  /// The different errors of a session.
  static func errors(_ name: String) throws -> [RecordedError] {
    let path = try #require(directory) + name + ".jsonl"
    var found: [String: RecordedError] = [:]
    for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
      let event = try JSONValue(json: String(line))
      guard event["type"].string == "http", let status = event["res"]["status"].int, status >= 400,
        let method = event["req"]["method"].string, let path = event["req"]["path"].string
      else { continue }
      var answer = MiniAnswer(Int(status))
      answer.body = bytes(event["res"])
      answer.headers = [("Content-Type", header(event["res"], "content-type") ?? "application/json")]
      let error = RecordedError(method: method, kind: MiniRequest.kind(path), answer: answer)
      found[error.description] = error
    }
    return found.sorted { $0.key < $1.key }.map(\.value)
  }
}

/// What a database has, in the form of `CouchModel.contents`.
func modelContents(_ database: Database) throws -> [String: [String]] {
  var found: [String: [String]] = [:]
  for document in try database.read({ try $0.documents(AllDocuments(.includingDeleted)) }) {
    found[document.id] = try database.leaves(of: document.id, includeDeleted: true).map { leaf in
      var members = leaf.body?.object ?? [:]
      let attachments = members.removeValue(forKey: "_attachments")?.object ?? [:]
      let listed = try attachments.keys.sorted().map { name -> String in
        let entry = attachments[name] ?? .null
        let attachment = try #require(Attachment(entry))
        let bytes = try database.contents(of: attachment.blob, limit: 1 << 30)
        return
          " \(name) \(entry["content_type"].string ?? "") \(entry["length"].uint ?? 0) \(MD5.text(bytes))"
      }
      return
        "\(leaf.id)\(leaf.isDeleted ? " deleted" : "") \(try JSONValue.object(members).canonicalJSON())\(listed.joined())"
    }.sorted()
  }
  return found
}
