import Foundation
import RawHTTP
import Storage
import TestTools
import Testing
import Transport
import WebSocket

@testable import Server

@Suite struct WebSocketUpgradeTests {
  static let key = "dGhlIHNhbXBsZSBub25jZQ=="
  static let upgrade = [
    "Upgrade: websocket", "Connection: keep-alive, Upgrade", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: \(key)",
  ]

  /// Sends back what comes, until the end.
  @Sendable static func echoMessages(_ transport: WebSocketTransport) {
    transport.receive { result in
      switch result {
      case .success(let messages):
        transport.send(messages) { end in if end == nil { echoMessages(transport) } }
      case .failure: transport.close(.normal)
      }
    }
  }

  private func server(
    _ ends: Lock<[TransportClose]> = Lock([]),
    with change: @escaping (inout HTTPServerConfiguration) throws -> Void = { _ in }
  ) throws -> TestServer {
    try TestServer(with: change) { request, responder in
      let chosen = request.webSocketProtocols.first { $0.hasPrefix("BLIP") }
      responder.answer(
        .webSocket(request, subprotocol: chosen) { transport in
          if request.target.raw == Array("/ends".utf8) {
            transport.receive { if case .failure(let end) = $0 { ends.withLock { $0.append(end) } } }
          } else {
            Self.echoMessages(transport)
          }
        })
    }
  }

