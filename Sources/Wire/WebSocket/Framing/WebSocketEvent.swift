/// What a peer has sent.
package enum WebSocketEvent: Sendable, Hashable {
  /// A binary message, whole.
  case message([UInt8])
  /// A ping with its payload, at most 125 bytes. The peer expects a pong with the same payload.
  case ping([UInt8])
  /// A pong with its payload, at most 125 bytes.
  case pong([UInt8])
  /// The end. The code is 1005 if the peer gave none. The reason is the peer's; it may be empty.
  case close(code: Int, reason: String)
}

/// What a peer did that WebSocket forbids. The connection can't go on.
package struct WebSocketViolation: Error, Sendable, Hashable, CustomStringConvertible {
  /// The code to close with: 1002 (protocol error), 1007 (text that isn't UTF-8) or 1009 (too long).
  package let closeCode: Int
  /// What was wrong, in words of this library.
  package let reason: String

  static func protocolError(_ reason: String) -> WebSocketViolation {
    WebSocketViolation(closeCode: 1002, reason: reason)
  }

  /// The code and the reason.
  package var description: String { "WebSocket \(closeCode): \(reason)" }
}
