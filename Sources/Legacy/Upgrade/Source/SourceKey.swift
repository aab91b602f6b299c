// The key of an encrypted 1.x database: 32 bytes. SQLCipher gets it as a raw key, and AES for attachments
// uses it.
//
//   key := PBKDF2(password in UTF-8, salt "Salty McNaCl", 64,000 rounds, 32 bytes)
//
// The hash is HMAC-SHA256 on iOS and Android, and HMAC-SHA1 in .NET. Android takes as many bytes of the UTF-8
// as the password has UTF-16 units. A password with other characters than ASCII is therefore cut off.

import CCrypto
import Encryption

/// The possible keys of a password, by platform.
enum SourceKey {
  static let salt = Array("Salty McNaCl".utf8)
  static let rounds: Int32 = 64_000

  /// Returns the possible database keys of a user's key, the most likely first.
  static func candidates(_ key: UserKey) throws -> [() throws -> SecretBytes] {
    if key.isRaw { return [{ key.secretBytes }] }
    let password = key.secretBytes
    let units = password.withUnsafeBytes { String(decoding: $0, as: UTF8.self).utf16.count }
    var candidates: [() throws -> SecretBytes] = [
      { try derive(password, count: password.count, EVP_sha256()) },
      { try derive(password, count: password.count, EVP_sha1()) },
    ]
    if units < password.count {
      candidates.append { try derive(password, count: units, EVP_sha256()) }
    }
    return candidates
  }

  private static func derive(
    _ password: SecretBytes, count: Int, _ hash: OpaquePointer?
  ) throws -> SecretBytes {
    try SecretBytes(count: 32) { key in
      let code = password.withUnsafeBytes { password in
        PKCS5_PBKDF2_HMAC(
          password.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(count), salt, Int32(salt.count),
          rounds, hash, 32, key.baseAddress?.assumingMemoryBound(to: UInt8.self))
      }
      guard code == 1 else {
        throw EncryptionError(.libraryFailure, "the key of a 1.x database can't be derived")
      }
    }
  }
}
