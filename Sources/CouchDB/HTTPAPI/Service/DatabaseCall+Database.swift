import Bytes
import Documents
import Fleece
import Glibc
import HTTP
import Logs
import Touchstone
import Views

extension DatabaseService {
  /// The answer to `PUT` and `DELETE` of a database, and to methods that a database doesn't know; nil for others.
  func makeOrDelete(_ request: HTTPRequest, _ name: String, _ query: APIQuery) throws -> HTTPAnswer? {
    switch request.method {
    case "PUT":
      try Authorization.check(.serverAdmin, of: request.context, .standard)
      try checkWritable()
      let isPartitioned = try Self.checkOptions { query[$0] }
      try Self.checkName(name)
      if isPartitioned { try Self.checkPartitionable(name) }
      guard try catalog.create(name, isPartitioned: isPartitioned) else {
        throw CouchDBError(
          412, "file_exists", "The database could not be created, the file already exists.")
      }
      return .ok(status: 201, headers: [.init("Location", "\(request.baseURL)/\(name.pathSegment)")])
    case "DELETE":
      try Authorization.check(Routes.wholeDatabase.right("DELETE"), of: request.context, .standard)
      try checkWritable()
      guard query["rev"] == nil else {
        throw CouchDBError(
          400, "bad_request",
          "You tried to DELETE a database with a ?=rev parameter. Did you mean to DELETE a document instead?")
      }
      guard try catalog.delete(name) else { throw CouchDBError.noDatabase }
      return .ok()
    default:
      // Who hasn't logged in doesn't get to know more than that.
      if !request.context.isAnonymous { try Routes.wholeDatabase.checkMethod(request.method) }
      return nil
    }
  }

  /// Throws CouchDB's errors for options of a new database. Shards and copies mean nothing here, and databases have one kind of engine for
  /// clients. Returns whether it is to be partitioned.
  @discardableResult
  static func checkOptions(_ option: (StaticString) -> String?) throws -> Bool {
    func isPositive(_ text: some StringProtocol) -> Bool { Int(text).map { $0 > 0 } ?? false }
    for (name, value) in [("n", option("n")), ("q", option("q"))]
    where value.map({ !isPositive($0) }) ?? false {
      throw CouchDBError(400, "bad_request", "The `\(name)` value should be a positive integer.")
    }
    if let placement = option("placement") {
      let isRight = placement.split(separator: ",").allSatisfy { rule in
        let parts = rule.split(separator: ":")
        return parts.count == 2 && isPositive(parts[1])
      }
      guard isRight, !placement.isEmpty else {
        throw CouchDBError(400, "bad_request", "The `placement` value should be in a format `zone:n`.")
      }
    }
    guard option("engine").map({ $0 == "couch" }) ?? true else {
      throw CouchDBError(400, "bad_request", "invalid_engine_extension")
    }
    switch option("partitioned") {
    case nil, "false": return false
    case "true": return true
    default: throw CouchDBError(400, "bad_request", "Invalid `partitioned` parameter")
    }
  }

  /// Throws 400 for the name of a database that can't be partitioned.
  static func checkPartitionable(_ name: String) throws {
    let last = String(name.split(separator: "/").last ?? "")
    if systemNames.contains(where: { $0.hasSameBytes(as: last) }) {
      throw CouchDBError(400, "bad_request", "Cannot partition a system database")
    }
  }

  /// The databases whose names begin with an underscore.
  static let systemNames = [ReplicatorDocument.database, UserDocument.database]

  /// Whether it is the name of one of them.
  package static func isSystemName(_ name: String) -> Bool {
    name.utf8.first == UInt8(ascii: "_") && systemNames.contains { $0.hasSameBytes(as: name) }
  }

