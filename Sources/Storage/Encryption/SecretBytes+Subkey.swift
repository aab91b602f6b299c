extension SecretBytes {
  /// Derives a key for one purpose from this key: HKDF-SHA-256 (RFC 5869) with `purpose` as its info.
  ///
  /// Keys for different purposes or salts reveal nothing about each other or about this key. The default salt
  /// is that of the RFC, 32 zero bytes. `count` is 1 to 255 * 32 bytes.
  package func subkey(
    for purpose: String, salt: [UInt8] = [UInt8](repeating: 0, count: 32), count: Int = 32
  ) throws -> SecretBytes {
    try KeyDerivation.hkdfSHA256.derive(self, salt: salt, info: Array(purpose.utf8), count: count)
  }
}
