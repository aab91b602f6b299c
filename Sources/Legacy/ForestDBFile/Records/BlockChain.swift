/// The chain of document blocks that records lie in. Which block goes on after another one is a rule of the version:
/// that with the next number (v1), or the one that the block names (v2, a u64 at 4080).
struct BlockChain {
  let file: BlockFile
  let version: ForestDBVersion

  /// Returns the document block that goes on after this one; nil if there is none.
  func following(_ block: Int) throws -> Int? {
    let next: Int
    switch version {
    case .v1: next = block + 1
    case .v2:
      let said: UInt64 = try file.block(block).integer(version.payloadBytes)
      guard said < UInt64(file.count) else { return nil }
      next = Int(said)
    }
    guard next < file.count, try file.marker(next) == BlockMarker.document else { return nil }
    return next
  }
}
