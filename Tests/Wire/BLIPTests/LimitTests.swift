import Expectations
import StorageConformance
import Testing

@testable import BLIP

@Suite("Limits and broken peers") struct LimitTests {
  /// A frame of a fresh direction.
  private func frame(_ payload: [UInt8], number: UInt64 = 1, _ flags: FrameFlags = []) throws -> [UInt8] {
    let writer = FrameWriter()
    return try payload.withUnsafeBytes { try writer.frame(number, flags, $0).bytes }
  }

  private func code(_ frames: [[UInt8]], _ change: (inout BLIPLimits) -> Void = { _ in }) -> BLIPError.Code? {
    var limits = BLIPLimits()
    change(&limits)
    let session = BLIPSession(limits: limits)
    return blipError { for frame in frames { _ = try session.receive(frame) } }?.code
  }

  @Test("Frames that aren't frames")
  func brokenFrames() throws {
    expect(code([[]]), equals: .emptyFrame)
    expect(code([[0x80]]), equals: .badVarint)
    expect(code([[0x01]]), equals: .badVarint)
    expect(code([[0x01, 0x80]]), equals: .badVarint)
    expect(code([[UInt8](repeating: 0xFF, count: 10) + [0, 0, 0, 0, 0]]), equals: .badVarint)
    expect(code([[0x01, 0x00]]), equals: .badChecksum)
    expect(code([[0x01, 0x00, 0, 0, 0]]), equals: .badChecksum)
    expect(code([[0x01, 0x00, 0x00, 1, 2, 3, 4]]), equals: .badChecksum)
    expect(code([[0x01, 0x34]]), equals: .badVarint)
    expect(code([[0x01, 0x34, 0xFF]]), equals: .badVarint)
    expect(code([[UInt8](repeating: 1, count: (64 << 10) + 1)]), equals: .frameTooLong)
    expect(code([[0x01, 0x08] + [UInt8](repeating: 0xFF, count: 20)]), equals: .badCompression)
  }

  @Test("A compressed stream that says that it has ended")
  func endedStream() { expect(code([[0x01, 0x08, 0x03, 0x00, 0, 0, 0, 0]]), equals: .badCompression) }

  @Test("Frames of unknown types are ignored, and count for no checksum")
  func unknownTypes() throws {
    for type: UInt8 in [3, 6, 7, 0x47, 0x3F] {
      let session = BLIPSession()
      try expect(session.receive([9, type, 1, 2, 3]) == nil)
      try expect(session.receive([1, type]) == nil)
      try expect(session.messages([try frame([0])]).count, equals: 1)
    }
  }

  @Test("Numbers that are out of order")
  func numbers() throws {
    try expect(code([try frame([0], number: 2)]), equals: .badRequestNumber)
    try expect(code([try frame([0], number: 0)]), equals: .badRequestNumber)
    try expect(code([try frame([0], number: .max)]), equals: .badRequestNumber)
    try expect(code([try frame([0], number: 1, FrameFlags(.reply))]), equals: .unexpectedReply)
    try expect(code([try frame([0], number: 1, FrameFlags(.error))]), equals: .unexpectedReply)
    let writer = FrameWriter()
    let twice = try (0..<2).map { _ in try [UInt8(0)].withUnsafeBytes { try writer.frame(1, [], $0).bytes } }
    expect(code(twice), equals: .badRequestNumber)
    // The last number there is.
    let session = BLIPSession()
    session.lastRequest = .max
    expect(blipError { _ = try session.receive(try frame([0], number: 0)) }?.code, equals: .badRequestNumber)
  }

  @Test("A second reply, and a reply to a request that wants none")
  func replies() throws {
    for isNoReply in [false, true] {
      let client = BLIPSession()
      try client.send(request("x", noReply: isNoReply))
      _ = try client.frames()
      let writer = FrameWriter()
      let replies = try (0..<2).map { _ in
        try [UInt8(0)].withUnsafeBytes { try writer.frame(1, FrameFlags(.reply), $0).bytes }
      }
      if !isNoReply { try expect(client.messages([replies[0]]).count, equals: 1) }
      expect(blipError { _ = try client.receive(replies[isNoReply ? 0 : 1]) }?.code, equals: .unexpectedReply)
    }
  }

