import Bytes
import CCrypto

// A salted slow hash of a password, as text (docs/server.md):
//
//   hash    := scrypt | pbkdf2
//   scrypt  := "scrypt:" n ":" r ":" p ":" salt ":" key       RFC 7914; n is a power of two
//   pbkdf2  := "pbkdf2-sha256:" rounds ":" salt ":" key       RFC 8018, HMAC-SHA-256
//   salt    := hex digits, 16 to 64 bytes
//   key     := hex digits, 32 bytes

/// A salted slow hash of a password.
struct PasswordHash: Sendable {
  enum Method: Sendable, Equatable {
    case scrypt(n: UInt64, r: UInt64, p: UInt64)
    case pbkdf2(rounds: Int)
  }

  private static let keyBytes = 32
  /// 16 MiB and about 50 ms.
  static let standard = Method.scrypt(n: 16_384, r: 8, p: 1)

  let method: Method
  let salt: [UInt8]
  let key: [UInt8]

  /// Hashes a password under a new salt.
  init(_ password: [UInt8], _ method: Method = standard) throws {
    var salt = [UInt8](repeating: 0, count: 16)
    guard RAND_bytes(&salt, Int32(salt.count)) == 1, let key = Self.derive(password, method, salt) else {
      throw HTTPServerError(.systemFailure, "libcrypto can't hash a password")
    }
    self.method = method
    self.salt = salt
    self.key = key
  }

  /// The least n * r * p of scrypt, and the least rounds of PBKDF2. Passwords with less are guessed too fast.
  static let leastCost: UInt64 = 65_536
  static let leastRounds = 100_000

  /// Nil if the text isn't a hash, would take too much time or memory, or too little.
  init?(_ text: some StringProtocol) {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count >= 4 else { return nil }
    switch parts[0] {
    case "scrypt":
      guard parts.count == 6, let n = UInt64(parts[1]), let r = UInt64(parts[2]), let p = UInt64(parts[3]),
        n >= 2, n & (n - 1) == 0, n <= 1 << 20, 1...32 ~= r, 1...16 ~= p,
        Self.leastCost...(1 << 22) ~= n * r * p
      else { return nil }
      method = .scrypt(n: n, r: r, p: p)
    case "pbkdf2-sha256":
      guard parts.count == 4, let rounds = Int(parts[1]), Self.leastRounds...10_000_000 ~= rounds else {
        return nil
      }
      method = .pbkdf2(rounds: rounds)
    default: return nil
    }
    guard let salt = Hex.bytes(parts[parts.count - 2].utf8), 16...64 ~= salt.count,
      let key = Hex.bytes(parts[parts.count - 1].utf8), key.count == Self.keyBytes
    else { return nil }
    self.salt = salt
    self.key = key
  }

  var text: String {
    let end = "\(Hex.text(salt)):\(Hex.text(key))"
    switch method {
    case .scrypt(let n, let r, let p): return "scrypt:\(n):\(r):\(p):\(end)"
    case .pbkdf2(let rounds): return "pbkdf2-sha256:\(rounds):\(end)"
    }
  }

  /// Whether it is the hash of that password. The comparison takes the same time for all keys.
  func matches(_ password: [UInt8]) -> Bool {
    guard let other = Self.derive(password, method, salt) else { return false }
    return CRYPTO_memcmp(other, key, Self.keyBytes) == 0
  }

  private static func derive(_ password: [UInt8], _ method: Method, _ salt: [UInt8]) -> [UInt8]? {
    var key = [UInt8](repeating: 0, count: keyBytes)
    let result = password.withUnsafeBytes { password in
      // An empty password isn't a null pointer.
      withUnsafeBytes(of: UInt8(0)) { nothing in
        let text = (password.baseAddress ?? nothing.baseAddress)?.assumingMemoryBound(to: CChar.self)
        switch method {
        case .scrypt(let n, let r, let p):
          return EVP_PBE_scrypt(text, password.count, salt, salt.count, n, r, p, 1 << 30, &key, keyBytes)
        case .pbkdf2(let rounds):
          return PKCS5_PBKDF2_HMAC(
            text, Int32(password.count), salt, Int32(salt.count), Int32(rounds), EVP_sha256(),
            Int32(keyBytes), &key)
        }
      }
    }
    return result == 1 ? key : nil
  }
}
