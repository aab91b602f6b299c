// frame       := number flags payload [checksum]      one message of the transport
// number      := varint                               of the request; a reply has the number of its request
// flags       := varint                               one byte: bits 0…2 the type, then the bits below
// payload     := a piece of a message, maybe compressed;  in ACK frames a varint, the bytes received of the message
// checksum    := 4 bytes, big-endian CRC-32           missing in ACK frames
// message     := varint(length of properties) properties body

/// The second number of a frame: its type and what holds for its message.
package struct FrameFlags: OptionSet, Sendable, Hashable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The payload of this frame is compressed.
  package static let compressed = FrameFlags(rawValue: 0x08)
  /// The message goes before others.
  package static let urgent = FrameFlags(rawValue: 0x10)
  /// The sender of the request wants no reply.
  package static let noReply = FrameFlags(rawValue: 0x20)
  /// More frames of this message follow.
  package static let moreComing = FrameFlags(rawValue: 0x40)

  init(_ type: FrameType, _ others: FrameFlags = []) { self.init(rawValue: type.rawValue | others.rawValue) }

  /// The type; nil for one that isn't known.
  var type: FrameType? { FrameType(rawValue: rawValue & 7) }
}

/// What a frame is a piece of.
enum FrameType: UInt8 {
  case request = 0
  case reply = 1
  case error = 2
  /// An acknowledgement of bytes of a request.
  case ackRequest = 4
  /// An acknowledgement of bytes of a reply or an error.
  case ackReply = 5

  var isAck: Bool { self == .ackRequest || self == .ackReply }
}

/// Sizes that both ends have to agree on.
enum FrameSizes {
  /// The largest frame.
  static let large = 16 << 10
  /// The largest frame of a message that isn't urgent, while an urgent one waits behind it.
  static let small = 4 << 10
  static let checksum = 4
}

/// A received frame, decoded.
struct Frame {
  let number: UInt64
  let flags: FrameFlags
  let type: FrameType
  /// The payload without compression; empty for an ACK.
  var payload: ArraySlice<UInt8> = []
  /// The bytes that count for flow control: the payload as it came, and the checksum.
  var wireBytes = 0
  /// What an ACK acknowledges.
  var acknowledged: UInt64 = 0
}
