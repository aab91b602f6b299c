/// What names a blob: the SHA-1 of its bytes.
public struct BlobDigest: Hashable, Sendable {
  /// 20 bytes.
  public let bytes: [UInt8]
}
