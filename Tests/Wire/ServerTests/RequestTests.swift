import Bytes
import Foundation
import HTTP
import RawHTTP
import Storage
import TestTools
import Testing

@testable import Server

@Suite struct RequestTests {
  @Test func aGetIsAnsweredAndTheConnectionStays() throws {
    let server = try TestServer()
    let client = try server.client()
    for number in 0..<3 {
      let answer = try client.get("/a?\(number)")
      expect(answer.status, equals: 200)
      expect(answer.text, equals: "GET\n/a?\(number)\n")
      expect(answer.header("Server"), equals: "Touchstone")
      expect(answer.header("Date") != nil)
    }
    let status = try #require(server.server.connections.first)
    expect(server.server.connectionCount, equals: 1)
    expect(status.requests, equals: 3)
    expect(status.peer.host, equals: "127.0.0.1")
    expect(status.user == nil)
  }

  @Test func onlyAShortBodyIsReadBeforeTheHandlerAsks() throws {
    let server = try TestServer { request, responder in
      guard let body = request.body as? HTTPRequestBody, let length = body.length else { return }
      if length <= 4_096 { eventually { body.exchange.state.withLock { $0.input.isEnded } } }
      let received = body.exchange.state.withLock { $0.input.received }
      let read = (try? body.collect(limit: 1 << 20).count) ?? -1
      responder.answer(HTTPAnswer(status: 200, text: "\(received) \(read)"))
    }
    let client = try server.client()
    for (length, received) in [(3, 3), (4_096, 4_096), (4_097, 0)] {
      try client.send("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(length)\r\n\r\n")
      try client.send([UInt8](repeating: 0x61, count: length))
      try expect(client.answer().text, equals: "\(received) \(length)")
    }
  }

