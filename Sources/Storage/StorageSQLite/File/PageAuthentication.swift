// A page of SQLCipher 3, N bytes with 48 reserved at the end:
//
//   page 1:      salt (16)  ciphertext (N - 64)  IV (16)  HMAC (20)  zeros (12)
//   page p > 1:             ciphertext (N - 48)  IV (16)  HMAC (20)  zeros (12)
//
//   HMAC     = HMAC-SHA1(HMAC key, ciphertext, IV, p as 4 bytes little-endian)
//   HMAC key = PBKDF2-HMAC-SHA1(key, salt with each byte ^ 0x3A, 2 rounds, 32 bytes)

import CCrypto
import CSQLite
import SQLiteLibrary
import Storage

/// A check whether a key fits a file whose first page SQLCipher refuses.
///
/// SQLCipher reports a wrong key and a damaged page alike. The other pages show the difference.
struct PageAuthentication {
  static let reserved = 48
  static let ivBytes = 16
  static let hmacBytes = 20
  static let saltBytes = 16
  /// The number of pages to check. One authentic page is enough.
  private static let pages = 16

  /// Returns whether any page after the first was written with this key. Also false if the file's salt is
  /// damaged, because the key of all authentication codes derives from it.
  static func fits(_ key: SecretKey, _ connection: Connection, fileBytes: Int) -> Bool {
    guard let salt = connection.readFile(count: saltBytes) else { return false }
    guard let hmacKey = try? Self.key(key, salt: salt) else { return false }
    let last = fileBytes / SQLiteLayout.pageBytes
    guard last >= 2 else { return false }
    // Spread over the file, because damage is usually in one place.
    let step = max(1, (last - 1) / pages)
    return stride(from: 2, through: last, by: step).contains { isAuthentic($0, hmacKey, connection) }
  }

  /// Returns the key of the authentication codes of a file that begins with `salt`.
  static func key(_ key: SecretKey, salt: [UInt8]) throws -> SecretKey {
    var derived = [UInt8](repeating: 0, count: SecretKey.count)
    defer { csqlite_wipe(&derived, derived.count) }
    let masked = salt.map { $0 ^ 0x3A }
    let isDerived = key.withBytes { key in
      PKCS5_PBKDF2_HMAC(
        key.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(key.count), masked, Int32(masked.count),
        2, EVP_sha1(), Int32(derived.count), &derived)
    }
    guard isDerived == 1, let key = SecretKey(derived) else {
      throw StorageError(.engineFailure, "the authentication key of the file can't be derived")
    }
    return key
  }

  private static func isAuthentic(_ page: Int, _ hmacKey: SecretKey, _ connection: Connection) -> Bool {
    let size = SQLiteLayout.pageBytes
    guard var bytes = connection.readFile(count: size, at: (page - 1) * size) else { return false }
    let covered = size - reserved + ivBytes
    let wanted = Array(bytes[covered..<covered + hmacBytes])
    for shift in 0..<4 { bytes[covered + shift] = UInt8(truncatingIfNeeded: page >> (8 * shift)) }
    var found = [UInt8](repeating: 0, count: 64)
    var count = 0
    let result = hmacKey.withBytes { key in
      EVP_Q_mac(
        nil, "HMAC", nil, "SHA1", nil, key.baseAddress, key.count, bytes, covered + 4, &found, found.count,
        &count)
    }
    return result != nil && count == hmacBytes && Array(found[..<count]) == wanted
  }
}
