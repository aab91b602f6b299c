extension SecretBytes {
  /// A key for one purpose, derived from this one: HKDF-SHA-256 (RFC 5869) with `purpose` as its info.
  ///
  /// Keys of different purposes or salts tell nothing of each other, or of this one. Without a salt it is the
  /// RFC's own, 32 zero bytes. 1 to 255 * 32 bytes.
  public func subkey(
    for purpose: String, salt: [UInt8] = [UInt8](repeating: 0, count: 32), count: Int = 32
  ) throws -> SecretBytes {
    try KeyDerivation.hkdfSHA256.derive(self, salt: salt, info: Array(purpose.utf8), count: count)
  }
}
