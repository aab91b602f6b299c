import CCrypto
import CSQLite
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Encrypts pages as SQLCipher 3 does (`PageAuthentication` has their bytes). One thread at a time.
final class PageCipher {
  /// What all pages of a file are encrypted with.
  final class Keys: Sendable {
    let key: SecretKey
    let hmacKey: SecretKey

    /// The keys of a file that begins with `salt`.
    init(_ key: SecretKey, salt: [UInt8]) throws {
      self.key = key
      hmacKey = try PageAuthentication.key(key, salt: salt)
    }
  }

  private let encryption: OpaquePointer
  private let mac: OpaquePointer

  init(_ keys: Keys) throws {
    guard let encryption = EVP_CIPHER_CTX_new() else { throw Self.failure }
    self.encryption = encryption
    guard let method = EVP_MAC_fetch(nil, "HMAC", nil), let mac = EVP_MAC_CTX_new(method) else {
      EVP_CIPHER_CTX_free(encryption)
      throw Self.failure
    }
    EVP_MAC_free(method)
    self.mac = mac
    let isSet = keys.key.withBytes { key in
      EVP_CipherInit_ex(
        encryption, EVP_aes_256_cbc(), nil, key.bindMemory(to: UInt8.self).baseAddress, nil, 1) == 1
    }
    var digest: [CChar] = Array("SHA1".utf8CString)
    let isKeyed = keys.hmacKey.withBytes { key in
      digest.withUnsafeMutableBufferPointer { digest in
        var parameters = [
          OSSL_PARAM_construct_utf8_string(ccryptoDigest, digest.baseAddress, 0),
          OSSL_PARAM_construct_end(),
        ]
        return EVP_MAC_init(mac, key.bindMemory(to: UInt8.self).baseAddress, key.count, &parameters) == 1
      }
    }
    guard isSet, isKeyed else { throw Self.failure }
  }

  deinit {
    EVP_CIPHER_CTX_free(encryption)
    EVP_MAC_CTX_free(mac)
  }

  /// Encrypts a page in place, with `iv` that was drawn for it; its reserved bytes are overwritten.
  func encrypt(_ page: UnsafeMutableRawPointer, number: UInt32, iv: UnsafeRawPointer) throws {
    let salt = number == 1 ? PageAuthentication.saltBytes : 0
    let count = SQLiteLayout.pageBytes - PageAuthentication.reserved - salt
    let start = (page + salt).assumingMemoryBound(to: UInt8.self)
    let end = start + count
    var written: Int32 = 0
    guard
      EVP_CipherInit_ex(encryption, nil, nil, nil, iv.assumingMemoryBound(to: UInt8.self), 1) == 1,
      EVP_CIPHER_CTX_set_padding(encryption, 0) == 1,
      EVP_CipherUpdate(encryption, start, &written, start, Int32(count)) == 1, written == count
    else { throw Self.failure }
    memset(end, 0, PageAuthentication.reserved)
    memcpy(end, iv, PageAuthentication.ivBytes)
    try authenticate(
      start, count + PageAuthentication.ivBytes, number, into: end + PageAuthentication.ivBytes)
  }

  /// Decrypts a page in place. False when it isn't authentic.
  func decrypt(_ page: UnsafeMutableRawPointer, number: UInt32, _ keys: Keys) throws -> Bool {
    let salt = number == 1 ? PageAuthentication.saltBytes : 0
    let count = SQLiteLayout.pageBytes - PageAuthentication.reserved - salt
    let start = (page + salt).assumingMemoryBound(to: UInt8.self)
    let end = start + count
    var code = [UInt8](repeating: 0, count: PageAuthentication.hmacBytes)
    try authenticate(start, count + PageAuthentication.ivBytes, number, into: &code)
    guard memcmp(code, end + PageAuthentication.ivBytes, code.count) == 0 else { return false }
    guard let context = EVP_CIPHER_CTX_new() else { throw Self.failure }
    defer { EVP_CIPHER_CTX_free(context) }
    var written: Int32 = 0
    let isDecrypted = keys.key.withBytes { key in
      EVP_CipherInit_ex(
        context, EVP_aes_256_cbc(), nil, key.bindMemory(to: UInt8.self).baseAddress, end, 0) == 1
        && EVP_CIPHER_CTX_set_padding(context, 0) == 1
        && EVP_CipherUpdate(context, start, &written, start, Int32(count)) == 1 && written == count
    }
    guard isDecrypted else { throw Self.failure }
    return true
  }

  private func authenticate(
    _ start: UnsafePointer<UInt8>, _ count: Int, _ number: UInt32, into code: UnsafeMutablePointer<UInt8>
  ) throws {
    var number = number.littleEndian
    var written = 0
    let isMade = withUnsafeBytes(of: &number) { number in
      // Without a key it begins anew with the one it has.
      EVP_MAC_init(mac, nil, 0, nil) == 1 && EVP_MAC_update(mac, start, count) == 1
        && EVP_MAC_update(mac, number.bindMemory(to: UInt8.self).baseAddress, number.count) == 1
        && EVP_MAC_final(mac, code, &written, PageAuthentication.hmacBytes) == 1
    }
    guard isMade, written == PageAuthentication.hmacBytes else { throw Self.failure }
  }

  private static var failure: StorageError {
    ERR_clear_error()
    return StorageError(.engineFailure, "a page could not be encrypted")
  }
}
