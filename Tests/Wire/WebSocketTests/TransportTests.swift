import Expectations
import Foundation
import Storage
import Testing
import Transport

@testable import WebSocket

@Suite struct TransportTests {
  @Test func messagesGoBothWaysInOrder() async throws {
    let (client, server) = try transports()
    let sent = (0..<5000).map { number in [UInt8](repeating: UInt8(number & 255), count: number % 700) }
    for (from, to) in [(client, server), (server, client)] {
      async let received = to.messages(sent.count)
      for start in stride(from: 0, to: sent.count, by: 100) {
        #expect(await from.send(Array(sent[start..<start + 100])) == nil)
      }
      #expect(await received == sent)
    }
    client.close(.normal)
    #expect(await server.waitForEnd() == .normal)
  }

  @Test func whatCameWithTheHandshakeIsReadFirst() async throws {
    let first = frame(2, [1]) + frame(2, [2, 3])
    let (client, peer) = try RawPeer.pair(.client, received: first + [0x82])
    try await peer.write([1, 9])
    #expect(await client.messages(3) == [[1], [2, 3], [9]])
    client.close(.webSocket(1006))
  }

  @Test func aReceiverThatDoesntAskStopsItsPeer() async throws {
    let (client, server) = try transports()
    let message = [UInt8](repeating: 1, count: 10_000)
    let progress = Lock(0)
    let sender = Task {
      for _ in 0..<2000 {
        guard await client.send([message]) == nil else { return }
        progress.withLock { $0 += 1 }
      }
    }
    // Ask once, so that reading has begun; then wait until the sender makes no progress any more.
    var received = await server.messages(1).count
    var last = -1
    while true {
      let now = progress.withLock { $0 }
      if now == last, now > 0 { break }
      last = now
      try await Task.sleep(for: .milliseconds(300))
    }
    // 256 KiB at each end, what was taken at first, and what the socket holds.
    expect(last < 1000)
    expect(server.traffic.receivedBytes < 4 << 20)
    while received < 2000 {
      let more = await server.messages(1).count
      try #require(more > 0, "the connection has ended after \(received) messages")
      received += more
    }
    expect(received, equals: 2000)
    await sender.value
    client.close(.normal)
    #expect(await server.waitForEnd() == .normal)
  }

  @Test func bytesAreCounted() async throws {
    let (client, server) = try transports()
    await client.send([[1, 2, 3], [UInt8](repeating: 0, count: 200)])
    _ = await server.messages(2)
    expect(client.traffic.sentBytes, equals: 2 + 4 + 3 + 4 + 4 + 200)
    expect(server.traffic.receivedBytes, equals: client.traffic.sentBytes)
    client.close(.normal)
    _ = await server.waitForEnd()
  }

  @Test func aPingIsAnsweredThoughNobodyReceives() async throws {
    let (_, peer) = try RawPeer.pair(.server)
    try await peer.write(frame(9, utf8("are you there"), mask: [1, 2, 3, 4]))
    #expect(try await peer.read(15) == frame(10, utf8("are you there")))
  }

  @Test func ofManyPingsTheLastIsAnsweredAndAnswersDontPileUp() async throws {
    let (server, peer) = try RawPeer.pair(.server)
    let count = 200_000
    // The peer doesn't read before it has written all, which is more than all buffers hold as pongs.
    var pings: [UInt8] = []
    for number in 0..<count { pings += frame(9, utf8(String(format: "%06d", number)), mask: [0, 0, 0, 0]) }
    try await peer.write(pings)
    try await peer.write(frame(8, bytes("03E8"), mask: [0, 0, 0, 0]))
    let answers = try await peer.readAll()
    let events = try events(WebSocketSession(.client), answers)
    expect(events.last, equals: .close(code: 1000, reason: ""))
    expect(events.count >= 2)
    expect(events.count < count)
    #expect(await server.waitForEnd() == .normal)
  }

  @Test func readingGoesOnWhenMessagesWereTakenThoughNobodyAsks() async throws {
    var options = WebSocketOptions()
    options.readAheadBytes = 1000
    let (server, peer) = try RawPeer.pair(.server, options)
    // The second message isn't read before the first was taken; and then the ping is.
    for byte: UInt8 in [1, 2] {
      try await peer.write(frame(2, [UInt8](repeating: byte, count: 100_000 / 2), mask: [1, 2, 3, 4]))
    }
    try await peer.write(frame(9, [7], mask: [1, 2, 3, 4]))
    #expect(await server.messages(1).count == 1)
    #expect(await server.messages(1).count == 1)
    #expect(try await peer.read(3) == frame(10, [7]))
    server.close(.webSocket(1006))
  }

  @Test func aSlowStreamOfByteByByteIsRead() async throws {
    let (server, peer) = try RawPeer.pair(.server)
    let frames = frame(2, utf8("abc"), mask: [1, 2, 3, 4]) + frame(2, utf8("defg"), mask: [9, 2, 3, 4])
    for byte in frames { try await peer.write([byte]) }
    #expect(await server.messages(2) == [utf8("abc"), utf8("defg")])
    server.close(.webSocket(1006))
  }

  @Test func thousandsOfConnectionsShareTheLoops() async throws {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    let count = min(1000, Int(limit.rlim_cur) / 8)
    let pairs = try (0..<count).map { _ in try transports() }
    await withTaskGroup(of: Void.self) { group in
      for (number, pair) in pairs.enumerated() {
        group.addTask {
          let message = utf8("\(number)")
          await pair.client.send([message])
          #expect(await pair.server.messages(1) == [message])
          pair.server.close(.webSocket(1001))
          #expect(await pair.client.waitForEnd() == .webSocket(1001))
        }
      }
    }
  }

  @Test func aDescriptorThatCantBeWaitedForEndsTheTransport() async throws {
    let transport = WebSocketTransport(SocketStream(-1, onClose: { _ in }), .client, loop: try .shared())
    let end = await transport.waitForEnd()
    expect(end.domain, equals: .posix)
    expect(end.code, equals: Int(EBADF))
    #expect(await transport.send([[1]]) == end)
  }
}
