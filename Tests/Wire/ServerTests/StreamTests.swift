import Bytes
import Foundation
import HTTP
import RawHTTP
import Storage
import TestTools
import Testing

@testable import Server

/// Bodies that are longer than what may wait in memory.
@Suite struct StreamTests {
  private static let total = 100 << 20

  /// A server in a process of its own, whose memory no other test changes.
  private static func withServer(_ body: (ChildProcess, RawClient) throws -> Void) throws {
    let server = try startChild(.server, "server", "bodies")
    try server.waitForOutput()
    let port = try #require(server.wholeLines.first.flatMap { UInt16($0) }, "\(server.errorText)")
    let client = try RawClient(port)
    _ = try client.get("/1000000")
    let before = server.peakBytes
    try body(server, client)
    if !environmentIsSanitized { expect(server.peakBytes - before < 30 << 20) }
  }

  static var environmentIsSanitized: Bool {
    ProcessInfo.processInfo.environment["TOUCHSTONE_SANITIZE"] != nil
  }

  @Test(arguments: [false, true]) func aLongBodyIsReadInLittleMemory(_ isChunked: Bool) throws {
    try Self.withServer { server, client in
      let part = [UInt8](repeating: 0x61, count: 1 << 20)
      try client.send(
        "PUT / HTTP/1.1\r\nHost: localhost\r\n"
          + (isChunked ? "Transfer-Encoding: chunked\r\n\r\n" : "Content-Length: \(Self.total)\r\n\r\n"))
      for _ in 0..<(Self.total / part.count) {
        if isChunked { try client.send("100000\r\n") }
        try client.send(part)
        if isChunked { try client.send("\r\n") }
      }
      if isChunked { try client.send("0\r\n\r\n") }
      let numbers = try client.answer().text.split(separator: " ").compactMap { Int($0) }
      expect(numbers.count == 2 && numbers[0] == Self.total && numbers[1] <= 512 << 10, "\(numbers)")
      try expect(client.get("/3").text, equals: "bbb")
    }
  }

