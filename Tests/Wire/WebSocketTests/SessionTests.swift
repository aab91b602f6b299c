import Bytes
import Expectations
import Testing

@testable import WebSocket

@Suite struct SessionTests {
  // MARK: The examples of RFC 6455, section 5.7, with binary messages where they have text

  @Test func anUnmaskedMessageIsReadByAClient() throws {
    try expect(
      events(WebSocketSession(.client), bytes("82 05 48 65 6c 6c 6f")), equals: [.message(utf8("Hello"))])
  }

  @Test func aMaskedMessageIsReadByAServer() throws {
    try expect(
      events(WebSocketSession(.server), bytes("82 85 37 fa 21 3d 7f 9f 4d 51 58")),
      equals: [
        .message(utf8("Hello"))
      ])
  }

  @Test func aFragmentedMessageIsOneMessage() throws {
    try expect(
      events(WebSocketSession(.client), bytes("02 03 48 65 6c 80 02 6c 6f")),
      equals: [.message(utf8("Hello"))])
  }

  @Test func aPingAndItsMaskedPongAreEvents() throws {
    try expect(
      events(WebSocketSession(.client), bytes("89 05 48 65 6c 6c 6f")), equals: [.ping(utf8("Hello"))])
    try expect(
      events(WebSocketSession(.server), bytes("8a 85 37 fa 21 3d 7f 9f 4d 51 58")),
      equals: [
        .pong(utf8("Hello"))
      ])
  }

  @Test func messagesOf256And65536BytesHaveLongerHeaders() throws {
    let short = [UInt8](repeating: 7, count: 256)
    let long = [UInt8](repeating: 9, count: 65536)
    try expect(
      events(
        WebSocketSession(.client),
        bytes("82 7E 01 00") + short + bytes("82 7F 00 00 00 00 00 01 00 00") + long),
      equals: [.message(short), .message(long)])
    let session = WebSocketSession(.server)
    expect(written { session.write(message: short, to: &$0) }, equals: bytes("82 7E 01 00") + short)
    expect(
      written { session.write(message: long, to: &$0) }, equals: bytes("82 7F 00 00 00 00 00 01 00 00") + long
    )
  }

  @Test func theHandshakeAnswersTheKeyOfTheRFC() {
    expect(WebSocketKey.accept("dGhlIHNhbXBsZSBub25jZQ=="), equals: "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    expect(WebSocketKey.isValid("dGhlIHNhbXBsZSBub25jZQ=="))
    for key in ["", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZ===", "dGhlIHNhbXBsZSBub25j*Q==", "AAAA"]
    {
      expect(!WebSocketKey.isValid(key), "\(key)")
    }
    let keys = Set((0..<100).compactMap { _ in WebSocketKey.make() })
    expect(keys.count, equals: 100)
    expect(keys.allSatisfy(WebSocketKey.isValid))
  }

  // MARK: Masks

  @Test func aClientMasksEachFrameWithOtherBytes() throws {
    let client = WebSocketSession(.client)
    var masks: Set<[UInt8]> = []
    // More than one supply of random bytes.
    for _ in 0..<1000 {
      let frame = written { client.write(message: utf8("Hello"), to: &$0) }
      expect(frame.count, equals: 11)
      expect(Array(frame[..<2]), equals: [0x82, 0x85])
      masks.insert(Array(frame[2..<6]))
      try expect(events(WebSocketSession(.server), frame), equals: [.message(utf8("Hello"))])
    }
    expect(masks.count > 990)
  }

  @Test func aServerRequiresMasksAndAClientRefusesThem() {
    expect(violation(frame(2, [1]), .server)?.closeCode, equals: 1002)
    expect(violation(frame(2, [1], mask: [0, 0, 0, 0]), .client)?.closeCode, equals: 1002)
    expect(violation(frame(9, []), .server)?.closeCode, equals: 1002)
  }

  // MARK: What is forbidden

  private static let forbidden: [(what: String, frames: [UInt8])] = [
    ("a reserved bit", frame(2, [1], reserved: 4)), ("another one", frame(9, [], reserved: 1)),
    ("an unknown opcode", frame(3, [])), ("an unknown control frame", frame(11, [])),
    ("a continuation of nothing", frame(0, [1])),
    ("a message inside another", frame(2, [1], isFinal: false) + frame(2, [2])),
    ("a text inside a message", frame(2, [1], isFinal: false) + frame(1, [2])),
    ("a second continuation of nothing", frame(2, [1], isFinal: false) + frame(0, [2]) + frame(0, [3])),
    ("a fragmented ping", frame(9, [], isFinal: false)),
    ("a ping of 126 bytes", frame(9, [UInt8](repeating: 0, count: 126))),
    ("a length of 5 in 2 bytes", bytes("82 7E 00 05 00")),
    ("a length of 126 in 8 bytes", bytes("82 7F 00 00 00 00 00 00 00 7E 00")),
    ("a length of 2^63", bytes("82 7F 80 00 00 00 00 00 00 00 00")),
    ("half a close code", frame(8, [3])),
  ]

  @Test(arguments: forbidden)
  func whatIsForbiddenClosesWith1002(_ what: String, _ frames: [UInt8]) {
    expect(violation(frames)?.closeCode, equals: 1002, "\(what)")
  }

  @Test func aCloseReasonThatIsntUTF8ClosesWith1007() {
    expect(violation(frame(8, bytes("03E8 C3 28")))?.closeCode, equals: 1007)
    expect(violation(frame(8, bytes("03E8 ED A0 80")))?.closeCode, equals: 1007)
  }

  @Test func nothingIsReadAfterAViolationOrAClose() throws {
    let session = WebSocketSession(.client)
    #expect(throws: WebSocketViolation.self) {
      try events(session, frame(2, [1]) + frame(3, []) + frame(2, [2]))
    }
    expect(session.isOver)
    try expect(events(session, frame(2, [3])), equals: [])
    let closed = WebSocketSession(.client)
    try expect(
      events(closed, frame(2, [1]) + frame(8, bytes("03E8")) + frame(3, [])),
      equals: [
        .message([1]), .close(code: 1000, reason: ""),
      ])
    expect(closed.isOver)
  }

  @Test func messagesBeforeAViolationAreGiven() {
    var before: [WebSocketEvent] = []
    let session = WebSocketSession(.client)
    #expect(throws: WebSocketViolation(closeCode: 1002, reason: "an unknown opcode 3")) {
      try (frame(2, [1]) + frame(3, [])).withUnsafeBytes { bytes in
        try session.receive(bytes) { before.append($0) }
      }
    }
    expect(before, equals: [.message([1])])
  }

