import Bytes

/// Encodes the frames of one direction. They have to be sent in the order in which they were written.
final class FrameWriter {
  private var checksum = RunningChecksum()
  private var deflater: Deflater?
  /// The frame that is being written.
  private var buffer = ByteBuffer(capacity: FrameSizes.large + 64)

  /// The most bytes of a message that fit into a frame of `frameBytes`. One that is compressed may turn out shorter. How
  /// much shorter isn't known before it is flushed, so a frame never takes more than fits without compression.
  static func capacity(_ frameBytes: Int, number: UInt64, isCompressed: Bool) -> Int {
    let numberBytes = max(1, (64 - number.leadingZeroBitCount + 6) / 7)
    return frameBytes - numberBytes - 1 - FrameSizes.checksum - (isCompressed ? Deflater.mostExtraBytes : 0)
  }

  /// Writes a frame with a piece of a message. Returns it with the bytes that count for flow control.
  func frame(_ number: UInt64, _ flags: FrameFlags, _ payload: UnsafeRawBufferPointer) throws(BLIPError)
    -> (bytes: [UInt8], wireBytes: Int)
  {
    buffer.removeAll()
    buffer.append(varint: number)
    // An empty payload has no compressed form: zlib has nothing to flush twice.
    let isCompressed = flags.contains(.compressed) && !payload.isEmpty
    buffer.append(isCompressed ? flags.rawValue : flags.subtracting(.compressed).rawValue)
    let start = buffer.count
    if isCompressed {
      let deflater: Deflater
      if let existing = self.deflater {
        deflater = existing
      } else {
        deflater = try Deflater()
        self.deflater = deflater
      }
      try deflater.compress(payload, into: &buffer)
    } else {
      buffer.append(payload)
    }
    checksum.add(payload)
    buffer.append(bigEndian: checksum.value)
    return ([UInt8](buffer.bytes), buffer.count - start)
  }

  /// Writes an ACK frame.
  static func ack(_ number: UInt64, _ type: FrameType, _ acknowledged: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.append(varint: number)
    bytes.append(FrameFlags(type, [.urgent, .noReply]).rawValue)
    bytes.append(varint: UInt64(clamping: acknowledged))
    return bytes
  }
}
