import Bytes
import Expectations
import StorageConformance
import Testing

@testable import WebSocket

@Suite struct RandomSessionTests {
  /// Frames of random messages, and the events that they are.
  private func script(_ role: WebSocketSession.Role, _ random: inout SeededGenerator) -> (
    [UInt8], [WebSocketEvent]
  ) {
    var bytes: [UInt8] = []
    var events: [WebSocketEvent] = []
    func mask() -> [UInt8]? {
      role == .server ? (0..<4).map { _ in UInt8.random(in: 0...255, using: &random) } : nil
    }
    func payload(_ most: Int) -> [UInt8] {
      let edges = [0, 1, 125, 126, 127, 4096, 65535, 65536].filter { $0 <= most }
      let count =
        Bool.random(using: &random)
        ? edges.randomElement(using: &random) ?? 0 : Int.random(in: 0...most, using: &random)
      return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }
    func control() {
      let content = payload(125)
      if Bool.random(using: &random) {
        bytes += frame(9, content, mask: mask())
        events.append(.ping(content))
      } else {
        bytes += frame(10, content, mask: mask())
        events.append(.pong(content))
      }
    }
    for _ in 0..<Int.random(in: 1...8, using: &random) {
      let isText = Int.random(in: 0..<5, using: &random) == 0
      let fragments = (0..<Int.random(in: 1...4, using: &random)).map { _ in payload(9000) }
      for (index, fragment) in fragments.enumerated() {
        if Int.random(in: 0..<3, using: &random) == 0 { control() }
        let opcode: UInt8 = index > 0 ? 0 : isText ? 1 : 2
        bytes += frame(opcode, fragment, isFinal: index == fragments.count - 1, mask: mask())
      }
      if !isText { events.append(.message(fragments.flatMap { $0 })) }
    }
    return (bytes, events)
  }

  @Test func howTheBytesArriveDoesntMatter() throws {
    var random = SeededGenerator(seed: testSeed)
    for round in 0..<60 {
      let role: WebSocketSession.Role = round % 2 == 0 ? .client : .server
      let (bytes, expected) = script(role, &random)
      let session = WebSocketSession(role)
      var found: [WebSocketEvent] = []
      var offset = 0
      let most = [1, 3, 200, 5000, 100_000][round % 5]
      while offset < bytes.count {
        let end = min(bytes.count, offset + Int.random(in: 1...most, using: &random))
        found += try events(session, Array(bytes[offset..<end]))
        offset = end
      }
      expect(found, equals: expected, "TOUCHSTONE_SEED=\(testSeed), round \(round)")
    }
  }

  @Test func eachSplitOfAShortScriptGivesTheSame() throws {
    let mask: [UInt8] = [7, 200, 3, 90]
    let bytes =
      frame(2, [1, 2], isFinal: false, mask: mask) + frame(9, [9], mask: mask) + frame(0, [3], mask: mask)
      + frame(2, [UInt8](repeating: 5, count: 130), mask: mask) + frame(8, [3, 232, 65], mask: mask)
    let expected: [WebSocketEvent] = [
      .ping([9]), .message([1, 2, 3]), .message([UInt8](repeating: 5, count: 130)),
      .close(code: 1000, reason: "A"),
    ]
    for split in 0...bytes.count {
      let session = WebSocketSession(.server)
      let found = try events(session, Array(bytes[..<split])) + events(session, Array(bytes[split...]))
      expect(found, equals: expected, "split at \(split)")
    }
  }

  @Test func whatOneSideWritesTheOtherReads() throws {
    var random = SeededGenerator(seed: testSeed &+ 1)
    for role: WebSocketSession.Role in [.client, .server] {
      let writer = WebSocketSession(role)
      let reader = WebSocketSession(role == .client ? .server : .client)
      for _ in 0..<50 {
        let count = Int.random(in: 0...20_000, using: &random)
        let message = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
        let bytes = written { output in
          writer.write(ping: [1], to: &output)
          writer.write(message: message, to: &output)
        }
        try expect(events(reader, bytes), equals: [.ping([1]), .message(message)])
      }
    }
  }
}