  @Test func methodsAndRawTargetsPassAsTheyCame() throws {
    let server = try TestServer { request, responder in
      let segments =
        request.target.segments.map { $0.map { Hex.text($0.bytes) }.joined(separator: "/") } ?? "bad"
      responder.answer(
        HTTPAnswer(status: 200, text: "\(request.method) \(Hex.text(request.target.raw)) \(segments)"))
    }
    let client = try server.client()
    let cases: [(String, [String]?)] = [
      ("/", []), ("/db/", ["db", ""]), ("/db/a%2Fb", ["db", "a/b"]), ("/db/..%2f..%2Fx", ["db", "../../x"]),
      ("/a/../b/./c", ["a", "..", "b", ".", "c"]), ("//", ["", ""]), ("/%00", ["\0"]), ("/%", nil),
      ("/%4", nil),
      ("/%zz", nil), ("/a+b", ["a+b"]), ("/%C3%A4", ["ä"]), ("/a?b/c=%2F", ["a"]), ("/;x=1", [";x=1"]),
      ("http://localhost:1/a/b?c", ["a", "b"]), ("HTTP://localhost", []), ("http://localhost?a=/b", []),
    ]
    for method in ["GET", "COPY", "DELETE", "OPTIONS", "PROPFIND", "get"] {
      for (target, segments) in cases {
        let answer = try client.get(target, method: method)
        let expected = segments.map { $0.map { Hex.text(Array($0.utf8)) }.joined(separator: "/") } ?? "bad"
        expect(answer.text, equals: "\(method) \(Hex.text(Array(target.utf8))) \(expected)")
      }
    }
    // Bytes that aren't UTF-8, as they are and as escapes.
    try client.send(
      Array("GET /".utf8) + [0xFF, 0xFE] + Array("%FF HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
    try expect(client.answer().text, equals: "GET 2ffffe254646 fffeff")
  }

  @Test func queryItemsAreSplitBeforeTheyAreDecoded() throws {
    func items(_ target: String) -> [String]? {
      HTTPTarget(Array(target.utf8))?.queryItems.map { $0.map { "\($0.name)=\($0.value)" } }
    }
    expect(items("/a"), equals: [])
    expect(items("/a?"), equals: [])
    expect(items("/a?b"), equals: ["b="])
    expect(items("/a?b=1&c=2&b=3"), equals: ["b=1", "c=2", "b=3"])
    expect(items("/a?key=%22a%26b%3Dc%22&x=a+b"), equals: ["key=\"a&b=c\"", "x=a b"])
    expect(items("/a?a=b=c&&d"), equals: ["a=b=c", "d="])
    expect(items("/a?a=?b"), equals: ["a=?b"])
    expect(items("/a?a=%4") == nil)
    expect(HTTPTarget(Array("/a?token=x&b=1&c".utf8))?.logged, equals: "/a?token=…&b=…&c")
    expect(HTTPTarget(Array("http://me:secret@host/a".utf8))?.logged, equals: "/a")
  }

  @Test func headersAreFoundInAnyCase() throws {
    let server = try TestServer { request, responder in
      let all = request.headers.all("x-ONE").joined(separator: "|")
      responder.answer(
        HTTPAnswer(
          status: 200, text: "\(all) \(request.headers.first("x-two") ?? "-") \(request.headers.count)"))
    }
    let client = try server.client()
    let answer = try client.get("/", headers: ["X-One: a", "x-one: b, c", "X-TWO:", "Cookie: a=b; c=d"])
    expect(answer.text, equals: "a|b, c  5")
  }

  @Test func bodiesComeWholeWithALengthAndInChunks() throws {
    let server = try TestServer()
    let client = try server.client()
    try client.send("PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
    try expect(client.answer().text, equals: "PUT\n/a\nhello")
    // Byte by byte, with an extension and a trailer.
    let request =
      "COPY /b HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n"
    for byte in request.utf8 { try client.send([byte]) }
    try expect(client.answer().text, equals: "COPY\n/b\nabc0123456789")
    try client.send("DELETE /c HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
    try expect(client.answer().text, equals: "DELETE\n/c\n")
  }

  @Test func pipelinedRequestsAreAnsweredInOrder() throws {
    let server = try TestServer()
    let client = try server.client()
    var requests = ""
    for number in 0..<200 {
      requests += "GET /\(number) HTTP/1.1\r\nHost: localhost\r\n\r\n"
      requests += "PUT /\(number) HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc"
      requests +=
        "POST /\(number) HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n"
    }
    try client.send(requests)
    for number in 0..<200 {
      try expect(client.answer().text, equals: "GET\n/\(number)\n")
      try expect(client.answer().text, equals: "PUT\n/\(number)\nabc")
      try expect(client.answer().text, equals: "POST\n/\(number)\nx")
    }
  }

  @Test func headHasTheHeadersOfGetAndNoBody() throws {
    let isStarted = Lock(false)
    let server = try TestServer { request, responder in
      if request.target.raw == Array("/stream".utf8) {
        return responder.answer(
          HTTPAnswer(status: 200, body: .stream(length: 7) { _ in isStarted.withLock { $0 = true } }))
      }
      responder.answer(HTTPAnswer(status: 200, text: "hello"))
    }
    let client = try server.client()
    try expect(client.get("/", method: "HEAD").header("Content-Length"), equals: "5")
    try expect(client.get("/stream", method: "HEAD").header("Content-Length"), equals: "7")
    try expect(client.get("/").text, equals: "hello")
    expect(!isStarted.withLock { $0 })
  }

  @Test func nothingFollowsTheHeadOfAnAnswerOfUnknownLength() throws {
    let server = try TestServer { _, responder in
      responder.answer(HTTPAnswer(status: 200, body: .stream(length: nil) { $0.finish() }))
    }
    let client = try server.client()
    try client.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    client.shutdownSending()
    let text = String(decoding: try client.rest(), as: UTF8.self)
    expect(text.hasPrefix("HTTP/1.1 200") && text.hasSuffix("\r\n\r\n"))
    expect(text.components(separatedBy: "\r\n\r\n").count, equals: 2, "\(text.debugDescription)")
    expect(!text.lowercased().contains("content-length"))
  }

  @Test func theClientIsAskedForItsBodyWhenTheHandlerWantsIt() throws {
    let server = try TestServer { request, responder in
      guard request.target.raw == Array("/want".utf8) else {
        return responder.answer(HTTPAnswer(status: 404, text: "no"))
      }
      echo(request, responder)
    }
    let client = try server.client()
    try client.send(
      "PUT /want HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    try expect(client.anyAnswer().status, equals: 100)
    try client.send("ab")
    try expect(client.anyAnswer().text, equals: "PUT\n/want\nab")
    try client.send(
      "PUT /not HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
    try expect(client.anyAnswer().status, equals: 404)
    try expect(client.isClosed())
    let other = try server.client()
    try expect(other.get("/", headers: ["Expect: 200-ok", "Content-Length: 1"]).status, equals: 417)
  }

  @Test func aShortBodyThatNobodyReadsLeavesTheConnection() throws {
    let server = try TestServer { _, responder in responder.answer(HTTPAnswer(status: 404, text: "no")) }
    let client = try server.client()
    for _ in 0..<3 {
      try client.send(
        "PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 70000\r\n\r\n"
          + String(repeating: "x", count: 70_000))
      try expect(client.answer().status, equals: 404)
    }
  }

  @Test func aClientThatIsRefusedWhileItSendsGetsTheAnswer() throws {
    let server = try TestServer { _, responder in responder.answer(HTTPAnswer(status: 413, text: "no")) }
    for _ in 0..<20 {
      let client = try server.client()
      try client.send("PUT /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8000000\r\n\r\n")
      let part = [UInt8](repeating: 0x61, count: 1_000_000)
      for _ in 0..<8 { try client.send(part) }
      try expect(client.answer().status, equals: 413)
      try expect(client.isClosed())
    }
  }

  @Test func answersMayComeLaterFromAnyThread() throws {
    let waiting = Lock<[HTTPResponder]>([])
    let server = try TestServer { _, responder in waiting.withLock { $0.append(responder) } }
    let clients = try (0..<20).map { _ in try server.client() }
    for client in clients { try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }
    waitUntil { waiting.withLock { $0.count } == clients.count }
    let responders = waiting.withLock { list in
      defer { list = [] }
      return list
    }
    DispatchQueue.concurrentPerform(iterations: responders.count) { index in
      responders[index].answer(HTTPAnswer(status: 200, text: "late"))
      responders[index].answer(HTTPAnswer(status: 500, text: "twice"))
    }
    for client in clients { try expect(client.answer().text, equals: "late") }
  }

  @Test func aHandlerThatForgetsToAnswerGives500() throws {
    let server = try TestServer { _, _ in }
    let client = try server.client()
    try expect(client.get("/").status, equals: 500)
    try expect(client.get("/").status, equals: 500)
  }

  @Test func whatNeedsNoTimeIsAnsweredAtOnce() throws {
    struct Quick: HTTPHandler {
      func answerAtOnce(_ request: HTTPRequest) -> HTTPAnswer? {
        request.target.raw == Array("/quick".utf8) ? HTTPAnswer(status: 200, text: "quick") : nil
      }
      func handle(_ request: HTTPRequest, _ responder: HTTPResponder) {
        responder.answer(HTTPAnswer(status: 200, text: "slow"))
      }
    }
    let server = HTTPServer(HTTPServerConfiguration(), handler: Quick())
    try server.start()
    let client = try RawClient(server.port ?? 0)
    try expect(client.get("/quick").text, equals: "quick")
    try expect(client.get("/other").text, equals: "slow")
    server.stop(graceSeconds: 0)
  }

  @Test func oldClientsAreAnsweredAndClosed() throws {
    let server = try TestServer()
    let client = try server.client()
    try client.send("GET /old HTTP/1.0\r\n\r\n")
    try expect(client.answer().text, equals: "GET\n/old\n")
    try expect(client.isClosed())
    let polite = try server.client()
    _ = try polite.get("/", headers: ["Connection: close"])
    try expect(polite.isClosed())
  }

  @Test func statusesWithoutABodyHaveNone() throws {
    let server = try TestServer { request, responder in
      responder.answer(
        HTTPAnswer(
          status: request.target.raw == Array("/304".utf8) ? 304 : 204, headers: [.init("ETag", "\"1-a\"")],
          body: .bytes([])))
    }
    let client = try server.client()
    try expect(client.get("/204").status, equals: 204)
    try expect(client.get("/304").header("ETag"), equals: "\"1-a\"")
    try expect(client.get("/204").status, equals: 204)
  }

  @Test func headersThatWouldSplitAnAnswerAreLeftOut() throws {
    let server = try TestServer { _, responder in
      responder.answer(
        HTTPAnswer(
          status: 200,
          headers: [
            .init("X-A", "a\r\nSet-Cookie: b"), .init("X B", "c"), .init("X-C", "d\0e"), .init("X-D", "f"),
          ]))
    }
    let answer = try server.client().get("/")
    expect(answer.header("Set-Cookie") == nil)
    expect(answer.header("X-A") == nil)
    expect(answer.header("X-C") == nil)
    expect(answer.header("X-D"), equals: "f")
  }
}

/// Waits for what another thread brings about, two minutes at most: the suite runs on a loaded machine.
func waitUntil(_ sourceLocation: SourceLocation = #_sourceLocation, _ condition: () throws -> Bool) rethrows {
  let deadline = Date(timeIntervalSinceNow: 120)
  while try !condition() {
    guard Date() < deadline else {
      Issue.record("it didn't happen", sourceLocation: sourceLocation)
      return
    }
    usleep(1_000)
  }
}
