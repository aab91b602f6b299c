// Commands of the child process that the tests of the listener start.
//
//   server tls DIRECTORY   serves TLS on any port, with an identity that it makes in the directory; prints the port, and goes on until it
//                          is killed. It answers "ok", or keeps a WebSocket open

import HTTP
import Server
import TestSupport
import WebSocket

enum ServerChild: ChildGroup {
  static let name = "server"
  static let usage = "tls DIRECTORY"

  static func run(_ arguments: [String]) throws {
    guard arguments.count == 2, arguments[0] == "tls" else { throw WrongUsage() }
    _ = HTTPServer.allowOpenFiles(8_192)
    var configuration = HTTPServerConfiguration()
    configuration.tls = try TLSIdentity.selfMade(in: arguments[1])
    let server = HTTPServer(configuration) { request, responder in
      responder.answer(
        request.isWebSocketUpgrade
          ? .webSocket(request) { keep($0) } : HTTPAnswer(status: 200, text: "ok"))
    }
    try server.start()
    say("\(server.port ?? 0)")
    while true { pause() }
  }

  /// Takes what comes until the end.
  @Sendable private static func keep(_ transport: WebSocketTransport) {
    transport.receive { result in
      switch result {
      case .success: keep(transport)
      case .failure: transport.close(.normal)
      }
    }
  }
}
