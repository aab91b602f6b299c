import Bytes
import CCrypto
import HTTP

// Proxy authentication, as CouchDB's: a proxy that has checked who asks says so in headers.
//
//   X-Auth-CouchDB-UserName: name
//   X-Auth-CouchDB-Roles: role ( "," role )*
//   X-Auth-CouchDB-Token: hexadecimal HMAC( secret, name ) with SHA-256 or SHA-1

/// What a proxy and the server have agreed on.
struct ProxyLogin: Sendable {
  /// The most bytes of the name and of the roles.
  static let mostBytes = 8 << 10
  static let digests: [String: @Sendable () -> OpaquePointer?] = [
    "sha": { EVP_sha1() }, "sha256": { EVP_sha256() }, "sha384": { EVP_sha384() }, "sha512": { EVP_sha512() },
  ]

  let secret: [UInt8]
  var nameHeader = "x-auth-couchdb-username"
  var rolesHeader = "x-auth-couchdb-roles"
  var tokenHeader = "x-auth-couchdb-token"
  /// The hash functions of tokens that are taken.
  var hashes = ["sha256", "sha"]

  init(secret: [UInt8]) { self.secret = secret }

  /// Whom the proxy names; nil if no proxy that knows the secret has sent the request.
  func user(_ header: (String) -> String?) -> UserContext? {
    guard let name = header(nameHeader), !name.isEmpty, name.utf8.count <= Self.mostBytes,
      let token = header(tokenHeader).flatMap({ Hex.bytes($0.utf8) }), isRight(token, name)
    else { return nil }
    let roles = header(rolesHeader) ?? ""
    guard roles.utf8.count <= Self.mostBytes else { return nil }
    return UserContext(
      name: name, roles: roles.split(separator: ",").map { $0.trimmed }.filter { !$0.isEmpty },
      bringsRoles: true)
  }

  private func isRight(_ token: [UInt8], _ name: String) -> Bool {
    let text = Array(name.utf8)
    return hashes.contains { hash in
      var mac = [UInt8](repeating: 0, count: 64)
      var count: UInt32 = 64
      HMAC(Self.digests[hash]?(), secret, Int32(secret.count), text, text.count, &mac, &count)
      return token.count == Int(count) && CRYPTO_memcmp(mac, token, Int(count)) == 0
    }
  }
}
