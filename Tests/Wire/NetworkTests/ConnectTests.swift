import Foundation
import Storage
import TestTools
import Testing
import Transport
import WebSocket

@testable import Network

@Suite struct ConnectTests {
  @Test func aConnectionCarriesMessages() async throws {
    let server = try RawServer { connection, _ in
      let head = connection.readHead()
      connection.upgrade(head, "Sec-WebSocket-Protocol: b", "Set-Cookie: x=1", "Set-Cookie: y=2")
      connection.echo()
    }
    var request = request(server.url("/db/_blipsync?q"), ["a", "b"])
    request.headers = [("X-App", "demo"), ("User-Agent", "Test/1")]
    let connection = try await connect(request).get()
    expect(connection.chosenProtocol, equals: "b")
    expect(connection.headers.filter { $0.name == "set-cookie" }.map(\.value), equals: ["x=1", "y=2"])
    expect(connection.certificateFingerprint == nil)
    await exchange(connection.transport)
    connection.transport.close(.normal)
    #expect(await connection.transport.waitForEnd() == .normal)
    let head = server.requests.withLock { $0[0] }
    expect(head.hasPrefix("GET /db/_blipsync?q HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\n"))
    let headers = server.headers(0)
    expect(headers["x-app"], equals: "demo")
    expect(headers["user-agent"], equals: "Test/1")
    expect(headers["sec-websocket-protocol"], equals: "a,b")
    expect(headers["sec-websocket-version"], equals: "13")
    expect(headers["sec-websocket-extensions"] == nil)
    expect(headers["sec-websocket-key"].map(WebSocketKey.isValid), equals: true)
  }

  @Test func messagesThatComeWithTheAnswerAreReceived() async throws {
    let server = try RawServer { connection, _ in
      let head = connection.readHead()
      let answer =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 101 x\r\nUpgrade: WebSocket\r\nConnection: keep-alive, upgrade\r\nSec-WebSocket-Accept: \(acceptValue(head))\r\n\r\n"
      connection.write([UInt8](answer.utf8) + [0x82, 1, 65, 0x82])
      connection.write([1, 66, 0x88, 2, 3, 0xE8])
      _ = connection.readAll()
    }
    let connection = try await connect(request(server.url())).get()
    #expect(await connection.transport.messages(2) == [[65], [66]])
    #expect(await connection.transport.waitForEnd() == .normal)
  }

  // MARK: Refusals

  private func answer(_ text: String, _ protocols: [String] = ["p"]) async throws -> TransportClose? {
    let server = try RawServer { connection, _ in
      let head = connection.readHead()
      connection.write(text.replacingOccurrences(of: "ACCEPT", with: acceptValue(head)))
    }
    return await connect(request(server.url(), protocols)).failure
  }

  @Test func statusesAreErrorsOfHTTP() async throws {
    for status in [400, 401, 403, 404, 408, 429, 500, 502, 503, 504, 300, 304, 505] {
      let close = try #require(try await answer("HTTP/1.1 \(status) Why\r\nContent-Length: 0\r\n\r\n"))
      let isTransient = [408, 429, 500, 502, 503, 504].contains(status)
      expect(
        close, equals: TransportClose(domain: .http, code: status, reason: "Why", isTransient: isTransient))
    }
  }

