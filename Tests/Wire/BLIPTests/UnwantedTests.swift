import Expectations
import Storage
import StorageConformance
import Testing

@testable import BLIP
import Transport

/// Takes a number of bytes, and no more.
private final class FillingSink: BLIPSink {
  private let left: Lock<Int>
  init(_ bytes: Int) { left = Lock(bytes) }
  func write(_ bytes: ArraySlice<UInt8>, _ consumed: @escaping @Sendable () -> Void) {
    left.withLock { $0 -= bytes.count }
    consumed()
  }
  var isFull: Bool { left.withLock { $0 <= 0 } }
}

@Suite("Messages that are longer than wanted", .timeLimit(.minutes(10))) struct UnwantedTests {
  private func pair(_ limits: BLIPLimits = BLIPLimits(), _ prepare: (BLIPConnection) -> Void) -> (
    client: BLIPConnection, server: BLIPConnection
  ) {
    let (left, right) = PipeTransport.pair()
    let client = BLIPConnection(left, name: "client")
    let server = BLIPConnection(right, limits: limits, name: "server")
    prepare(server)
    client.start()
    server.start()
    return (client, server)
  }

  private func error(_ body: () async throws -> Void) async -> BLIPError? {
    do { try await body() } catch { return error as? BLIPError }
    return nil
  }

  private static let small: BLIPLimits = {
    var limits = BLIPLimits()
    limits.messageBytes = 100_000
    limits.cutMessageBytes = 5_000_000
    return limits
  }()

  @Test("A handler that takes cut requests gets long ones without their bodies, and answers them")
  func cut() async throws {
    let pair = pair(Self.small) { server in
      server.onRequest("rev", takesCut: true) { request in
        let message = request.message
        request.reply(
          BLIPReply([
            "cut": message.isCut ? "1" : "0", "id": message.properties["id"] ?? "",
            "bytes": "\(message.body.count)",
          ]))
      }
    }
    for (count, isCut, bytes) in [
      (99_000, "0", "99000"), (100_001, "1", "0"), (4_900_000, "1", "0"), (50_000, "0", "50000"),
    ] {
      for isCompressed in [false, true] {
        var request = BLIPRequest("rev", ["id": "big"], body: .source(TestSource(count: count)))
        request.isCompressed = isCompressed
        let reply = try await pair.client.send(request)
        expect(reply.properties["cut"] == isCut && reply.properties["bytes"] == bytes, "\(count)")
        expect(reply.properties["id"], equals: "big")
      }
    }
    let endless = BLIPRequest("rev", body: .source(TestSource(count: 1 << 30)))
    #expect(await error { _ = try await pair.client.send(endless) }?.close?.code == 1009)
    #expect(await pair.server.waitUntilClosed().code == .messageTooLong)
  }

  @Test("A long request that its handler doesn't take cut ends the connection for good")
  func tooLong() async throws {
    let pair = pair(Self.small) { server in server.onRequest("list") { $0.reply() } }
    let long = BLIPRequest("list", body: .source(TestSource(count: 200_000)))
    let end = await error { _ = try await pair.client.send(long) }
    expect(end?.close?.code == 1009 && end?.close?.isTransient == false)
    #expect(await pair.server.waitUntilClosed().code == .messageTooLong)
  }

  @Test("What was counted for a cut request is given back")
  func counts() throws {
    let session = BLIPSession(limits: Self.small)
    let sender = BLIPSession()
    try sender.send(request("rev", [UInt8](repeating: 1, count: 400_000)))
    var whole: BLIPMessage?
    while let frame = try sender.nextFrame() ?? nil {
      switch try session.receive(frame) {
      case .began(let incoming): incoming.mayBeCut = true
      case .message(let message, let counted, _):
        whole = message
        session.release(countedBytes: counted)
      default: break
      }
      while let ack = try session.nextFrame() { _ = try sender.receive(ack) }
      expect(session.bufferedBytes <= 100_000)
    }
    expect(whole?.isCut == true && whole?.profile == "rev")
    expect(session.bufferedBytes == 0 && session.openRequests == 0)
  }

  @Test("A reply that is longer than its sink takes is stopped, and the connection goes on")
  func refused() async throws {
    let endless = TestSource(count: 1 << 40)
    let pair = pair { server in
      server.onRequest("get") { $0.reply(BLIPReply(body: .source(endless))) }
      server.onRequest("ping") { $0.reply(BLIPReply(body: .bytes([7]))) }
    }
    let refused = await error {
      _ = try await pair.client.send(BLIPRequest("get"), sink: FillingSink(1_000_000))
    }
    expect(refused?.code, equals: .refused)
    for _ in 0..<300 { #expect(try await pair.client.send(BLIPRequest("ping")).body == [7]) }
    // The sink, what is still acknowledged, and the window.
    expect(endless.offset < 1_000_000 + (1 << 20) + 400_000)
    pair.client.close()
    _ = await pair.server.waitUntilClosed()
  }

  @Test("A peer that goes on with what isn't acknowledged loses the connection")
  func ignoresFlowControl() throws {
    let session = BLIPSession()
    let writer = FrameWriter()
    let piece = [UInt8](repeating: 0, count: 16_000)
    var (count, error): (Int, BLIPError?) = (0, nil)
    while error == nil, count < 1_000 {
      count += 1
      error = blipError {
        let frame = try piece.withUnsafeBytes { try writer.frame(1, .moreComing, $0).bytes }
        switch try session.receive(frame) {
        case .began(let incoming):
          let bytes = session.stream(incoming)
          try session.drop(incoming, bytes: bytes.count, wireBytes: 0)
        case .chunk(let incoming, let bytes, let wireBytes):
          try session.drop(incoming, bytes: bytes.count, wireBytes: wireBytes)
        default: break
        }
      }
    }
    expect(error?.code == .ignoresFlowControl && count < 100)
    expect(session.bufferedBytes < 20_000)
  }
}
