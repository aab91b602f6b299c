import Foundation
import Storage
import TestTools
import Testing
import Transport
import WebSocket

@testable import Network

/// Who the HTTP client says that it is.
@Suite("Sessions and passwords of the HTTP client") struct HTTPSessionTests: HTTPClientSuite {
  @Test("a session is made once, renewed when it has expired, and Basic goes to servers without sessions")
  func sessions()
    async throws
  {
    let logins = Lock(0)
    let server = try server { connection, head, body in
      if head.hasPrefix("POST /_session") {
        let number = logins.withLock { logins in
          logins += 1
          return logins
        }
        expect(String(decoding: body, as: UTF8.self), equals: "name=jane&password=a%26b%20%C3%BC")
        connection.write(
          reply("200 OK", "{}", ["Set-Cookie: AuthSession=s\(number); Version=1; Path=/; HttpOnly"]))
      } else if head.contains("AuthSession=s\(logins.withLock { $0 })\r\n"),
        !head.contains("/expired") || head.contains("s2")
      {
        connection.write(reply("200 OK", "in"))
      } else {
        connection.write(reply("401 Unauthorized", "out"))
      }
      return true
    }
    let session = try url(server, "/_session")
    let client = try client { $0.authentication = .session(name: "jane", password: "a&b ü", url: session) }
    let path = try url(server, "/db")
    try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<8 {
        group.addTask { try self.text(await self.get(client, HTTPClientRequest("GET", path))) }
      }
      for try await text in group { expect(text, equals: "200 in") }
    }
    expect(logins.withLock { $0 }, equals: 1)
    var request = HTTPClientRequest("PUT", try url(server, "/expired"))
    request.body = .source(TestSource(Array("body".utf8), knowsLength: true))
    #expect(try text(await get(client, request)) == "200 in")
    expect(logins.withLock { $0 }, equals: 2)
    let plain = try self.server { connection, head, _ in
      if head.hasPrefix("POST /_session") {
        connection.write(reply("404 Not Found"))
      } else {
        connection.write(
          head.contains("Authorization: Basic amFuZTpi") ? reply("200 OK", "in") : reply("401 Unauthorized"))
      }
      return true
    }
    let plainSession = try url(plain, "/_session")
    let basic = try self.client {
      $0.authentication = .session(name: "jane", password: "b", url: plainSession)
    }
    #expect(try text(await get(basic, HTTPClientRequest("GET", try url(plain)))) == "200 in")
    let wrong = try self.server { connection, _, _ in
      connection.write(reply("401 Unauthorized"))
      return true
    }
    let wrongSession = try url(wrong, "/_session")
    let refused = try self.client {
      $0.authentication = .session(name: "jane", password: "b", url: wrongSession)
    }
    #expect(await get(refused, HTTPClientRequest("GET", try url(wrong))).failure?.code == 401)
  }

  @Test("requests that are on their way when a session has expired share the new one") func expiredTogether()
    async throws
  {
    let count = 6
    let (logins, expired) = (Lock(0), Lock(0))
    let server = try server { connection, head, _ in
      if head.hasPrefix("POST /_session") {
        let number = logins.withLock { logins in
          logins += 1
          return logins
        }
        connection.write(reply("200 OK", "{}", ["Set-Cookie: AuthSession=s\(number); Path=/"]))
      } else if head.contains("AuthSession=s1\r\n"), head.contains("/late") {
        // All of them have left with the old cookie before the first one hears that it has expired.
        expired.withLock { $0 += 1 }
        for _ in 0..<60_000 where expired.withLock({ $0 }) < count { usleep(1_000) }
        connection.write(reply("401 Unauthorized", "out"))
      } else {
        connection.write(reply("200 OK", "in"))
      }
      return true
    }
    let session = try url(server, "/_session")
    let client = try client { $0.authentication = .session(name: "jane", password: "b", url: session) }
    #expect(try text(await get(client, HTTPClientRequest("GET", try url(server, "/early")))) == "200 in")
    let path = try url(server, "/late")
    try await withThrowingTaskGroup(of: String.self) { group in
      for _ in 0..<count {
        group.addTask { try self.text(await self.get(client, HTTPClientRequest("GET", path))) }
      }
      for try await text in group { expect(text, equals: "200 in") }
    }
    expect(logins.withLock { $0 } == 2 && expired.withLock { $0 } == count)
  }

  @Test("a login that fails for the moment isn't tried for ever by those that wait for it")
  func failingLogin()
    async throws
  {
    let logins = Lock(0)
    let server = try RawServer { connection, _ in
      connection.readHead()
      logins.withLock { $0 += 1 }
    }
    let session = try url(server, "/_session")
    let client = try client { $0.authentication = .session(name: "jane", password: "b", url: session) }
    let path = try url(server)
    try await withThrowingTaskGroup(of: Bool?.self) { group in
      for _ in 0..<4 {
        group.addTask { await self.get(client, HTTPClientRequest("GET", path)).failure?.isTransient }
      }
      for try await isTransient in group { expect(isTransient, equals: true) }
    }
    expect((1...4).contains(logins.withLock { $0 }))
    // A later request tries again.
    _ = await get(client, HTTPClientRequest("GET", path))
    expect((2...5).contains(logins.withLock { $0 }))
  }

  @Test("a challenge is answered with Basic, a token is sent at once, and Retry-After is told") func others()
    async throws
  {
    let server = try server { connection, head, _ in
      if head.contains("Bearer t0k") {
        connection.write(reply("429 Slow down", "", ["Retry-After: 7"]))
      } else {
        connection.write(
          head.contains("Authorization: Basic") ? reply("200 OK", "in") : reply("401 Unauthorized"))
      }
      return true
    }
    let challenged = try client {
      $0.authentication = .basic(name: "a", password: "b", answersChallenge: true)
    }
    #expect(try text(await get(challenged, HTTPClientRequest("GET", try url(server)))) == "200 in")
    expect(server.headers(0)["authorization"] == nil)
    let bearer = try client { $0.authentication = .bearer("t0k") }
    let answer = try await get(bearer, HTTPClientRequest("GET", try url(server))).get()
    expect(answer.status == 429 && answer.head.retryAfter == 7)
  }
}
