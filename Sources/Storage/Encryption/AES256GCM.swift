import CCrypto

/// AES-256 in Galois/Counter Mode (NIST SP 800-38D). It encrypts, and it detects changes of the ciphertext
/// and of the additional data.
enum AES256GCM {
  static let keyBytes = 32
  static let nonceBytes = 12
  static let tagBytes = 16

  /// Returns the encrypted `plaintext`, followed by the tag. A nonce must never be used twice with one key.
  static func seal(
    _ plaintext: SecretBytes, key: SecretBytes, nonce: [UInt8], additionalData: [UInt8]
  ) throws -> [UInt8] {
    let context = try makeContext(key: key, nonce: nonce)
    defer { EVP_CIPHER_CTX_free(context) }
    var output = [UInt8](repeating: 0, count: plaintext.count + tagBytes)
    var written: Int32 = 0
    let isSealed =
      setUp(context, key: key, nonce: nonce, encrypts: true)
      && EVP_EncryptUpdate(context, nil, &written, additionalData, Int32(additionalData.count)) == 1
      && plaintext.withUnsafeBytes { plaintext in
        EVP_EncryptUpdate(
          context, &output, &written, plaintext.bindMemory(to: UInt8.self).baseAddress,
          Int32(plaintext.count)) == 1
      }
      && output.withUnsafeMutableBufferPointer { output in
        var rest: Int32 = 0
        let end = output.baseAddress! + plaintext.count
        return EVP_EncryptFinal_ex(context, end, &rest) == 1
          && EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, Int32(tagBytes), end) == 1
      }
    guard isSealed else { throw libraryFailure("AES-256-GCM can't encrypt") }
    return output
  }

  /// Returns the plaintext of `seal`. Nil if the tag doesn't match: another key, nonce, ciphertext or
  /// additional data.
  static func open(
    _ sealed: [UInt8], key: SecretBytes, nonce: [UInt8], additionalData: [UInt8]
  ) throws -> SecretBytes? {
    guard sealed.count >= tagBytes else { return nil }
    let context = try makeContext(key: key, nonce: nonce)
    defer { EVP_CIPHER_CTX_free(context) }
    let count = sealed.count - tagBytes
    var tag = Array(sealed[count...])
    var isAuthentic = false
    let plaintext = try SecretBytes(count: count) { output in
      var written: Int32 = 0
      let bytes = output.bindMemory(to: UInt8.self)
      guard setUp(context, key: key, nonce: nonce, encrypts: false),
        EVP_DecryptUpdate(context, nil, &written, additionalData, Int32(additionalData.count)) == 1,
        EVP_DecryptUpdate(context, bytes.baseAddress, &written, sealed, Int32(count)) == 1,
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, Int32(tagBytes), &tag) == 1
      else { throw libraryFailure("AES-256-GCM can't decrypt") }
      // The final step of GCM writes no bytes. The pointer only must not be null.
      var end: UInt8 = 0
      isAuthentic = EVP_DecryptFinal_ex(context, &end, &written) == 1
    }
    ERR_clear_error()
    return isAuthentic ? plaintext : nil
  }

  private static func makeContext(key: SecretBytes, nonce: [UInt8]) throws -> OpaquePointer {
    precondition(key.count == keyBytes && nonce.count == nonceBytes)
    guard let context = EVP_CIPHER_CTX_new() else {
      throw libraryFailure("libcrypto can't create a cipher context")
    }
    return context
  }

  private static func setUp(
    _ context: OpaquePointer, key: SecretBytes, nonce: [UInt8], encrypts: Bool
  ) -> Bool {
    key.withUnsafeBytes { key in
      EVP_CipherInit_ex(
        context, EVP_aes_256_gcm(), nil, key.bindMemory(to: UInt8.self).baseAddress, nonce, encrypts ? 1 : 0)
        == 1
    }
  }
}
