/// What a handler answers.
package struct HTTPAnswer: Sendable {
  /// The body of an answer.
  package enum Body: Sendable {
    /// All of it.
    case bytes([UInt8])
    /// It is written while it is sent. `start` is called once, on a handler's thread, unless the client asked with HEAD.
    /// A nil `length` is sent in chunks.
    case stream(length: Int? = nil, start: @Sendable (any HTTPBodySink) -> Void)
    /// What only the layer knows that has made it.
    case other(any HTTPOtherBody)
  }

  /// The status, 200 to 599, or 101 for an upgrade.
  package var status: Int
  /// The headers. `Content-Length`, `Transfer-Encoding`, `Date` and `Connection` are the server's own.
  package var headers: [HTTPHeader]
  /// The body.
  package var body: Body
  /// Whether the connection is closed after this answer.
  package var closesConnection = false
  /// Whether the `start` of a streamed body is called on the thread that serves the connection, and not on a handler's, for which it
  /// would wait: it must return at once. If the client is gone before, `start` is released and not called.
  package var startsAtOnce = false

  /// Makes an answer.
  package init(status: Int, headers: [HTTPHeader] = [], body: Body = .bytes([])) {
    self.status = status
    self.headers = headers
    self.body = body
  }

  /// Makes an answer of plain text.
  package init(status: Int, text: String) {
    self.init(
      status: status, headers: [HTTPHeader("Content-Type", "text/plain; charset=utf-8")],
      body: .bytes(Array(text.utf8)))
  }

  /// Whether it has a header of that name, whose case doesn't matter.
  package func hasHeader(_ name: StaticString) -> Bool { headers.contains { $0.isNamed(name) } }
}

/// The body of an answer that is no bytes and no stream: an upgrade of the server, or what a service writes before it answers.
package protocol HTTPOtherBody: Sendable {}
