import CCrypto
import Storage

/// SHA-1 of bytes as they come. One thread at a time.
final class SHA1Stream {
  private let context: OpaquePointer

  init() throws {
    guard let context = EVP_MD_CTX_new() else {
      throw StorageError(.engineFailure, "no digest context can be made")
    }
    self.context = context
    guard EVP_DigestInit_ex(context, EVP_sha1(), nil) == 1 else {
      throw StorageError(.engineFailure, "libcrypto offers no SHA-1")
    }
  }

  deinit { EVP_MD_CTX_free(context) }

  func update(_ bytes: UnsafeRawBufferPointer) throws {
    guard bytes.count == 0 || EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1 else {
      throw StorageError(.engineFailure, "SHA-1 failed in libcrypto")
    }
  }

  /// The digest of all; nothing may come after it.
  func finish() throws -> BlobDigest {
    var bytes = [UInt8](repeating: 0, count: BlobDigest.byteCount)
    guard EVP_DigestFinal_ex(context, &bytes, nil) == 1,
      let digest = bytes.withUnsafeBytes({ BlobDigest($0) })
    else { throw StorageError(.engineFailure, "SHA-1 failed in libcrypto") }
    return digest
  }
}
