import Expectations
import StorageConformance
import Testing

@testable import BLIP

/// One end of a random session: a core, and what a naive reference expects of it.
private final class RandomEnd {
  /// What was asked, in the order of sending.
  struct Expected {
    var properties: BLIPProperties
    var body: [UInt8]
    var isNoReply: Bool
    var isCancelled = false
  }

  let session = BLIPSession()
  /// Frames on their way to this end.
  var inbox: [[UInt8]] = []
  var asked: [ObjectIdentifier: (message: OutgoingMessage, expected: Expected)] = [:]
  /// Requests in the order in which they were sent, without cancelled ones that never began.
  var sentInOrder: [OutgoingMessage] = []
  var expectations: [ObjectIdentifier: Expected] = [:]
  /// What this end has answered, by number.
  var answers: [UInt64: Expected] = [:]
  var waitingAnswers: [(number: UInt64, countedBytes: Int)] = []
  var streams: [ObjectIdentifier: [UInt8]] = [:]
  var unconsumed: [(IncomingMessage, bytes: Int, wireBytes: Int)] = []
  /// Whole requests by number, as received.
  var received: [UInt64: (BLIPProperties, [UInt8])] = [:]
  var begun: [UInt64] = []
  var replies = 0
}

@Suite("Random sessions") struct RandomSessionTests {
  /// Bodies that are partly compressible.
  private func body(_ random: inout SeededGenerator) -> [UInt8] {
    let count =
      switch random.below(20) {
      case 0: random.below(400_000)
      case 1...3: random.below(40_000)
      case 4...6: 0
      default: random.below(600)
      }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    let alphabet = random.below(2) == 0 ? 256 : 7
    while bytes.count < count {
      var word = random.next()
      for _ in 0..<8 {
        bytes.append(UInt8(truncatingIfNeeded: Int(word & 0xFF) % alphabet))
        word >>= 8
      }
    }
    return bytes
  }

  private func properties(_ random: inout SeededGenerator) -> BLIPProperties {
    var properties: BLIPProperties = [:]
    for index in 0..<random.below(4) {
      properties.append(
        "name\(index)", String(repeating: "é", count: random.below(random.below(50) == 0 ? 15_000 : 30)))
    }
    return properties
  }

  private func blipBody(_ bytes: [UInt8], _ random: inout SeededGenerator) -> BLIPBody {
    guard random.below(3) == 0 else { return .bytes(bytes) }
    return .source(
      TestSource(
        count: bytes.count, piece: 1 + random.below(30_000), givesEnd: random.below(2) == 0, { bytes[$0] }))
  }

  private func ask(_ end: RandomEnd, _ random: inout SeededGenerator) throws {
    let body = body(&random)
    var request = BLIPRequest("r", properties(&random), body: blipBody(body, &random))
    request.isUrgent = random.below(3) == 0
    request.isCompressed = random.below(2) == 0
    request.isNoReply = random.below(6) == 0
    let message = try OutgoingMessage(request, sink: nil)
    end.session.send(message)
    let expected = RandomEnd.Expected(
      properties: request.properties, body: body, isNoReply: request.isNoReply)
    end.expectations[ObjectIdentifier(message)] = expected
    end.sentInOrder.append(message)
  }

  private func answer(_ end: RandomEnd, _ random: inout SeededGenerator) throws {
    guard !end.waitingAnswers.isEmpty else { return }
    let (number, countedBytes) = end.waitingAnswers.remove(at: random.below(end.waitingAnswers.count))
    let body = body(&random)
    var reply = BLIPReply(properties(&random), body: blipBody(body, &random))
    if random.below(5) == 0 {
      let error = BLIPErrorReply(domain: "HTTP", code: random.below(600), text: "text \(number)")
      reply = BLIPReply(error)
      end.answers[number] = .init(properties: reply.properties, body: utf8(error.text), isNoReply: false)
    } else {
      reply.isUrgent = random.below(3) == 0
      reply.isCompressed = random.below(2) == 0
      end.answers[number] = .init(properties: reply.properties, body: body, isNoReply: false)
    }
    try end.session.reply(OutgoingMessage(reply, to: number, requestBytes: countedBytes))
  }

