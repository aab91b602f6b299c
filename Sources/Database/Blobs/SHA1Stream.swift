import CCrypto
import Storage

/// Computes the SHA-1 digest of a stream of bytes. Used on one thread at a time.
package final class SHA1Stream {
  private let context: OpaquePointer

  /// Makes one without bytes.
  package init() throws {
    guard let context = EVP_MD_CTX_new() else {
      throw StorageError(.engineFailure, "libcrypto can't create a digest context")
    }
    self.context = context
    guard EVP_DigestInit_ex(context, EVP_sha1(), nil) == 1 else {
      throw StorageError(.engineFailure, "libcrypto doesn't provide SHA-1")
    }
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Adds bytes.
  package func update(_ bytes: UnsafeRawBufferPointer) throws {
    guard bytes.count == 0 || EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1 else {
      throw StorageError(.engineFailure, "SHA-1 failed in libcrypto")
    }
  }

  /// Returns the digest of all bytes. No bytes may be added afterwards.
  package func finish() throws -> BlobDigest {
    var bytes = [UInt8](repeating: 0, count: BlobDigest.byteCount)
    guard EVP_DigestFinal_ex(context, &bytes, nil) == 1,
      let digest = bytes.withUnsafeBytes({ BlobDigest($0) })
    else { throw StorageError(.engineFailure, "SHA-1 failed in libcrypto") }
    return digest
  }
}
