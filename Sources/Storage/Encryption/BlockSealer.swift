import CCrypto
import Storage

/// Seals the blocks of a temporary file by AES-256-GCM, with a key that is made with the sealer and never leaves it.
///
/// So what is written is of no use to anybody else, and a block that comes back changed or in another place is noticed. One thread uses
/// a sealer.
package final class BlockSealer {
  /// The bytes by which a sealed block is longer.
  package static let overhead = AES256GCM.tagBytes
  private let sealing: OpaquePointer
  private let opening: OpaquePointer

  /// Makes a sealer with a random key.
  package init() throws {
    let key = try SecretBytes.random(count: AES256GCM.keyBytes)
    sealing = try Self.context(key, encrypts: true)
    do { opening = try Self.context(key, encrypts: false) } catch {
      EVP_CIPHER_CTX_free(sealing)
      throw error
    }
  }

  deinit {
    // The contexts wipe their keys.
    EVP_CIPHER_CTX_free(sealing)
    EVP_CIPHER_CTX_free(opening)
  }

  private static func context(_ key: SecretBytes, encrypts: Bool) throws -> OpaquePointer {
    guard let context = EVP_CIPHER_CTX_new() else {
      throw libraryFailure("libcrypto can't create a cipher context")
    }
    let isSet = key.withUnsafeBytes {
      EVP_CipherInit_ex(
        context, EVP_aes_256_gcm(), nil, $0.bindMemory(to: UInt8.self).baseAddress, nil, encrypts ? 1 : 0)
        == 1
    }
    guard isSet else {
      EVP_CIPHER_CTX_free(context)
      throw libraryFailure("libcrypto can't create a cipher context with a key")
    }
    return context
  }

  /// The nonce of a block: its number. No number is sealed twice.
  private static func withNonce(_ block: UInt64, _ body: (UnsafePointer<UInt8>) -> Bool) -> Bool {
    var nonce: (UInt64, UInt32) = (block.bigEndian, 0)
    return withUnsafeBytes(of: &nonce) { body($0.bindMemory(to: UInt8.self).baseAddress.unsafelyUnwrapped) }
  }

  /// Seals a block. Each number may be sealed once. `output` has room for `overhead` bytes more.
  package func seal(
    _ block: UInt64, _ plain: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer
  ) throws {
    var written: Int32 = 0
    let start = output.assumingMemoryBound(to: UInt8.self)
    let end = start + plain.count
    let isSealed = Self.withNonce(block) { nonce in
      EVP_EncryptInit_ex(sealing, nil, nil, nil, nonce) == 1
        && EVP_EncryptUpdate(
          sealing, start, &written, plain.bindMemory(to: UInt8.self).baseAddress, Int32(plain.count)) == 1
        && EVP_EncryptFinal_ex(sealing, end, &written) == 1
        && EVP_CIPHER_CTX_ctrl(sealing, EVP_CTRL_AEAD_GET_TAG, Int32(Self.overhead), end) == 1
    }
    guard isSealed else { throw libraryFailure("a block of a temporary file can't be encrypted") }
  }

  /// Opens a block. False if it isn't the one that was sealed with this number. `output` has room for it without its last `overhead` bytes.
  package func open(
    _ block: UInt64, _ sealed: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer
  ) -> Bool {
    let count = sealed.count - Self.overhead
    guard count >= 0, let bytes = sealed.bindMemory(to: UInt8.self).baseAddress else { return false }
    var written: Int32 = 0
    var end: UInt8 = 0
    let isAuthentic = Self.withNonce(block) { nonce in
      EVP_DecryptInit_ex(opening, nil, nil, nil, nonce) == 1
        && EVP_DecryptUpdate(
          opening, output.assumingMemoryBound(to: UInt8.self), &written, bytes, Int32(count)) == 1
        && EVP_CIPHER_CTX_ctrl(
          opening, EVP_CTRL_AEAD_SET_TAG, Int32(Self.overhead),
          UnsafeMutableRawPointer(mutating: bytes + count))
          == 1
        && EVP_DecryptFinal_ex(opening, &end, &written) == 1
    }
    if !isAuthentic { ERR_clear_error() }
    return isAuthentic
  }
}
