import HTTP
import RawHTTP
import Storage
import TestTools
import Testing

@testable import Server

/// Requests that take long, and others beside them.
@Suite struct WorkloadTests {
  /// The first segment of the path is the kind of a request. One of `computing` waits until it is cancelled.
  private final class Handler: HTTPHandler {
    let running = Lock(0)
    let begun = Lock(0)

    func workload(of request: HTTPRequest) -> HTTPWorkload {
      let word = request.target.segments?.first?.string
      return HTTPWorkload.allCases.first { "\($0)" == word } ?? .reading
    }

    func handle(_ request: HTTPRequest, _ responder: HTTPResponder) {
      guard case .computing = workload(of: request) else {
        return responder.answer(HTTPAnswer(status: 200, text: "done"))
      }
      let isCancelled = CountingSemaphore()
      request.onCancel { isCancelled.signal() }
      begun.withLock { $0 += 1 }
      running.withLock { $0 += 1 }
      isCancelled.wait()
      running.withLock { $0 -= 1 }
      expect(request.isCancelled)
    }
  }

  private let handler = Handler()

  private func server(_ handlerSeconds: Double = 60) throws -> HTTPServer {
    var configuration = HTTPServerConfiguration()
    // Two threads compute.
    configuration.handlerThreads = 4
    configuration.blockedHandlerThreads = 0
    configuration.limits.handlerSeconds = handlerSeconds
    let server = HTTPServer(configuration, handler: handler)
    try server.start()
    return server
  }

  private func client(_ server: HTTPServer) throws -> RawClient { try RawClient(server.port ?? 0) }

  /// Clients that ask for more than there are threads.
  private func crowd(_ server: HTTPServer) throws -> [RawClient] {
    let clients = try (0..<10).map { _ in try client(server) }
    for client in clients { try client.send("GET /computing HTTP/1.1\r\nHost: localhost\r\n\r\n") }
    return clients
  }

  @Test("other requests are answered while all threads that compute are taken")
  func others() throws {
    let server = try server()
    defer { server.stop(graceSeconds: 0) }
    let crowd = try crowd(server)
    waitUntil { handler.running.withLock { $0 } == 2 }
    for kind in ["/reading", "/writing", "/long"] { try expect(client(server).get(kind).status, equals: 200) }
    withExtendedLifetime(crowd) {}
  }

  @Test("when the clients go away, their threads are free, though none was to tell them")
  func recovers() throws {
    let server = try server()
    defer { server.stop(graceSeconds: 0) }
    var crowd = try crowd(server)
    waitUntil { handler.running.withLock { $0 } == 2 }
    crowd = []
    waitUntil { handler.running.withLock { $0 } == 0 && server.connectionCount == 0 }
    expect(crowd.isEmpty)
  }

  @Test("a handler hears that its time is over, and so do those for which no thread was free")
  func timeLimit() throws {
    let server = try server(0.5)
    defer { server.stop(graceSeconds: 0) }
    // On a busy machine the time of all can be over before a thread takes one.
    repeat {
      for client in try crowd(server) { try expect(client.answer().status, equals: 503) }
    } while handler.begun.withLock { $0 } == 0
    waitUntil { handler.running.withLock { $0 } == 0 }
    try expect(client(server).get("/reading").status, equals: 200)
  }
}
