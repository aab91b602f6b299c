/// The place of a byte in the blocks of a file.
struct BlockPosition: Equatable {
  var block: Int
  var byte: Int

  init(block: Int, byte: Int) {
    self.block = block
    self.byte = byte
  }

  /// The position of a record. Nil if no record can begin there.
  init?(_ offset: UInt64, _ file: BlockFile, _ version: ForestDBVersion) {
    guard offset < file.byteCount else { return nil }
    block = Int(offset) / BlockFile.blockBytes
    byte = Int(offset) % BlockFile.blockBytes
    guard byte < version.payloadBytes else { return nil }
  }

  /// The offset in the file.
  var offset: UInt64 { UInt64(block) * UInt64(BlockFile.blockBytes) + UInt64(byte) }
}
