/// Blocks of the log that can't be recognised any more.
///
/// A killed writer leaves blocks that were never written, so such a block alone doesn't tell that something is
/// missing. The sequences do.
extension LogReader {
  /// The sequences that were given since the last flush, for each store.
  func coverage(
    of stores: [ForestDBStore], _ file: BlockFile, _ header: ForestDBHeader
  ) throws -> [UInt64: SequenceCoverage] {
    var before: [UInt64: UInt64] = [:]
    if let flushedAt = header.flushedAt.flatMap({ Int(exactly: $0) }), flushedAt < file.count,
      let flushed = ForestDBHeader(try file.block(flushedAt), block: flushedAt),
      let list = try? ForestDBStore.list(RecordReader(file, header.version), flushed)
    {
      for store in list { before[store.number] = store.lastSequence }
    }
    // A record has more bytes than this.
    let limit = file.byteCount / 44
    var coverage: [UInt64: SequenceCoverage] = [:]
    for store in stores {
      coverage[store.number] = SequenceCoverage(
        (before[store.number] ?? 0) &+ 1, store.lastSequence, limit: limit)
    }
    return coverage
  }

  /// Whether a block between two headers, without the marker of records, is what it says it is.
  func isKnown(_ number: Int, _ file: BlockFile, _ version: ForestDBVersion) throws -> Bool {
    // A superblock that was never written holds anything.
    if version == .v2, number < Superblock.count { return true }
    let block = try file.block(number)
    switch block.load(fromByteOffset: BlockFile.blockBytes - 1, as: UInt8.self) {
    case BlockMarker.header: return ForestDBHeader(block, block: number) != nil
    case BlockMarker.node: return TrieCursor.isWhole(block)
    default: return false
    }
  }

  /// Reports the suspects that held changes.
  func noteMissing(_ file: BlockFile) throws {
    let missing = found.values.reduce(0) { $0 &+ $1.missing }
    for block in suspects {
      // Nothing writes another marker than these.
      let isDamaged = try ![0, BlockMarker.header, BlockMarker.node].contains(file.marker(block))
      guard missing > 0 || unconfirmed > 0 || isDamaged else { continue }
      let loss =
        missing > 0
        ? "; of the changes that were saved last, \(missing) are missing, and documents whose IDs went with them are "
          + "carried over in an older version" : ""
      note(UInt64(block) * UInt64(BlockFile.blockBytes), "a block of the log is damaged" + loss)
    }
  }
}
