import Fleece

/// An error as CouchDB answers it: a status of HTTP, and an object with `error` and `reason`.
package struct CouchDBError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The status of HTTP.
  package var status: Int
  /// The word for the kind of error.
  package var error: String
  /// What is wrong.
  package var reason: String

  package init(_ status: Int, _ error: String, _ reason: String) {
    self.status = status
    self.error = error
    self.reason = reason
  }

  /// The kind and the reason.
  package var description: String { "\(reason) (\(error))" }

  /// The body of the answer.
  package var json: [UInt8] {
    var json = Array("{\"error\":".utf8)
    json.append(jsonString: error)
    json.append(contentsOf: ",\"reason\":".utf8)
    json.append(jsonString: reason)
    json.append(contentsOf: "}\n".utf8)
    return json
  }

  static func query(_ reason: String) -> CouchDBError { CouchDBError(400, "query_parse_error", reason) }
  static func request(_ reason: String) -> CouchDBError { CouchDBError(400, "bad_request", reason) }
  static let invalidJSON = request("invalid UTF-8 JSON")
}