  @Test func aSlowHandlerHoldsUpTheClientAndNotOthers() throws {
    let goOn = CountingSemaphore()
    let server = try TestServer { request, responder in
      guard request.method == "PUT" else { return echo(request, responder) }
      _ = try? request.body.read()
      goOn.wait()
      do throws(HTTPBodyError) {
        let rest = try request.body.collect(limit: 64 << 20)
        responder.answer(HTTPAnswer(status: 200, text: "\(rest.count > 1 << 20)"))
      } catch { responder.answer(HTTPAnswer(status: 400, text: "\(error)")) }
    }
    let client = try server.client()
    try client.send("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(32 << 20)\r\n\r\n")
    // The client can send what the kernel and the server hold, and no more.
    let part = [UInt8](repeating: 0x61, count: 1 << 16)
    var sent = 0
    var time = timeval(tv_sec: 0, tv_usec: 300_000)
    setsockopt(client.descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    while sent < 32 << 20 {
      let count = send(client.descriptor, part, min(part.count, (32 << 20) - sent), Int32(MSG_NOSIGNAL))
      if count <= 0 { break }
      sent += count
    }
    expect(sent < 32 << 20)
    try expect(server.client().get("/").status, equals: 200)
    goOn.signal()
    time = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(client.descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    try client.send([UInt8](repeating: 0x61, count: (32 << 20) - sent))
    try expect(client.answer().text, equals: "true")
  }

  @Test(arguments: [false, true], [false, true])
  func aLongAnswerIsWrittenInLittleMemory(_ isChunked: Bool, _ isBlocking: Bool) throws {
    try Self.withServer { server, client in
      let options = (isChunked ? "chunked" : "") + (isBlocking ? "&blocking" : "")
      try client.send("GET /\(Self.total)?\(options) HTTP/1.1\r\nHost: localhost\r\n\r\n")
      while try !client.line().isEmpty {}
      var count = 0
      if isChunked {
        while true {
          let size = try #require(Int(try client.line(), radix: 16))
          let part = try client.bytes(size)
          expect(part.first, equals: part.last)
          count += part.count
          _ = try client.line()
          if size == 0 { break }
        }
      } else {
        for _ in 0..<(Self.total >> 16) { count += try client.bytes(1 << 16).count }
      }
      expect(count, equals: Self.total)
      try client.send("HEAD /1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
      try expect(client.answer(to: "HEAD").status, equals: 200)
    }
  }

  @Test func aStreamMayPauseWithoutAThread() throws {
    let writers = Lock<[any HTTPBodySink]>([])
    let server = try TestServer(with: { $0.handlerThreads = 1 }) { _, responder in
      responder.answer(
        HTTPAnswer(
          status: 200, body: .stream(length: nil) { writer in writers.withLock { $0.append(writer) } }))
    }
    let clients = try (0..<10).map { _ in try server.client() }
    for client in clients { try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }
    waitUntil { writers.withLock { $0.count } == clients.count }
    for text in ["one", "two"] {
      for writer in writers.withLock({ $0 }) { writer.offer(Array(text.utf8)) { _ in } }
      for client in clients {
        if text == "one" { while try !client.line().isEmpty {} }
        try expect(client.line(), equals: "3")
        try expect(client.line(), equals: text)
      }
    }
    for writer in writers.withLock({ $0 }) { writer.finish() }
    for client in clients {
      try expect(client.line(), equals: "0")
      try expect(client.line(), equals: "")
    }
    try expect(clients[0].get("/", method: "HEAD").status, equals: 200)
  }

  @Test func anAnswerThatIsCutOffDoesNotLookWhole() throws {
    let server = try TestServer { request, responder in
      let way = String(decoding: request.target.raw, as: UTF8.self)
      responder.answer(
        HTTPAnswer(
          status: 200,
          body: .stream(length: way.hasSuffix("known") ? 100 : nil) { writer in
            writer.offer(Array("abc".utf8)) { _ in }
            switch way {
            case "/failed-known", "/failed": writer.fail()
            case "/short-known": writer.finish()
            case "/long-known":
              writer.offer([UInt8](repeating: 0x61, count: 98)) { error in expect(error, equals: .wrongLength)
              }
            default: break
            }
          }))
    }
    for way in ["failed-known", "failed", "short-known", "long-known", "dropped-known", "dropped"] {
      let client = try server.client()
      try client.send("GET /\(way) HTTP/1.1\r\nHost: localhost\r\n\r\n")
      while try !client.line().isEmpty {}
      let rest = String(decoding: try client.rest(), as: UTF8.self)
      expect(!rest.hasSuffix("0\r\n\r\n") && rest.count < 100, "\(way): \(rest)")
    }
  }

  @Test func aClientThatGoesAwayIsSeenWhileItIsAnswered() throws {
    let errors = Lock<[HTTPBodyError]>([])
    let cancelled = Lock(0)
    let server = try TestServer { request, responder in
      request.onCancel { cancelled.withLock { $0 += 1 } }
      responder.answer(
        HTTPAnswer(
          status: 200,
          body: .stream(length: nil) { writer in
            do throws(HTTPBodyError) {
              while true { try writer.write([UInt8](repeating: 0x61, count: 50_000)) }
            } catch { errors.withLock { $0.append(error) } }
          }))
    }
    for _ in 0..<10 {
      let client = try server.client()
      try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
      _ = try client.bytes(100_000)
    }
    waitUntil { errors.withLock { $0.count } == 10 && cancelled.withLock { $0 } == 10 }
    waitUntil { server.server.connectionCount == 0 }
    expect(errors.withLock { $0 }, equals: [HTTPBodyError](repeating: .clientGone, count: 10))
  }

  /// What an answer holds is let go although its handler goes on.
  @Test(arguments: [false, true]) func anAnswerThatComesTooLateIsDropped(_ isLate: Bool) throws {
    final class Held: Sendable {}
    let held = Lock<(object: Held?, started: Int)>((Held(), 0))
    weak let object = held.withLock { $0.object }
    let responders = Lock<[HTTPResponder]>([])
    let requests = Lock<[HTTPRequest]>([])
    let server = try TestServer(with: { $0.limits.halfClosedSeconds = 0.5 }) { request, responder in
      requests.withLock { $0.append(request) }
      responders.withLock { $0.append(responder) }
    }
    var client: RawClient? = try server.client()
    try client?.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    waitUntil { responders.withLock { $0.count } == 1 }
    client = nil
    if isLate { waitUntil { server.server.connectionCount == 0 } }
    for responder in responders.withLock({ $0 }) {
      let kept = held.withLock { $0.object.take() }
      var answer = HTTPAnswer(
        status: 200,
        body: .stream(length: nil) { _ in
          withExtendedLifetime(kept) {}
          held.withLock { $0.started += 1 }
        })
      answer.startsAtOnce = true
      responder.answer(answer)
    }
    waitUntil { object == nil }
    waitUntil { server.server.connectionCount == 0 }
    expect(held.withLock { $0.started } <= (isLate ? 0 : 1))
  }

  /// An answer whose body begins at once needs no thread of a handler, also when all of them wait for one.
  @Test func bodiesThatBeginAtOnceNeedNoThread() throws {
    let server = try TestServer(with: { ($0.handlerThreads, $0.blockedHandlerThreads) = (1, 0) }) {
      _, responder in
      let waiter = BlockingWaiter<any HTTPBodySink>()
      var answer = HTTPAnswer(status: 200, body: .stream(length: nil) { waiter.finish($0) })
      answer.startsAtOnce = true
      responder.answer(answer)
      let writer = waiter.wait()
      try? writer.write(Array("whole".utf8))
      writer.finish()
    }
    let clients = try (0..<20).map { _ in try server.client() }
    for client in clients { try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }
    for client in clients { try expect(client.answer().text, equals: "whole") }
  }

  @Test func aClientThatGoesAwayIsSeenWhileItSends() throws {
    let errors = Lock<[HTTPBodyError]>([])
    let server = try TestServer { request, responder in
      do throws(HTTPBodyError) { _ = try request.body.collect(limit: 1 << 20) } catch {
        errors.withLock { $0.append(error) }
      }
      responder.answer(HTTPAnswer(status: 200, text: "late"))
    }
    for chunked in [false, true] {
      let client = try server.client()
      try client.send(
        "PUT / HTTP/1.1\r\nHost: localhost\r\n"
          + (chunked ? "Transfer-Encoding: chunked\r\n\r\n5\r\nab" : "Content-Length: 5\r\n\r\nab"))
    }
    waitUntil { errors.withLock { $0.count } == 2 }
    expect(errors.withLock { $0 }, equals: [.clientGone, .clientGone])
    waitUntil { server.server.connectionCount == 0 }
  }

  @Test func bodiesAreCollectedWithoutAThread() throws {
    let server = try TestServer(with: { $0.handlerThreads = 1 }) { request, responder in
      request.body.collect(limit: 10) { result in
        switch result {
        case .success(let bytes): responder.answer(HTTPAnswer(status: 200, body: .bytes(bytes)))
        case .failure(let error): responder.answer(HTTPAnswer(status: error == .tooLong ? 413 : 400))
        }
      }
    }
    let clients = try (0..<10).map { _ in try server.client() }
    for client in clients {
      try client.send("PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n")
    }
    for (number, client) in clients.enumerated() {
      try client.send(number == 3 ? "6\r\n567890\r\n0\r\n\r\n" : "5\r\n56789\r\n0\r\n\r\n")
    }
    for (number, client) in clients.enumerated() {
      let answer = try client.answer()
      expect(answer.status, equals: (number == 3 ? 413 : 200))
      if number != 3 { expect(answer.text, equals: "0123456789") }
    }
    let long = try server.client()
    try expect(
      long.get("/", method: "PUT", headers: ["Content-Length: 11", "Expect: 100-continue"]).status,
      equals: 413)
  }
}
