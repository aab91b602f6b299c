import Bytes
import Fleece
import HTTPAPI
import TestSupport
import Touchstone

extension APIClient {
  /// A service over a folder with the empty database `db`.
  static func withDatabase(
    _ engine: EngineName = .lmdb, _ configuration: DatabaseServiceConfiguration = .init()
  ) throws -> APIClient {
    let client = try APIClient(engine, configuration)
    _ = try client.ask("PUT", "/db")
    return client
  }

  /// Asks with a body of JSON.
  func send(
    _ method: String, _ target: String, _ json: String = "", headers: [(String, String)] = []
  ) throws -> Response {
    var all = headers
    if method == "POST", !headers.contains(where: { $0.0.lowercased() == "content-type" }) {
      all.append(("Content-Type", "application/json"))
    }
    return try ask(method, target, headers: all, body: Array(json.utf8))
  }

  /// Asks for JSON.
  func get(_ target: String, headers: [(String, String)] = []) throws -> Response {
    try ask("GET", target, headers: [("Accept", "application/json")] + headers)
  }

  /// Saves a document and returns its revision.
  @discardableResult
  func save(_ target: String, _ json: String, headers: [(String, String)] = []) throws -> String {
    try send("PUT", target, json, headers: headers).json()["rev"].string ?? ""
  }
}

extension Response {
  /// The word and the reason of an error.
  var error: [String] {
    get throws {
      let json = try json()
      return [json["error"].string ?? "", json["reason"].string ?? ""]
    }
  }
}

extension Response {
  /// The parts of a multipart body: their headers and contents.
  var parts: [AnswerPart] {
    if case .parts(let parts) = AnswerContent(body(), { self.header($0) }) { return parts }
    return []
  }
}

extension AnswerPart {
  /// The bytes of a part that isn't JSON.
  var bytes: [UInt8]? { if case .bytes(let bytes) = content { bytes } else { nil } }
}
