import CCrypto

/// Digests of bytes that don't name revisions or blobs.
package enum MessageDigest {
  /// The names of the algorithms, in lower case, and those of libcrypto.
  private static let names = [
    "md5": "MD5", "sha224": "SHA2-224", "sha256": "SHA2-256", "sha384": "SHA2-384", "sha512": "SHA2-512",
    "sha512/224": "SHA2-512/224", "sha512/256": "SHA2-512/256",
  ]

  /// The digest by an algorithm such as `sha256`. Nil for another name, and for an algorithm that libcrypto is set
  /// not to have.
  package static func of(_ bytes: UnsafeRawBufferPointer, _ algorithm: String) -> [UInt8]? {
    guard let name = names[algorithm], let method = EVP_MD_fetch(nil, name, nil) else { return nil }
    defer { EVP_MD_free(method) }
    var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    guard EVP_Digest(bytes.baseAddress, bytes.count, &digest, &length, method, nil) == 1 else { return nil }
    return Array(digest.prefix(Int(length)))
  }
}
