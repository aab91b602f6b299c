// The encryption of a file. Each block is one message of AES-256 in CBC mode, without padding:
//
//   key       K, 32 bytes
//   IV of n   AES-256-ECB(SHA-256(K), n as u64, highest byte first, then 8 zero bytes)
//
// Nothing is stored in clear, and there is no checksum of the ciphertext.

import CCrypto
import Encryption

/// Decrypts blocks. One thread at a time.
final class BlockCipher {
  private let forIVs: OpaquePointer
  private let forBlocks: OpaquePointer

  init(_ key: SecretBytes) throws {
    guard let forIVs = EVP_CIPHER_CTX_new() else { throw Self.failure }
    guard let forBlocks = EVP_CIPHER_CTX_new() else {
      EVP_CIPHER_CTX_free(forIVs)
      throw Self.failure
    }
    self.forIVs = forIVs
    self.forBlocks = forBlocks
    let hash = try SecretBytes(count: 32) { hash in
      let code = key.withUnsafeBytes {
        EVP_Digest(
          $0.baseAddress, $0.count, hash.baseAddress?.assumingMemoryBound(to: UInt8.self), nil, EVP_sha256(),
          nil)
      }
      guard code == 1 else { throw Self.failure }
    }
    guard
      hash.withUnsafeBytes({
        EVP_EncryptInit_ex(
          forIVs, EVP_aes_256_ecb(), nil, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), nil)
      }) == 1, EVP_CIPHER_CTX_set_padding(forIVs, 0) == 1,
      key.count == 32,
      key.withUnsafeBytes({
        EVP_DecryptInit_ex(
          forBlocks, EVP_aes_256_cbc(), nil, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), nil)
      }) == 1, EVP_CIPHER_CTX_set_padding(forBlocks, 0) == 1
    else { throw Self.failure }
  }

  deinit {
    EVP_CIPHER_CTX_free(forIVs)
    EVP_CIPHER_CTX_free(forBlocks)
  }

  private static var failure: EncryptionError {
    ERR_clear_error()
    return EncryptionError(.libraryFailure, "AES-256 isn't available in libcrypto")
  }

  /// Decrypts a block in its place.
  func decrypt(_ block: UnsafeMutableRawPointer, number: Int) throws {
    var input = (UInt64(number).bigEndian, UInt64(0))
    var iv = (UInt64(0), UInt64(0))
    var count: Int32 = 0
    let bytes = block.assumingMemoryBound(to: UInt8.self)
    let isDone = withUnsafeBytes(of: &input) { input in
      withUnsafeMutableBytes(of: &iv) { iv -> Bool in
        let start = iv.baseAddress?.assumingMemoryBound(to: UInt8.self)
        return EVP_EncryptUpdate(
          forIVs, start, &count, input.baseAddress?.assumingMemoryBound(to: UInt8.self), 16) == 1
          && EVP_DecryptInit_ex(forBlocks, nil, nil, nil, start) == 1
          && EVP_DecryptUpdate(forBlocks, bytes, &count, bytes, Int32(BlockFile.blockBytes)) == 1
      }
    }
    guard isDone, count == BlockFile.blockBytes else { throw Self.failure }
  }
}