  /// Throws the error of CouchDB for a name that a new database can't have.
  static func checkName(_ name: String) throws {
    guard name.utf8.count <= 238 else {
      throw CouchDBError(
        400, "database_name_too_long",
        "At least one path segment of `\(name)` is too long.")
    }
    let bytes = Array(name.utf8)
    let isLegal =
      bytes.first.map { $0 &- 0x61 < 26 } ?? false
      && bytes.allSatisfy { $0 &- 0x61 < 26 || $0 &- 0x30 < 10 || "_$()+-/".utf8.contains($0) }
    guard isLegal || systemNames.contains(where: { $0.utf8.elementsEqual(bytes) }) else {
      throw CouchDBError.illegalName(name)
    }
  }
}

extension DatabaseCall {
  func ensureFullCommit() throws -> HTTPAnswer {
    try checkContentType()
    return try .json(
      ["ok": true, "instance_start_time": .string(service.instanceStartTime(database))], status: 201)
  }

  /// The answer to what concerns the database as a whole.
  func wholeAnswer() throws -> HTTPAnswer {
    if method == "POST" { return try postDocument() }
    return try .json(service.information(name, database))
  }

  func purgedInfosLimit() throws -> HTTPAnswer {
    guard method == "PUT" else {
      return try .json(JSONValue(database.replicating { try $0.purgeRequestsLimit() }))
    }
    try checkWritable()
    guard case .int(let limit)? = try? JSONValue(body: bodyBytes()), limit > 0 else {
      throw CouchDBError(400, "bad_request", "`purge_infos_limit` must be positive integer")
    }
    try database.replicatingChanges { try $0.setPurgeRequestsLimit(UInt64(limit)) }
    return .ok()
  }

  /// The answer to `_security`.
  func securityAnswer() throws -> HTTPAnswer {
    guard method == "PUT" else { return .json(text: try security().text + [UInt8(ascii: "\n")]) }
    try service.checkWritable()
    if name.hasSameBytes(as: UserDocument.database), !service.configuration.usersSecurityIsEditable {
      throw CouchDBError(
        403, "forbidden", "You can't edit the security object of the user database.")
    }
    let security = try DatabaseSecurity(text: bodyBytes())
    guard security.text.count <= DocumentStore.maximumSecurityBytes else {
      throw CouchDBError(
        413, "too_large", "the security object has more than \(DocumentStore.maximumSecurityBytes) bytes")
    }
    try database.setSecurityObject(security.text)
    knownSecurity.set(security)
    service.rights.securityChanged(database)
    return .ok()
  }

  func compact() throws -> HTTPAnswer {
    try checkContentType()
    try service.checkWritable()
    let (service, database, name) = (service, database, name)
    let number = service.tasks.begin("database_compaction", database: name)
    service.workers.enqueue {
      defer { service.tasks.end(number) }
      do { try database.compact() } catch {
        Log.write(.warning, .database, database.path, "a compaction failed: \(LogText.of(error))")
      }
    }
    return .ok(status: 202)
  }

  func compactViews(_ design: String) throws -> HTTPAnswer {
    try checkContentType()
    try service.checkWritable()
    guard try database.document("_design/" + design) != nil else {
      throw CouchDBError(404, "not_found", "missing")
    }
    // Rows of views lie in the database's file: its compaction is theirs.
    return .ok(status: 202)
  }

  func revisionsLimit() throws -> HTTPAnswer {
    guard method == "PUT" else { return try .json(JSONValue(database.maximumTreeDepth)) }
    try service.checkWritable()
    guard case .int(let limit)? = try? JSONValue(body: bodyBytes()), limit > 0, limit <= Int64(Int32.max)
    else {
      throw CouchDBError(400, "bad_request", "`rev_limit` must be a positive number")
    }
    try database.setMaximumTreeDepth(Int(limit))
    return .ok()
  }
}

extension String {
  /// As a segment of a URL's path: percent-encoded but for letters, digits and `-._:`, as CouchDB does.
  package var pathSegment: String {
    var text = ""
    for byte in utf8 {
      let isPlain =
        byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || [0x2D, 0x2E, 0x3A, 0x5F].contains(byte)
      text += isPlain ? String(UnicodeScalar(byte)) : "%" + Hex.text([byte], isUpper: true)
    }
    return text
  }
}
