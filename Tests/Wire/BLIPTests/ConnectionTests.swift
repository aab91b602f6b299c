import Expectations
import Foundation
import Storage
import StorageConformance
import Synchronization
import Testing

@testable import BLIP
import Transport

/// Two connections over a pipe.
private struct Pair {
  let client: BLIPConnection
  let server: BLIPConnection

  init(
    _ limits: BLIPLimits = BLIPLimits(), capacity: Int = 1 << 20,
    _ prepare: (BLIPConnection) -> Void = { _ in }
  ) {
    let (left, right) = PipeTransport.pair(capacity: capacity)
    client = BLIPConnection(left, name: "client")
    server = BLIPConnection(right, limits: limits, name: "server")
    prepare(server)
    client.start()
    server.start()
  }

  func close() { client.close() }
}

/// The error that a call throws.
private func thrown(_ body: () async throws -> Void) async -> (any Error)? {
  do { try await body() } catch { return error }
  return nil
}

@Suite("Connections") struct ConnectionTests {
  @Test("Concurrent requests of many tasks get their own replies, in both directions")
  func concurrent() async throws {
    let pair = Pair { server in
      server.onRequest("echo") { incoming in
        incoming.reply(BLIPReply(incoming.message.properties, body: .bytes(Array(incoming.message.body))))
      }
    }
    pair.client.onRequest("count") { incoming in
      incoming.reply(BLIPReply(["count": String(incoming.message.body.count)]))
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<32 {
        group.addTask {
          var random = SeededGenerator(seed: testSeed &+ UInt64(task))
          for index in 0..<(isLong ? 500 : 60) {
            let body = randomBytes(random.below(index % 20 == 0 ? 200_000 : 400), &random)
            if task % 4 == 0 {
              let reply = try await pair.server.send(request("count", body, urgent: task % 8 == 0))
              expect(reply.properties["count"], equals: String(body.count))
            } else {
              var request = BLIPRequest("echo", ["n": "\(task)-\(index)"], body: .bytes(body))
              request.isCompressed = task % 3 == 0
              request.isUrgent = index % 5 == 0
              let reply = try await pair.client.send(request)
              expect(reply.properties["n"], equals: "\(task)-\(index)")
              expect(Array(reply.body), equals: body)
            }
          }
        }
      }
      try await group.waitForAll()
    }
    pair.close()
    #expect(await pair.server.waitUntilClosed().close == .normal)
  }

  @Test("Unknown profiles, errors of a handler, forgotten and second answers")
  func answers() async throws {
    let kept = Lock<BLIPIncomingRequest?>(nil)
    let pair = Pair { server in
      server.onRequest("error") { $0.reply(BLIPErrorReply(domain: "HTTP", code: 409, text: "conflict")) }
      server.onRequest("forgotten") { _ in }
      server.onRequest("broken") { $0.reply(BLIPReply(["a": "b\0"])) }
      server.onRequest("twice") { incoming in
        expect(incoming.reply(BLIPReply(["n": "1"])))
        expect(!incoming.reply(BLIPReply(["n": "2"])))
      }
      server.onRequest("later") { incoming in kept.withLock { $0 = incoming } }
      server.onRequest("now") { _ in kept.withLock { $0.take() }?.reply(BLIPReply(["late": "1"])) }
    }
    func error(_ profile: String) async throws -> BLIPErrorReply? {
      try await pair.client.send(BLIPRequest(profile)).error
    }
    #expect(try await error("unknown") == .noHandler)
    #expect(try await error("error") == BLIPErrorReply(domain: "HTTP", code: 409, text: "conflict"))
    #expect(try await error("forgotten") == .handlerFailed)
    #expect(try await error("broken") == .handlerFailed)
    #expect(try await pair.client.send(BLIPRequest("twice")).properties["n"] == "1")
    async let late = pair.client.send(BLIPRequest("later"))
    while kept.withLock({ $0 }) == nil { await Task.yield() }
    #expect(try await error("now") == .handlerFailed)
    #expect(try await late.properties["late"] == "1")
    let sent = try await pair.client.send(request("forgotten", noReply: true))
    expect(sent.properties.isEmpty)
    #expect(try await error("unknown") == .noHandler)
    expect(pair.client.closed == nil)
  }

