import HTTP

/// What a handler answers.
package struct HTTPAnswer: Sendable {
  /// A header of an answer.
  package typealias Header = HTTPHeader

  /// The body of an answer.
  package enum Body: Sendable {
    /// All of it.
    case bytes([UInt8])
    /// It is written while it is sent. `start` is called once, on a handler's thread, unless the client asked with HEAD.
    /// A nil `length` is sent in chunks.
    case stream(length: Int?, start: @Sendable (HTTPBodyWriter) -> Void)
    /// The connection speaks another protocol from now on. `takeOver` is called on a handler's thread.
    case upgrade(takeOver: @Sendable (UpgradedConnection) -> Void)
  }

  /// The status, 200 to 599, or 101 for an upgrade.
  package var status: Int
  /// The headers. `Content-Length`, `Transfer-Encoding`, `Date` and `Connection` are the server's own.
  package var headers: [Header]
  /// The body.
  package var body: Body
  /// Whether the connection is closed after this answer.
  package var closesConnection = false
  /// Whether the `start` of a streamed body is called on the thread that serves the connection, and not on a handler's, for which it
  /// would wait: it must return at once. If the client is gone before, `start` is released and not called.
  package var startsAtOnce = false

  /// Makes an answer.
  package init(status: Int, headers: [Header] = [], body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Makes an answer of plain text.
  package init(status: Int, text: String) {
    self.init(
      status: status, headers: [Header("Content-Type", "text/plain; charset=utf-8")],
      body: .bytes(Array(text.utf8)))
  }

  /// All of an answer of bytes, for a connection that the library doesn't serve and that is closed behind it.
  func whole(reason: String) -> [UInt8] {
    guard case .bytes(let body) = body else { return [] }
    var head = "HTTP/1.1 \(status) \(reason)\r\nConnection: close\r\nContent-Length: \(body.count)\r\n"
    for header in headers where !header.value.utf8.contains(where: { $0 < 0x20 }) {
      head += "\(header.name): \(header.value)\r\n"
    }
    return Array(head.utf8) + Array("\r\n".utf8) + body
  }
}
