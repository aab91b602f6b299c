/// How a WebSocket connection behaves. Times are in seconds.
package struct WebSocketOptions: Sendable, Hashable {
  /// What is taken from the peer.
  package var limits = WebSocketLimits()

  /// A ping is sent so often; nil for never. At least 0.05.
  package var heartbeat: Double?

  /// A peer that sends nothing at all for so long after a ping is taken for lost, and the connection ends with 1006. Nil
  /// for as long as the heartbeat, and at most 60 s.
  package var answerTimeout: Double?

  /// The connection is closed with 1001 when the peer has sent nothing for so long; nil for never. At least 0.05.
  package var idleTimeout: Double?

  /// How long to wait in the closing handshake, each time that nothing happens. Altogether it takes no more than that or
  /// `longestClose`, if that is more.
  package var closeTimeout = 5.0

  /// Bytes of messages that are read before they are asked for. Each message counts as `messageOverhead` bytes more. When
  /// so many wait, nothing more is read, and soon the peer can't send. One message more than that may wait.
  package var readAheadBytes = 256 << 10

  /// Bytes that may wait to be written before `send` lets its caller wait.
  package var writeAheadBytes = 256 << 10

  /// The longest time that a peer gets to answer a ping, unless it is set.
  package static let longestAnswer = 60.0
  /// The longest time that closing takes.
  package static let longestClose = 60.0
  /// What a message that waits to be asked for costs beside its bytes.
  package static let messageOverhead = 64

  /// Makes the options without heartbeat and without a timeout for idle connections.
  package init() {}
}
