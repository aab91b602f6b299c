import CSSL
import Foundation
import HTTP
import RawHTTP
import Storage
import TestTools
import Testing

@testable import Server

/// What goes through a connection with TLS, and how it ends.
@Suite struct TLSConnectionTests {
  private static let pattern = TLSTest.pattern(16 << 20)

  @Test(arguments: TLSTest.versions) func longBodiesComeWholeBothWays(_ version: Int32) throws {
    let server = try TestServer(tlsWith: { $0.limits.bodyBytes = 64 << 20 }) { request, responder in
      do throws(HTTPBodyError) {
        let body = try request.body.collect(limit: 64 << 20)
        responder.answer(HTTPAnswer(status: 200, body: .bytes(body)))
      } catch { responder.answer(HTTPAnswer(status: 400, text: "\(error)")) }
    }
    let client = try server.secureClient(TLSTest.options(version))
    for count in [0, 1, 16_384, 65_536, 65_537, Self.pattern.count] {
      try client.send("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(count)\r\n\r\n")
      try client.send(Array(Self.pattern[..<count]))
      // Compared at once: what differs needn't be printed.
      let isSame = try client.answer().body == Array(Self.pattern[..<count])
      expect(isSame, "\(count) bytes")
    }
    expect(client.version, equals: (version == TLS1_2_VERSION ? "TLSv1.2" : "TLSv1.3"))
  }

  @Test func aThousandConnectionsAreServedAtOnce() throws {
    guard HTTPServer.allowOpenFiles(8_192) >= 4_400 else {
      print("skipped TLS aThousandConnectionsAreServedAtOnce: the process may not open enough files")
      return
    }
    let server = try TestServer(tlsWith: { _ in }, echo)
    let clients = try (0..<1_000).map { _ in try server.secureClient() }
    for round in 0..<3 {
      for client in clients { try client.send("GET /\(round) HTTP/1.1\r\nHost: localhost\r\n\r\n") }
      for client in clients { try expect(client.answer().text, equals: "GET\n/\(round)\n") }
    }
    expect(server.server.connectionCount, equals: 1_000)
  }

  @Test func anIdleConnectionTakesLittleMemory() throws {
    if StreamTests.environmentIsSanitized { return }
    guard HTTPServer.allowOpenFiles(8_192) >= 4_400 else {
      print("skipped TLS anIdleConnectionTakesLittleMemory: the process may not open enough files")
      return
    }
    // In a process of its own, whose memory no other test changes.
    let directory = TemporaryDirectory()
    let server = try startChild(.server, "server", "tls", directory.path)
    try server.waitForOutput()
    let port = try #require(server.wholeLines.first.flatMap { UInt16($0) }, "\(server.errorText)")
    for headers in [[], WebSocketUpgradeTests.upgrade] {
      func connect() throws -> TLSClient {
        let client = try TLSClient(port)
        try expect(client.get("/", headers: headers).status, equals: (headers.isEmpty ? 200 : 101))
        return client
      }
      let first = try connect()
      let before = server.anonymousBytes
      let count = isShort ? 300 : 1_000
      let clients = try (0..<count).map { _ in try connect() }
      // 44 KiB were measured for HTTP, of which 32 are the library's, and 24 KiB for a WebSocket.
      withExtendedLifetime((first, clients)) { expect(server.anonymousBytes - before < count * 80 << 10) }
    }
  }

  /// The threads of connections and workers go on while the process exits.
  @Test func openSSLIsThereUntilTheProcessIsGone() throws {
    let child = try startChild(.server, "server", "exit")
    try expect(child.wait(), equals: .exited(0), "\(child.errorText)")
    expect(child.wholeLines, equals: ["there"])
  }

