import Bytes
import Fleece
import HTTP
import Storage
import Touchstone
import Views

extension DatabaseService {
  /// The most UUIDs in one answer, as in CouchDB.
  private static let maximumUUIDs = 1_000

  /// The answer to what concerns the server. `path` is empty for its root.
  func serverAnswer(_ request: HTTPRequest, _ path: [ByteString], _ query: APIQuery) throws -> HTTPAnswer {
    let call = ServerCall(service: self, request: request, path: path, query: query)
    if let answer = try Routes.server.answer(call, request.method, path) { return answer }
    // Who hasn't logged in doesn't get to know what there is.
    if request.context.isAnonymous { try Authorization.check(.member, of: request.context, .standard) }
    if request.method == "PUT" || request.method == "DELETE", path.count == 1 {
      try call.check(.serverAdmin)
      throw CouchDBError.illegalName(path[0].string)
    }
    throw CouchDBError(404, "not_found", path.count == 1 ? "Database does not exist." : "missing")
  }

  static func up() throws -> HTTPAnswer { try .json(["status": "ok", "seeds": [:]]) }

  func activeTasks() throws -> HTTPAnswer { try .json(.array(taskRows)) }

  func metricsAnswer() throws -> HTTPAnswer {
    let text = metrics.text(databases: try catalog.names().count, tasks: taskRows.count)
    return HTTPAnswer(
      status: 200, headers: [.init("Content-Type", "text/plain; version=0.0.4; charset=utf-8")],
      body: .bytes(Array(text.utf8)))
  }

  static func membership() throws -> HTTPAnswer {
    try .json(["all_nodes": [.string(node)], "cluster_nodes": [.string(node)]])
  }

  static func localNode() throws -> HTTPAnswer { try .json(["name": .string(node)]) }

  static let node = "touchstone@localhost"

  /// What the root says.
  func welcome() throws -> HTTPAnswer {
    try .json([
      "couchdb": "Welcome",
      // The release of CouchDB whose answers these are: clients choose what they ask by it.
      "version": "3.5.0", "git_sha": "touchstone", "uuid": .string(uuid),
      // Tools such as Fauxton offer partitioned databases only if they are named here.
      "features": ["partitioned", "scheduler"],
      "vendor": ["name": "Touchstone", "version": .string(configuration.version)],
    ])
  }

  func uuids(_ query: APIQuery) throws -> HTTPAnswer {
    var count = 1
    if let text = query["count"] {
      guard let number = Int(text), number >= 0 else {
        throw CouchDBError(400, "bad_request", "count must be a number")
      }
      count = number
    }
    guard count <= Self.maximumUUIDs else {
      throw CouchDBError(400, "bad_request", "count parameter too large")
    }
    let uuids = (0..<count).map { _ in JSONValue(DocumentUUID.make()) }
    return try .json(
      ["uuids": .array(uuids)],
      headers: [
        .init("Cache-Control", "no-cache, must-revalidate"), .init("Pragma", "no-cache"),
        .init("Expires", "Mon, 01 Jan 1990 00:00:00 GMT"), .init("ETag", "\"\(DocumentUUID.make())\""),
      ])
  }

  func allDatabases(_ request: HTTPRequest, _ query: APIQuery) throws -> HTTPAnswer {
    func key(_ names: StaticString...) throws -> String? {
      for name in names { if let value = try query.json(name) { return value.string ?? "" } }
      return nil
    }
    var names = try catalog.names()
    let (start, end) = (try key("start_key", "startkey"), try key("end_key", "endkey"))
    let isDescending = try query.flag("descending") ?? false
    let includesEnd = try query.flag("inclusive_end") ?? true
    if isDescending { names.reverse() }
    func isBefore(_ a: String, _ b: String) -> Bool {
      isDescending ? b.utf8.lexicographicallyPrecedes(a.utf8) : a.utf8.lexicographicallyPrecedes(b.utf8)
    }
    names = names.filter { name in
      if let start, isBefore(name, start) { return false }
      guard let end else { return true }
      return includesEnd ? !isBefore(end, name) : isBefore(name, end)
    }
    func count(_ name: StaticString) throws -> Int? {
      guard let text = query[name] else { return nil }
      guard let number = Int(text), number >= 0 else {
        throw CouchDBError(400, "query_parse_error", "Invalid value for integer: \"\(text)\"")
      }
      return number
    }
    names = Array(names.dropFirst(try count("skip") ?? 0).prefix(try count("limit") ?? .max))
    let value = JSONValue.array(names.map { .string($0) })
    let tag = try value.jsonText().withUnsafeBytes { "\"\(String(ByteHash.of($0, 0), radix: 16))\"" }
    if request.matches(tag) { return HTTPAnswer(status: 304, headers: [.init("ETag", tag)]) }
    return try .json(value, headers: [.init("ETag", tag)])
  }

