import CCrypto

/// Computes SHA-256. It distinguishes keys that are too long to store whole. Use it on one
/// thread at a time.
package final class KeyDigest {
  private let context: OpaquePointer
  private let algorithm: OpaquePointer

  /// Throws `engineFailure` when libcrypto has no SHA-256.
  package init() throws {
    guard let context = EVP_MD_CTX_new() else {
      throw StorageError(.engineFailure, "libcrypto can't create a digest context")
    }
    guard let algorithm = EVP_MD_fetch(nil, "SHA256", nil) else {
      EVP_MD_CTX_free(context)
      throw StorageError(.engineFailure, "libcrypto doesn't provide SHA-256")
    }
    self.context = context
    self.algorithm = algorithm
  }

  deinit {
    EVP_MD_CTX_free(context)
    EVP_MD_free(algorithm)
  }

  /// Writes the 32 bytes of the digest to `target`.
  package func sha256(of bytes: UnsafeRawBufferPointer, into target: UnsafeMutableRawPointer) throws {
    guard EVP_DigestInit_ex2(context, algorithm, nil) == 1,
      EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1,
      EVP_DigestFinal_ex(context, target.assumingMemoryBound(to: UInt8.self), nil) == 1
    else { throw StorageError(.engineFailure, "SHA-256 failed in libcrypto") }
  }
}
