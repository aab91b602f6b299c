// Flow control: a sender sends `window` bytes of a message beyond what the receiver has acknowledged. A receiver acknowledges
// what was consumed, every `ackInterval` bytes. Messages of one frame don't need it (docs/blip.md).

/// What was sent of a message, and how far the peer has acknowledged it.
struct SendWindow {
  /// What a sender sends of a message before it waits for an ACK, in bytes of frames.
  static let bytes = 128_000

  private var sent = 0
  private var acknowledged = 0

  /// Whether the message has to wait for an ACK.
  var isFull: Bool { sent - acknowledged >= SendWindow.bytes }

  mutating func send(_ wireBytes: Int) { sent += wireBytes }

  /// Takes an ACK of the first `count` bytes. One that goes back, or beyond what was sent, is ignored.
  mutating func acknowledge(_ count: UInt64) {
    guard count <= UInt64(sent) else { return }
    acknowledged = max(acknowledged, Int(count))
  }
}

/// What was consumed of a message that is being received, and what of that the peer was told of.
struct ReceiveWindow {
  /// How many further bytes a receiver consumes before it sends an ACK, in bytes of frames.
  static let ackInterval = 50_000

  private var consumed = 0
  private var acknowledged = 0
  private var dropped = 0

  /// Takes note of consumed bytes. Returns the number to acknowledge, if it is time for that.
  mutating func consume(_ wireBytes: Int, isAcknowledged: Bool) -> Int? {
    consumed += wireBytes
    guard isAcknowledged, consumed - acknowledged >= ReceiveWindow.ackInterval else { return nil }
    acknowledged = consumed
    return consumed
  }

  /// Takes note of bytes that are dropped because nobody wants them. Returns whether they are so many that the rest
  /// isn't acknowledged. A peer that follows the protocol then stops sending it. Throws if this one doesn't.
  mutating func drop(_ wireBytes: Int, _ limits: BLIPLimits) throws(BLIPError) -> Bool {
    dropped += wireBytes
    guard dropped <= limits.droppedBytes + SendWindow.bytes + 2 * limits.frameBytes else {
      throw BLIPError(.ignoresFlowControl, "the peer goes on with a message that isn't acknowledged")
    }
    return dropped > limits.droppedBytes
  }
}
