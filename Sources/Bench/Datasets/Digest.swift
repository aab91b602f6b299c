import Bytes
import CCrypto

/// An incremental SHA-256.
final class Digest {
  private let context = EVP_MD_CTX_new()
  private let isReady: Bool

  init() { isReady = EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1 }

  deinit { EVP_MD_CTX_free(context) }

  func update(_ bytes: UnsafeRawBufferPointer) {
    EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
  }

  /// Returns the digest in lower-case hex. No update may follow.
  func finish() -> String {
    guard isReady else { return "" }
    var bytes = [UInt8](repeating: 0, count: 32)
    EVP_DigestFinal_ex(context, &bytes, nil)
    return Hex.text(bytes)
  }
}
