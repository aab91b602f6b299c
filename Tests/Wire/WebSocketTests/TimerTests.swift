import Expectations
import Foundation
import Storage
import StorageConformance
import Testing
import Transport

@testable import WebSocket

@Suite struct TimerTests {
  // MARK: The heap

  @Test func callsComeInTheOrderOfTheirTimes() {
    var random = SeededGenerator(seed: testSeed)
    var timers = Timers()
    let made = Lock<[UInt64]>([])
    var expected: [UInt64] = []
    var numbers: [(number: UInt64, time: UInt64)] = []
    for _ in 0..<1000 {
      let time = UInt64.random(in: 0..<500, using: &random)
      let number = timers.add(MonotonicTime(nanoseconds: time)) { made.withLock { $0.append(time) } }
      numbers.append((number, time))
    }
    for (number, time) in numbers {
      if Bool.random(using: &random) { timers.cancel(number) } else { expected.append(time) }
    }
    for now: UInt64 in [100, 100, 250, 1000] {
      for call in timers.takeDue(MonotonicTime(nanoseconds: now)) { call() }
      expect(made.withLock { $0 }, equals: expected.filter { $0 <= now }.sorted())
    }
    expect(timers.count, equals: 0)
    expect(timers.nextTime == nil)
  }

  @Test func cancelledCallsDontPileUp() {
    var timers = Timers()
    for time in 0..<100_000 { timers.cancel(timers.add(MonotonicTime(nanoseconds: UInt64(time))) {}) }
    expect(timers.count, equals: 0)
    expect(timers.entryCount <= 64)
  }

  @Test func timesAreBounded() {
    let time = MonotonicTime(nanoseconds: 5)
    expect(time + -1, equals: time)
    expect(time + .nan, equals: time)
    expect(time + .infinity, equals: time + 1e12)
    expect(time.seconds(since: time + 1), equals: 0)
    expect((time + 1).seconds(since: time), equals: 1)
  }

  // MARK: Heartbeats

  @Test func aPeerThatAnswersPingsStays() async throws {
    var options = WebSocketOptions()
    options.heartbeat = 0.05
    options.answerTimeout = 240
    let (client, peer) = try RawPeer.pair(.client, options)
    for _ in 0..<5 {
      let ping = try await peer.read(6)
      expect(ping.prefix(2), equals: [0x89, 0x80])
      try await peer.write(frame(10, []))
    }
    try await peer.write(frame(2, [1]) + frame(8, bytes("03E8")))
    #expect(await client.messages(1) == [[1]])
    #expect(await client.waitForEnd() == .normal)
  }

  @Test func aPeerThatDoesntAnswerAPingIsLost() async throws {
    var options = WebSocketOptions()
    options.heartbeat = 0.1
    let (client, peer) = try RawPeer.pair(.client, options)
    let end = await client.waitForEnd()
    expect((end.domain, end.code, end.isTransient) == (.webSocket, 1006, true))
    // One ping, and then the end of the socket.
    #expect(try await peer.readAll().count == 6)
  }

  @Test func whatIsntReadSaysNothingAboutThePeer() async throws {
    var options = WebSocketOptions()
    options.heartbeat = 0.05
    options.idleTimeout = 0.2
    options.readAheadBytes = 1000
    let (client, peer) = try RawPeer.pair(.client, options)
    try await peer.write(frame(2, [UInt8](repeating: 1, count: 2000)))
    // Ten heartbeats, none of which is answered: the client has enough to read.
    for _ in 0..<10 { #expect(try await peer.read(6).count == 6) }
    #expect(await client.messages(1).count == 1)
    // Now it reads again, and finds nothing.
    #expect([1001, 1006].contains(await client.waitForEnd().code))
  }

  @Test func anIdlePeerIsClosedWith1001() async throws {
    var options = WebSocketOptions()
    options.idleTimeout = 0.1
    let (server, peer) = try RawPeer.pair(.server, options)
    let end = await server.waitForEnd()
    expect((end.domain, end.code) == (.webSocket, 1001))
    let answer = try await peer.read(4)
    expect(answer.first, equals: 0x88)
    expect(answer.suffix(2), equals: bytes("03E9"))
  }
}