  @Test func anAnswerThatIsNoRightUpgradeIsRefused() async throws {
    let start = "HTTP/1.1 101 x\r\n"
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n"
    let accept = "Sec-WebSocket-Accept: ACCEPT\r\n"
    let chosen = "Sec-WebSocket-Protocol: p\r\n"
    let cases = [
      (start + upgrade + accept + "\r\n", "http 403"),
      (start + upgrade + accept + "Sec-WebSocket-Protocol: q\r\n\r\n", "http 403"),
      (start + upgrade + accept + chosen + chosen + "\r\n", "http 403"),
      (start + upgrade + chosen + "\r\n", "webSocket 1002"),
      (start + upgrade + chosen + "Sec-WebSocket-Accept: AAAA\r\n\r\n", "webSocket 1002"),
      (start + upgrade + chosen + accept + accept + "\r\n", "webSocket 1002"),
      (start + "Upgrade: websocket\r\n" + chosen + accept + "\r\n", "webSocket 1002"),
      (start + "Connection: Upgrade\r\n" + chosen + accept + "\r\n", "webSocket 1002"),
      (start + "Upgrade: h2c\r\nConnection: Upgrade\r\n" + chosen + accept + "\r\n", "webSocket 1002"),
      (
        start + upgrade + chosen + accept + "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n",
        "webSocket 1010"
      ),
      ("HTTP/1.1 200 OK\r\n\r\n", "webSocket 1002"),
      ("nonsense\r\n", "webSocket 1002"),
      ("HTTP/1.1 101 x\r\n" + String(repeating: "a: b\r\n", count: 65), "webSocket 1002"),
      (String(repeating: "HTTP/1.1 100 x\r\n\r\n", count: 11), "webSocket 1002"),
      ("", "webSocket 400"),
      ("HTTP/1.1 101 x\r\nUpgr", "webSocket 400"),
    ]
    for (text, kind) in cases { #expect(try await answer(text)?.kind == kind, "\(text)") }
    // A protocol although none was offered.
    #expect(try await answer(start + upgrade + accept + chosen + "\r\n", [])?.kind == "http 403")
    #expect(try await answer(start + upgrade + accept + "\r\n", []) == nil)
  }

  @Test func aRefusedConnectionIsAnErrorOfTheSystem() async throws {
    let (listener, port) = try listen()
    close(listener)
    let close = try #require(await connect(request("ws://127.0.0.1:\(port)/")).failure)
    expect(close.kind, equals: "posix \(ECONNREFUSED) transient")
  }

  @Test func anUnknownHostIsAnErrorOfNames() async throws {
    let close = try #require(await connect(request("ws://no-such-host.invalid/")).failure)
    // Without a name server nobody knows whether there is such a host.
    expect(["network 1 transient", "network 2"].contains(close.kind))
  }

  @Test func aServerThatDoesntAnswerTimesOut() async throws {
    let server = try RawServer { connection, _ in _ = connection.readAll() }
    var silent = request(server.url())
    silent.connectTimeout = 0.3
    #expect(await connect(silent).failure?.kind == "network 3 transient")
  }

  @Test func whatCantBeSentIsRefused() async throws {
    let server = try RawServer { connection, _ in connection.upgrade() }
    func kind(_ change: (inout WebSocketRequest) -> Void) async -> String? {
      var request = request(server.url(), ["p"])
      change(&request)
      return await connect(request).failure?.kind
    }
    #expect(await kind { $0.url = "ftp://h/" } == "network 4")
    #expect(await kind { $0.url = "ws://jane:secret@127.0.0.1/" } == "network 4")
    #expect(await kind { $0.headers = [("A\r\nB", "c")] } == "network 4")
    #expect(await kind { $0.headers = [("A", "c\r\nB: d")] } == "network 4")
    #expect(await kind { $0.headers = [("sec-websocket-KEY", "c")] } == "network 4")
    #expect(await kind { $0.headers = [("A", String(repeating: "a", count: 65 << 10))] } == "network 4")
    #expect(await kind { $0.protocols = ["a b"] } == "network 4")
    #expect(await kind { $0.authentication = .cookie(name: "a", value: "b; c=d") } == "network 4")
    #expect(await kind { $0.authentication = .basic(name: "a:b", password: "c") } == "network 4")
    #expect(await kind { $0.proxy = .url("gopher://h") } == "network 4")
    #expect(await kind { $0.networkInterface = "no-such-interface" } == "network 27")
    expect(server.requests.withLock { $0 }, equals: [])
    #expect(await kind { $0.networkInterface = "lo" } == nil)
  }

  @Test func connectingCanBeCancelled() async throws {
    let hasAsked = CountingSemaphore()
    let server = try RawServer { connection, _ in
      connection.readHead()
      hasAsked.signal()
      _ = connection.readAll()
    }
    let calls = Lock(0)
    let close: TransportClose? = await withCheckedContinuation { continuation in
      let connecting = WebSocketClient.connect(request(server.url())) { result in
        calls.withLock { $0 += 1 }
        continuation.resume(returning: result.failure)
      }
      hasAsked.wait()
      connecting.cancel()
      connecting.cancel()
    }
    expect(close?.kind, equals: "posix \(ECANCELED)")
    expect(calls.withLock { $0 }, equals: 1)
  }

  // MARK: Who the client is

  @Test func aPasswordIsSentWithTheFirstRequest() async throws {
    let server = try RawServer { connection, _ in
      connection.upgrade()
      connection.echo()
    }
    var request = request(server.url())
    request.authentication = .basic(name: "jane", password: "secret")
    try await connect(request).get().transport.close(.normal)
    expect(server.headers(0)["authorization"], equals: "Basic amFuZTpzZWNyZXQ=")
    request.authentication = .cookie(name: "SyncGatewaySession", value: "abc123")
    request.headers = [("Cookie", "a=b")]
    try await connect(request).get().transport.close(.normal)
    expect(server.headers(1)["cookie"], equals: "a=b; SyncGatewaySession=abc123")
    expect(server.headers(1)["authorization"] == nil)
  }

  @Test func aPasswordCanWaitForAChallenge() async throws {
    let challenge =
      "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n"
    let server = try RawServer { connection, number in
      if number == 0 {
        connection.readHead()
        return connection.write(challenge)
      }
      connection.upgrade()
      connection.echo()
    }
    var request = request(server.url())
    request.authentication = .basic(name: "jane", password: "secret", answersChallenge: true)
    try await connect(request).get().transport.close(.normal)
    expect(server.headers(0)["authorization"] == nil)
    expect(server.headers(1)["authorization"], equals: "Basic amFuZTpzZWNyZXQ=")

    // A second 401 is the answer, and so is one that asks for something else.
    for (text, requests) in [
      (challenge, 2), (challenge.replacingOccurrences(of: "Basic", with: "Digest"), 1),
    ] {
      let refusing = try RawServer { connection, _ in
        connection.readHead()
        connection.write(text)
      }
      request.url = refusing.url()
      #expect(await connect(request).failure?.kind == "http 401")
      expect(refusing.requests.withLock { $0.count }, equals: requests)
    }
  }

  // MARK: Redirects

  @Test(arguments: [301, 302, 303, 307, 308])
  func redirectsAreFollowed(_ status: Int) async throws {
    let server = try RawServer { connection, number in
      if number == 0 {
        connection.readHead()
        return connection.write("HTTP/1.1 \(status) x\r\nLocation: ../other\r\n\r\n")
      }
      connection.upgrade()
      connection.echo()
    }
    var request = request(server.url("/db/a"))
    request.authentication = .basic(name: "jane", password: "secret")
    try await connect(request).get().transport.close(.normal)
    expect(server.requests.withLock { $0[1].hasPrefix("GET /other HTTP/1.1\r\n") })
    expect(server.headers(1)["authorization"], equals: "Basic amFuZTpzZWNyZXQ=")
  }

  @Test func secretsArentSentToAnotherServer() async throws {
    let target = try RawServer { connection, _ in
      connection.upgrade()
      connection.echo()
    }
    let targetPort = target.port
    let server = try RawServer { connection, _ in
      connection.readHead()
      connection.write("HTTP/1.1 302 x\r\nLocation: ws://127.0.0.1:\(targetPort)/x\r\n\r\n")
    }
    for authentication: WebSocketRequest.Authentication in [
      .basic(name: "jane", password: "secret"), .cookie(name: "a", value: "b"),
      .basic(name: "jane", password: "secret", answersChallenge: true),
    ] {
      var request = request(server.url())
      request.authentication = authentication
      request.headers = [("X-App", "demo"), ("Cookie", "c=d"), ("Authorization", "Bearer e")]
      try await connect(request).get().transport.close(.normal)
    }
    for index in 0..<3 {
      expect(server.headers(index)["authorization"] != nil)
      expect(target.headers(index)["x-app"], equals: "demo")
      expect(target.headers(index)["authorization"] == nil)
      expect(target.headers(index)["cookie"] == nil)
    }
  }

  @Test func redirectsEnd() async throws {
    let endless = try RawServer { connection, _ in
      connection.readHead()
      connection.write("HTTP/1.1 302 x\r\nLocation: /again\r\n\r\n")
    }
    #expect(await connect(request(endless.url())).failure?.kind == "network 5")
    expect(endless.requests.withLock { $0.count }, equals: 11)
    #expect(try await answer("HTTP/1.1 302 x\r\nLocation: ftp://h/\r\n\r\n")?.kind == "network 12")
    #expect(try await answer("HTTP/1.1 302 x\r\n\r\n")?.kind == "http 302")
  }
}
