import Bytes
import Fleece
import HTTP
import Storage
import TestSupport
import Testing

@testable import HTTPAPI

@Suite struct SessionRequestTests {
  /// Lets everybody in, and renews the cookie `old`.
  private struct Sessions: LoginSessions {
    let cookieSeconds = 600
    func check(
      _ user: String, _ password: String, from network: ByteString,
      _ completion: @escaping @Sendable (LoginResult) -> Void
    ) { completion(.success(AcceptedLogin(.admin(user), cookie: "first"))) }
    func context(of user: String) -> UserContext? { .admin(user) }
    func renewal(of cookie: String) -> String? { cookie == "old" ? "renewed" : nil }
    let ended = Lock<[String]>([])
    func end(_ cookie: String) { ended.withLock { $0.append(cookie) } }
  }

  private let sessions = Sessions()

  private func client(_ crossOrigin: CrossOriginRules = .none) throws -> APIClient {
    var configuration = DatabaseServiceConfiguration()
    configuration.crossOrigin = crossOrigin
    configuration.logins = sessions
    return try APIClient(.lmdb, configuration)
  }

  @Test("who keeps asking with a cookie stays logged in") func renewal() throws {
    let client = try client()
    func cookie(_ method: String, _ target: String, _ headers: [(String, String)], user: String? = "me")
      throws
      -> String?
    {
      try client.ask(method, target, headers: headers, user: user).header("Set-Cookie")
    }
    let old = ("Cookie", "a=b; AuthSession=old")
    for (method, target) in [
      ("GET", "/_all_dbs"), ("PUT", "/db"), ("GET", "/db"), ("GET", "/none"), ("GET", "/_session"),
    ] {
      let renewed = try cookie(method, target, [old])
      expect(
        renewed, equals: "AuthSession=renewed; Version=1; Max-Age=600; Path=/; HttpOnly; SameSite=Strict",
        "\(target)")
    }
    try expect(cookie("GET", "/_all_dbs", [("Cookie", "AuthSession=young")]) == nil)
    try expect(cookie("GET", "/_all_dbs", [old, ("Authorization", "Basic bWU6bWU=")]) == nil)
    try expect(cookie("GET", "/", [old], user: nil) == nil)
    // The end of a session is its end.
    try expect(cookie("DELETE", "/_session", [old])?.hasPrefix("AuthSession=;"), equals: true)
    expect(sessions.ended.withLock { $0 }, equals: ["old"])
  }

  @Test("every cookie says to which pages it goes back") func sameSite() throws {
    for (rules, expected) in [
      (.none, "Strict"), (.all, "Strict"), (.origins(["https://app.example"]), "Lax"),
    ] as [(CrossOriginRules, String)] {
      let answer = try client(rules).send("POST", "/_session", #"{"name":"me","password":"x"}"#)
      expect(answer.header("Set-Cookie")?.hasSuffix("SameSite=" + expected), equals: true)
    }
  }

  @Test("who hasn't logged in hears the same of all that may be there") func options() throws {
    let client = try client()
    try expect(client.ask("PUT", "/db", user: "me").status, equals: 201)
    var answers: Set<String> = []
    for target in ["/", "/db", "/none", "/db/doc", "/db/_all_docs", "/db/_query", "/_replicate", "/x/y/z"] {
      let body = UnreadBody()
      let answer = try client.begin("OPTIONS", target, HTTPHeaders(), body)
      answers.insert("\(answer.status) \(answer.header("Allow") ?? "-") \(answer.body())")
      expect(!body.isRead)
    }
    expect(answers.count, equals: 1, "\(answers)")
  }

  @Test("a login leads to where the browser wants to go") func next() throws {
    let client = try client()
    func logIn(_ query: String) throws -> Response {
      try client.send(
        "POST", "/_session" + query, #"{"name":"me","password":"x"}"#,
        headers: [
          ("Host", "h:1"), ("Content-Type", "application/json"),
        ])
    }
    let answer = try logIn("?next=/db%3Fa=b")
    expect(answer.status == 302 && answer.header("Location") == "http://h:1/db?a=b")
    expect(answer.header("Set-Cookie")?.hasPrefix("AuthSession=first;"), equals: true)
    try expect(logIn("").status, equals: 200)
    try expect(client.ask("DELETE", "/_session?next=/").status, equals: 302)
    for path in ["", "db", "http://evil.example/", "/a%0D%0AX:y", "/%C3%A4"] {
      try expect(logIn("?next=" + path).status, equals: 400, "\(path)")
    }
    // It can't lead to another host.
    try expect(logIn("?next=//evil.example/").header("Location"), equals: "http://h:1//evil.example/")
  }
}
