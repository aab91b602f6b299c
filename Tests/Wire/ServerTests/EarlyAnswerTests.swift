import Foundation
import HTTP
import RawHTTP
import TestTools
import Testing

@testable import Server

/// Answers that come before the end of their requests: clients that send everything first must be able to read them.
@Suite struct EarlyAnswerTests {
  private static let piece = [UInt8](repeating: 0x61, count: 1 << 20)
  private static let chunk = Array("100000\r\n".utf8) + piece + Array("\r\n".utf8)
  private static let long = "PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 104857600\r\n\r\n"
  private static let chunked =
    "PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"

  /// Refuses a request without reading its body.
  @Sendable private static func refuse(_ request: HTTPRequest, _ responder: HTTPResponder) {
    responder.answer(HTTPAnswer(status: 413, text: "too large"))
  }

  /// Refuses a request after it has read something of its body.
  @Sendable private static func refuseLater(_ request: HTTPRequest, _ responder: HTTPResponder) {
    _ = try? request.body.read()
    responder.answer(HTTPAnswer(status: 400, text: "no"))
  }

  private func expectAnswer(_ status: Int, _ text: String, to client: RawClient) throws {
    let answer = try client.answer()
    expect(answer.status == status && answer.text == text)
    try expect(client.isClosed())
  }

  @Test(arguments: [false, true]) func aRefusedBodyIsReadToItsEnd(isSecure: Bool) throws {
    let server = try TestServer(with: { if isSecure { $0.tls = try TLSTest.identity.get() } }, Self.refuse)
    let client = try isSecure ? server.secureClient() : server.client()
    try client.send(Self.long)
    for _ in 0..<100 { try client.send(Self.piece) }
    try expectAnswer(413, "too large", to: client)
  }

  @Test(arguments: [false, true]) func aBodyThatIsRefusedWhileItComesIsReadToItsEnd(isSecure: Bool) throws {
    let server = try TestServer(
      with: { if isSecure { $0.tls = try TLSTest.identity.get() } }, Self.refuseLater)
    for head in [Self.chunked, Self.long] {
      let client = try isSecure ? server.secureClient() : server.client()
      try client.send(head)
      for _ in 0..<100 { try client.send(head == Self.long ? Self.piece : Self.chunk) }
      try expectAnswer(400, "no", to: client)
    }
  }

  @Test func aBodyThatIsTooLongIsRefusedOnlyOnceTheHandlerKnows() throws {
    let knows = DispatchSemaphore(value: 0)
    let server = try TestServer(with: {
      $0.limits.bodyBytes = 1_000
      $0.limits.droppedBodyBytes = 1_000
    }) { request, responder in
      while let bytes = try? request.body.read(), !bytes.isEmpty {}
      knows.wait()
      responder.answer(HTTPAnswer(status: 413, text: "too large"))
    }
    let client = try server.client()
    try client.send(Self.chunked)
    for _ in 0..<2 { try client.send(Self.chunk) }
    knows.signal()
    for _ in 0..<8 { try client.send(Self.chunk) }
    try expectAnswer(413, "too large", to: client)
  }

  @Test func aShortRestLeavesTheConnectionOpen() throws {
    let server = try TestServer(Self.refuseLater)
    let client = try server.client()
    for _ in 0..<2 {
      try client.send(Self.chunked)
      try client.send("3\r\nabc\r\n0\r\n\r\n")
      try expect(client.answer().status, equals: 400)
    }
  }

  @Test func whatIsDroppedHasALimit() throws {
    let server = try TestServer(with: { $0.limits.lingeringBytes = 10 << 20 }, Self.refuseLater)
    let client = try server.client()
    try client.send(Self.chunked)
    // It never ends.
    #expect(throws: RawClient.Failure.self) { for _ in 0..<1_000 { try client.send(Self.chunk) } }
  }

  @Test func aClientThatSendsNothingMoreIsNotWaitedForLong() throws {
    let server = try TestServer(with: { $0.limits.lingeringIdleSeconds = 0.3 }, Self.refuse)
    let client = try server.client()
    try client.send(Self.long)
    try expect(client.answer().status, equals: 413)
    // Once the server has closed its socket, the client's is reset.
    #expect(throws: RawClient.Failure.self) {
      for _ in 0..<10_000 {
        usleep(500_000)
        try client.send("a")
      }
    }
  }
}