  @Test("When the connection ends, all that wait get the reason, and so do later requests")
  func close() async throws {
    let kept = Lock<[BLIPIncomingRequest]>([])
    let pair = Pair { server in server.onRequest("wait") { incoming in kept.withLock { $0.append(incoming) } }
    }
    let reason = TransportClose.webSocket(1001, "going away")
    await withTaskGroup(of: (any Error)?.self) { group in
      for _ in 0..<20 {
        group.addTask { await thrown { _ = try await pair.client.send(BLIPRequest("wait")) } }
      }
      while kept.withLock({ $0.count }) < 20 { await Task.yield() }
      pair.server.close(reason)
      for await error in group { expect((error as? BLIPError)?.close, equals: reason) }
    }
    #expect(await pair.client.waitUntilClosed().code == .closed)
    #expect(await pair.server.waitUntilClosed().close == reason)
    let later = await thrown { _ = try await pair.client.send(BLIPRequest("wait")) } as? BLIPError
    expect(later?.code == .closed && later?.close == reason)
    for request in kept.withLock({ $0 }) { request.reply() }
  }

  @Test("A connection that isn't used any more closes")
  func released() async throws {
    let (left, right) = PipeTransport.pair()
    let server = BLIPConnection(right)
    server.start()
    do {
      let client = BLIPConnection(left)
      client.start()
      #expect(try await client.send(BLIPRequest("x")).error == .noHandler)
    }
    #expect(await server.waitUntilClosed().close?.code == 1001)
  }

  @Test("A cancelled task stops waiting, and the connection goes on")
  func cancel() async throws {
    let kept = Lock<[BLIPIncomingRequest]>([])
    let pair = Pair { server in
      server.onRequest("wait") { incoming in kept.withLock { $0.append(incoming) } }
      server.onRequest("echo") { $0.reply(BLIPReply(body: .bytes(Array($0.message.body)))) }
    }
    let task = Task { try await pair.client.send(BLIPRequest("wait")) }
    while kept.withLock({ $0.isEmpty }) { await Task.yield() }
    task.cancel()
    #expect(await thrown { _ = try await task.value } is CancellationError)
    // Its reply is long, and dropped.
    kept.withLock { $0.removeFirst() }.reply(BLIPReply(body: .bytes([UInt8](repeating: 1, count: 500_000))))
    let cancelled = Task {
      withUnsafeCurrentTask { $0?.cancel() }
      return try await pair.client.send(BLIPRequest("wait"))
    }
    #expect(await thrown { _ = try await cancelled.value } is CancellationError)
    for index in 0..<20 {
      let body = [UInt8](repeating: UInt8(index), count: 50_000)
      #expect(try await Array(pair.client.send(request("echo", body)).body) == body)
    }
    expect(kept.withLock { $0.isEmpty })
  }

  @Test("Requests and replies are streamed, and an error isn't")
  func streams() async throws {
    let sinks = Lock<[TestSink]>([])
    let body = TestSource(count: 3_000_000)
    let pair = Pair { server in
      server.onRequest(
        "put",
        sink: { _ in
          let sink = TestSink()
          sinks.withLock { $0.append(sink) }
          return sink
        }, { $0.reply(BLIPReply(["empty": $0.message.body.isEmpty ? "1" : "0"])) })
      server.onRequest("get") { $0.reply(BLIPReply(["p": "1"], body: .source(TestSource(count: 2_000_000)))) }
      server.onRequest("small") { $0.reply(BLIPReply(body: .bytes([1, 2, 3]))) }
      server.onRequest("error") { $0.reply(.handlerFailed) }
    }
    var put = BLIPRequest("put", ["digest": "x"], body: .source(body))
    put.isCompressed = true
    #expect(try await pair.client.send(put).properties["empty"] == "1")
    #expect(try await pair.client.send(request("put", [9])).properties["empty"] == "1")
    let got = sinks.withLock { $0.map(\.now) }
    expect(got.count == 2 && got[0].bytes == body.all && got[1].bytes == [9])
    expect(got[0].head?.properties["digest"], equals: "x")
    let sink = TestSink()
    let reply = try await pair.client.send(BLIPRequest("get"), sink: sink)
    expect(reply.properties["p"] == "1" && reply.body.isEmpty && sink.now.count == 2_000_000)
    expect(sink.now.bytes, equals: TestSource(count: 2_000_000).all)
    let small = TestSink()
    #expect(try await pair.client.send(BLIPRequest("small"), sink: small).body.isEmpty)
    expect(small.now.bytes, equals: [1, 2, 3])
    let none = TestSink()
    #expect(try await pair.client.send(BLIPRequest("error"), sink: none).error == .handlerFailed)
    expect(none.now.head == nil)
  }

