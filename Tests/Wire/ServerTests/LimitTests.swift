import Foundation
import HTTP
import RawHTTP
import Storage
import TestTools
import Testing
import Transport

@testable import Server

/// Each limit, at its border. Times are short here; that something was cut off is waited for.
@Suite struct LimitTests {
  @Test func connectionsAreCounted() throws {
    let server = try TestServer(with: { $0.limits.connections = 3 }, echo)
    var clients = try (0..<3).map { _ in try server.client() }
    for client in clients { try expect(client.get("/").status, equals: 200) }
    let fourth = try server.client()
    try expect(fourth.isClosed())
    expect(server.server.connectionCount, equals: 3)
    clients.removeLast()
    waitUntil { server.server.connectionCount == 2 }
    try expect(server.client().get("/").status, equals: 200)
  }

  @Test func connectionsOfOneAddressAreCounted() throws {
    let server = try TestServer(with: { $0.limits.connectionsPerAddress = 2 }, echo)
    let clients = try (0..<2).map { _ in try server.client() }
    for client in clients { try expect(client.get("/").status, equals: 200) }
    try expect(server.client().isClosed())
  }

  @Test func headersHaveALimit() throws {
    let server = try TestServer(with: { $0.limits.headerBytes = 4_096 }, echo)
    let client = try server.client()
    // The line, the host and the end have 40 bytes with an empty target, the header six without its value.
    try expect(client.get("/", headers: ["X: " + String(repeating: "a", count: 4_000)]).status, equals: 200)
    try expect(client.get("/", headers: ["X: " + String(repeating: "a", count: 4_096)]).status, equals: 431)
    try expect(client.isClosed())
    try expect(server.client().get("/" + String(repeating: "a", count: 5_000)).status, equals: 414)
    for text in [
      "GET /" + String(repeating: "a", count: 100_000), "X: " + String(repeating: "a", count: 100_000),
    ] {
      let endless = try server.client()
      try endless.send(text.hasPrefix("GET") ? text : "GET / HTTP/1.1\r\nHost: localhost\r\n" + text)
      try expect([414, 431].contains(try endless.answer().status))
    }
    let many = try server.client()
    try many.send("GET / HTTP/1.1\r\nHost: localhost\r\n" + String(repeating: "A:\r\n", count: 20_000))
    try expect(many.answer().status, equals: 431)
  }

  @Test func bodiesHaveALimit() throws {
    let server = try TestServer(with: { $0.limits.bodyBytes = 1_000 }, echo)
    let client = try server.client()
    func put(_ count: Int, _ client: RawClient) throws -> Int {
      try client.send(
        "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(count)\r\n\r\n"
          + String(repeating: "x", count: count))
      return try client.answer().status
    }
    try expect(put(1_000, client), equals: 200)
    try expect(put(1_001, client), equals: 413)
    let chunked = try server.client()
    try chunked.send("PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in 0..<101 { try chunked.send("A\r\n0123456789\r\n") }
    try chunked.send("0\r\n\r\n")
    try expect(chunked.answer().status, equals: 413)
  }

  @Test func aRequestMustHaveItsHeadersInTime() throws {
    let server = try TestServer(with: { $0.limits.headerSeconds = 1 }, echo)
    let silent = try server.client()
    let slow = try server.client()
    let other = try server.client()
    try slow.send("GET / HTTP/1.1\r\nHost: localhost\r\n")
    try expect(other.get("/").status, equals: 200)
    // A byte now and then doesn't help.
    #expect(throws: RawClient.Failure.self) {
      for _ in 0..<10_000 {
        try slow.send("X: a\r\n")
        usleep(20_000)
      }
    }
    try expect(silent.isClosed())
    try expect(other.get("/").status, equals: 200)
  }

  @Test func anIdleConnectionIsClosed() throws {
    let server = try TestServer(with: { $0.limits.idleSeconds = 0.5 }, echo)
    let client = try server.client()
    try expect(client.get("/").status, equals: 200)
    try expect(client.isClosed())
  }

  @Test func aHandlerMustBeginItsAnswerInTime() throws {
    let responders = Lock<[HTTPResponder]>([])
    let server = try TestServer(with: { $0.limits.handlerSeconds = 0.5 }) { _, responder in
      responders.withLock { $0.append(responder) }
    }
    try expect(server.client().get("/").status, equals: 503)
    for responder in responders.withLock({ $0 }) {
      responder.answer(HTTPAnswer(status: 200, text: "too late"))
    }
  }

  @Test func aClientThatSendsTooSlowlyIsCutOff() throws {
    let errors = Lock<[HTTPBodyError]>([])
    let server = try TestServer(
      with: {
        $0.limits.slowSeconds = 1
        $0.limits.slowBytesPerSecond = 1_000
      },
      { request, responder in
        do throws(HTTPBodyError) { _ = try request.body.collect(limit: 1 << 20) } catch {
          errors.withLock { $0.append(error) }
        }
        responder.answer(HTTPAnswer(status: 200, text: "all"))
      })
    let client = try server.client()
    try client.send("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
    #expect(throws: RawClient.Failure.self) {
      for _ in 0..<10_000 {
        try client.send("x")
        usleep(20_000)
      }
    }
    waitUntil { errors.withLock { $0 } == [.clientGone] }
  }