  /// Takes a frame at `end`, whose peer is `other`.
  private func take(_ end: RandomEnd, _ other: RandomEnd, _ random: inout SeededGenerator) throws {
    guard !end.inbox.isEmpty else { return }
    let frame = end.inbox.removeFirst()
    switch try end.session.receive(frame) {
    case nil: break
    case .message(let message, let countedBytes, let request):
      finish(end, other, message, Array(message.body), countedBytes, request)
    case .began(let incoming):
      guard random.below(2) == 0 else { break }
      let bytes = end.session.stream(incoming)
      end.streams[ObjectIdentifier(incoming)] = Array(bytes)
      end.unconsumed.append((incoming, bytes.count, 0))
    case .chunk(let incoming, let bytes, let wireBytes):
      end.streams[ObjectIdentifier(incoming), default: []] += bytes
      end.unconsumed.append((incoming, bytes.count, wireBytes))
      guard incoming.isComplete, let head = incoming.head else { break }
      let body = end.streams.removeValue(forKey: ObjectIdentifier(incoming)) ?? []
      if incoming.request != nil { end.session.releaseHead(incoming) }
      finish(end, other, head, body, incoming.countedBytes, incoming.request)
    }
  }

  private func finish(
    _ end: RandomEnd, _ other: RandomEnd, _ message: BLIPMessage, _ body: [UInt8], _ countedBytes: Int,
    _ request: OutgoingMessage?
  ) {
    if let request {
      expect(request.number, equals: message.number)
      let expected = other.answers.removeValue(forKey: message.number)
      expect(expected?.properties, equals: message.properties)
      expect(expected?.body, equals: body)
      end.replies += 1
    } else {
      end.received[message.number] = (message.properties, body)
      if message.isNoReply {
        end.session.release(countedBytes: countedBytes)
      } else {
        end.waitingAnswers.append((message.number, countedBytes))
      }
    }
  }

  private func consume(_ end: RandomEnd, _ random: inout SeededGenerator) {
    guard !end.unconsumed.isEmpty else { return }
    let (incoming, bytes, wireBytes) = end.unconsumed.removeFirst()
    end.session.consume(incoming, bytes: bytes, wireBytes: wireBytes)
  }

  private func run(_ seed: UInt64, messages: Int) throws {
    var random = SeededGenerator(seed: seed)
    let ends = [RandomEnd(), RandomEnd()]
    var left = messages
    var isBusy = true
    while isBusy {
      for (end, other) in [(ends[0], ends[1]), (ends[1], ends[0])] {
        if left > 0, random.below(3) == 0 {
          for _ in 0..<min(left, 1 + random.below(20)) {
            try ask(end, &random)
            left -= 1
          }
        }
        for _ in 0..<random.below(30) {
          guard let frame = try end.session.nextFrame() else { break }
          expect(frame.count <= FrameSizes.large)
          other.inbox.append(frame)
        }
        for _ in 0..<random.below(30) { try take(end, other, &random) }
        for _ in 0..<random.below(12) { try answer(end, &random) }
        for _ in 0..<random.below(30) { consume(end, &random) }
      }
      isBusy =
        left > 0
        || ends.contains {
          $0.session.hasFrames || !$0.inbox.isEmpty || !$0.waitingAnswers.isEmpty || !$0.unconsumed.isEmpty
        }
    }
    for (end, other) in [(ends[0], ends[1]), (ends[1], ends[0])] {
      // Requests came in the order of sending, with the numbers 1, 2, 3 …
      for (index, message) in end.sentInOrder.enumerated() {
        let expected = end.expectations[ObjectIdentifier(message)]
        let received = other.received[UInt64(index + 1)]
        expect(message.number, equals: UInt64(index + 1))
        expect(received?.0, equals: expected?.properties)
        expect(received?.1, equals: expected?.body)
      }
      expect(end.received.count, equals: other.sentInOrder.count)
      expect(end.replies, equals: end.expectations.values.count { !$0.isNoReply })
      let session = end.session
      expect(session.awaiting.isEmpty && session.requests.isEmpty && session.replies.isEmpty)
      expect(session.sendingRequests.isEmpty && session.sendingReplies.isEmpty && session.starved.isEmpty)
      expect(session.openRequests == 0 && session.bufferedBytes == 0 && session.queuedReplyBytes == 0)
      expect(session.requestsInFlight, equals: 0)
    }
  }

  @Test("Two cores exchange random messages as a list of messages says", arguments: 0..<4)
  func random(part: Int) throws {
    for index in 0..<(isLong ? 10 : 1) {
      try run(testSeed &+ UInt64(part * 1_000 + index), messages: isLong ? 1_250 : 500)
    }
  }
}