  @Test func aSlowHandlerHoldsUpTheClient() throws {
    let (goOn, isDone) = (CountingSemaphore(), Lock(0))
    let server = try TestServer(tlsWith: { _ in }) { request, responder in
      guard request.method == "PUT" else { return echo(request, responder) }
      _ = try? request.body.read()
      goOn.wait()
      do throws(HTTPBodyError) {
        let rest = try request.body.collect(limit: 64 << 20)
        isDone.withLock { $0 = rest.count }
        responder.answer(HTTPAnswer(status: 200, text: "done"))
      } catch { responder.answer(HTTPAnswer(status: 400, text: "\(error)")) }
    }
    let client = try server.secureClient()
    let total = 32 << 20
    try client.send("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(total)\r\n\r\n")
    let sent = Lock(0)
    let sender = Thread { [client = UncheckedBox(client)] in
      let part = [UInt8](repeating: 0x61, count: 1 << 16)
      for _ in 0..<(total >> 16) {
        guard (try? client.value.send(part)) != nil else { return }
        sent.withLock { $0 += part.count }
      }
    }
    sender.start()
    // It goes on until all buffers on the way are full: then nothing moves for a while.
    var (last, still) = (-1, 0)
    waitUntil {
      usleep(20_000)
      let now = sent.withLock { $0 }
      still = now == last && now > 0 ? still + 1 : 0
      last = now
      return still >= 20
    }
    expect(last < total)
    try expect(server.secureClient().get("/").status, equals: 200)
    goOn.signal()
    waitUntil { sent.withLock { $0 } == total }
    try expect(client.answer().text, equals: "done")
    expect(isDone.withLock { $0 } > total - (1 << 20))
  }

