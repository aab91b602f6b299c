import Bytes

/// Decodes the frames of one direction. Frames have to come in their order, and none may be missing: the checksum and the
/// compression depend on all frames before.
struct FrameReader {
  private let limits: BLIPLimits
  private var checksum = RunningChecksum()
  private var inflater: Inflater?

  init(limits: BLIPLimits) { self.limits = limits }

  /// Decodes a frame. Nil for a type that isn't known: those are ignored, and count for nothing.
  mutating func read(_ bytes: [UInt8]) throws(BLIPError) -> Frame? {
    guard !bytes.isEmpty else { throw BLIPError(.emptyFrame, "a frame has no bytes") }
    guard bytes.count <= limits.frameBytes else {
      throw BLIPError(.frameTooLong, "a frame has \(bytes.count) bytes, more than \(limits.frameBytes)")
    }
    var offset = 0
    guard let number = bytes.varint(at: &offset) else { throw BLIPError(.badVarint, "a frame has no number") }
    guard let flagBits = bytes.varint(at: &offset) else {
      throw BLIPError(.badVarint, "a frame has no flags")
    }
    let flags = FrameFlags(rawValue: UInt8(truncatingIfNeeded: flagBits))
    guard let type = flags.type else { return nil }
    if type.isAck {
      guard let acknowledged = bytes.varint(at: &offset) else {
        throw BLIPError(.badVarint, "an ACK has no number of bytes")
      }
      return Frame(number: number, flags: flags, type: type, acknowledged: acknowledged)
    }
    let wireBytes = bytes.count - offset
    guard wireBytes >= FrameSizes.checksum else {
      throw BLIPError(.badChecksum, "a frame has no checksum")
    }
    let end = bytes.count - FrameSizes.checksum
    let payload: ArraySlice<UInt8>
    if flags.contains(.compressed) {
      payload = try inflate(bytes, offset..<end)[...]
    } else {
      payload = bytes[offset..<end]
    }
    payload.withUnsafeBytes { checksum.add($0) }
    let found = bytes.withUnsafeBytes {
      UInt32(bigEndian: $0.loadUnaligned(fromByteOffset: end, as: UInt32.self))
    }
    guard found == checksum.value else {
      throw BLIPError(.badChecksum, "the checksum of a frame of message \(number) is wrong")
    }
    return Frame(number: number, flags: flags, type: type, payload: payload, wireBytes: wireBytes)
  }

  private mutating func inflate(_ bytes: [UInt8], _ range: Range<Int>) throws(BLIPError) -> [UInt8] {
    let inflater: Inflater
    if let existing = self.inflater {
      inflater = existing
    } else {
      inflater = try Inflater()
      self.inflater = inflater
    }
    return try bytes.span.bytes.withUnsafeBytes { (all) throws(BLIPError) in
      try inflater.inflate(UnsafeRawBufferPointer(rebasing: all[range]), limit: limits.framePlainBytes)
    }
  }
}
