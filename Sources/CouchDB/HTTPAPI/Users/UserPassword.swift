import Bytes
import CCrypto
import Fleece
import Views

// The password of a user as CouchDB stores it in a document of `_users`:
//
//   "password_scheme": "pbkdf2", "pbkdf2_prf": PRF, "iterations": n, "salt": text, "derived_key": hex
//   "password_scheme": "simple", "salt": text, "password_sha": hex of SHA-1( password salt )
//
// PRF is HMAC with "sha" (when missing), "sha224", "sha256", "sha384" or "sha512". The bytes of the salt are those of its text. The key is as
// long as the hash. New passwords are pbkdf2 with sha256.

/// A salted slow hash of a password in a document of `_users`.
struct UserPassword: Sendable {
  enum Scheme: Sendable, Equatable {
    case pbkdf2(PRF, iterations: Int)
    /// One SHA-1, of CouchDB before 1.3. It is checked, and never made.
    case simple
  }

  /// The hash functions of PBKDF2.
  enum PRF: String, Sendable, CaseIterable {
    case sha, sha224, sha256, sha384, sha512

    /// The length of a hash in bytes.
    var count: Int {
      switch self {
      case .sha: 20
      case .sha224: 28
      case .sha256: 32
      case .sha384: 48
      case .sha512: 64
      }
    }

    fileprivate var function: OpaquePointer? {
      switch self {
      case .sha: EVP_sha1()
      case .sha224: EVP_sha224()
      case .sha256: EVP_sha256()
      case .sha384: EVP_sha384()
      case .sha512: EVP_sha512()
      }
    }
  }

  /// What CouchDB 3.5 has for new passwords: about 0.2 s.
  static let standardIterations = 600_000
  /// A document with more can't log in: a check would take seconds.
  static let mostIterations = 10_000_000
  /// The most bytes of a salt.
  static let mostSaltBytes = 1_024

  let scheme: Scheme
  let salt: [UInt8]
  let key: [UInt8]

  /// Hashes a password under a new salt. Throws a `CouchDBError` of 500 if libcrypto can't.
  init(_ password: [UInt8], iterations: Int) throws {
    var random = [UInt8](repeating: 0, count: 16)
    let scheme = Scheme.pbkdf2(.sha256, iterations: max(1, iterations))
    guard RAND_bytes(&random, Int32(random.count)) == 1,
      let key = Self.derive(password, scheme, Array(Hex.text(random).utf8))
    else { throw CouchDBError(500, "internal_server_error", "libcrypto can't hash a password") }
    self.scheme = scheme
    salt = Array(Hex.text(random).utf8)
    self.key = key
  }

  /// What passwords of unknown users are compared with. It takes no time to make, and is the hash of nothing that anybody knows.
  static func ofNobody(iterations: Int) -> UserPassword {
    func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in .random(in: 0...255) } }
    return UserPassword(
      scheme: .pbkdf2(.sha256, iterations: max(1, iterations)), salt: Array(Hex.text(random(16)).utf8),
      key: random(PRF.sha256.count))
  }

  private init(scheme: Scheme, salt: [UInt8], key: [UInt8]) {
    self.scheme = scheme
    self.salt = salt
    self.key = key
  }

  /// Reads a document's. Nil if it has none, or one that isn't checked here.
  init?(_ body: JSONObject) {
    guard let salt = body["salt"]?.string, salt.utf8.count <= Self.mostSaltBytes else { return nil }
    self.salt = Array(salt.utf8)
    let length: Int
    let digits: String?
    switch body["password_scheme"]?.string {
    case "pbkdf2":
      guard let prf = PRF(rawValue: body["pbkdf2_prf"]?.string ?? PRF.sha.rawValue),
        let iterations = body["iterations"]?.int, 1...Int64(Self.mostIterations) ~= iterations
      else { return nil }
      scheme = .pbkdf2(prf, iterations: Int(iterations))
      length = prf.count
      digits = body["derived_key"]?.string
    case "simple", nil:
      scheme = .simple
      length = PRF.sha.count
      digits = body["password_sha"]?.string
    default: return nil
    }
    guard let key = digits.flatMap({ Hex.bytes($0.utf8) }), key.count == length else { return nil }
    self.key = key
  }

  /// The members of a document that have it, in CouchDB's order.
  var members: [(String, JSONValue)] {
    let salt = JSONValue.string(String(decoding: salt, as: UTF8.self))
    let key = JSONValue.string(Hex.text(key))
    return switch scheme {
    case .pbkdf2(let prf, let iterations):
      [
        ("password_scheme", "pbkdf2"), ("pbkdf2_prf", .string(prf.rawValue)), ("salt", salt),
        ("iterations", JSONValue(iterations)), ("derived_key", key),
      ]
    case .simple: [("password_scheme", "simple"), ("salt", salt), ("password_sha", key)]
    }
  }

  /// The names of all members that have one.
  static let memberNames = [
    "password", "password_scheme", "pbkdf2_prf", "salt", "iterations", "derived_key", "password_sha",
  ]

  /// Whether it is the hash of that password. The comparison takes the same time for all keys.
  func matches(_ password: [UInt8]) -> Bool {
    guard let other = Self.derive(password, scheme, salt) else { return false }
    return CRYPTO_memcmp(other, key, key.count) == 0
  }

  /// The iterations that a check takes.
  var iterations: Int { if case .pbkdf2(_, let iterations) = scheme { iterations } else { 0 } }

  /// A number that another password, or the same one under another salt, doesn't have.
  var mark: UInt64 {
    var digest = [UInt8](repeating: 0, count: 32)
    let text = salt + [0] + key
    SHA256(text, text.count, &digest)
    return digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }

  private static func derive(_ password: [UInt8], _ scheme: Scheme, _ salt: [UInt8]) -> [UInt8]? {
    switch scheme {
    case .pbkdf2(let prf, let iterations):
      var key = [UInt8](repeating: 0, count: prf.count)
      // An empty password isn't a null pointer.
      let text = password + [0]
      let result = text.withUnsafeBytes { bytes in
        PKCS5_PBKDF2_HMAC(
          bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(password.count), salt,
          Int32(salt.count), Int32(iterations), prf.function, Int32(prf.count), &key)
      }
      return result == 1 ? key : nil
    case .simple:
      var key = [UInt8](repeating: 0, count: PRF.sha.count)
      let text = password + salt
      SHA1(text, text.count, &key)
      return key
    }
  }

  /// Takes the time of so many iterations.
  static func spend(iterations: Int) {
    guard iterations > 0 else { return }
    _ = derive([0], .pbkdf2(.sha256, iterations: iterations), [0])
  }
}