  // MARK: Limits

  @Test func aMessageAtTheLimitIsTakenAndALongerOneClosesWith1009() throws {
    var limits = WebSocketLimits()
    limits.messageBytes = 1000
    let most = [UInt8](repeating: 1, count: 1000)
    try expect(events(WebSocketSession(.client, limits: limits), frame(2, most)), equals: [.message(most)])
    expect(violation(frame(2, most + [1]), .client, limits)?.closeCode, equals: 1009)
    // The header says so, whatever follows.
    expect(violation(bytes("82 7F 7F FF FF FF FF FF FF FF 00"), .client, limits)?.closeCode, equals: 1009)
  }

  @Test func fragmentsCountTogetherAndTextCountsToo() throws {
    var limits = WebSocketLimits()
    limits.messageBytes = 1000
    let half = [UInt8](repeating: 65, count: 500)
    for opcode: UInt8 in [1, 2] {
      let fragments = frame(opcode, half, isFinal: false) + frame(0, half, isFinal: false)
      try expect(events(WebSocketSession(.client, limits: limits), fragments), equals: [])
      expect(violation(fragments + frame(0, [1]), .client, limits)?.closeCode, equals: 1009)
      expect(violation(fragments + frame(0, []), .client, limits) == nil)
    }
  }

  @Test func textIsIgnored() throws {
    let text = frame(1, utf8("abc")) + frame(1, [0xFF], isFinal: false) + frame(9, [5]) + frame(0, [0xFE])
    try expect(
      events(WebSocketSession(.client), text + frame(2, [1])), equals: [.ping([5]), .message([1])])
  }

  // MARK: Control frames

  @Test func controlFramesComeBetweenFragments() throws {
    let frames =
      frame(2, [1], isFinal: false) + frame(9, [7]) + frame(0, [2], isFinal: false) + frame(10, [8])
      + frame(0, [3]) + frame(2, [4])
    try expect(
      events(WebSocketSession(.client), frames),
      equals: [
        .ping([7]), .pong([8]), .message([1, 2, 3]), .message([4]),
      ])
  }

  @Test func emptyMessagesAndFragmentsAreAllowed() throws {
    let frames =
      frame(2, []) + frame(2, [], isFinal: false) + frame(0, [], isFinal: false) + frame(0, [])
      + frame(2, [], isFinal: false) + frame(0, [1])
    try expect(
      events(WebSocketSession(.client), frames), equals: [.message([]), .message([]), .message([1])])
  }

  @Test func onlyCodesThatMayBeOnTheWireClose() throws {
    for code in [
      0, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007, 1011, 1014, 1015, 1016, 2999, 3000, 4999, 5000,
    ] {
      let payload = [UInt8(code >> 8), UInt8(code & 255)] + utf8("why")
      let isAllowed = [1000, 1001, 1002, 1003, 1007, 1011, 1014, 3000, 4999].contains(code)
      expect(CloseCode.isOnWire(code), equals: isAllowed)
      if isAllowed {
        try expect(
          events(WebSocketSession(.client), frame(8, payload)), equals: [.close(code: code, reason: "why")])
      } else {
        expect(violation(frame(8, payload))?.closeCode, equals: 1002, "\(code)")
      }
    }
    try expect(events(WebSocketSession(.client), frame(8, [])), equals: [.close(code: 1005, reason: "")])
  }

  @Test func aLongReasonIsCutAtACharacter() throws {
    let session = WebSocketSession(.server)
    func sent(_ reason: String) throws -> [WebSocketEvent] {
      try events(WebSocketSession(.client), written { session.write(close: 1001, reason, to: &$0) })
    }
    let most = String(repeating: "a", count: 123)
    try expect(sent(most), equals: [.close(code: 1001, reason: most)])
    try expect(sent(most + "b"), equals: [.close(code: 1001, reason: most)])
    // 120 bytes and a character of 4.
    let before = String(repeating: "a", count: 120)
    try expect(sent(before + "🦊"), equals: [.close(code: 1001, reason: before)])
    try expect(
      sent(String(repeating: "a", count: 119) + "🦊x"),
      equals: [
        .close(code: 1001, reason: String(repeating: "a", count: 119) + "🦊")
      ])
    expect(written { session.write(close: 1006, "x", to: &$0) }, equals: [0x88, 0])
  }

  @Test func pingsAndPongsAreCutTo125Bytes() throws {
    let session = WebSocketSession(.server)
    let long = [UInt8](repeating: 1, count: 200)
    let most = [UInt8](repeating: 1, count: 125)
    try expect(
      events(
        WebSocketSession(.client),
        written {
          session.write(ping: long, to: &$0)
          session.write(pong: long, to: &$0)
        }), equals: [.ping(most), .pong(most)])
  }
}