  @Test(arguments: [false, true]) func aClientThatTakesItsAnswerTooSlowlyIsCutOff(_ isStreamed: Bool) throws {
    let server = try TestServer(
      tlsWith: {
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
              while (try? writer.write(bytes)) != nil {}
            }))
      })
    var options = TLSClient.Options()
    options.receiveBufferBytes = 4_096
    let client = try server.secureClient(options)
    try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    waitUntil { server.server.connectionCount == 1 }
    waitUntil { server.server.connectionCount == 0 }
    withExtendedLifetime(client) {}
  }

  @Test func theLastBytesOfAnAnswerMayTakeTheirTime() throws {
    let server = try TestServer(
      tlsWith: { $0.limits.idleSeconds = 0.2 },
      { _, responder in
        var answer = HTTPAnswer(status: 200, body: .bytes([UInt8](repeating: 0x61, count: 8 << 20)))
        answer.closesConnection = true
        responder.answer(answer)
      })
    var options = TLSClient.Options()
    options.receiveBufferBytes = 4_096
    let client = try server.secureClient(options)
    try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    while try !client.line().isEmpty {}
    // The library is done long before the client has got the rest, which takes longer than a connection may be idle.
    for part in 0..<128 {
      if part >= 112 { usleep(30_000) }
      try expect(client.bytes(65_536).allSatisfy { $0 == 0x61 })
    }
    try expect(client.isClosed() && client.hasGoodbye)
    waitUntil { server.server.connectionCount == 0 }
  }

  @Test(arguments: TLSTest.versions) func aServerThatClosesSaysSo(_ version: Int32) throws {
    let server = try TestServer(tlsWith: { $0.limits.idleSeconds = 0.3 }, echo)
    // After an answer with `Connection: close`, after a time without a request, and when it stops.
    let closing = try server.secureClient(TLSTest.options(version))
    try expect(closing.get("/", headers: ["Connection: close"]).status, equals: 200)
    try expect(closing.isClosed() && closing.hasGoodbye)
    let idle = try server.secureClient(TLSTest.options(version))
    try expect(idle.get("/").status, equals: 200)
    try expect(idle.isClosed() && idle.hasGoodbye)
    let other = try TestServer(tlsWith: { _ in }, echo)
    let last = try other.secureClient(TLSTest.options(version))
    try expect(last.get("/").status, equals: 200)
    other.server.stop()
    try expect(last.isClosed() && last.hasGoodbye)
  }

  @Test(arguments: TLSTest.versions) func aClientMayEndItsSideAndStillGetItsAnswer(_ version: Int32) throws {
    let (began, goOn) = (CountingSemaphore(), CountingSemaphore())
    let server = try TestServer(tlsWith: { _ in }) { _, responder in
      began.signal()
      goOn.wait()
      responder.answer(HTTPAnswer(status: 200, text: "late"))
    }
    for isSaid in [true, false] {
      let client = try server.secureClient(TLSTest.options(version))
      try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
      began.wait()
      if isSaid { client.shutdownSending() } else { client.endSocket() }
      goOn.signal()
      try expect(client.answer().text, equals: "late")
      try expect(client.isClosed())
    }
    waitUntil { server.server.connectionCount == 0 }
  }

  @Test func aClientThatIsGoneIsSeenWhileTheHandlerWorks() throws {
    let cancelled = Lock(0)
    let waiting = Lock<[HTTPResponder]>([])
    let server = try TestServer(tlsWith: { $0.limits.halfClosedSeconds = 0.5 }) { request, responder in
      request.onCancel { cancelled.withLock { $0 += 1 } }
      waiting.withLock { $0.append(responder) }
    }
    // One says goodbye, one doesn't, one resets, and one has sent more than is read.
    for way in 0..<4 {
      var client: TLSClient? = try server.secureClient()
      try client?.send(
        "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(way == 3 ? 1_000_000 : 1)\r\n\r\na")
      waitUntil { waiting.withLock { $0.count } == way + 1 }
      switch way {
      case 0: client?.shutdownSending()
      case 2: client?.reset()
      case 3: try client?.send([UInt8](repeating: 0x61, count: 100_000))
      default: break
      }
      client = nil
      waitUntil { cancelled.withLock { $0 } == way + 1 && server.server.connectionCount == 0 }
    }
  }

  @Test func aBusyServerStopsWithAllItsConnections() throws {
    let began = CountingSemaphore()
    let server = try TestServer(tlsWith: { _ in }) { request, responder in
      began.signal()
      switch String(decoding: request.target.raw, as: UTF8.self) {
      case "/body":
        _ = try? request.body.collect(limit: 1 << 20)
        responder.answer(HTTPAnswer(status: 200))
      case "/socket": responder.answer(.webSocket(request) { _ in })
      default:
        responder.answer(
          HTTPAnswer(
            status: 200,
            body: .stream(length: nil) { writer in
              while (try? writer.write([UInt8](repeating: 0x61, count: 100_000))) != nil {}
            }))
      }
    }
    var clients: [RawClient] = []
    for target in ["/body", "/stream", "/socket"] {
      for _ in 0..<3 {
        let client = try server.secureClient()
        if target == "/socket" {
          try expect(client.get(target, headers: WebSocketUpgradeTests.upgrade).status, equals: 101)
        } else {
          let body = target == "/body" ? "Content-Length: 10\r\n" : ""
          try client.send(
            "\(body.isEmpty ? "GET" : "PUT") \(target) HTTP/1.1\r\nHost: localhost\r\n\(body)\r\nab")
        }
        clients.append(client)
      }
    }
    for _ in clients { began.wait() }
    // Without a request, within the handshake, and before it.
    let silent = try server.secureClient()
    try silent.shakeHands()
    var cut = TLSClient.Options()
    cut.maximumBytes = 100
    let half = try server.secureClient(cut)
    #expect(throws: RawClient.Failure.self) { try half.shakeHands() }
    clients += [silent, half, try server.client()]
    waitUntil { server.server.connectionCount == 12 }
    server.server.stop(graceSeconds: 0.2)
    expect(server.server.connectionCount, equals: 0)
    for client in clients { _ = try client.rest() }
  }
}

/// What a test hands to another thread, and doesn't use meanwhile.
struct UncheckedBox<Value>: @unchecked Sendable {
  let value: Value
  init(_ value: Value) { self.value = value }
}
