import Bytes
import Fleece
import Glibc
import HTTP
import Views

// A JSON web token (RFC 7519) as CouchDB takes it:
//
//   token   := base64url( header ) "." base64url( claims ) "." base64url( signature )
//   header  := { "alg": TokenAlgorithm, "kid": text? }
//   claims  := { "sub": name, "exp": seconds since 1970?, "nbf": seconds?, "_couchdb.roles": [ role* ]?, … }
//
// The key is the one of the algorithm's kind and of `kid`, or `_default` without that.

/// What a token has to say, and who may sign it.
struct TokenRules: Sendable {
  /// The keys by their kinds and names: `hmac:NAME`.
  var keys: [ByteString: TokenKey] = [:]
  /// The claims and headers that a token must have.
  var required: Set<String> = []
  /// Who must have made it; nil: anybody.
  var issuer: String?
  /// Where the roles are: the names of members, from the outside to the inside.
  var rolesPath = ["_couchdb.roles"]

  /// Those that may be required.
  static let known: Set<String> = ["alg", "exp", "iat", "iss", "kid", "nbf", "sub", "typ"]
}

/// Finds out whom a token names.
struct TokenChecker: Sendable {
  /// The most bytes of a token.
  static let mostBytes = 16 << 10

  let rules: TokenRules
  /// Seconds since 1970.
  var now: @Sendable () -> Int = { time(nil) }

  /// Who a token names. Throws a `CouchDBError` of 400 or 401 that says what is wrong with it.
  func user(of token: some StringProtocol) throws -> UserContext {
    guard token.utf8.count <= Self.mostBytes else {
      throw Self.malformed("the token has more than \(Self.mostBytes) bytes")
    }
    let parts = token.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard parts.count == 3 else { throw Self.malformed("Malformed token") }
    let header = try Self.object(parts[0], "header")
    let (algorithm, key) = try key(header)
    guard let signature = StrictBase64.urlBytes(parts[2]) else {
      throw Self.malformed("the signature of the token isn't base64url")
    }
    let message = Array(parts[0]) + [UInt8(ascii: ".")] + Array(parts[1])
    guard key.hasSigned(message, signature, algorithm) else {
      throw Self.malformed(algorithm.family == .hmac ? "Bad HMAC" : "Bad signature")
    }
    // What a stranger may have written is looked at no further than that.
    let claims = try Self.object(parts[1], "payload")
    try check(claims)
    guard let name = claims["sub"]?.string, !name.isEmpty, !name.utf8.contains(0) else {
      throw CouchDBError(401, "unauthorized", "Token missing sub claim.")
    }
    return UserContext(name: name, roles: roles(claims), bringsRoles: true)
  }

  private static func malformed(_ reason: String) -> CouchDBError { CouchDBError(400, "bad_request", reason) }

  private static func object(_ part: some Sequence<UInt8>, _ what: String) throws -> JSONObject {
    guard let bytes = StrictBase64.urlBytes(part) else {
      throw malformed("the \(what) of the token isn't base64url")
    }
    guard let object = try? JSONValue(body: bytes).object else {
      throw malformed("the \(what) of the token isn't a JSON object")
    }
    return object
  }

  private func key(_ header: JSONObject) throws -> (TokenAlgorithm, TokenKey) {
    guard let name = header["alg"] else { throw Self.malformed("Missing alg header parameter") }
    guard let algorithm = name.string.flatMap({ TokenAlgorithm($0) }) else {
      throw Self.malformed("Invalid alg header parameter")
    }
    // RFC 7515: who doesn't know what is critical must refuse the token.
    guard header["crit"] == nil else { throw Self.malformed("Invalid crit header parameter") }
    if rules.required.contains("typ") {
      guard let type = header["typ"] else { throw Self.malformed("Missing typ header parameter") }
      guard type == "JWT" else { throw Self.malformed("Invalid typ header parameter") }
    }
    guard header["kid"] != nil || !rules.required.contains("kid") else {
      throw Self.malformed("Missing kid claim")
    }
    let id = header["kid"].map { $0.string } ?? "_default"
    guard let id, let key = rules.keys[ByteString("\(algorithm.family.rawValue):\(id)")] else {
      throw Self.malformed("Unknown kid")
    }
    return (algorithm, key)
  }

  private func check(_ claims: JSONObject) throws {
    if let issuer = rules.issuer {
      guard let found = claims["iss"] else { throw Self.malformed("Missing iss claim") }
      guard found.string.map({ $0.hasSameBytes(as: issuer) }) == true else {
        throw Self.malformed("Invalid iss claim")
      }
    }
    for name in ["iat", "nbf", "exp", "iss"]
    where rules.required.contains(name) && claims[name] == nil {
      throw Self.malformed("Missing \(name) claim")
    }
    for name in ["iat", "nbf", "exp"] {
      guard let claim = claims[name] else { continue }
      guard let seconds = claim.double, claim.string == nil else {
        throw Self.malformed("Invalid \(name) claim")
      }
      if name == "exp", seconds <= Double(now()) {
        throw CouchDBError(401, "unauthorized", "exp not in future")
      }
      if name == "nbf", seconds > Double(now()) {
        throw CouchDBError(401, "unauthorized", "nbf not in past")
      }
    }
  }

  private func roles(_ claims: JSONObject) -> [String] {
    var value: JSONValue? = .object(claims)
    for name in rules.rolesPath { value = value?.object?[name] }
    return (value?.array ?? []).compactMap(\.string)
  }
}
