import Bytes
import Fleece
import HTTP
import Touchstone
import Views

/// A request to a database while it is answered. The files around extend it by what is asked for.
struct DatabaseCall: Sendable {
  let service: DatabaseService
  let request: HTTPRequest
  /// The database's name.
  let name: String
  let database: Database
  /// The segments of the path behind the database's name, decoded; without empty ones.
  let path: [ByteString]
  /// The options in the query string.
  let query: APIQuery
  let knownSecurity = KnownSecurity()
  /// The partition that is asked for; nil: the whole database.
  var partition: String?

  /// What the IDs of the documents that are asked for begin with; nil: anything.
  var documentPrefix: [UInt8]? { partition.map { Array($0.utf8) + [UInt8(ascii: ":")] } }

  var method: String { request.method }

  /// The segment at `index` as text; nil if there is none.
  func segment(_ index: Int) -> String? { index < path.count ? path[index].string : nil }

  /// The value of the request's body, which has to be JSON and be said to be. Throws `CouchDBError`s of 400, 413 and 415.
  func jsonBody() throws -> JSONValue {
    try request.jsonBody(limit: service.configuration.maximumRequestBytes)
  }

  /// The request's body, at most `maximumRequestBytes` of it, decompressed. Throws 413 for more. See `HTTPRequest.bodyBytes`.
  func bodyBytes(isReadInPieces: Bool = false) throws -> [UInt8] {
    try request.bodyBytes(
      limit: service.configuration.maximumRequestBytes, isReadInPieces: isReadInPieces)
  }

  /// Takes memory while `body` runs. Throws 413 and 503 if there is none.
  func holding<Result>(_ bytes: Int, _ body: () throws -> Result) throws -> Result {
    guard let memory = request.memory else { return try body() }
    return try memory.holding(bytes, body)
  }

  /// Throws when nobody waits for the answer any more. Loops that may take long call it between two steps.
  func checkWanted() throws {
    if request.isCancelled { throw HTTPBodyError.clientGone }
  }

  /// Throws 415 unless the body is said to be JSON. Web pages of other origins can't say that without being asked for the right to.
  func checkContentType() throws {
    guard request.mediaType == "application/json" else {
      throw CouchDBError(415, "bad_content_type", "Content-Type must be application/json")
    }
  }

  /// The base of URLs in answers: `http://HOST`.
  var baseURL: String { request.baseURL }
}

extension HTTPRequest {
  /// The base of URLs in answers: `http://HOST`. Behind a proxy it is what the proxy says.
  var baseURL: String {
    let isSecure =
      isSecure || headers.first("x-forwarded-ssl") == "on" || headers.first("x-forwarded-proto") == "https"
    let forwarded = headers.first("x-forwarded-host").flatMap { hosts in
      // Each proxy adds its own.
      hosts.split(separator: ",").first.map { $0.trimmed }
    }
    let asked =
      target.rawAuthority.map { String(decoding: $0, as: UTF8.self) } ?? headers.first("host")?.trimmed
    let host = [forwarded, asked].lazy.compactMap { $0 }.first { HTTPAuthority($0.utf8) != nil }
    return "http\(isSecure ? "s" : "")://\(host ?? "localhost")"
  }
}
