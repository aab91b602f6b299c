import HTTP

// Cross-origin requests (the Fetch standard, "CORS protocol"):
//
//   Origin: scheme://host[:port]                         every request of a page of another origin
//   OPTIONS with Access-Control-Request-Method           a question before a request that isn't simple ("preflight")
//
// A page reads an answer only if it names the page's origin.

/// Web pages of which origins may ask, and read the answers.
package enum CrossOriginRules: Sendable, Hashable {
  /// No pages but those of the server itself.
  case none
  /// Pages of these origins, such as `https://app.example`, with names and passwords.
  case origins([String])
  /// Pages of all origins, without the cookies and passwords that a browser has for this server.
  case all

  /// Whether pages of other origins may ask.
  var isOn: Bool { self != .none }

  private static let methods = "GET, PUT, POST, HEAD, DELETE, COPY"
  private static let allowedHeaders: Set<String> = [
    "accept", "accept-language", "authorization", "content-language", "content-type", "destination",
    "expires",
    "if-match", "last-event-id", "last-modified", "origin", "pragma", "referer", "x-csrf-token",
    "x-http-method-override", "x-requested-with",
  ]
  private static let exposed =
    "content-type, cache-control, accept-ranges, etag, server, x-couch-request-id, x-couch-update-newrev, x-couchdb-body-time"

  /// The origin of a request, if its page may ask. `*` stands for all, and excludes credentials.
  private func allowedOrigin(_ request: HTTPRequest) -> String? {
    guard let origin = request.headers.first("origin") else { return nil }
    switch self {
    case .none: return nil
    case .all: return "*"
    case .origins(let origins): return origins.first { $0.utf8.elementsEqual(origin.utf8) }
    }
  }

  /// The answer to a preflight; nil if it isn't one, or if its page may not ask what it wants to.
  func preflight(_ request: HTTPRequest) -> HTTPAnswer? {
    guard request.method == "OPTIONS", let origin = allowedOrigin(request),
      let method = request.headers.first("access-control-request-method"),
      Self.methods.split(separator: ", ").contains(where: { $0 == method })
    else { return nil }
    let wanted = request.headers.tokens("access-control-request-headers")
    guard wanted.allSatisfy(Self.allowedHeaders.contains) else { return nil }
    var headers = Self.headers(origin)
    headers.append(.init("Access-Control-Max-Age", "600"))
    headers.append(.init("Access-Control-Allow-Methods", Self.methods))
    if let list = request.headers.first("access-control-request-headers") {
      headers.append(.init("Access-Control-Allow-Headers", list))
    }
    return HTTPAnswer(status: 204, headers: headers)
  }

  /// The headers that let the page of a request read the answer.
  package func answerHeaders(_ request: HTTPRequest) -> [HTTPHeader] {
    guard let origin = allowedOrigin(request) else { return [] }
    return Self.headers(origin) + [.init("Access-Control-Expose-Headers", Self.exposed)]
  }

  private static func headers(_ origin: String) -> [HTTPHeader] {
    if origin == "*" { return [.init("Access-Control-Allow-Origin", "*")] }
    return [
      .init("Access-Control-Allow-Origin", origin), .init("Access-Control-Allow-Credentials", "true"),
      .init("Vary", "Origin"),
    ]
  }
}
