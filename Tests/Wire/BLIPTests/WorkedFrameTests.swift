import Expectations
import Testing

@testable import BLIP

/// The frames that the protocol's description computes.
@Suite("Worked frames") struct WorkedFrameTests {
  private let first = bytes(
    """
    01 00 22 50 72 6F 66 69 6C 65 00 67 65 74 43 68 65 63 6B 70 6F 69 6E 74 00 63 6C 69 65 6E 74 00 63 70 2D 78 00
    C4 2C 89 16
    """)
  private let second =
    [0x02, 0x30, 0x10] + utf8("Profile\0changes\0[]") + bytes("92 D0 5A AF")
  private let third = bytes(
    """
    03 18 12 08 28 CA 4F CB CC 49 65 48 CE 48 CC 4B 4F 2D 66 88 8E 36 D4 51 4A C9 4F 36 54 D2 51 32 D4 4D 4C 4A 4E 51
    8A 8D 05 00 F4 47 8F 23
    """)
  private let fourth = bytes("04 18 12 C0 54 65 04 56 65 84 AC 0A 00 BE 50 C5 AD")

  private func changes(_ body: String) -> BLIPRequest {
    request("changes", utf8(body), urgent: true, compressed: true)
  }

  @Test("The four requests of direction A decode")
  func decodeRequests() throws {
    let messages = try BLIPSession().messages([first, second, third, fourth])
    expect(messages.map(\.number), equals: [1, 2, 3, 4])
    expect(messages.allSatisfy { $0.kind == .request })
    expect(messages[0].properties, equals: ["Profile": "getCheckpoint", "client": "cp-x"])
    expect(messages[0].body.isEmpty && messages[0].flags == [])
    expect(messages[1].profile, equals: "changes")
    expect(messages[1].isNoReply && messages[1].flags == [.urgent, .noReply])
    expect(Array(messages[1].body), equals: utf8("[]"))
    expect(messages[2].flags, equals: [.urgent, .compressed])
    expect(Array(messages[2].body), equals: utf8(#"[[1,"doc1","1-abcd"]]"#))
    expect(Array(messages[3].body), equals: utf8(#"[[2,"doc2","1-abcd"]]"#))
  }

  @Test("Frames without compression are written byte for byte")
  func encodeRequests() throws {
    let session = BLIPSession()
    try session.send(BLIPRequest("getCheckpoint", ["client": "cp-x"]))
    try session.send(request("changes", utf8("[]"), urgent: true, noReply: true))
    try expect(session.frames(), equals: [first, second])
  }

  @Test("Compressed frames that are written decode to the same, and share their dictionary")
  func encodeCompressed() throws {
    let session = BLIPSession()
    try session.send(BLIPRequest("getCheckpoint", ["client": "cp-x"]))
    try session.send(request("changes", utf8("[]"), urgent: true, noReply: true))
    try session.send(changes(#"[[1,"doc1","1-abcd"]]"#))
    try session.send(changes(#"[[2,"doc2","1-abcd"]]"#))
    let frames = try session.frames()
    expect(frames.count, equals: 4)
    expect(frames[2].count <= third.count + 2)
    expect(frames[3].count <= fourth.count + 2)
    // The checksums are of the uncompressed bytes.
    expect(frames[2].suffix(4), equals: third.suffix(4))
    expect(frames[3].suffix(4), equals: fourth.suffix(4))
    let messages = try BLIPSession().messages(frames)
    expect(
      messages.map { String(decoding: $0.body, as: UTF8.self) }.suffix(2),
      equals: [
        #"[[1,"doc1","1-abcd"]]"#, #"[[2,"doc2","1-abcd"]]"#,
      ])
  }

  @Test("An empty reply and an error reply")
  func replies() throws {
    for (reply, expected) in [
      (BLIPReply(), bytes("01 01 00 D2 02 EF 8D")),
      (
        BLIPReply(BLIPErrorReply(domain: "HTTP", code: 404)),
        [0x01, 0x02, 0x21] + utf8("Error-Domain\0HTTP\0Error-Code\0404\0") + bytes("96 4C 4B 0B")
      ),
    ] {
      let (client, server) = (BLIPSession(), BLIPSession())
      let sent = try client.send(BLIPRequest("getCheckpoint", ["client": "cp-x"]))
      let asked = try client.frames()
      guard case .message(_, let countedBytes, nil) = try server.receive(asked[0]) else {
        Issue.record("no request")
        return
      }
      expect(server.openRequests == 1 && server.bufferedBytes == 35)
      try server.reply(OutgoingMessage(reply, to: 1, requestBytes: countedBytes))
      let frames = try server.frames()
      expect(frames, equals: [expected])
      guard case .message(let message, _, let request) = try client.receive(frames[0]) else {
        Issue.record("no reply")
        return
      }
      expect(request === sent)
      expect(message.error, equals: (reply.isError ? BLIPErrorReply(domain: "HTTP", code: 404) : nil))
      expect(server.openRequests == 0 && server.bufferedBytes == 0 && server.queuedReplyBytes == 0)
    }
  }

  @Test("A message of two frames")
  func twoFrames() throws {
    let session = BLIPSession()
    session.lastRequest = 4
    let messages = try session.messages([
      bytes("05 40 0C 50 72 6F 66 69 6C 65 00 72 D3 07 CB 74"),
      bytes("05 00 65 76 00") + [UInt8](repeating: 0x78, count: 20) + bytes("24 17 59 16"),
    ])
    expect(messages.count, equals: 1)
    expect(messages.first?.profile, equals: "rev")
    expect(messages.first.map { Array($0.body) }, equals: [UInt8](repeating: 0x78, count: 20))
  }

  @Test("An ACK is written byte for byte")
  func ack() { expect(FrameWriter.ack(3, .ackRequest, 50_012), equals: bytes("03 34 DC 86 03")) }
}