  func databasesInfo(_ request: HTTPRequest, _ query: APIQuery) throws -> HTTPAnswer {
    var names = try catalog.names()
    if request.method == "POST" {
      let body = try request.jsonBody(limit: configuration.maximumRequestBytes)
      guard let member = body.object?["keys"] else {
        throw CouchDBError(400, "bad_request", "`keys` member must exist.")
      }
      guard let keys = member.array else {
        throw CouchDBError(400, "bad_request", "`keys` member must be an array.")
      }
      guard keys.count <= 100 else {
        throw CouchDBError(400, "bad_request", "`keys` must have at most 100 names")
      }
      names = try keys.map { key in
        guard let name = key.string else { throw CouchDBError(400, "bad_request", "`keys` must be names") }
        return name
      }
    }
    return try .json(
      .array(
        names.map { name in
          do {
            guard let database = try catalog.database(name) else {
              return ["key": .string(name), "error": "not_found"]
            }
            return ["key": .string(name), "info": try information(name, database)]
          } catch let error as any TouchstoneError {
            // One that can't be opened doesn't hide the others.
            return ["key": .string(name), "error": .string(CouchDBError(failure: error).error)]
          }
        }))
  }

  /// What `GET /{db}` says of a database.
  func information(_ name: String, _ database: Database) throws -> JSONValue {
    let (documents, tombstones, last, purges) = try database.read {
      (try $0.documentCount, try $0.tombstoneCount, try $0.lastSequence, try $0.lastPurgeRequest)
    }
    let size = JSONValue(FileSize.of(database.engineFile))
    return [
      "db_name": .string(name), "engine": .string(database.engineName.rawValue),
      "instance_start_time": .string(instanceStartTime(database)),
      "update_seq": .string(database.couchDBSequences.text(last)), "purge_seq": .string(String(purges)),
      "doc_count": JSONValue(documents),
      "doc_del_count": JSONValue(tombstones), "disk_format_version": 8,
      "props": try watches.watch(database).isPartitioned(database) ? ["partitioned": true] : [:],
      "compact_running": .bool(tasks.contains("database_compaction", database: name)),
      "sizes": ["file": size, "external": size, "active": size],
      "cluster": ["q": 1, "n": 1, "w": 1, "r": 1],
    ]
  }

  /// A number that stays the same as long as a database is the same one: replicators compare it.
  func instanceStartTime(_ database: Database) -> String {
    let digits = database.publicUUID.utf8.filter { $0 != UInt8(ascii: "-") }.prefix(12)
    return String(UInt64(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0)
  }
}

extension Database {
  /// How clients get its sequences.
  var couchDBSequences: CouchDBSequences { CouchDBSequences(publicUUID: publicUUID) }
}

extension CouchDBError {
  static let noDatabase = CouchDBError(404, "not_found", "Database does not exist.")
  static let notImplemented = CouchDBError(501, "not_implemented", "this server doesn't have that")

  static func illegalName(_ name: String) -> CouchDBError {
    CouchDBError(
      400, "illegal_database_name",
      "Name: '\(name)'. Only lowercase characters (a-z), digits (0-9), and any of the characters _, $, (, ), +, -, and / are allowed. Must begin with a letter."
    )
  }
}