  @Test("Properties that aren't pairs of UTF-8 texts, end early, or are too long")
  func properties() throws {
    func code(_ payload: [UInt8]) throws -> BLIPError.Code? { self.code([try frame(payload)]) }
    try expect(code([]), equals: .badProperties)
    try expect(code([2, 0x61]), equals: .badProperties)
    try expect(code([0x80]), equals: .badProperties)
    try expect(code([1, 0x61]), equals: .badProperties)
    try expect(code([2, 0x61, 0]), equals: .badProperties)
    try expect(code([3, 0x61, 0, 0x61]), equals: .badProperties)
    try expect(code([4, 0xC3, 0, 0xA9, 0]), equals: .badProperties)
    try expect(code([4, 0x61, 0, 0xFF, 0]), equals: .badProperties)
    try expect(code([UInt8](repeating: 0xFF, count: 11)), equals: .badVarint)
    try expect(code([0x81, 0xA0, 0x06]), equals: .propertiesTooLong)
    try expect(
      code([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]), equals: .propertiesTooLong)
    try expect(code([2, 0, 0]) == nil)
    try expect(code([0]) == nil)
    try expect(code([0x80, 0]) == nil)
    try expect(code([5, 0x61, 0, 0xC3, 0xA9, 0, 1]) == nil)
  }

  @Test("Properties that come a byte at a time")
  func smallPieces() throws {
    let payload: [UInt8] = [0x86, 0x00] + utf8("a\0b\0c\0") + utf8("d\0")
    for last in 0..<payload.count {
      let writer = FrameWriter()
      let session = BLIPSession()
      let error = blipError {
        for index in 0...last {
          let flags: FrameFlags = index == last ? [] : .moreComing
          let bytes = try [payload[index]].withUnsafeBytes { try writer.frame(1, flags, $0).bytes }
          try session.messages([bytes])
        }
      }
      // The properties end before the last of three texts.
      expect(error?.code, equals: .badProperties)
    }
    let good: [UInt8] = [0x84, 0x00] + utf8("a\0b\0") + [7]
    let writer = FrameWriter()
    let session = BLIPSession()
    var messages: [BLIPMessage] = []
    for (index, byte) in good.enumerated() {
      let flags: FrameFlags = index == good.count - 1 ? [] : .moreComing
      messages += try session.messages([try [byte].withUnsafeBytes { try writer.frame(1, flags, $0).bytes }])
    }
    expect(messages.first?.properties, equals: ["a": "b"])
    expect(messages.first.map { Array($0.body) }, equals: [7])
  }

  @Test("A varint that never ends, a byte a frame")
  func endlessVarint() throws {
    let writer = FrameWriter()
    let frames = try (0..<20).map { _ in
      try [UInt8(0x80)].withUnsafeBytes { try writer.frame(1, .moreComing, $0).bytes }
    }
    expect(code(frames), equals: .badVarint)
  }

  @Test("A deflate bomb: a frame, a message, and all messages together")
  func bombs() throws {
    let zeros = [UInt8](repeating: 0, count: 8 << 20)
    var payload: [UInt8] = [0]
    payload += zeros
    let bomb = try frame(payload, .compressed)
    expect(bomb.count < 10_000)
    expect(code([bomb]) == nil)
    expect(code([bomb], { $0.framePlainBytes = 1 << 20 }), equals: .tooMuchOutput)
    expect(code([bomb], { $0.framePlainBytes = payload.count - 1 }), equals: .tooMuchOutput)
    expect(code([bomb], { $0.framePlainBytes = payload.count }) == nil)
    expect(code([bomb], { $0.messageBytes = 1 << 20 }), equals: .messageTooLong)
    expect(code([bomb], { $0.bufferedBytes = 1 << 20 }), equals: .tooManyBytes)
    let writer = FrameWriter()
    let many = try (0..<40).map { index in
      try payload.withUnsafeBytes { try writer.frame(1, [.compressed, .moreComing], $0).bytes }
    }
    expect(code(many), equals: .messageTooLong)
  }

