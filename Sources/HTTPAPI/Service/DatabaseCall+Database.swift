import Fleece
import HTTP
import Touchstone
import Views

extension DatabaseService {
  /// The answer to `PUT`, `DELETE`, `GET` and `HEAD` of a database; nil for other methods.
  func databaseRoute(_ request: APIRequest, _ name: String, _ query: APIQuery) throws -> APIAnswer? {
    switch request.method {
    case "PUT":
      guard try catalog.create(name) else {
        throw CouchDBError(
          412, "file_exists", "The database could not be created, the file already exists.")
      }
      return .ok(status: 201)
    case "DELETE":
      guard try catalog.delete(name) else {
        throw CouchDBError(404, "not_found", "Database does not exist.")
      }
      return .ok()
    default: return nil
    }
  }
}

extension DatabaseCall {
  /// The answer to what concerns the database as a whole; nil for anything else.
  func databaseAnswer() throws -> APIAnswer? {
    switch (segment(0), path.count) {
    case (nil, _) where method == "GET" || method == "HEAD":
      return try .json(["db_name": .string(name), "update_seq": .string(String(database.lastSequence))])
    case ("_ensure_full_commit", 1):
      try allow("POST")
      return try .json(["ok": true, "instance_start_time": "0"], status: 201)
    default: return nil
    }
  }
}
