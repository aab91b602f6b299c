import Expectations
import Foundation
import Testing
import Transport

@testable import WebSocket

@Suite struct ClosingTests {
  private let mask: [UInt8] = [1, 2, 3, 4]

  @Test func bothSidesEndWithTheCodeOfTheOneThatCloses() async throws {
    for code in [1000, 1001, 1011, 3000, 4002] {
      let (client, server) = try transports()
      client.close(.webSocket(code, "why"))
      #expect(await server.waitForEnd() == .webSocket(code, "why"))
      #expect(await client.waitForEnd() == .webSocket(code, "why"))
      let (other, closing) = try transports()
      closing.close(.webSocket(code))
      #expect(await other.waitForEnd() == .webSocket(code))
    }
  }

  @Test func aPeersCloseIsEchoedAndThenTheServerEndsTheSocket() async throws {
    let (server, peer) = try RawPeer.pair(.server)
    try await peer.write(frame(2, [1], mask: mask) + frame(8, bytes("0FA2") + utf8("bye"), mask: mask))
    #expect(await server.messages(1) == [[1]])
    #expect(await server.waitForEnd() == .webSocket(4002, "bye"))
    #expect(try await peer.readAll() == frame(8, bytes("0FA2")))
  }

  @Test func aClientWaitsForTheServerToEndTheSocket() async throws {
    let (client, peer) = try RawPeer.pair(.client)
    try await peer.write(frame(8, bytes("03E8")))
    #expect(await client.waitForEnd() == .normal)
    #expect(try await peer.read(8).count == 8)
    peer.endWriting()
    #expect(try await peer.readAll() == [])
  }

  @Test func aCloseWithoutACodeIs1005() async throws {
    let (client, peer) = try RawPeer.pair(.client)
    try await peer.write(frame(8, []))
    #expect(await client.waitForEnd() == .webSocket(1005))
    #expect(try await peer.read(6).prefix(2) == [0x88, 0x80])
  }

  @Test func theEndOfTheStreamWithoutACloseIs1006() async throws {
    let (client, peer) = try RawPeer.pair(.client)
    try await peer.write(frame(2, [1]) + [0x82])
    peer.endWriting()
    #expect(await client.messages(1) == [[1]])
    let end = await client.waitForEnd()
    expect((end.domain, end.code, end.isTransient) == (.webSocket, 1006, true))
    #expect(await client.next() == .failure(end))
    #expect(await client.send([[1]]) == end)
  }

  @Test func whatWasSentBeforeTheCloseArrives() async throws {
    let (client, server) = try transports()
    let messages = (0..<3000).map { [UInt8](repeating: UInt8($0 & 255), count: 1000) }
    client.send(messages) { _ in }
    client.close(.normal)
    #expect(await server.messages(messages.count) == messages)
    #expect(await server.waitForEnd() == .normal)
  }

  @Test func callsThatWaitGetTheEnd() async throws {
    let (client, peer) = try RawPeer.pair(.client)
    async let received = client.next()
    async let sent = client.send([[UInt8](repeating: 0, count: 10 << 20)])
    while client.traffic.sentBytes == 0 { await Task.yield() }
    client.close(.webSocket(1001))
    client.close(.webSocket(4000))
    #expect(await received == .failure(.webSocket(1001)))
    #expect(await sent == .webSocket(1001))
    withExtendedLifetime(peer) {}
  }

  @Test func aPeerThatBreaksTheRulesIsToldSo() async throws {
    var options = patientOptions
    options.limits.messageBytes = 100
    let cases: [([UInt8], Int)] = [
      (frame(2, [1]), 1002), (frame(3, [1], mask: mask), 1002),
      (frame(2, [UInt8](repeating: 0, count: 101), mask: mask), 1009),
      (frame(8, bytes("03E8 FF"), mask: mask), 1007),
    ]
    for (frames, code) in cases {
      let (server, peer) = try RawPeer.pair(.server, options)
      try await peer.write(frame(2, [7], mask: mask) + frames)
      #expect(await server.messages(1) == [[7]])
      let end = await server.waitForEnd()
      expect((end.domain, end.code, end.isTransient) == (.webSocket, code, false))
      // What comes after that is dropped, so that the Close frame arrives.
      try await peer.write([UInt8](repeating: 0, count: 1 << 20))
      let answer = try await peer.readAll()
      try expect(events(WebSocketSession(.client), answer), equals: [.close(code: code, reason: end.reason)])
    }
  }

  @Test func aPeerThatDoesntAnswerACloseIsLeft() async throws {
    var options = WebSocketOptions()
    options.closeTimeout = 0.2
    let (client, peer) = try RawPeer.pair(.client, options)
    client.close(.normal)
    #expect(await client.waitForEnd() == .normal)
    // The end of the socket comes though this side never closes.
    #expect(try await peer.readAll().count == 8)
    let (stuck, other) = try RawPeer.pair(.client, options)
    stuck.send([[UInt8](repeating: 0, count: 10 << 20)]) { _ in }
    stuck.close(.normal)
    // It isn't read, so the Close frame is never written. Then the socket ends, before the message does.
    try await Task.sleep(for: .milliseconds(600))
    #expect(try await other.readAll().count < 10 << 20)
  }

  @Test func aCodeThatIsntForTheWireEndsAtOnce() async throws {
    let (client, peer) = try RawPeer.pair(.client)
    client.close(.webSocket(1006, "lost"))
    #expect(await client.waitForEnd() == .webSocket(1006, "lost"))
    #expect(try await peer.readAll() == [])
  }

  @Test func anotherDomainIsSentAs1011() async throws {
    let (client, server) = try transports()
    let close = TransportClose(domain: .http, code: 404, reason: "no such thing", isTransient: false)
    client.close(close)
    #expect(await server.waitForEnd() == .webSocket(1011, "no such thing"))
    #expect(await client.waitForEnd() == close)
  }

  @Test func aLostSocketGivesItsError() async throws {
    let (left, right) = try socketPair()
    let client = WebSocketTransport(SocketStream(left), .client, loop: try .shared())
    // A socket that is closed with bytes unread resets its peer.
    await client.send([[1, 2, 3]])
    Foundation.close(right)
    let end = await client.waitForEnd()
    expect((end.domain, end.isTransient) == (.posix, true))
    expect(end.code, equals: Int(ECONNRESET))
  }

  @Test func aCloseThatCameBeforeTheErrorOfWritingIsTheEnd() async throws {
    let (left, right) = try socketPair()
    let frames = frame(2, [5]) + frame(8, bytes("03E9"))
    expect(Foundation.write(right, frames, frames.count), equals: frames.count)
    Foundation.close(right)
    let client = WebSocketTransport(SocketStream(left), .client, loop: try .shared())
    await client.send([[1]])
    #expect(await client.messages(1) == [[5]])
    #expect(await client.waitForEnd() == .webSocket(1001))
  }
}
