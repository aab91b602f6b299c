import Bytes
import Fleece
import HTTP
import Touchstone
import Views

extension DatabaseService {
  /// The answer to what concerns the server. `path` is empty for its root.
  func serverRoute(_ request: APIRequest, _ path: [String], _ query: APIQuery) throws -> APIAnswer {
    func allow(_ methods: String...) throws {
      guard methods.contains(request.method) else { throw MethodNotAllowed(methods) }
    }
    switch (path.first, path.count) {
    case (nil, _):
      try allow("GET", "HEAD")
      return try .json([
        "couchdb": "Welcome", "version": .string("3.5.0"), "uuid": .string(uuid),
        "features": [], "vendor": ["name": "Touchstone", "version": .string(configuration.version)],
      ])
    case ("_up", 1):
      try allow("GET", "HEAD")
      return try .json(["status": "ok", "seeds": [:]])
    default: break
    }
    if path.count == 1, request.method == "PUT" || request.method == "DELETE" {
      throw CouchDBError(400, "illegal_database_name", "")
    }
    throw CouchDBError(404, "not_found", "missing")
  }
}
