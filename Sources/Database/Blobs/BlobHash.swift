/// Computes the digest and the length of a stream of bytes, as of a blob. Use it on one thread at a time.
package final class BlobHash {
  private let digest: SHA1Stream
  private var length: UInt64 = 0

  /// Creates a hash of no bytes.
  package init() throws { digest = try SHA1Stream() }

  /// Adds bytes.
  package func update(_ bytes: UnsafeRawBufferPointer) throws {
    try digest.update(bytes)
    length += UInt64(bytes.count)
  }

  /// Returns the digest and the length. No bytes may be added afterwards.
  package func finish() throws -> StoredBlob { StoredBlob(digest: try digest.finish(), length: length) }
}
