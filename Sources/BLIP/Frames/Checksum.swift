import CZlib

/// The CRC-32 of everything that one direction has carried: the payloads of all frames but ACKs, without compression, in
/// the order of the frames.
struct RunningChecksum {
  private(set) var value: UInt32 = 0

  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
    value = UInt32(
      truncatingIfNeeded: crc32_z(UInt(value), start.assumingMemoryBound(to: UInt8.self), bytes.count))
  }
}
