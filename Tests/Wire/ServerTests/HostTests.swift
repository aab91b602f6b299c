import HTTP
import RawHTTP
import TestTools
import Testing

@testable import Server

/// Which host a request is for: the header `Host`, or the authority of a whole URL as the target.
@Suite struct HostTests {
  private func status(_ server: TestServer, _ target: String = "/", host: String) throws -> Int {
    let client = try server.client()
    try client.send("GET \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n")
    return try client.answer().status
  }

  @Test func theHostMustBeOneOfThisMachine() throws {
    let server = try TestServer(with: { $0.hostNames = ["My.Example"] }, echo)
    for host in [
      "localhost", "LOCALHOST:1234", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:80", "my.example",
      "my.example.:1", "localhost:", " localhost\t",
    ] {
      try expect(status(server, host: host), equals: 200, "\(host)")
    }
    for host in [
      "evil.example", "localhost.evil.example", "evil.example:80", "127.0.0.1.evil", "[::2]",
      "localhos%74", "::1",
    ] {
      try expect(status(server, host: host), equals: (host == "::1" ? 400 : 403), "\(host)")
    }
    let open = try TestServer(with: { $0.checksHost = false }, echo)
    try expect(status(open, host: "evil.example"), equals: 200)
  }

  /// Not even where any host may be asked for.
  @Test func whatIsNoHostIsRefused() throws {
    for server in [try TestServer(), try TestServer(with: { $0.checksHost = false }, echo)] {
      for host in [
        "localhost:1@evil.com", "me@localhost", "localhost:1:2", "localhost:x", "localhost:65536",
        "localhost:123456", "localhost/", "localhost?", "localhost#", "local host", "localhost, evil.com",
        "http://localhost", "[::1", "[::1]x", "::1]", "[::1%25lo]", "[localhost]", "[]", "", ":80",
        "local%host",
        "localhost\\", "\"localhost\"", "<localhost>", "l\u{F6}calhost",
      ] {
        try expect(status(server, host: host), equals: 400, "\(host)")
      }
      let client = try server.client()
      try client.send("GET / HTTP/1.0\r\nHost: a@b\r\n\r\n")
      try expect(client.answer().status, equals: 400)
    }
  }

  @Test func theHostOfAWholeURLCounts() throws {
    let server = try TestServer { request, responder in
      responder.answer(HTTPAnswer(status: 200, text: String(decoding: request.target.rawPath, as: UTF8.self)))
    }
    try expect(status(server, "http://localhost:1/db", host: "evil.example"), equals: 200)
    try expect(status(server, "http://[::1]/db", host: "localhost"), equals: 200)
    try expect(status(server, "http://evil.example/db", host: "localhost"), equals: 403)
    try expect(status(server, "https://evil.example", host: "localhost"), equals: 403)
    for target in ["http://me@localhost/db", "http:///db", "http://localhost:1@evil/db", "http://?a"] {
      try expect(status(server, target, host: "localhost"), equals: 400, "\(target)")
    }
    try expect(status(server, "http://localhost/db", host: "a@b"), equals: 400)
    let client = try server.client()
    try client.send("GET http://localhost/db?x HTTP/1.1\r\nHost: localhost\r\n\r\n")
    try expect(client.answer().text, equals: "/db")
    try client.send("GET http://localhost HTTP/1.0\r\n\r\n")
    try expect(client.answer().status, equals: 200)
  }

  @Test func theServerAsAWholeIsOnlyAskedForItsOptions() throws {
    let server = try TestServer()
    try expect(status(server, "*", host: "localhost"), equals: 400)
    let client = try server.client()
    try client.send("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n")
    try expect(client.answer().text, equals: "OPTIONS\n*\n")
  }
}