  @Test func aProperRequestIsUpgraded() throws {
    let server = try server()
    let client = try server.client()
    let answer = try client.get(
      "/",
      headers: Self.upgrade + ["Sec-WebSocket-Protocol: chat, BLIP_3+CBMobile_3", "Origin: http://localhost"])
    expect(answer.status, equals: 101)
    expect(answer.header("Sec-WebSocket-Accept"), equals: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    expect(answer.header("Sec-WebSocket-Protocol"), equals: "BLIP_3+CBMobile_3")
    expect(answer.header("Upgrade"), equals: "websocket")
    // A masked binary frame.
    try client.send([0x82, 0x83, 1, 2, 3, 4, 0x61 ^ 1, 0x62 ^ 2, 0x63 ^ 3])
    try expect(client.bytes(5), equals: [0x82, 3, 0x61, 0x62, 0x63])
    waitUntil { server.server.connections.first?.bytesOut == 5 }
    expect(server.server.connections.first?.kind, equals: .webSocket)
    expect(server.server.connections.first?.bytesIn, equals: 9)
    // Close, and its answer.
    try client.send([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE8])
    try expect(client.bytes(4), equals: [0x88, 2, 0x03, 0xE8])
    try expect(client.isClosed())
    waitUntil { server.server.connectionCount == 0 }
  }

  @Test func framesThatComeWithTheRequestArentLost() throws {
    let server = try server()
    let client = try server.client()
    let head = "GET / HTTP/1.1\r\nHost: localhost\r\n" + Self.upgrade.joined(separator: "\r\n") + "\r\n\r\n"
    try client.send(Array(head.utf8) + [0x82, 0x81, 0, 0, 0, 0, 0x61])
    try expect(client.answer().status, equals: 101)
    try expect(client.bytes(3), equals: [0x82, 1, 0x61])
  }

  @Test(arguments: [false, true]) func longMessagesComeWholeBothWays(_ isSecure: Bool) throws {
    let server = try server(with: {
      if isSecure { $0.tls = try TLSTest.identity.get() }
      $0.limits.webSocket.limits.messageBytes = 1 << 20
    })
    let client = isSecure ? try server.secureClient() : try server.client()
    try expect(client.get("/", headers: Self.upgrade).status, equals: 101)
    let message = TLSTest.pattern(1 << 20)
    let length: [UInt8] = [0, 0, 0, 0, 0, 0x10, 0, 0]
    for _ in 0..<8 {
      // A key of zeros masks nothing.
      try client.send([0x82, 0xFF] + length + [0, 0, 0, 0] + message)
      try expect(client.bytes(10), equals: [0x82, 127] + length)
      try expect(client.bytes(message.count), equals: message)
    }
    expect(server.server.connections.first?.bytesIn, equals: UInt64(8 * (message.count + 14)))
  }

  @Test func improperRequestsAreRefused() throws {
    let server = try server()
    let client = try server.client()
    func status(_ change: (inout [String]) -> Void, method: String = "GET") throws -> Int {
      var headers = Self.upgrade
      change(&headers)
      return try client.get("/", method: method, headers: headers).status
    }
    try expect(status { $0[0] = "Upgrade: h2c" }, equals: 426)
    try expect(status { $0.removeFirst() }, equals: 426)
    try expect(status { $0[1] = "Connection: keep-alive" }, equals: 400)
    try expect(status { $0[2] = "Sec-WebSocket-Version: 8" }, equals: 426)
    try expect(status { $0.remove(at: 2) }, equals: 426)
    try expect(status { $0[3] = "Sec-WebSocket-Key: abc" }, equals: 400)
    try expect(status { $0[3] = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25j" }, equals: 400)
    try expect(status { $0.append("Sec-WebSocket-Key: \(Self.key)") }, equals: 400)
    try expect(status { $0.append("Origin: http://evil.example") }, equals: 403)
    try expect(status { $0.append("Origin: null") }, equals: 403)
    try expect(status({ _ in }, method: "POST"), equals: 405)
    let answer = try client.get("/", headers: Array(Self.upgrade.prefix(2)))
    expect(answer.header("Sec-WebSocket-Version"), equals: "13")
    // The connection still speaks HTTP.
    try expect(status { _ in }, equals: 101)
  }

  @Test(arguments: [false, true]) func aServerThatStopsSaysGoodbye(_ isSecure: Bool) throws {
    let ends = Lock<[TransportClose]>([])
    let server = try server(ends, with: { if isSecure { $0.tls = try TLSTest.identity.get() } })
    let clients = try (0..<5).map { _ in isSecure ? try server.secureClient() : try server.client() }
    for client in clients { try expect(client.get("/ends", headers: Self.upgrade).status, equals: 101) }
    // The last client doesn't answer the goodbye, and is cut off.
    Thread.detachNewThread { [server = server.server] in server.stop(graceSeconds: 2) }
    for client in clients {
      let head = try client.bytes(4)
      expect(head[0] == 0x88 && head[2...] == [0x03, 0xE9])
      _ = try client.bytes(Int(head[1]) - 2)
    }
    for client in clients.dropLast() { try client.send([0x88, 0x82, 0, 0, 0, 0, 0x03, 0xE9]) }
    for client in clients { try expect(client.isClosed()) }
    server.server.stop()
    expect(ends.withLock { $0.count }, equals: 5)
  }

  @Test(arguments: [false, true]) func aClientThatDisappearsIsSeen(_ isSecure: Bool) throws {
    let ends = Lock<[TransportClose]>([])
    let server = try server(ends, with: { if isSecure { $0.tls = try TLSTest.identity.get() } })
    var client: RawClient? = isSecure ? try server.secureClient() : try server.client()
    try expect(client?.get("/ends", headers: Self.upgrade).status, equals: 101)
    client = nil
    waitUntil { ends.withLock { $0.map(\.code) } == [1006] }
    waitUntil { server.server.connectionCount == 0 }
  }

  static let script = """
    import asyncio, os, ssl, sys, websockets
    async def main(url):
        context = None
        if url.startswith("wss"):
            context = ssl.create_default_context(cafile=sys.argv[2])
        async with websockets.connect(url, ssl=context, subprotocols=["BLIP_3+CBMobile_3"], max_size=None) as socket:
            assert socket.subprotocol == "BLIP_3+CBMobile_3"
            for size in [0, 1, 125, 126, 65535]:
                data = os.urandom(size)
                await socket.send(data)
                assert await socket.recv() == data
            for _ in range(300):
                await socket.send(b"x" * 1000)
            for _ in range(300):
                assert await socket.recv() == b"x" * 1000
            await socket.ping()
        print("done", socket.close_code, end="")
    asyncio.run(main(sys.argv[1]))
    """

  @Test(arguments: [false, true]) func pythonsWebSocketsTalksToIt(_ isSecure: Bool) throws {
    let python = ProcessInfo.processInfo.environment["TOUCHSTONE_PYTHON"] ?? "python3"
    guard run(python, ["-c", "import websockets"])?.status == 0 else {
      print(
        "skipped pythonsWebSocketsTalksToIt: \(python) has no module websockets (TOUCHSTONE_PYTHON names another Python)"
      )
      return
    }
    let directory = TemporaryDirectory()
    let identity = isSecure ? try TLSIdentity.selfMade(in: directory.path) : nil
    let server = try server(with: { $0.tls = identity })
    let url = server.url.replacingOccurrences(of: "http", with: "ws")
    let result = run(python, ["-c", Self.script, url, directory.file("server-cert.pem")])
    expect(result?.output, equals: "done 1000")
    waitUntil { server.server.connectionCount == 0 }
  }
}
