/// What a WebSocket session takes from its peer.
package struct WebSocketLimits: Sendable, Hashable {
  /// The bytes of a message, over all its fragments. A longer one ends the connection with 1009. At least 1.
  ///
  /// A frame of BLIP has at most 16 KiB; other peers may send more.
  package var messageBytes = 64 << 10

  /// Makes the limits that fit BLIP.
  package init() {}
}
