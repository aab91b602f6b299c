import HTTP
import RawHTTP
import Testing

@testable import Server

/// A server for one test. It stops with the object.
final class TestServer {
  let server: HTTPServer

  convenience init(_ handler: @escaping @Sendable (HTTPRequest, HTTPResponder) -> Void = echo) throws {
    try self.init(with: { _ in }, handler)
  }

  init(
    with change: (inout HTTPServerConfiguration) throws -> Void,
    _ handler: @escaping @Sendable (HTTPRequest, HTTPResponder) -> Void
  ) throws {
    var configuration = HTTPServerConfiguration()
    try change(&configuration)
    server = HTTPServer(configuration, handler)
    try server.start()
  }

  deinit { server.stop(graceSeconds: 0) }

  var port: UInt16 { server.port ?? 0 }
  var url: String { server.urls.first ?? "" }
  func client() throws -> RawClient { try RawClient(port) }
}

/// Answers with what the request was.
@Sendable func echo(_ request: HTTPRequest, _ responder: HTTPResponder) {
  var lines = ["\(request.method)", String(decoding: request.target.raw, as: UTF8.self)]
  do throws(HTTPBodyError) {
    let body = try request.body.collect(limit: 1 << 20)
    lines.append(String(decoding: body, as: UTF8.self))
  } catch {
    return responder.answer(HTTPAnswer(status: error == .tooLong ? 413 : 400, text: "\(error)"))
  }
  responder.answer(HTTPAnswer(status: 200, text: lines.joined(separator: "\n")))
}