  @Test("A slow sink slows its own message, and no other")
  func slowSink() async throws {
    let source = TestSource(count: 5_000_000)
    let pair = Pair { server in
      server.onRequest("get") { $0.reply(BLIPReply(body: .source(source))) }
      server.onRequest("ping") { $0.reply() }
    }
    let sink = TestSink(isSlow: true)
    async let reply = pair.client.send(BLIPRequest("get"), sink: sink)
    while sink.now.count < 128_000 { await Task.yield() }
    for _ in 0..<50 { _ = try await pair.client.send(BLIPRequest("ping")) }
    expect(sink.now.count < 132_000)
    while sink.now.count < 5_000_000 {
      sink.consume()
      await Task.yield()
    }
    #expect(try await reply.body.isEmpty)
    expect(sink.now.bytes, equals: source.all)
  }

  /// Gives bytes when it is told.
  private final class LateSource: BLIPSource {
    private let state = Lock<(bytes: [UInt8], isEnd: Bool, ready: (@Sendable () -> Void)?)>(([], false, nil))

    func begin(_ ready: @escaping @Sendable () -> Void) { state.withLock { $0.ready = ready } }

    func read(_ count: Int, into bytes: inout [UInt8]) -> BLIPSourceState {
      state.withLock { state in
        bytes += state.bytes.prefix(count)
        state.bytes.removeFirst(min(count, state.bytes.count))
        return !state.bytes.isEmpty ? .more : state.isEnd ? .end : .later
      }
    }

    func add(_ bytes: [UInt8], isEnd: Bool = false) {
      let ready = state.withLock { state in
        state.bytes += bytes
        state.isEnd = isEnd
        return state.ready
      }
      ready?()
    }
  }

  @Test("A source that has nothing yet lets other messages go first")
  func lateSource() async throws {
    let pair = Pair { server in
      server.onRequest("echo") { $0.reply(BLIPReply(body: .bytes(Array($0.message.body)))) }
    }
    let source = LateSource()
    async let late = pair.client.send(BLIPRequest("echo", body: .source(source)))
    var expected: [UInt8] = []
    for index in 0..<20 {
      #expect(try await Array(pair.client.send(request("echo", [UInt8(index)])).body) == [UInt8(index)])
      let piece = [UInt8](repeating: UInt8(index), count: index * 3_000)
      source.add(piece)
      expected += piece
    }
    source.add([1, 2, 3], isEnd: true)
    #expect(try await Array(late.body) == expected + [1, 2, 3])
  }

  @Test("A source that fails ends a request, or the connection if a part was sent")
  func failingSource() async throws {
    let pair = Pair { server in server.onRequest("x") { $0.reply() } }
    let early = await thrown {
      _ = try await pair.client.send(BLIPRequest("x", body: .source(TestSource(count: 9, failsAt: 0))))
    }
    expect(early is TestSource.Failure)
    #expect(try await pair.client.send(BLIPRequest("x")).error == nil)
    let late = await thrown {
      _ = try await pair.client.send(
        BLIPRequest("x", body: .source(TestSource(count: 90_000, failsAt: 20_000))))
    }
    expect((late as? BLIPError)?.code, equals: .closed)
    #expect(await pair.client.waitUntilClosed().code == .sourceFailed)
    #expect(await pair.server.waitUntilClosed().close?.code == 1011)
  }

