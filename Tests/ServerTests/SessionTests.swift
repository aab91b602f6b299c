import HTTP
import Testing

@testable import Server

@Suite struct SessionTests {
  @Test("a cookie is renewed when a tenth of its time is over") func renewal() throws {
    let checker = ClosurePasswordChecker { _, _, done in done(true) }
    let sessions = try SessionAuthenticator(BasicAuthenticator(checker: checker)) { _ in false }
    let began = 1_000_000
    let cookie = sessions.cookie(for: "a:b", at: began)
    #expect(sessions.user(of: cookie, at: began + 599) == "a:b")
    #expect(sessions.user(of: cookie, at: began + 600) == nil)
    #expect(sessions.renewal(of: cookie, at: began + 60) == nil)
    let renewed = try #require(sessions.renewal(of: cookie, at: began + 61))
    #expect(sessions.user(of: renewed, at: began + 660) == "a:b")
    #expect(sessions.renewal(of: renewed, at: began + 100) == nil)
    // One that isn't good, or not any more, gets no new one.
    #expect(sessions.renewal(of: cookie, at: began + 600) == nil)
    #expect(sessions.renewal(of: cookie + "A", at: began + 100) == nil)
    let others = try SessionAuthenticator(BasicAuthenticator(checker: checker)) { _ in false }
    #expect(others.renewal(of: cookie, at: began + 100) == nil)
  }
}
