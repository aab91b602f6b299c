/// The layout of a value in chunks: whole chunks as long as a node, and a last one of that length or of one
/// page.
struct ChunkLayout {
  let count: Int
  let totalBytes: Int
  private let payloadBytes: Int
  private let lastBytes: Int

  init(count byteCount: Int, payloadBytes: Int) {
    self.payloadBytes = payloadBytes
    count = max(1, (byteCount + payloadBytes - 1) / payloadBytes)
    let rest = byteCount - (count - 1) * payloadBytes
    lastBytes = rest <= RecordFormat.smallBytes ? RecordFormat.smallBytes : payloadBytes
    totalBytes = (count - 1) * payloadBytes + lastBytes
  }

  /// Returns the plaintext size of a chunk, including padding.
  func bytes(of index: Int) -> Int { index == count - 1 ? lastBytes : payloadBytes }
}