  @Test("A source that fails in the middle takes along what was sent with it, and nothing waits for ever")
  func failingBatch() async throws {
    for _ in 0..<20 {
      let pair = Pair { server in server.onRequest("x") { $0.reply() } }
      let outcomes = Lock((done: 0, failed: 0))
      let count: @Sendable (Result<BLIPMessage, any Error>) -> Void = { result in
        outcomes.withLock {
          if case .success = result { $0.done += 1 } else { $0.failed += 1 }
        }
      }
      pair.client.send(BLIPRequest("x", body: .source(TestSource(count: 90_000, failsAt: 20_000))), count)
      for index in 0..<10 {
        pair.client.send(request("x", noReply: index % 2 == 0), count)
        pair.client.send(BLIPRequest("x", body: .source(TestSource(count: 9, failsAt: 0))), count)
      }
      #expect(await pair.client.waitUntilClosed().code == .sourceFailed)
      while outcomes.withLock({ $0.done + $0.failed }) < 21 { await Task.yield() }
      expect(outcomes.withLock { $0.failed } >= 11)
    }
  }

  @Test("Replies that came before the end are delivered")
  func repliesBeforeTheEnd() async throws {
    for _ in 0..<50 {
      let (left, right) = PipeTransport.pair(capacity: 1)
      let client = BLIPConnection(left)
      let server = BLIPConnection(right)
      server.onRequest("last") { [weak server] incoming in
        incoming.reply(BLIPReply(["a": "b"]))
        server?.close()
      }
      client.start()
      server.start()
      async let reply = client.send(BLIPRequest("last"))
      async let other = thrown {
        _ = try await client.send(request("big", [UInt8](repeating: 0, count: 300_000)))
      }
      #expect(try await reply.properties["a"] == "b")
      #expect((await other as? BLIPError)?.code == .closed)
    }
  }

  @Test("A connection whose peer doesn't read closes at the second call")
  func closeTwice() async throws {
    let (left, right) = PipeTransport.pair(capacity: 1)
    let client = BLIPConnection(left)
    client.start()
    async let sent = thrown { _ = try await client.send(BLIPRequest("x")) }
    let first = await withCheckedContinuation { continuation in
      right.receive { continuation.resume(returning: try? $0.get()) }
    }
    expect(first?.count, equals: 1)
    async let second = thrown { _ = try await client.send(BLIPRequest("y")) }
    // It fills the pipe. A close waits for it, and refuses what comes later.
    try await Task.sleep(for: .milliseconds(20))
    client.close()
    let late = await thrown { _ = try await client.send(BLIPRequest("z")) }
    expect((late as? BLIPError)?.close, equals: .normal)
    client.close(.webSocket(1001))
    #expect(await client.waitUntilClosed().close == .normal)
    for error in [await sent, await second] { expect((error as? BLIPError)?.code, equals: .closed) }
  }

  @Test("A peer that breaks the protocol is told so by code 1011, and requests that wait end")
  func brokenPeer() async throws {
    let (left, right) = PipeTransport.pair()
    let connection = BLIPConnection(left)
    connection.start()
    async let waiting = thrown { _ = try await connection.send(BLIPRequest("x")) }
    let first = await withCheckedContinuation { continuation in
      right.receive { continuation.resume(returning: try? $0.get()) }
    }
    expect(first?.count, equals: 1)
    right.send([[1, 1, 0, 0, 0, 0, 1]]) { _ in }
    #expect((await waiting as? BLIPError)?.close?.code == 1011)
    let error = await connection.waitUntilClosed()
    expect(error.code == .badChecksum && error.close?.code == 1011 && error.close?.domain == .webSocket)
    let end = await withCheckedContinuation { continuation in
      right.receive { continuation.resume(returning: $0) }
    }
    guard case .failure(let close) = end else {
      Issue.record("the peer got no end")
      return
    }
    expect(close.code == 1011 && !close.reason.isEmpty)
  }

