import CCrypto

// The algorithms of JSON web signatures that CouchDB knows (RFC 7518, 3):
//
//   HS256, HS384, HS512    HMAC with SHA-2
//   RS256, RS384, RS512    RSASSA-PKCS1-v1_5 with SHA-2
//   ES256, ES384, ES512    ECDSA with the curves P-256, P-384, P-521. The signature is r s, as long as a coordinate each

/// How a token is signed.
struct TokenAlgorithm: Sendable {
  /// The kinds of keys. A key is of one kind, so a token can't have a public key taken for a secret.
  enum Family: String, Sendable {
    case hmac, rsa, ec
  }

  let family: Family
  /// 256, 384 or 512.
  let bits: Int

  /// Nil for others, and for `none`.
  init?(_ name: String) {
    guard name.utf8.count == 5, let bits = Int(name.suffix(3)), [256, 384, 512].contains(bits) else {
      return nil
    }
    switch name.prefix(2) {
    case "HS": family = .hmac
    case "RS": family = .rsa
    case "ES": family = .ec
    default: return nil
    }
    self.bits = bits
  }

  var digest: OpaquePointer? {
    switch bits {
    case 256: EVP_sha256()
    case 384: EVP_sha384()
    default: EVP_sha512()
    }
  }

  /// The bits of the curve that goes with it.
  var curveBits: Int { bits == 512 ? 521 : bits }
}

/// A key that tokens are checked with.
enum TokenKey: Sendable {
  case secret([UInt8])
  case publicKey(PublicKey)

  /// The fewest bytes of a secret: who has a token could find a shorter one by trying.
  static let leastSecretBytes = 16
  /// The fewest bits of an RSA key.
  static let leastRSABits = 2_048

  /// A public key of libcrypto.
  final class PublicKey: @unchecked Sendable {
    // It is read only, which libcrypto allows from several threads.
    fileprivate let pointer: OpaquePointer
    let bits: Int
    let family: TokenAlgorithm.Family?

    /// Reads a PEM file's text. Nil if it isn't a public key.
    init?(pem: [UInt8]) {
      // The BIO reads the bytes where they are, until it ends.
      let pointer = pem.withUnsafeBytes { bytes -> OpaquePointer? in
        guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
        defer { BIO_free(bio) }
        return PEM_read_bio_PUBKEY(bio, nil, nil, nil)
      }
      guard let pointer else {
        ERR_clear_error()
        return nil
      }
      self.pointer = pointer
      bits = Int(EVP_PKEY_get_bits(pointer))
      family =
        EVP_PKEY_is_a(pointer, "RSA") == 1 ? .rsa : EVP_PKEY_is_a(pointer, "EC") == 1 ? .ec : nil
    }

    deinit { EVP_PKEY_free(pointer) }

    /// Whether it has made the signature, which is DER for an elliptic curve.
    fileprivate func hasSigned(_ message: [UInt8], _ signature: [UInt8], _ digest: OpaquePointer?) -> Bool {
      guard let context = EVP_MD_CTX_new() else { return false }
      defer {
        EVP_MD_CTX_free(context)
        // What a forged signature leaves there isn't the next caller's.
        ERR_clear_error()
      }
      return EVP_DigestVerifyInit(context, nil, digest, nil, pointer) == 1
        && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
    }
  }

  /// Whether it has signed a message.
  func hasSigned(_ message: [UInt8], _ signature: [UInt8], _ algorithm: TokenAlgorithm) -> Bool {
    switch (self, algorithm.family) {
    case (.secret(let secret), .hmac):
      var mac = [UInt8](repeating: 0, count: 64)
      var count: UInt32 = 64
      HMAC(algorithm.digest, secret, Int32(secret.count), message, message.count, &mac, &count)
      return signature.count == Int(count) && CRYPTO_memcmp(mac, signature, Int(count)) == 0
    case (.publicKey(let key), .rsa):
      return key.family == .rsa && key.hasSigned(message, signature, algorithm.digest)
    case (.publicKey(let key), .ec):
      guard key.family == .ec, key.bits == algorithm.curveBits, let signature = Self.der(signature, key.bits)
      else { return false }
      return key.hasSigned(message, signature, algorithm.digest)
    default: return false
    }
  }

  /// A signature of an elliptic curve as libcrypto wants it: SEQUENCE { INTEGER r, INTEGER s }. Nil if its length is wrong.
  private static func der(_ signature: [UInt8], _ bits: Int) -> [UInt8]? {
    let length = (bits + 7) / 8
    guard signature.count == 2 * length else { return nil }
    func integer(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
      var number = Array(bytes.drop { $0 == 0 })
      if number.first.map({ $0 >= 0x80 }) ?? true { number.insert(0, at: 0) }
      return [0x02, UInt8(number.count)] + number
    }
    let numbers = integer(signature[..<length]) + integer(signature[length...])
    return numbers.count < 0x80
      ? [0x30, UInt8(numbers.count)] + numbers : [0x30, 0x81, UInt8(numbers.count)] + numbers
  }
}
