import Bytes
import HTTP
import TestTools
import Testing

@testable import Server

@Suite struct SessionTests {
  @Test("a cookie is renewed when a tenth of its time is over") func renewal() throws {
    let checker = ClosurePasswordChecker { _, _, done in done(true) }
    let sessions = try SessionAuthenticator(BasicAuthenticator(checker: checker)) { _ in false }
    let began = 1_000_000
    let cookie = sessions.cookie(for: KnownUser(.admin("a:b"), mark: 0), at: began)
    expect(sessions.user(of: cookie, at: began + 599), equals: "a:b")
    expect(sessions.user(of: cookie, at: began + 600) == nil)
    expect(sessions.renewal(of: cookie, at: began + 60) == nil)
    let renewed = try #require(sessions.renewal(of: cookie, at: began + 61))
    expect(sessions.user(of: renewed, at: began + 660), equals: "a:b")
    expect(sessions.renewal(of: renewed, at: began + 100) == nil)
    // One that isn't good, or not any more, gets no new one.
    expect(sessions.renewal(of: cookie, at: began + 600) == nil)
    expect(sessions.renewal(of: cookie + "A", at: began + 100) == nil)
    let others = try SessionAuthenticator(BasicAuthenticator(checker: checker)) { _ in false }
    expect(others.renewal(of: cookie, at: began + 100) == nil)
  }

  @Test("a log-out ends a session with all its cookies, and no other one") func logOut() throws {
    let checker = ClosurePasswordChecker { _, _, done in done(true) }
    let sessions = try SessionAuthenticator(BasicAuthenticator(checker: checker)) { _ in false }
    let began = 1_000_000
    let first = sessions.cookie(for: KnownUser(.admin("a"), mark: 0), at: began, 1)
    let other = sessions.cookie(for: KnownUser(.admin("a"), mark: 0), at: began, 2)
    let renewed = try #require(sessions.renewal(of: first, at: began + 61))
    sessions.end(renewed, at: began + 100)
    for cookie in [first, renewed] {
      expect(sessions.user(of: cookie, at: began + 101) == nil)
      expect(sessions.renewal(of: cookie, at: began + 200) == nil)
    }
    expect(sessions.user(of: other, at: began + 101), equals: "a")
    sessions.end("nonsense", at: began)
  }

  @Test("every log-out holds, however many there were") func manyLogOuts() throws {
    let checker = ClosurePasswordChecker { _, _, done in done(true) }
    let sessions = try SessionAuthenticator(BasicAuthenticator(checker: checker)) { _ in false }
    let began = 1_000_000
    let (eve, adam) = (KnownUser(.admin("eve"), mark: 0), KnownUser(.admin("adam"), mark: 0))
    let first = sessions.cookie(for: eve, at: began, 0)
    let kept = sessions.cookie(for: adam, at: began, 1)
    sessions.end(first, at: began + 1)
    // Beyond a number of ended sessions all of the user's end, and no other user's.
    for number in 0..<EndedSessions.maximumOfUser + 1 {
      sessions.end(sessions.cookie(for: eve, at: began + 10, 100 + UInt64(number)), at: began + 20)
    }
    expect(sessions.user(of: first, at: began + 30) == nil)
    expect(sessions.user(of: sessions.cookie(for: eve, at: began + 20, 7), at: began + 30) == nil)
    expect(sessions.user(of: sessions.cookie(for: eve, at: began + 21, 8), at: began + 30), equals: "eve")
    expect(sessions.user(of: kept, at: began + 30), equals: "adam")
    sessions.end(kept, at: began + 40)
    expect(sessions.user(of: kept, at: began + 41) == nil)
  }

