import Foundation
import Storage
import StorageConformance
import TestTools
import Testing
import Transport
import WebSocket

@testable import Network

/// The client of HTTP against servers that answer byte by byte, and not always well.
@Suite("The HTTP client") struct HTTPClientTests: HTTPClientSuite {
  @Test("requests go over one connection, with their headers and bodies") func keepAlive() throws {
    let connections = Lock(0)
    let server = try RawServer { connection, number in
      connections.withLock { $0 = number + 1 }
      while connection.readHead().hasSuffix("\r\n\r\n") {
        connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\n\r\nok".utf8))
      }
    }
    let client = try client { $0.headers = [("X-All", "1")] }
    for _ in 0..<3 {
      var request = HTTPClientRequest("GET", try url(server, "/db/a%2Fb/../c?x=%22"))
      request.headers = [("Accept", "application/json"), ("X-Empty", "")]
      // Without awaiting: a task may wait for its thread for minutes, and a connection that rests so long isn't used again.
      let (hasCome, come) = (CountingSemaphore(), Lock<Result<HTTPClientAnswer, TransportClose>?>(nil))
      client.collect(request, limit: 1 << 20) { result in
        come.withLock { $0 = result }
        hasCome.signal()
      }
      expect(hasCome.wait(seconds: 60))
      let result = try #require(come.withLock { $0 })
      try expect(text(result), equals: "200 ok")
      try expect(result.get().head.headers.first("x-a"), equals: "b")
    }
    expect(connections.withLock { $0 }, equals: 1)
    expect(server.requests.withLock { $0[0] }.hasPrefix("GET /db/a%2Fb/../c?x=%22 HTTP/1.1\r\n"))
    let headers = server.headers(2)
    expect(headers["x-all"] == "1" && headers["x-empty"] == "" && headers["accept"] == "application/json")
    expect(
      headers["user-agent"] == "Touchstone" && headers["expect"] == nil && headers["content-type"] == nil)
    // The last answer is told before its bytes are counted.
    eventually { client.traffic.requests == 3 }
    let traffic = client.traffic
    expect(traffic.sent > 150 && traffic.received > 140, "\(traffic)")
  }

  @Test("bodies go as bytes or from a source, and answers come in chunks") func bodies() async throws {
    let bodies = Lock<[[UInt8]]>([])
    let server = try server { connection, head, body in
      bodies.withLock { $0.append(body) }
      connection.write(
        Array(
          "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n".utf8)
      )
      return true
    }
    let client = try client()
    let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
    var request = HTTPClientRequest("POST", try url(server))
    request.body = .bytes(bytes)
    #expect(try text(await get(client, request)) == "201 abcdefg")
    request.method = "PUT"
    request.body = .source(TestSource(bytes, knowsLength: true))
    #expect(try text(await get(client, request)) == "201 abcdefg")
    request.body = .none
    #expect(try text(await get(client, request)) == "201 abcdefg")
    expect(bodies.withLock { $0.map(\.count) }, equals: [300_000, 300_000, 0])
    expect(bodies.withLock { $0[0] == bytes && $0[1] == bytes })
  }

