import Logs
import System
import Transport
import WebSocket

/// A connection that a client has made.
package struct WebSocketConnection: Sendable {
  /// The connection. Whoever has it closes it.
  package let transport: WebSocketTransport
  /// The subprotocol that the server chose; nil if none was offered.
  package let chosenProtocol: String?
  /// The headers of the answer, such as Set-Cookie: names in lower case, in order.
  package let headers: [(name: String, value: String)]
  /// The SHA-256 of the server's certificate, 32 bytes; nil without TLS.
  package let certificateFingerprint: [UInt8]?
}

/// Makes WebSocket connections.
package enum WebSocketClient {
  /// Connections that are made at the same time, in the process. Others wait for their turn.
  package static let maximumAtOnce = 32

  private static let workers = Workers(maximum: maximumAtOnce)

  /// Connects. `done` is called once, on some thread: with the connection, or with what went wrong. `name` is for the log.
  ///
  /// The errors are listed in docs/websocket.md.
  @discardableResult
  package static func connect(
    _ request: WebSocketRequest, name: String? = nil,
    done: @escaping @Sendable (Result<WebSocketConnection, TransportClose>) -> Void
  ) -> WebSocketConnecting {
    let connecting = WebSocketConnecting(done)
    workers.enqueue {
      let result = attempt(request, name, connecting.cancellation)
      if case .failure(let close) = result {
        Log.write(.verbose, .network, name, "WebSocket: not connected: \(close)")
      }
      // Nobody wants a connection that was cancelled.
      if !connecting.end(result), case .success(let connection) = result {
        connection.transport.close(.webSocket(1001))
      }
    }
    return connecting
  }

  private static func attempt(_ request: WebSocketRequest, _ name: String?, _ cancellation: JobCancellation)
    -> Result<WebSocketConnection, TransportClose>
  {
    do throws(TransportClose) {
      let loop = try SocketLoop.shared()
      let established = try ConnectAttempt(request: request, cancellation: cancellation).run()
      let connection = established.connection
      let transport = WebSocketTransport(
        stream(connection, established.url, request), .client, options: request.options,
        received: established.received, loop: loop, name: name)
      Log.write(.verbose, .network, name, "WebSocket: connected to \(established.url)")
      return .success(
        WebSocketConnection(
          transport: transport, chosenProtocol: established.chosenProtocol,
          headers: established.answer.headers,
          certificateFingerprint: established.certificate.map(CertificateBytes.fingerprint)))
    } catch { return .failure(error) }
  }

  /// Without TLS the socket is read and written without libcurl, which keeps it until the end.
  private static func stream(_ connection: CurlConnection, _ url: WebSocketURL, _ request: WebSocketRequest)
    -> any ByteStream
  {
    guard !url.isSecure, !mayHaveSecureProxy(request.proxy) else { return CurlStream(connection) }
    let kept = Lock<CurlConnection?>(connection)
    return SocketStream(connection.descriptor) { _ in kept.withLock { $0 = nil } }
  }

  private static func mayHaveSecureProxy(_ proxy: WebSocketRequest.Proxy) -> Bool {
    let urls: [String] =
      switch proxy {
      case .none: []
      case .url(let url, _, _): [url]
      case .environment: ["http_proxy", "all_proxy", "ALL_PROXY"].compactMap(EnvironmentVariable.value)
      }
    return urls.contains { $0.lowercased().hasPrefix("https://") }
  }
}

/// A connection that is being made.
package final class WebSocketConnecting: Sendable {
  private let done: Lock<(@Sendable (Result<WebSocketConnection, TransportClose>) -> Void)?>
  let cancellation = JobCancellation()

  init(_ done: @escaping @Sendable (Result<WebSocketConnection, TransportClose>) -> Void) {
    self.done = Lock(done)
  }

  /// Gives up: `done` is called at once, with the error ECANCELED, unless it was called before. What goes on in the
  /// background ends soon.
  package func cancel() {
    cancellation.cancel()
    end(.failure(.cancelled))
  }

  /// Calls `done`. Returns false, and does nothing, if it was called before.
  @discardableResult
  func end(_ result: Result<WebSocketConnection, TransportClose>) -> Bool {
    guard let done = done.withLock({ $0.take() }) else { return false }
    done(result)
    return true
  }
}