  @Test(
    "Requests come to a handler in the order in which they were sent, if it wants that",
    arguments: [true, false])
  func inOrder(_ isInOrder: Bool) async throws {
    let (left, right) = PipeTransport.pair()
    let connection = BLIPConnection(left)
    let seen = Lock<[UInt64]>([])
    for profile in ["list", "other"] {
      connection.onRequest(profile, inOrder: isInOrder && profile == "list") { request in
        seen.withLock { $0.append(request.message.number) }
        request.reply()
      }
    }
    connection.start()
    let writer = FrameWriter()
    func frame(_ number: UInt64, _ text: String, more: Bool = false) throws -> [UInt8] {
      try utf8(text).withUnsafeBytes {
        try writer.frame(number, more ? [.noReply, .moreComing] : .noReply, $0).bytes
      }
    }
    let (list, other) = ("\u{0D}Profile\0list\0", "\u{0E}Profile\0other\0")
    let frames = [
      try frame(1, list + "a", more: true), try frame(2, list), try frame(3, list + "b", more: true),
      try frame(4, other), try frame(5, list), try frame(3, "c"), try frame(6, list), try frame(1, "d"),
      try frame(7, list),
    ]
    await withCheckedContinuation { continuation in right.send(frames) { _ in continuation.resume() } }
    while seen.withLock({ $0.count }) < 7 { await Task.yield() }
    expect(seen.withLock { $0 }, equals: (isInOrder ? [4, 1, 2, 3, 5, 6, 7] : [2, 4, 5, 3, 6, 1, 7]))
    connection.close()
  }

  @Test("A peer that exceeds a limit loses its connection, and others go on")
  func limits() async throws {
    var limits = BLIPLimits()
    limits.openRequests = 10
    let kept = Lock<[BLIPIncomingRequest]>([])
    let pair = Pair(limits) { server in
      server.onRequest("x") { incoming in kept.withLock { $0.append(incoming) } }
    }
    let other = Pair(limits) { server in server.onRequest("x") { $0.reply() } }
    await withTaskGroup(of: (any Error)?.self) { group in
      for _ in 0..<20 { group.addTask { await thrown { _ = try await pair.client.send(BLIPRequest("x")) } } }
      for await error in group { expect((error as? BLIPError)?.close?.code, equals: 1011) }
    }
    #expect(await pair.server.waitUntilClosed().code == .tooManyRequests)
    for _ in 0..<50 { #expect(try await other.client.send(BLIPRequest("x")).error == nil) }
  }

  @Test("A stream that the connection loses is abandoned")
  func abandoned() async throws {
    let sink = TestSink()
    let pair = Pair { server in server.onRequest("put", sink: { _ in sink }, { $0.reply() }) }
    let source = LateSource()
    async let put = thrown { _ = try await pair.client.send(BLIPRequest("put", body: .source(source))) }
    source.add([UInt8](repeating: 1, count: 20_000))
    while sink.now.count < 20_000 { await Task.yield() }
    pair.client.close(.webSocket(1001))
    #expect((await put as? BLIPError)?.code == .closed)
    _ = await pair.server.waitUntilClosed()
    expect(sink.now.abandoned?.close?.code, equals: 1001)
  }

  @Test("Everything goes through a pipe of a byte")
  func tinyPipe() async throws {
    let pair = Pair(capacity: 1) { server in
      server.onRequest("echo") { $0.reply(BLIPReply(body: .bytes(Array($0.message.body)))) }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for task in 0..<8 {
        group.addTask {
          let body = [UInt8](repeating: UInt8(task), count: 300_000)
          let reply = try await pair.client.send(request("echo", body, compressed: task % 2 == 0))
          expect(Array(reply.body), equals: body)
        }
      }
      try await group.waitForAll()
    }
  }

  @Test("Connections may share workers")
  func sharedWorkers() async throws {
    let workers = Workers(maximum: 2)
    var connections: [BLIPConnection] = []
    for _ in 0..<10 {
      let (left, right) = PipeTransport.pair()
      let server = BLIPConnection(right, workers: workers)
      server.onRequest("x") { $0.reply() }
      server.start()
      let client = BLIPConnection(left, workers: workers)
      client.start()
      connections += [client, server]
    }
    for _ in 0..<20 {
      for index in stride(from: 0, to: 20, by: 2) {
        #expect(try await connections[index].send(BLIPRequest("x")).error == nil)
      }
    }
  }
}
