import WebSocket

/// What clients may ask of a server. Each limit has a test (docs/server.md).
package struct HTTPServerLimits: Sendable {
  /// The maximum number of open connections, upgraded ones included. More are closed when they come. The number of
  /// file descriptors that the process may open lowers it.
  package var connections = 10_000
  /// The maximum number of open connections from one IPv4 address, or from one IPv6 network of 64 bits.
  package var connectionsPerAddress = 2_000
  /// The maximum size of a request's line and headers in bytes. Longer ones get 414 if most of it is the
  /// target, and 431 otherwise.
  package var headerBytes = 16_384
  /// The maximum size of a request's body in bytes. Longer ones get 413.
  package var bodyBytes = 4 << 30
  /// The maximum number of bytes of a body that wait in memory for the handler.
  package var bufferedBodyBytes = 256 << 10
  /// A body of at most this many bytes is read before the handler asks for it.
  package var promptBodyBytes = 4_096
  /// The maximum number of bytes of an answer that wait in memory for the client.
  package var bufferedAnswerBytes = 256 << 10
  /// The maximum number of bytes of a body that are read and dropped when the answer is made before they came. If more
  /// come, the connection is closed.
  package var droppedBodyBytes = 1 << 20
  /// What a client sends on after an answer that came before the end of its request is read and dropped, so that it can read the answer: for
  /// this long at most.
  package var lingeringSeconds = 30.0
  /// See `lingeringSeconds`: while no more than this many bytes come.
  package var lingeringBytes = 1 << 30
  /// See `lingeringSeconds`: and while something comes within this time.
  package var lingeringIdleSeconds = 5.0
  /// A new connection has this long until the headers of its first request are complete, TLS handshake included.
  package var headerSeconds = 30.0
  /// A connection has this long from the end of an answer until the headers of the next request are complete.
  package var idleSeconds = 120.0
  /// A handler has this long to begin its answer, the time included in which no thread is free. Afterwards the client gets 503, and the
  /// handler hears that nobody waits any more. While it takes a body or makes its answer, it may do nothing for as long.
  package var handlerSeconds = 600.0
  /// A client that sends or takes less than `slowBytesPerSecond` for this long is cut off.
  package var slowSeconds = 30.0
  /// See `slowSeconds`.
  package var slowBytesPerSecond = 100
  /// When requests wait because all threads of handlers wait for slow clients, a client that sends or takes less than
  /// `busyBytesPerSecond` for this long is cut off.
  package var busySeconds = 2.0
  /// See `busySeconds`.
  package var busyBytesPerSecond = 64 << 10
  /// A client that has closed its sending side, while its request is being worked on or a streamed answer pauses, is
  /// taken for gone after this long.
  package var halfClosedSeconds = 10.0
  /// How WebSockets behave, and what they take.
  package var webSocket = {
    var options = WebSocketOptions()
    options.heartbeat = 300
    return options
  }()

  /// Makes the default limits.
  package init() {}
}
