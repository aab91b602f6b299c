import Glibc
import HTTP
import Transport
import WebSocket

// The opening handshake of WebSocket, seen from the server (RFC 6455, 4.2). The request has:
//
//   GET, HTTP/1.1, no body
//   Upgrade: websocket
//   Connection: Upgrade
//   Sec-WebSocket-Version: 13                   another one gets 426, with the version that is spoken here
//   Sec-WebSocket-Key: 16 bytes in base64
//   Sec-WebSocket-Protocol: name, name …        optional
//   Origin: scheme://host[:port]                from browsers

extension HTTPRequest {
  /// Whether the client asks for a WebSocket. Whether it asks rightly, `HTTPAnswer.webSocket` checks.
  package var isWebSocketUpgrade: Bool { headers.tokens("upgrade").contains("websocket") }

  /// The subprotocols that the client offers, the one that it likes best first. Names are case-sensitive.
  package var webSocketProtocols: [String] {
    headers.all("sec-websocket-protocol").flatMap { $0.split(separator: ",") }.map { $0.trimmed }
      .filter { !$0.isEmpty }
  }
}

extension HTTPAnswer {
  /// Makes the connection of a request a WebSocket.
  ///
  /// `subprotocol` is one of `request.webSocketProtocols`, or nil. `accept` gets the transport, on a handler's thread; it
  /// must close it in the end. When the server stops, it closes it with 1001. A request that is no proper upgrade gets
  /// 400, 405, 426 or, from a web page of another origin, 403: browsers send passwords and certificates along for any
  /// page. `origins` are those that are let in, such as `https://example.com`; without, it is the server's own.
  package static func webSocket(
    _ request: HTTPRequest, subprotocol: String? = nil, origins: [String]? = nil,
    options: WebSocketOptions? = nil,
    accept: @escaping @Sendable (WebSocketTransport) -> Void
  ) -> HTTPAnswer {
    guard let exchange = request.exchange, let head = exchange.head else {
      return HTTPAnswer(status: 500, text: "the connection can't become a WebSocket")
    }
    let core = exchange.core
    if let refusal = refusal(request, head, origins) {
      var answer = core.errorAnswer(refusal.status, refusal.reason)
      if refusal.status == 426 {
        answer.headers += [HTTPHeader("Sec-WebSocket-Version", "13"), HTTPHeader("Upgrade", "websocket")]
      }
      if refusal.status == 405 { answer.headers.append(HTTPHeader("Allow", "GET")) }
      return answer
    }
    guard let proof = request.headers.first("sec-websocket-key").flatMap({ WebSocketKey.accept($0.trimmed) })
    else {
      return core.errorAnswer(500, "the handshake of the WebSocket failed")
    }
    let options = options ?? core.limits.webSocket
    var answer = HTTPAnswer(
      status: 101, headers: [HTTPHeader("Upgrade", "websocket"), HTTPHeader("Sec-WebSocket-Accept", proof)],
      body: .other(
        UpgradeBody { connection in
          let stream = SocketStream(connection.descriptor) { descriptor in
            close(descriptor)
            connection.ended()
          }
          do throws(TransportClose) {
            let transport = WebSocketTransport(
              stream, .server, options: options, received: connection.extra, loop: try SocketLoop.shared(),
              name: "\(connection.peer)")
            connection.onCount { [weak transport] in
              let traffic = transport?.traffic
              return (traffic?.receivedBytes ?? 0, traffic?.sentBytes ?? 0)
            }
            connection.onStop { [weak transport] in
              transport?.close(.webSocket(1001, "the server stops"))
            }
            accept(transport)
          } catch {
            stream.close()
          }
        }))
    if let subprotocol { answer.headers.append(HTTPHeader("Sec-WebSocket-Protocol", subprotocol)) }
    return answer
  }

  private static func refusal(_ request: HTTPRequest, _ head: RequestHead, _ origins: [String]?)
    -> Rejection?
  {
    guard request.method == "GET" else { return Rejection(405, "a WebSocket begins with GET") }
    guard request.isWebSocketUpgrade else {
      return Rejection(426, "this is a WebSocket; it needs an upgrade")
    }
    guard head.isHTTP11, !head.hasBody,
      request.headers.tokens("connection").contains("upgrade")
    else {
      return Rejection(400, "the request to upgrade to a WebSocket is malformed")
    }
    guard request.headers.all("sec-websocket-version").map(\.trimmed) == ["13"] else {
      return Rejection(426, "the version of the WebSocket must be 13")
    }
    let keys = request.headers.all("sec-websocket-key")
    guard keys.count == 1, WebSocketKey.isValid(keys[0].trimmed) else {
      return Rejection(400, "the key of the WebSocket isn't 16 bytes in base64")
    }
    for origin in request.headers.all("origin")
    where !isAllowed(origin.trimmed.lowercased(), origins, request, head) {
      return Rejection(403, "web pages of other origins aren't let in")
    }
    return nil
  }

  private static func isAllowed(
    _ origin: String, _ origins: [String]?, _ request: HTTPRequest, _ head: RequestHead
  ) -> Bool {
    if let origins { return origins.contains { $0.lowercased() == origin } }
    let scheme = request.isSecure ? "https://" : "http://"
    return origin == scheme + String(decoding: head.authority?.raw ?? [], as: UTF8.self).lowercased()
  }
}