  @Test("Messages of many frames are limited in length, and together")
  func collected() throws {
    let writer = FrameWriter()
    let piece = [UInt8](repeating: 0, count: 10_000)
    let frames = try (0..<30).map { index in
      try piece.withUnsafeBytes { try writer.frame(UInt64(index % 3 + 1), .moreComing, $0).bytes }
    }
    expect(code(frames) == nil)
    expect(code(frames, { $0.messageBytes = 90_000 }), equals: .messageTooLong)
    expect(code(frames, { $0.bufferedBytes = 290_000 }), equals: .tooManyBytes)
  }

  @Test("Requests that aren't answered are limited, whole or not")
  func openRequests() throws {
    for flags: FrameFlags in [[], .moreComing, .noReply] {
      let writer = FrameWriter()
      let frames = try (1...1_001).map { number in
        try [UInt8(0)].withUnsafeBytes { try writer.frame(UInt64(number), flags, $0).bytes }
      }
      expect(code(Array(frames.dropLast()), { $0.openRequests = 1_000 }) == nil)
      expect(code(frames, { $0.openRequests = 1_000 }), equals: .tooManyRequests)
    }
  }

  @Test("Replies that the peer doesn't take are limited, and streamed ones read nothing ahead")
  func untakenReplies() throws {
    var limits = BLIPLimits()
    limits.queuedReplyBytes = 1_000_000
    let (client, server) = (BLIPSession(), BLIPSession(limits: limits))
    for _ in 0..<20 { try client.send(request("x")) }
    let count = try server.messages(try client.frames()).count
    expect(count, equals: 20)
    let streamed = TestSource(count: 1 << 30)
    try server.reply(OutgoingMessage(BLIPReply(body: .source(streamed)), to: 1))
    let body = [UInt8](repeating: 1, count: 300_000)
    let error = blipError {
      for number in 2...20 {
        try server.reply(OutgoingMessage(BLIPReply(body: .bytes(body)), to: UInt64(number)))
        _ = try server.frames()
      }
    }
    expect(error?.code, equals: .tooManyReplyBytes)
    expect(streamed.offset < 140_000)
  }

  @Test("Messages that can't be sent are refused, and cost nothing else")
  func invalidMessages() {
    func code(_ request: BLIPRequest) -> BLIPError.Code? {
      blipError { _ = try OutgoingMessage(request) }?.code
    }
    expect(code(BLIPRequest("x", ["id": "a\0b"])), equals: .invalidMessage)
    expect(code(BLIPRequest("x\0")), equals: .invalidMessage)
    expect(code(BLIPRequest("x", ["id": String(repeating: "a", count: 102_400)])), equals: .invalidMessage)
    expect(code(BLIPRequest("x", ["id": String(repeating: "a", count: 102_386)])) == nil)
    var properties: BLIPProperties = ["a": "b"]
    properties["a"] = "c\0"
    expect(code(BLIPRequest("x", properties)), equals: .invalidMessage)
  }

  @Test("Properties keep their order, and the first of equal names counts")
  func propertyList() {
    var properties: BLIPProperties = ["b": "1", "a": "2", "b": "3", "": "", "é": "é"]
    expect(properties.entries.map(\.name), equals: ["b", "a", "b", "", "é"])
    expect(
      properties["b"] == "1" && properties[""] == "" && properties["c"] == nil && properties["é"] == "é")
    // Equal as text, but other bytes.
    expect(properties["e\u{301}"] == nil)
    properties["b"] = "long value"
    properties["c"] = "4"
    properties["a"] = nil
    expect(
      properties.entries.map { $0.name + "=" + $0.value }, equals: ["b=long value", "b=3", "=", "é=é", "c=4"])
    expect(BLIPProperties().entries.isEmpty)
    properties["yes"] = "true"
    expect(properties.isTrue("yes") && !properties.isTrue("b") && !properties.isTrue("no"))
  }
}