  @Test("answers that break off, or aren't HTTP, are errors that say whether another try may help")
  func broken()
    async throws
  {
    let cases: [(answer: String, isTransient: Bool)] = [
      ("", true), ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", true),
      ("HTTP/1.1 200 OK\r\nContent-Le", true),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab", false),
      ("hello\r\n\r\n", false), ("HTTP/1.1 20x OK\r\n\r\n", false),
    ]
    for (answer, isTransient) in cases {
      let server = try RawServer { connection, _ in
        connection.readHead()
        connection.write(Array(answer.utf8))
      }
      let result = await get(try client(), HTTPClientRequest("GET", try url(server)))
      guard case .failure(let error) = result else {
        Issue.record("\(answer) is an answer: \(result)")
        continue
      }
      expect(error.isTransient, equals: isTransient, "\(answer): \(error)")
    }
    let (listener, port) = try listen()
    close(listener)
    let nobody = await get(
      try client(), HTTPClientRequest("GET", try #require(WebSocketURL("http://127.0.0.1:\(port)/"))))
    expect(nobody.failure?.code, equals: Int(ECONNREFUSED))
  }

  @Test("heads and bodies have a bound") func bounds() async throws {
    let server = try server { connection, head, _ in
      if head.contains("/head") {
        connection.write(Array("HTTP/1.1 200 OK\r\n".utf8))
        for _ in 0..<100 { connection.write(Array("X: \(String(repeating: "x", count: 10_000))\r\n".utf8)) }
      } else {
        connection.write(Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
        for _ in 0..<10_000 { connection.write([UInt8](repeating: 0x20, count: 10_000)) }
      }
      return false
    }
    let client = try client()
    let head = await get(client, HTTPClientRequest("GET", try url(server, "/head")))
    expect(head.failure?.reason.contains("head"), equals: true)
    let body = await get(client, HTTPClientRequest("GET", try url(server, "/body")), limit: 100_000)
    expect(body.failure?.reason.contains("100000") == true && body.failure?.isTransient == false)
  }

  @Test("a request whose server says nothing ends after its time, and one that was cancelled at once")
  func silence()
    async throws
  {
    let server = try RawServer { connection, _ in
      connection.readHead()
      _ = connection.readAll()
    }
    let client = try client { $0.idleTimeout = 0.3 }
    let result = await get(client, HTTPClientRequest("GET", try url(server)))
    expect(result.failure?.domain == .network && result.failure?.isTransient == true)
    let patient = try self.client()
    let request = HTTPClientRequest("GET", try url(server))
    let cancelled = await withCheckedContinuation { continuation in
      let task = patient.collect(request, limit: 10) { continuation.resume(returning: $0) }
      task.cancel()
    }
    expect(cancelled.failure?.code, equals: Int(ECANCELED))
  }

  @Test("a sink that takes its time makes the server wait") func pauses() async throws {
    let written = Lock(0)
    let server = try RawServer { connection, _ in
      connection.readHead()
      connection.write(Array("HTTP/1.1 200 OK\r\nContent-Length: 40000000\r\n\r\n".utf8))
      for _ in 0..<4_000 {
        connection.write([UInt8](repeating: 7, count: 10_000))
        written.withLock { $0 += 10_000 }
      }
    }
    let client = try client { $0.idleTimeout = 0.5 }
    let sink = PausingSink()
    let task = client.send(HTTPClientRequest("GET", try url(server)), into: sink)
    eventually { sink.state.withLock { $0.bytes } > 0 }
    // Longer than the time in which something has to move.
    try await Task.sleep(for: .seconds(2))
    expect(written.withLock { $0 } < 30_000_000 && sink.state.withLock { $0.bytes } < 5_000_000)
    expect(sink.state.withLock { $0.end } == nil)
    sink.state.withLock { $0.pauses = false }
    task.resume()
    eventually { sink.state.withLock { $0.end } != nil }
    expect(sink.state.withLock { $0.bytes == 40_000_000 && $0.end == .some(nil) })
  }

  @Test(
    "redirects of safe methods are followed on the same server, and elsewhere without secrets if that is allowed"
  )
  func redirects() async throws {
    let other = try server { connection, head, _ in
      connection.write(
        reply("200 OK", head.contains("Authorization") || head.contains("Cookie") ? "secrets" : "none"))
      return true
    }
    let otherPort = other.port
    let server = try server { connection, head, body in
      switch head.split(separator: " ")[1] {
      case "/a": connection.write(reply("301 Moved", "x", ["Location: /b?c=1"]))
      case "/b?c=1": connection.write(reply("200 OK", "b"))
      case "/c": connection.write(reply("308 Moved", "x", ["Location: /d"]))
      case "/d":
        connection.write(
          reply("200 OK", "\(head.prefix { $0 != " " }) \(String(decoding: body, as: UTF8.self))"))
      case "/loop": connection.write(reply("302 Found", "", ["Location: /loop"]))
      default: connection.write(reply("307 Moved", "away", ["Location: http://127.0.0.1:\(otherPort)/x"]))
      }
      return true
    }
    let client = try client { $0.authentication = .basic(name: "jane", password: "secret") }
    #expect(try text(await get(client, HTTPClientRequest("GET", try url(server, "/a")))) == "200 b")
    #expect(try text(await get(client, HTTPClientRequest("POST", try url(server, "/a")))) == "301 x")
    var post = HTTPClientRequest("POST", try url(server, "/c"))
    post.body = .bytes(Array("body".utf8))
    #expect(try text(await get(client, post)) == "200 POST body")
    post.url = try url(server, "/away")
    #expect(try text(await get(client, post)) == "307 away")
    #expect(try text(await get(client, HTTPClientRequest("GET", try url(server, "/loop")))) == "302 ")
    #expect(try text(await get(client, HTTPClientRequest("GET", try url(server, "/away")))) == "307 away")
    let open = try self.client {
      $0.authentication = .basic(name: "jane", password: "secret")
      $0.headers = [("Cookie", "a=b")]
      $0.followsRedirectsElsewhere = true
    }
    #expect(try text(await get(open, HTTPClientRequest("GET", try url(server, "/away")))) == "200 none")
    #expect(try text(await get(open, post)) == "307 away")
  }

  @Test("Retry-After may have seconds or a date") func retryAfter() {
    func wait(_ text: String?) -> Double? {
      var head = HTTPAnswerHead(status: 503)
      if let text { head.headers.add("Retry-After", text) }
      return head.retryAfter
    }
    expect(wait(nil) == nil && wait("soon") == nil && wait("-1") == nil && wait("12") == 12)
    expect(wait("Fri, 31 Dec 1999 23:59:59 GMT"), equals: 0)
    let later = wait("Fri, 31 Dec 2100 23:59:59 GMT")
    expect(
      later ?? 0 > 1e9 && wait("Fri, 31 Dec 2100") == nil && wait("Fri, 31 Dec 2100 23:59:59 GMT x") == nil)
  }

  @Test("gzip is decoded if that is wanted, up to the bound") func gzip() async throws {
    // "hello hello hello hello\n"
    let packed: [UInt8] = [
      31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 87, 200, 64, 39, 185, 0, 0, 136, 89, 11, 24, 0,
      0, 0,
    ]
    let server = try server { connection, head, _ in
      let accepts = head.lowercased().contains("accept-encoding: gzip")
      let body = accepts ? packed : Array("plain".utf8)
      let encoding = accepts ? "Content-Encoding: gzip\r\n" : ""
      connection.write(
        Array("HTTP/1.1 200 OK\r\n\(encoding)Content-Length: \(body.count)\r\n\r\n".utf8) + body)
      return true
    }
    let client = try client()
    var request = HTTPClientRequest("GET", try url(server))
    #expect(try text(await get(client, request)) == "200 plain")
    request.decoding = .encoded
    #expect(try await get(client, request).get().body == packed)
    request.decoding = .decoded
    #expect(try text(await get(client, request)) == "200 hello hello hello hello\n")
    #expect(await get(client, request, limit: 10).failure?.isTransient == false)
  }

  @Test(
    "what isn't HTTP is the server's fault, and not the URL's",
    arguments: [
      "\u{1}\u{2}\u{3}\r\n\r\n", "HTTP/0.9 200 OK\r\n\r\n", "HTTP/7.1 200 OK\r\n\r\n", "<html>", "\r\n\r\n",
    ])
  func garbage(_ text: String) async throws {
    let server = try RawServer { connection, _ in
      _ = connection.readHead()
      connection.write(Array(text.utf8))
    }
    let failure = await get(try client(), HTTPClientRequest("GET", try url(server))).failure
    expect(failure != nil)
    expect(
      failure?.domain != .network || failure?.code != NetworkCode.invalidURL.rawValue,
      "\(String(describing: failure))")
  }

  @Test("headers and URLs that can't be sent are refused", arguments: ["a\nb", "a\rb", "\u{0}"])
  func injection(_ value: String) async throws {
    let server = try server { _, _, _ in false }
    var request = HTTPClientRequest("GET", try url(server))
    request.headers = [("X", value)]
    #expect(await get(try client(), request).failure?.code == NetworkCode.invalidURL.rawValue)
    expect(server.requests.withLock { $0 }.isEmpty)
  }
}

/// Pauses after each piece.
private final class PausingSink: HTTPAnswerSink, @unchecked Sendable {
  let state = Lock((bytes: 0, pauses: true, end: TransportClose??.none))
  func begin(_ head: HTTPAnswerHead) {}
  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
    state.withLock { state in
      state.bytes += bytes.count
      return !state.pauses
    }
  }
  func end(_ error: TransportClose?) { state.withLock { $0.end = .some(error) } }
}
