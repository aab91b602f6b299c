import CISAL

/// The CRC-32 of everything that one direction has carried: the payloads of all frames but ACKs, without compression, in
/// the order of the frames.
struct RunningChecksum {
  private(set) var value: UInt32 = 0

  mutating func add(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
    value = crc32_gzip_refl(value, start.assumingMemoryBound(to: UInt8.self), UInt64(bytes.count))
  }
}
