import Expectations
import StorageConformance
import Testing

@testable import BLIP

/// The type, the number and the flags of a frame.
private func header(_ frame: [UInt8]) -> (number: UInt64, flags: FrameFlags) {
  var offset = 0
  let number = frame.varint(at: &offset) ?? 0
  return (number, FrameFlags(rawValue: frame[offset]))
}

private func numbers(_ frames: [[UInt8]]) -> [UInt64] { frames.map { header($0).number } }

@Suite("The order of frames, and flow control") struct FlowTests {
  private var random = SeededGenerator(seed: testSeed)

  @Test("Messages take turns, a frame each")
  mutating func roundRobin() throws {
    let session = BLIPSession()
    for _ in 1...3 { try session.send(request("x", randomBytes(40_000, &random))) }
    let frames = try session.frames()
    expect(numbers(frames), equals: [1, 2, 3, 1, 2, 3, 1, 2, 3])
    expect(frames.map(\.count).max(), equals: FrameSizes.large)
    expect(
      frames.map { header($0).flags.contains(.moreComing) },
      equals: [
        true, true, true, true, true, true, false, false, false,
      ])
  }

  @Test("An urgent message leaves one other message between its frames, which are small then")
  mutating func urgent() throws {
    let session = BLIPSession()
    for _ in 1...3 { try session.send(request("x", randomBytes(60_000, &random))) }
    for _ in 1...3 { _ = try session.nextFrame() }
    try session.send(request("u", randomBytes(40_000, &random), urgent: true))
    var frames: [[UInt8]] = []
    for _ in 1...6 { frames.append(try #require(try session.nextFrame())) }
    expect(numbers(frames), equals: [1, 4, 2, 4, 3, 4])
    expect(frames.map(\.count)[..<5], equals: [4096, 16_384, 4096, 16_384, 4096])
  }

  @Test("Messages begin in their order, also urgent ones")
  mutating func beginInOrder() throws {
    let session = BLIPSession()
    for index in 0..<200 {
      try session.send(
        request("x", randomBytes(index % 7 == 0 ? 50_000 : 10, &random), urgent: index % 3 == 0))
    }
    var begun: [UInt64] = []
    for number in numbers(try session.frames()) where !begun.contains(number) { begun.append(number) }
    expect(begun, equals: Array(1...200))
  }

  @Test("Urgent messages end in the order in which they began, whatever their lengths")
  mutating func endInOrder() throws {
    for others in 0..<3 {
      let session = BLIPSession()
      for _ in 0..<others { try session.send(request("x", randomBytes(60_000, &random))) }
      for length in [50_000, 10, 20_000, 0, 100_000, 1] {
        try session.send(request("u", randomBytes(length, &random), urgent: true))
      }
      let frames = try session.frames()
      let ended = frames.map(header).filter { $0.flags.contains(.urgent) && !$0.flags.contains(.moreComing) }
      expect(ended.map(\.number), equals: (1...6).map { UInt64($0 + others) })
      // The others aren't starved.
      try expect(BLIPSession().messages(frames).count, equals: 6 + others)
      if others > 0 { expect(numbers(frames)[..<12].contains(1)) }
    }
  }

  @Test("Incompressible frames that are compressed fit into the frame size", arguments: [1, 300, 70_000])
  mutating func incompressible(length: Int) throws {
    let session = BLIPSession()
    let body = randomBytes(length, &random)
    try session.send(request("x", body, compressed: true))
    let frames = try session.frames()
    expect(frames.allSatisfy { $0.count <= FrameSizes.large })
    try expect(BLIPSession().messages(frames).map { Array($0.body) }, equals: [body])
  }

  @Test("A sender stops at 128,000 unacknowledged bytes, and goes on after an ACK")
  mutating func suspension() throws {
    let (sender, receiver) = (BLIPSession(), BLIPSession())
    let body = randomBytes(400_000, &random)
    try sender.send(request("x", body))
    try sender.send(request("small", [1]))
    var frames = try sender.frames()
    // 8 frames of 16 KiB, and the small message in between.
    expect(numbers(frames), equals: [1, 2, 1, 1, 1, 1, 1, 1, 1])
    expect(!sender.hasFrames)
    var received = try receiver.messages(frames)
    var rounds = 0
    while true {
      let acks = try receiver.frames()
      if acks.isEmpty { break }
      rounds += 1
      expect(acks.count, equals: 1, "ACKs of one message are one frame")
      try sender.messages(acks)
      frames = try sender.frames()
      received += try receiver.messages(frames)
    }
    expect(received.map { Array($0.body) }, equals: [[1], body])
    expect(rounds >= 3)
    expect(receiver.requests.isEmpty && sender.sendingRequests.isEmpty)
  }

  @Test("ACKs that go back, or beyond what was sent, or are of unknown messages change nothing")
  mutating func strangeAcks() throws {
    let sender = BLIPSession()
    try sender.send(request("x", randomBytes(400_000, &random)))
    try expect(sender.frames().count, equals: 8)
    for ack in [
      FrameWriter.ack(1, .ackRequest, .max), FrameWriter.ack(1, .ackRequest, 0),
      FrameWriter.ack(1, .ackRequest, 131_072), FrameWriter.ack(1, .ackReply, 100_000),
      FrameWriter.ack(7, .ackRequest, 100_000), FrameWriter.ack(.max, .ackReply, 1),
    ] { try expect(sender.receive(ack) == nil) }
    try expect(sender.frames().isEmpty)
    _ = try sender.receive(FrameWriter.ack(1, .ackRequest, 100_000))
    try expect(sender.frames().count, equals: 6)
    _ = try sender.receive(FrameWriter.ack(1, .ackRequest, 50_000))
    try expect(sender.frames().isEmpty)
  }

  @Test("Bytes that a receiver doesn't consume aren't acknowledged")
  mutating func slowConsumer() throws {
    let (sender, receiver) = (BLIPSession(), BLIPSession())
    let source = TestSource(count: 1_000_000)
    try sender.send(BLIPRequest("x", body: .source(source)))
    var chunks: [(IncomingMessage, Int, Int)] = []
    var collected: [UInt8] = []
    func take(_ frames: [[UInt8]]) throws {
      for frame in frames {
        switch try receiver.receive(frame) {
        case .began(let incoming):
          let bytes = receiver.stream(incoming)
          collected += bytes
          chunks.append((incoming, bytes.count, 0))
        case .chunk(let incoming, let bytes, let wireBytes):
          collected += bytes
          chunks.append((incoming, bytes.count, wireBytes))
        default: break
        }
      }
    }
    try take(try sender.frames())
    expect(collected.count < 132_000 && receiver.bufferedBytes < 132_000)
    try expect(receiver.frames().isEmpty)
    while !chunks.isEmpty {
      let (incoming, bytes, wireBytes) = chunks.removeFirst()
      receiver.consume(incoming, bytes: bytes, wireBytes: wireBytes)
      for ack in try receiver.frames() { _ = try sender.receive(ack) }
      try take(try sender.frames())
      expect(receiver.bufferedBytes <= 132_000)
    }
    expect(collected, equals: source.all)
    expect(source.largestRead <= FrameSizes.large)
    // The properties are counted until the request is answered.
    expect(receiver.bufferedBytes, equals: 11)
  }

  @Test("Requests beyond those in flight wait until one is answered")
  func heldRequests() throws {
    var limits = BLIPLimits()
    limits.requestsInFlight = 2
    let (client, server) = (BLIPSession(limits: limits), BLIPSession())
    let sent = try (0..<5).map { try client.send(request("x", [$0])) }
    client.cancel(sent[2])
    var bodies: [UInt8] = []
    var counts: [Int] = []
    while true {
      let frames = try client.frames()
      if frames.isEmpty { break }
      counts.append(frames.count)
      for message in try server.messages(frames) {
        bodies += message.body
        try server.reply(OutgoingMessage(BLIPReply(), to: message.number))
      }
      try client.messages(try server.frames())
    }
    expect(bodies, equals: [0, 1, 3, 4])
    expect(counts, equals: [2, 2])
  }

  private final class NoBytesYet: BLIPSource {
    func read(_ count: Int, into bytes: inout [UInt8]) -> BLIPSourceState { .later }
  }

  @Test("A cancelled request that hasn't begun is never sent, also one that waits for its source")
  func cancelled() throws {
    var limits = BLIPLimits()
    limits.requestsInFlight = 2
    let session = BLIPSession(limits: limits)
    let starved = try session.send(BLIPRequest("x", body: .source(NoBytesYet())))
    let queued = try session.send(request("queued"))
    try session.send(request("held", noReply: true))
    session.cancel(queued)
    try expect(session.frames().count, equals: 1)
    expect(session.requestsInFlight == 1 && session.starved.count == 1)
    session.cancel(starved)
    session.resume(starved)
    expect(session.requestsInFlight == 0 && session.starved.isEmpty && !session.hasFrames)
    try session.send(request("next"))
    let frames = try session.frames()
    expect(frames.count == 1 && frames[0][0] == 2)
  }

  @Test("A source that fails before its reply has begun becomes an error, and later ends the session")
  func failingSources() throws {
    for (failsAt, fails) in [(0, false), (100_000, true)] {
      let (client, server) = (BLIPSession(), BLIPSession())
      try client.send(request("x"))
      try server.messages(try client.frames())
      let source = TestSource(count: 200_000, failsAt: failsAt)
      try server.reply(OutgoingMessage(BLIPReply(body: .source(source)), to: 1))
      var frames: [[UInt8]] = []
      let error = blipError {
        while let frame = try server.nextFrame() { frames.append(frame) }
      }
      expect(error?.code, equals: (fails ? .sourceFailed : nil))
      if !fails { try expect(client.messages(frames).first?.error, equals: .handlerFailed) }
    }
  }

  @Test("A source that doesn't say its end, and one that gives little at a time")
  func sourceForms() throws {
    for (count, piece, givesEnd) in [
      (0, 10, false), (0, 10, true), (50_000, 7, false), (16_373, 16_373, false),
    ] {
      let (client, server) = (BLIPSession(), BLIPSession())
      let source = TestSource(count: count, piece: piece, givesEnd: givesEnd)
      var request = BLIPRequest("x", body: .source(source))
      request.isCompressed = true
      try client.send(request)
      try expect(server.messages(try client.frames()).map { Array($0.body) }, equals: [source.all])
    }
  }
}
