import Bytes
import Fleece
import HTTP
import Storage
import Views

extension DatabaseService {
  /// `_session`: who asks, a login, its end.
  func session(_ request: HTTPRequest) throws -> HTTPAnswer {
    switch request.method {
    case "POST": return try logIn(request)
    case "DELETE":
      if let known = request.headers.cookie("AuthSession") { configuration.logins?.end(known) }
      return try leading(request, .ok(headers: [cookie("", seconds: 0, request)]))
    default: return try .json(sessionOf(request))
    }
  }

  private func sessionOf(_ request: HTTPRequest) -> JSONValue {
    let handlers = ["cookie"] + (configuration.headerLogins?.handlers ?? []) + ["default"]
    var information: [String: JSONValue] = ["authentication_handlers": .array(handlers.map { .string($0) })]
    if request.user != nil {
      let scheme = request.loginScheme
      let isBrought = request.context.bringsRoles
      information["authenticated"] = .string(
        isBrought ? scheme == "bearer" ? "jwt" : "proxy" : scheme == "basic" ? "default" : "cookie")
    }
    return [
      "ok": true,
      "userCtx": [
        "name": request.user.map { .string($0) } ?? .null,
        "roles": .array(request.context.roles.map { .string($0) }),
      ],
      "info": JSONValue(information),
    ]
  }

  private func logIn(_ request: HTTPRequest) throws -> HTTPAnswer {
    let (name, password) = try credentials(request)
    guard let logins = configuration.logins else {
      // CouchDB's replicator goes on with the basic authentication of its URL then, which is as good as none.
      throw CouchDBError(404, "not_found", "this server has no users; everybody is let in")
    }
    guard !name.isEmpty else { return answer(LoginRefusal(401, ""), request) }
    // No thread waits for the hash.
    return HTTPAnswer(later: { [self] respond in
      logins.check(name, password, from: request.origin.network) { [self] result in
        do { respond(try answer(result, request)) } catch { respond(answer(to: error)) }
      }
    })
  }

  private func answer(_ result: LoginResult, _ request: HTTPRequest) throws -> HTTPAnswer {
    switch result {
    case .failure(let refusal): return answer(refusal, request)
    case .success(let login):
      let seconds = configuration.logins?.cookieSeconds ?? 0
      let loggedIn = try HTTPAnswer.json(
        [
          "ok": true, "name": login.context.name.map { .string($0) } ?? .null,
          "roles": .array(login.context.roles.map { .string($0) }),
        ],
        headers: [cookie(login.cookie, seconds: seconds, request)])
      return try leading(request, loggedIn)
    }
  }

  /// An answer that leads a browser to the path `next`, if the request has that option. Throws 400 for what isn't a path.
  private func leading(_ request: HTTPRequest, _ answer: HTTPAnswer) throws -> HTTPAnswer {
    guard let next = try APIQuery(request.target)["next"] else { return answer }
    guard next.utf8.first == UInt8(ascii: "/"), next.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
      throw CouchDBError(400, "bad_request", "path must begin with a /.")
    }
    var answer = answer
    answer.status = 302
    answer.headers.append(.init("Location", request.baseURL + next))
    return answer
  }

  /// The cookie that goes with an answer to who has logged in by one, if a new one is due.
  func renewedCookie(_ request: HTTPRequest) -> HTTPHeader? {
    guard let logins = configuration.logins, request.user != nil,
      !["basic", "bearer"].contains(request.loginScheme),
      let known = request.headers.cookie("AuthSession"), let renewed = logins.renewal(of: known)
    else { return nil }
    return cookie(renewed, seconds: logins.cookieSeconds, request)
  }

  private func answer(_ refusal: LoginRefusal, _ request: HTTPRequest) -> HTTPAnswer {
    let reason = refusal.status == 401 ? "Name or password is incorrect." : refusal.reason
    var answer = HTTPAnswer.error(status: refusal.status, reason: reason)
    answer.headers.append(cookie("", seconds: 0, request))
    if let seconds = refusal.retryAfter { answer.headers.append(.init("Retry-After", seconds)) }
    return answer
  }

  /// The name and the password in a body of JSON or of a form; empty where they are missing.
  private func credentials(_ request: HTTPRequest) throws -> (String, String) {
    let type = request.mediaType
    let bytes = try request.bodyBytes(limit: 16 << 10)
    if type == "application/x-www-form-urlencoded" {
      guard let target = HTTPTarget(Array("/?".utf8) + bytes), let items = target.queryItems else {
        throw CouchDBError(400, "bad_request", "the form can't be read")
      }
      func value(_ name: String) -> String { items.last { $0.name == ByteString(name) }?.value.string ?? "" }
      let name = value("name")
      return (name.isEmpty ? value("username") : name, value("password"))
    }
    guard type == "application/json" else {
      throw CouchDBError(415, "bad_content_type", "Content-Type must be application/json")
    }
    let object = try JSONValue(body: bytes).object
    // CouchDB takes `username` as well, and clients of Cloudant send that.
    let name = object?["name"] ?? object?["username"]
    return (name?.string ?? "", object?["password"]?.string ?? "")
  }

  private func cookie(_ value: String, seconds: Int, _ request: HTTPRequest) -> HTTPHeader {
    var text = "AuthSession=\(value); Version=1; Max-Age=\(seconds); Path=/; HttpOnly"
    if request.isSecure { text += "; Secure" }
    // Pages of certain other origins may log in, and must get their cookies back. Browsers want TLS for that.
    if case .origins = configuration.crossOrigin {
      text += request.isSecure ? "; SameSite=None" : "; SameSite=Lax"
    } else {
      text += "; SameSite=Strict"
    }
    return HTTPHeader("Set-Cookie", text)
  }
}

extension HTTPRequest {
  /// The first word of the header `Authorization`, in lower case; nil if there is none. Words that the server doesn't know are no logins.
  fileprivate var loginScheme: String? {
    headers.first("authorization").map { $0.prefix { $0 != " " }.lowercased() }
  }
}
