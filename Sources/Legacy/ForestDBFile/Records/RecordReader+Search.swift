/// Finds the next record after damage.
extension RecordReader {
  /// Looks in the rest of a block, behind a place at which nothing could be read, for what begins as a record of a
  /// store does, or as a commit mark. Nil if nothing does.
  func next(behind position: BlockPosition, isStore: (UInt64) -> Bool) throws -> BlockPosition? {
    let block = try file.block(position.block)
    var byte = position.byte + 1
    while byte + 24 <= version.payloadBytes {
      let head = block + byte
      let isLikely: Bool
      if head.load(fromByteOffset: 0, as: UInt8.self) == 0, head.integer(0, as: UInt64.self) == 0 {
        isLikely =
          head.integer(8, as: UInt32.self) == 0
          && head.load(fromByteOffset: Self.flagsAt, as: UInt8.self) == RecordFlags.commitMark.rawValue
          && head.integer(16, as: UInt64.self) < file.byteCount
      } else {
        isLikely = head.integer(0, as: UInt16.self) > 8 && isStore(head.integer(16))
      }
      let sum = head.load(fromByteOffset: Self.flagsAt + 1, as: UInt8.self)
      if isLikely,
        sum == UInt8(truncatingIfNeeded: CRC32.of(UnsafeRawBufferPointer(start: head, count: Self.flagsAt)))
      {
        return BlockPosition(block: position.block, byte: byte)
      }
      byte += 1
    }
    return nil
  }
}
