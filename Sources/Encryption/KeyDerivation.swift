import CCrypto

/// How the key that wraps the data key comes from the user's key.
enum KeyDerivation: Hashable, Sendable {
  /// RFC 7914, for passphrases. Needs 128 * n * r bytes of memory.
  case scrypt(n: UInt64, r: UInt64, p: UInt64)
  /// RFC 5869 with HMAC-SHA-256, for keys that can't be guessed.
  case hkdfSHA256

  /// What new passphrases are stretched with: 64 MiB, about 0.1 s.
  static let standardScrypt = KeyDerivation.scrypt(n: 65_536, r: 8, p: 1)

  /// The greatest n * r * p that a file may ask for, eight times the standard: 512 MiB, a second. A file from a
  /// stranger must not take the machine.
  static let maximumScryptCost: UInt64 = 1 << 22

  static let saltBytes = 32
  static let keyBytes = 32

  /// Whether the parameters are ones that scrypt is defined for and that this release is willing to spend.
  var isAcceptable: Bool {
    guard case .scrypt(let n, let r, let p) = self else { return true }
    guard n >= 2, n.nonzeroBitCount == 1, r >= 1, p >= 1 else { return false }
    let (nr, overflows) = n.multipliedReportingOverflow(by: r)
    let (nrp, overflowsToo) = nr.multipliedReportingOverflow(by: p)
    // RFC 7914 wants n < 2^(128 * r / 8) as well: always so for the n that are left here, but for r = 1.
    return !overflows && !overflowsToo && nrp <= Self.maximumScryptCost && (r > 1 || n < 1 << 16)
  }

  /// `count` bytes from `secret` and `salt`. `info` binds HKDF's output to a purpose; scrypt has no such
  /// input and ignores it.
  func derive(
    _ secret: SecretBytes, salt: [UInt8], info: [UInt8], count: Int = keyBytes
  ) throws -> SecretBytes {
    switch self {
    case .scrypt(let n, let r, let p):
      return try SecretBytes(count: count) { output in
        // OpenSSL's own memory limit would refuse the standard parameters.
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
    guard let algorithm = EVP_KDF_fetch(nil, "HKDF", nil) else { throw libraryFailure("there is no HKDF") }
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

/// SHA-256 of `bytes`.
func sha256(_ bytes: some Collection<UInt8>) throws -> [UInt8] {
  let input = Array(bytes)
  var digest = [UInt8](repeating: 0, count: 32)
  var count = 0
  guard EVP_Q_digest(nil, "SHA256", nil, input, input.count, &digest, &count) == 1, count == 32 else {
    throw libraryFailure("there is no SHA-256")
  }
  return digest
}
