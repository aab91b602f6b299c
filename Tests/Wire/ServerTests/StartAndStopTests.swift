import HTTP
import Foundation
import RawHTTP
import Storage
import TestTools
import Testing

@testable import Server

@Suite struct StartAndStopTests {
  private func error(_ change: (inout HTTPServerConfiguration) -> Void) -> HTTPServerError? {
    var configuration = HTTPServerConfiguration()
    change(&configuration)
    let server = HTTPServer(configuration, echo)
    defer { server.stop(graceSeconds: 0) }
    do { try server.start() } catch { return error as? HTTPServerError }
    return nil
  }

  @Test func whatPreventsAStartIsSaid() throws {
    let first = try TestServer()
    let inUse = error { $0.port = first.port }
    expect(inUse?.code, equals: .portInUse)
    expect(inUse?.message.contains("port \(first.port)"), equals: true)
    expect(error { $0.listen = .address("192.0.2.1") }?.code, equals: .addressNotAvailable)
    expect(error { $0.listen = .address("localhost") }?.code, equals: .invalidAddress)
    expect(error { $0.listen = .address("1.2.3") }?.code, equals: .invalidAddress)
    expect(error { $0.listen = .interface("none0") }?.code, equals: .addressNotAvailable)
    expect(error { $0.limits.connections = 0 }?.code, equals: .invalidConfiguration)
    expect(error { $0.threads = 0 }?.code, equals: .invalidConfiguration)
    expect(
      error { $0.clientCertificates = .required(ClientCertificateCheck { _ in true }) }?.code,
      equals: .invalidConfiguration)
    expect(error { _ in } == nil)
    #expect(throws: HTTPServerError.self) { try first.server.start() }
  }

  @Test func anInterfaceIsListenedOnByItsName() throws {
    let server = try TestServer(with: { $0.listen = .interface("lo") }, echo)
    expect(server.server.urls.contains("http://127.0.0.1:\(server.port)"))
    try expect(server.client().get("/").status, equals: 200)
  }

  @Test func aStoppedServerRefusesAndCanBeStoppedAgain() throws {
    let server = try TestServer()
    let port = server.port
    let client = try server.client()
    try expect(client.get("/").status, equals: 200)
    server.server.stop()
    server.server.stop()
    try expect(client.isClosed())
    #expect(throws: RawClient.Failure.self) { try RawClient(port) }
    expect(server.server.port == nil)
    expect(server.server.urls.isEmpty)
    #expect(throws: HTTPServerError.self) { try server.server.start() }
    let other = try TestServer(with: { $0.port = port }, echo)
    try expect(other.client().get("/").status, equals: 200)
  }

  @Test func requestsThatAreWorkedOnEndBeforeTheStop() throws {
    let (began, goOn) = (CountingSemaphore(), CountingSemaphore())
    let server = try TestServer { _, responder in
      began.signal()
      goOn.wait()
      responder.answer(HTTPAnswer(status: 200, text: "done"))
    }
    let client = try server.client()
    try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    began.wait()
    let stopped = Lock(0)
    for _ in 0..<2 {
      Thread.detachNewThread { [server = server.server] in
        server.stop(graceSeconds: 120)
        stopped.withLock { $0 += 1 }
      }
    }
    waitUntil { server.server.port == nil }
    expect(stopped.withLock { $0 }, equals: 0)
    goOn.signal()
    let answer = try client.answer()
    expect(answer.text, equals: "done")
    expect(answer.header("Connection")?.lowercased(), equals: "close")
    waitUntil { stopped.withLock { $0 } == 2 }
  }

  @Test func aBusyServerStopsAfterItsGraceTime() throws {
    let began = CountingSemaphore()
    let (cancelled, running) = (Lock(0), Lock(0))
    let server = try TestServer { request, responder in
      running.withLock { $0 += 1 }
      defer { running.withLock { $0 -= 1 } }
      // Each goes on when it is cut off itself. An answer that comes before is sent.
      let goOn = CountingSemaphore()
      request.onCancel {
        cancelled.withLock { $0 += 1 }
        goOn.signal()
      }
      switch String(decoding: request.target.raw, as: UTF8.self) {
      case "/work":
        began.signal()
        goOn.wait()
        responder.answer(HTTPAnswer(status: 200, text: "too late"))
      case "/body":
        began.signal()
        _ = try? request.body.collect(limit: 1 << 20)
      case "/stream":
        responder.answer(
          HTTPAnswer(
            status: 200,
            body: .stream(length: nil) { writer in
              began.signal()
              while (try? writer.write([UInt8](repeating: 0x61, count: 100_000))) != nil {}
            }))
      default:
        responder.answer(
          HTTPAnswer(
            status: 200,
            body: .stream(length: nil) { writer in
              began.signal()
              goOn.wait()
              writer.finish()
            }))
      }
    }
    var clients: [RawClient] = []
    for target in ["/work", "/body", "/stream", "/pause"] {
      for _ in 0..<5 {
        let client = try server.client()
        try client.send(
          target == "/body"
            ? "PUT /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nab"
            : "GET \(target) HTTP/1.1\r\nHost: localhost\r\n\r\n")
        clients.append(client)
      }
    }
    for _ in clients { began.wait() }
    // Half a request, and none.
    clients += try (0..<2).map { _ in try server.client() }
    try clients.last?.send("GET / HT")
    server.server.stop(graceSeconds: 0.2)
    // No handler runs any more.
    expect(cancelled.withLock { $0 } == 20 && running.withLock { $0 } == 0)
    for client in clients { _ = try client.rest() }
  }

  @Test func aHandlerThatStopsItsServerDoesNotWaitForItself() throws {
    let server = Lock<HTTPServer?>(nil)
    let stopped = CountingSemaphore()
    let test = try TestServer { _, _ in
      server.withLock { $0 }?.stop(graceSeconds: 0)
      stopped.signal()
    }
    server.withLock { $0 = test.server }
    defer { server.withLock { $0 = nil } }
    let client = try test.client()
    try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    stopped.wait()
    _ = try client.rest()
    expect(test.server.port == nil)
  }

  @Test func serversComeAndGo() throws {
    for round in 0..<20 {
      let server = try TestServer(with: { $0.threads = 1 + round % 3 }, echo)
      let clients = try (0..<5).map { _ in try server.client() }
      for client in clients { try client.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") }
      if round % 2 == 0 { for client in clients { try expect(client.answer().status, equals: 200) } }
      server.server.stop(graceSeconds: round % 3 == 0 ? 0 : 60)
    }
  }
}
