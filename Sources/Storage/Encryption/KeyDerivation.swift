import CCrypto

/// The function that derives the key that wraps the data key from the user's key.
enum KeyDerivation: Hashable, Sendable {
  /// RFC 7914, for passphrases. Needs 128 * n * r bytes of memory.
  case scrypt(n: UInt64, r: UInt64, p: UInt64)
  /// RFC 5869 with HMAC-SHA-256, for keys that can't be guessed.
  case hkdfSHA256

  /// The parameters for new passphrases: 64 MiB, about 0.1 s.
  static let standardScrypt = KeyDerivation.scrypt(n: 65_536, r: 8, p: 1)

  /// The maximum n * r * p that a file may require, eight times the standard: 512 MiB, about a second. A file
  /// from an untrusted source must not exhaust the machine.
  static let maximumScryptCost: UInt64 = 1 << 22

  static let saltBytes = 32
  static let keyBytes = 32

  /// Whether the parameters are valid for scrypt and within the limits of this release.
  var isAcceptable: Bool {
    guard case .scrypt(let n, let r, let p) = self else { return true }
    guard n >= 2, n.nonzeroBitCount == 1, r >= 1, p >= 1 else { return false }
    let (nr, overflows) = n.multipliedReportingOverflow(by: r)
    let (nrp, overflowsToo) = nr.multipliedReportingOverflow(by: p)
    // RFC 7914 also requires n < 2^(128 * r / 8). Within the limits above, only r = 1 can violate that.
    return !overflows && !overflowsToo && nrp <= Self.maximumScryptCost && (r > 1 || n < 1 << 16)
  }

  /// Derives `count` bytes from `secret` and `salt`. `info` binds HKDF's output to a purpose. scrypt has no
  /// such input and ignores it.
  func derive(
    _ secret: SecretBytes, salt: [UInt8], info: [UInt8], count: Int = keyBytes
  ) throws -> SecretBytes {
    switch self {
    case .scrypt(let n, let r, let p):
      return try SecretBytes(count: count) { output in
        // OpenSSL's own memory limit would reject the standard parameters.
        let memory = 128 * n * r + 128 * r * p + (1 << 20)
        let result = secret.withUnsafeBytes { secret in
          EVP_PBE_scrypt(
            secret.bindMemory(to: CChar.self).baseAddress, secret.count, salt, salt.count, n, r, p, memory,
            output.bindMemory(to: UInt8.self).baseAddress, output.count)
        }
        guard result == 1 else { throw libraryFailure("scrypt with n \(n), r \(r), p \(p) failed") }
      }
    case .hkdfSHA256:
      return try SecretBytes(count: count) { try Self.hkdf(secret, salt: salt, info: info, into: $0) }
    }
  }

  private static func hkdf(
    _ secret: SecretBytes, salt: [UInt8], info: [UInt8], into output: UnsafeMutableRawBufferPointer
  ) throws {
    guard let algorithm = EVP_KDF_fetch(nil, "HKDF", nil) else {
      throw libraryFailure("libcrypto doesn't provide HKDF")
    }
    defer { EVP_KDF_free(algorithm) }
    guard let context = EVP_KDF_CTX_new(algorithm) else { throw libraryFailure("no HKDF context") }
    defer { EVP_KDF_CTX_free(context) }
    var digest = Array("SHA256".utf8CString)
    var salt = salt
    var info = info
    let result = digest.withUnsafeMutableBufferPointer { digest in
      salt.withUnsafeMutableBytes { salt in
        info.withUnsafeMutableBytes { info in
          secret.withUnsafeBytes { secret in
            let parameters = [
              OSSL_PARAM_construct_utf8_string(ccryptoDigest, digest.baseAddress, 0),
              OSSL_PARAM_construct_octet_string(
                ccryptoKey, UnsafeMutableRawPointer(mutating: secret.baseAddress), secret.count),
              OSSL_PARAM_construct_octet_string(ccryptoSalt, salt.baseAddress, salt.count),
              OSSL_PARAM_construct_octet_string(ccryptoInfo, info.baseAddress, info.count),
              OSSL_PARAM_construct_end(),
            ]
            return EVP_KDF_derive(
              context, output.bindMemory(to: UInt8.self).baseAddress, output.count, parameters)
          }
        }
      }
    }
    guard result == 1 else { throw libraryFailure("HKDF failed") }
  }
}

/// Returns the SHA-256 digest of `bytes`.
func sha256(_ bytes: some Collection<UInt8>) throws -> [UInt8] {
  let input = Array(bytes)
  var digest = [UInt8](repeating: 0, count: 32)
  var count = 0
  guard EVP_Q_digest(nil, "SHA256", nil, input, input.count, &digest, &count) == 1, count == 32 else {
    throw libraryFailure("libcrypto doesn't provide SHA-256")
  }
  return digest
}
