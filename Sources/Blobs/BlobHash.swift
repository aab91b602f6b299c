/// The digest and the length of bytes as they come: what they would be as a blob. One thread at a time.
public final class BlobHash {
  private let digest: SHA1Stream
  private var length: UInt64 = 0

  /// Of no bytes yet.
  public init() throws { digest = try SHA1Stream() }

  /// Takes some bytes.
  public func update(_ bytes: UnsafeRawBufferPointer) throws {
    try digest.update(bytes)
    length += UInt64(bytes.count)
  }

  /// What the bytes are as a blob; nothing may come after it.
  public func finish() throws -> StoredBlob { StoredBlob(digest: try digest.finish(), length: length) }
}
