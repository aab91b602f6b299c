/// Carries messages between two ends: a WebSocket, a pipe, or a transport of the app's own.
///
/// Each BLIP frame is one message. Messages arrive whole, once, and in the order in which they were sent. Both
/// directions are pulled, so neither end can flood the other: an end that doesn't ask for what has come lets the
/// sender wait.
///
/// All calls may come from any thread. A completion may be called on any thread, also before the call returns.
package protocol MessageTransport: AnyObject, Sendable {
  /// Asks for what has come: one message or more, in order, or the end. At most one call waits at a time.
  ///
  /// The end is reported after the last message, and again by each later call.
  func receive(_ completion: @escaping @Sendable (Result<[[UInt8]], TransportClose>) -> Void)

  /// Sends messages in order. `completion` is called when more may be sent, or with the end. At most one call waits at
  /// a time. After the end messages are dropped. An end that is reported here is reported by `receive` too, after the
  /// messages that came before it.
  func send(_ messages: [[UInt8]], _ completion: @escaping @Sendable (TransportClose?) -> Void)

  /// Closes, after what was sent before. Calls that wait get the end. May be called at any time, and more than once: the
  /// first call counts.
  func close(_ close: TransportClose)

  /// The bytes that were sent and received so far, with those of the layers below that it knows.
  var traffic: TransportTraffic { get }
}

extension MessageTransport {
  package var traffic: TransportTraffic { TransportTraffic() }
}

/// Counts of bytes.
package struct TransportTraffic: Sendable, Hashable {
  package var sentBytes: UInt64 = 0
  package var receivedBytes: UInt64 = 0

  package init(sentBytes: UInt64 = 0, receivedBytes: UInt64 = 0) {
    self.sentBytes = sentBytes
    self.receivedBytes = receivedBytes
  }
}