  @Test("many users' ended sessions are bounded, and are forgotten when their time is over") func manyUsers()
  {
    var ended = EndedSessions()
    let perUser = EndedSessions.maximumOfUser - 1
    let users = EndedSessions.maximum / perUser + 3
    for user in 0..<users {
      for number in 0..<perUser {
        ended.end(UInt64(user * perUser + number), of: ByteString("u\(user)"), at: 100, until: 700)
      }
    }
    expect(ended.count <= EndedSessions.maximum)
    for user in 0..<users {
      expect(ended.contains(UInt64(user * perUser), of: ByteString("u\(user)"), madeAt: 50), "\(user)")
    }
    expect(!ended.contains(1, of: "other", madeAt: 50))
    // All are over.
    for number in 0..<perUser + 3 { ended.end(UInt64(number), of: "new", at: 800, until: 1_500) }
    expect(ended.count <= perUser + 3)
    expect(ended.contains(0, of: "new", madeAt: 790) && !ended.contains(0, of: "u0", madeAt: 790))
  }

  @Test("a login of a kind that nobody knows is none: the cookie counts, or there is nobody")
  func otherSchemes()
    throws
  {
    let checker = ClosurePasswordChecker { _, password, done in done(password == Array("s".utf8)) }
    let sessions = try SessionAuthenticator(BasicAuthenticator(checker: checker)) {
      $0.target.rawPath.elementsEqual("/open".utf8)
    }
    let server = try TestServer(
      with: {
        $0.authenticator = sessions
        $0.errorAnswer = { HTTPAnswer(status: $0, text: $1) }
      }
    ) { $1.answer(HTTPAnswer(status: 200, text: $0.user ?? "nobody")) }
    let client = try server.client()
    let basic = "Basic YTpz"
    for (path, header, status, text) in [
      ("/open", "Basic: YTpz", 200, "nobody"), ("/open", "Digest username=a", 200, "nobody"),
      ("/open", "Bearer x.y.z", 200, "nobody"), ("/open", basic, 200, "a"), ("/open", "basic YTpz", 200, "a"),
      ("/open", "Basic", 401, "Name or password is incorrect."),
      ("/open", "Basic !!!", 401, "Name or password is incorrect."),
      ("/open", "Basic YTpi", 401, "Name or password is incorrect."),
      ("/shut", "Basic: YTpz", 401, "a name and a password are needed"), ("/shut", basic, 200, "a"),
    ] {
      let answer = try client.get(path, headers: ["Authorization: " + header])
      expect(answer.status == status && answer.text == text, "\(path) \(header): \(answer.text)")
    }
    let cookie = sessions.cookie(for: KnownUser(.admin("a"), mark: 0))
    let answer = try client.get(
      "/shut", headers: ["Authorization: Basic: YTpz", "Cookie: AuthSession=" + cookie])
    expect(answer.status == 200 && answer.text == "a", "\(answer.text)")
  }

  @Test("a page chooses what its browser is told of a refusal") func refusal() throws {
    let checker = ClosurePasswordChecker { _, _, done in done(false) }
    let server = try TestServer(
      with: {
        $0.authenticator = try SessionAuthenticator(BasicAuthenticator(checker: checker)) { _ in false }
        $0.errorAnswer = { HTTPAnswer(status: $0, text: $1) }
      }
    ) { $1.answer(HTTPAnswer(status: 200, text: $0.user ?? "")) }
    let client = try server.client()
    let plain = try client.get("/")
    expect(plain.status == 401 && plain.header("WWW-Authenticate")?.hasPrefix("Basic ") == true)
    for header in ["Accept: application/json", "Origin: http://a", "Sec-Fetch-Mode: cors"] {
      let answer = try client.get("/", headers: [header])
      expect(answer.status == 401 && answer.header("WWW-Authenticate") == nil, "\(header)")
    }
    let chosen = try client.get("/", headers: ["X-CouchDB-WWW-Authenticate: Cookie"])
    expect(chosen.status == 401 && chosen.header("WWW-Authenticate") == "Cookie")
    let wrong = try client.get(
      "/", headers: ["X-CouchDB-WWW-Authenticate: Cookie", "Authorization: Basic YTpi"])
    expect(wrong.status == 401 && wrong.header("WWW-Authenticate") == "Cookie")
    expect(wrong.text, equals: "Name or password is incorrect.")
  }
}