  @Test(arguments: [false, true]) func aClientThatTakesItsAnswerTooSlowlyIsCutOff(_ isStreamed: Bool) throws {
    let ends = Lock(0)
    let server = try TestServer(
      with: {
        $0.limits.slowSeconds = 1
        $0.limits.slowBytesPerSecond = 1_000
      },
      { _, responder in
        let bytes = [UInt8](repeating: 0x61, count: 32 << 20)
        guard isStreamed else { return responder.answer(HTTPAnswer(status: 200, body: .bytes(bytes))) }
        responder.answer(
          HTTPAnswer(
            status: 200,
            body: .stream(length: nil) { writer in
              for _ in 0..<100 where (try? writer.write(bytes)) == nil {
                ends.withLock { $0 += 1 }
                return
              }
            }))
      })
    let client = try RawClient(server.port, receiveBufferBytes: 4_096)
    try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    waitUntil { server.server.connectionCount == 1 }
    waitUntil { server.server.connectionCount == 0 }
    if isStreamed { waitUntil { ends.withLock { $0 } == 1 } }
  }

  @Test func slowClientsThatHoldAllThreadsAreCutOff() throws {
    let server = try TestServer(
      with: {
        $0.handlerThreads = 1
        $0.blockedHandlerThreads = 2
        $0.limits.busySeconds = 0.5
      }, echo)
    // They wait for a body that doesn't come, and have all threads.
    let slow = try (0..<5).map { _ in try server.client() }
    for client in slow {
      try client.send("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nx")
    }
    try expect(server.client().get("/a").status, equals: 200)
    // Without others who wait, slowness is borne.
    let single = try server.client()
    try single.send("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nx")
    usleep(1_500_000)
    try single.send("y")
    try expect(single.answer().status, equals: 200)
  }

  @Test func handlersThatWaitForTheirClientsDoNotStopOthers() throws {
    let server = try TestServer(with: { $0.handlerThreads = 1 }, echo)
    let slow = try (0..<50).map { _ in try server.client() }
    for client in slow { try client.send("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nx") }
    try expect(server.client().get("/a").status, equals: 200)
    for client in slow {
      try client.send("y")
      try expect(client.answer().text, equals: "PUT\n/\nxy")
    }
  }

  @Test func aPausedStreamIsNoSlowClient() throws {
    let server = try TestServer(with: { $0.limits.slowSeconds = 0.3 }) { _, responder in
      responder.answer(
        HTTPAnswer(
          status: 200,
          body: .stream(length: nil) { writer in
            // Longer than a slow client would be borne.
            DispatchQueue.global().asyncAfter(deadline: .now() + 2) {
              writer.offer(Array("late".utf8)) { _ in writer.finish() }
            }
          }))
    }
    try expect(server.client().get("/").text, equals: "late")
  }

  @Test func aClientThatIsGoneIsSeenWhileTheHandlerWorks() throws {
    let cancelled = Lock(0)
    let waiting = Lock<[HTTPResponder]>([])
    let server = try TestServer(with: { $0.limits.halfClosedSeconds = 0.5 }) { request, responder in
      request.onCancel { cancelled.withLock { $0 += 1 } }
      waiting.withLock { $0.append(responder) }
    }
    var client: RawClient? = try server.client()
    try client?.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    waitUntil { waiting.withLock { $0.count } == 1 }
    client = nil
    waitUntil { cancelled.withLock { $0 } == 1 && server.server.connectionCount == 0 }
  }

  @Test func aThousandConnectionsAreServedAtOnce() throws {
    guard HTTPServer.allowOpenFiles(4_096) >= 2_400 else {
      print("skipped aThousandConnectionsAreServedAtOnce: the process may not open enough files")
      return
    }
    let server = try TestServer()
    let clients = try (0..<1_000).map { _ in try server.client() }
    for round in 0..<3 {
      for client in clients { try client.send("GET /\(round) HTTP/1.1\r\nHost: localhost\r\n\r\n") }
      for client in clients { try expect(client.answer().text, equals: "GET\n/\(round)\n") }
    }
    expect(server.server.connectionCount, equals: 1_000)
  }

  /// libmicrohttpd takes 128 events at once. When there were exactly that many, its own threads wait for one more before they look at them.
  @Test(arguments: [127, 128, 129, 256]) func requestsThatComeAtOnceAreAllAnswered(count: Int) throws {
    let gate = Gate()
    var configuration = HTTPServerConfiguration()
    configuration.threads = 1
    let server = HTTPServer(configuration, handler: gate)
    try server.start()
    defer { server.stop(graceSeconds: 0) }
    let port = try #require(server.port)
    let clients = try (0..<count).map { _ in try RawClient(port) }
    for client in clients { try expect(client.get("/").status, equals: 200) }
    // While the only thread that serves is held up by one request, all the others come.
    let first = try RawClient(port)
    try first.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n")
    gate.reached.wait()
    for client in clients { try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }
    gate.opened.signal()
    try expect(first.answer().status, equals: 200)
    for client in clients { try expect(client.answer().status, equals: 200) }
  }

  /// Answers at once, on the thread that serves; to `/wait` when it is let.
  private struct Gate: HTTPHandler {
    let reached = CountingSemaphore()
    let opened = CountingSemaphore()

    func answerAtOnce(_ request: HTTPRequest) -> HTTPAnswer? {
      if request.target.segments == ["wait"] {
        reached.signal()
        opened.wait()
      }
      return HTTPAnswer(status: 200, text: "")
    }

    func handle(_ request: HTTPRequest, _ responder: HTTPResponder) {}
  }
}
