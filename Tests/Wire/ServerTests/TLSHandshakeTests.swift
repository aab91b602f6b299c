import HTTP
import CSSL
import Foundation
import Logs
import RawHTTP
import Storage
import TestTools
import Testing

@testable import Server

/// Handshakes, those that never end well too.
@Suite struct TLSHandshakeTests {
  @Test func aHandshakeMustEndInTime() throws {
    let server = try TestServer(tlsWith: { $0.limits.headerSeconds = 1 }, echo)
    var cut = TLSClient.Options()
    cut.maximumBytes = 100
    let (silent, half, slow, idle) = (
      try server.client(), try server.secureClient(cut), try server.client(), try server.secureClient()
    )
    #expect(throws: RawClient.Failure.self) { try half.shakeHands() }
    // A handshake alone is no request.
    try idle.shakeHands()
    try expect(server.secureClient().get("/").status, equals: 200)
    // A byte of a long record now and then doesn't help.
    try slow.send([22, 3, 1, 0x40, 0])
    #expect(throws: RawClient.Failure.self) {
      for _ in 0..<10_000 {
        try slow.send([1])
        usleep(20_000)
      }
    }
    for client in [silent, half, idle] { try expect(client.isClosed()) }
    waitUntil { server.server.connectionCount == 0 }
  }

  @Test func garbageIsRefusedAndOthersAreServed() throws {
    let server = try TestServer(tlsWith: { _ in }, echo)
    let other = try server.secureClient()
    var garbage: [[UInt8]] = [
      // Records of all kinds with what doesn't belong there, and a length of 64 KiB.
      [22, 3, 1, 0, 4, 1, 0, 0, 0], [22, 3, 1, 0xFF, 0xFF, 1, 0xFF, 0xFF, 0xFF], [23, 3, 3, 0, 1, 0],
      [21, 3, 3, 0, 2, 2, 40], [20, 3, 3, 0, 1, 1], [24, 3, 3, 0, 3, 1, 0x40, 0], [0x80, 0x2E, 1, 0, 2],
      [0], [22], [22, 2, 0, 0, 1, 0], [UInt8](repeating: 0xFF, count: 100_000),
      [UInt8](repeating: 0, count: 100_000), [UInt8](repeating: 22, count: 100_000),
    ]
    garbage += (0..<50).map { seed in Array(TLSTest.pattern(4_000 + seed)[seed...]) }
    for bytes in garbage {
      let client = try server.client()
      // The server may close before it has read all.
      try? client.send([bytes[0] | 0x80] + bytes.dropFirst())
      client.shutdownSending()
      _ = try client.rest()
      let second = try server.client()
      try? second.send([22] + bytes)
      second.shutdownSending()
      _ = try second.rest()
    }
    // Within an open connection too.
    for bytes in garbage {
      let client = try server.secureClient()
      try expect(client.get("/").status, equals: 200)
      client.sendPlain(bytes)
      client.endSocket()
      _ = try client.rest()
    }
    try expect(other.get("/").status, equals: 200)
    waitUntil { server.server.connectionCount == 1 }
  }

  @Test(arguments: ["GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "PUT /a HTTP/1.0\r\n\r\nabc", "copy"])
  func plainHTTPGetsAnAnswerThatSaysSo(_ request: String) throws {
    let server = try TestServer(tlsWith: { _ in }, echo)
    let client = try server.client()
    try client.send(request)
    let answer = try client.answer()
    expect(answer.status, equals: 400)
    expect(answer.text.contains("TLS"))
    expect(answer.header("Connection"), equals: "close")
    try expect(client.isClosed())
    waitUntil { server.server.connectionCount == 0 }
  }

  @Test func aHandshakeCountsAsAConnection() throws {
    let server = try TestServer(tlsWith: { $0.limits.connections = 2 }, echo)
    var silent: RawClient? = try server.client()
    let client = try server.secureClient()
    try expect(client.get("/").status, equals: 200)
    try expect(server.client().isClosed())
    expect(server.server.connectionCount, equals: 2)
    expect(server.server.connections.allSatisfy { $0.peer.host == "127.0.0.1" })
    silent = nil
    waitUntil { server.server.connectionCount == 1 }
    try expect(server.secureClient().get("/").status, equals: 200)
    _ = silent
  }

  @Test func renegotiationIsRefused() throws {
    let server = try TestServer(tlsWith: { _ in }, echo)
    let client = try server.secureClient(TLSTest.options(TLS1_2_VERSION))
    try expect(client.get("/").status, equals: 200)
    expect(!client.renegotiate())
    waitUntil { server.server.connectionCount <= 1 }
    try expect(server.secureClient().get("/").status, equals: 200)
  }

  @Test func oldVersionsAreRefused() throws {
    let server = try TestServer(tlsWith: { _ in }, echo)
    for version in [TLS1_VERSION, TLS1_1_VERSION] {
      let client = try server.secureClient(TLSTest.options(version))
      #expect(throws: RawClient.Failure.self) { try client.shakeHands() }
    }
  }

  @Test(arguments: TLSTest.versions) func theProtocolIsHTTP(_ version: Int32) throws {
    let server = try TestServer(tlsWith: { _ in }, echo)
    func client(_ protocols: [String]) throws -> TLSClient {
      var options = TLSTest.options(version)
      options.protocols = protocols
      return try server.secureClient(options)
    }
    let both = try client(["h2", "http/1.1"])
    try expect(both.get("/").status, equals: 200)
    expect(both.chosenProtocol, equals: "http/1.1")
    let none = try client([])
    try expect(none.get("/").status, equals: 200)
    expect(none.chosenProtocol, equals: "")
    let other = try client(["h2"])
    #expect(throws: RawClient.Failure.self) { try other.shakeHands() }
  }

  @Test(arguments: TLSTest.versions, [false, true])
  func sessionsAreResumedWithoutClientCertificates(_ version: Int32, _ isCertified: Bool) throws {
    let server = try TestServer(
      tlsWith: {
        if isCertified { $0.clientCertificates = .requested(ClientCertificateCheck { _ in true }) }
      }, echo)
    var options = TLSTest.options(version)
    let first = try server.secureClient(options)
    try expect(first.get("/").status, equals: 200)
    options.session = SSL_get1_session(first.session)
    defer { SSL_SESSION_free(options.session) }
    first.shutdownSending()
    let second = try server.secureClient(options)
    try expect(second.get("/").status, equals: 200)
    expect(second.isResumed != isCertified)
  }

  @Test(arguments: TLSTest.versions, [false, true])
  func aConnectionMayBreakAtEveryByte(_ version: Int32, _ isReset: Bool) throws {
    let server = try TestServer(tlsWith: { _ in }) { request, responder in
      responder.answer(
        request.isWebSocketUpgrade
          ? .webSocket(request) { WebSocketUpgradeTests.echoMessages($0) }
          : HTTPAnswer(status: 200, text: "ok"))
    }
    var isWhole = false
    var bytes = 0
    while !isWhole {
      var options = TLSTest.options(version)
      options.maximumBytes = bytes
      let client = try server.secureClient(options)
      if isReset { client.reset() }
      do {
        _ = try client.get("/")
        _ = try client.get("/", headers: WebSocketUpgradeTests.upgrade)
        try client.send([0x82, 0x81, 0, 0, 0, 0, 0x61])
        _ = try client.bytes(3)
        client.shutdownSending()
        isWhole = true
      } catch {}
      // The handshake and each phase after it has its borders; a step of 3 meets them all in one run or the other.
      bytes += version == TLS1_3_VERSION ? 3 : 5
      expect(bytes < 5_000)
    }
    waitUntil { server.server.connectionCount == 0 }
    try expect(server.secureClient().get("/").status, equals: 200)
  }
}
