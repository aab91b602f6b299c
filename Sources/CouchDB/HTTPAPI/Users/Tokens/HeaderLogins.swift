import Bytes
import Fleece
import HTTP
import Storage
import Views

// A file of other logins has the form, and the names, of CouchDB's configuration (docs/http-users.md):
//
//   file    := ( section | member | comment | "" )*      lines
//   section := "[" name "]"
//   member  := name "=" value
//   comment := ";" text | "#" text
//
//   [jwt_keys]     hmac:KID = base64    rsa:KID = PEM    ec:KID = PEM      in PEM, \n stands for the end of a line
//   [jwt_auth]     required_claims = exp,iat,{iss,"text"}    roles_claim_name = name    roles_claim_path = a.b.c
//   [chttpd_auth]  secret = text    x_auth_username, x_auth_roles, x_auth_token = name of a header    hash_algorithms = sha256,sha

/// Logins that come in the headers of each request, and name the roles too: signed tokens (JWT), and a proxy that knows a secret.
///
/// All calls may come from any thread.
package struct HeaderLogins: Sendable {
  /// What is wrong with a file, and where.
  package struct FileError: Error, CustomStringConvertible {
    /// The file, the line and what is wrong there.
    package let description: String
  }

  /// The most bytes of a file.
  private static let mostFileBytes = 1 << 20

  private(set) var tokens: TokenChecker?
  private(set) var proxy: ProxyLogin?

  /// The names that CouchDB has for those that are on.
  package var handlers: [String] { (tokens == nil ? [] : ["jwt"]) + (proxy == nil ? [] : ["proxy"]) }

  /// Who the token of a header `Authorization: Bearer …` names. Nil if it has none, or if there are no keys for tokens. Throws a
  /// `CouchDBError` for a token that isn't right.
  package func user(authorization: String) throws -> UserContext? {
    guard let tokens, authorization.utf8.count > 7,
      authorization.utf8.prefix(7).map({ $0 | 0x20 }) == Array("bearer ".utf8)
    else { return nil }
    return try tokens.user(of: authorization.dropFirst(7).trimmed)
  }

  /// Whom a proxy names in the headers; nil if none does.
  package func user(_ header: (String) -> String?) -> UserContext? { proxy?.user(header) }

  // MARK: The file

  /// Reads a file. Throws a `FileError`.
  package init(file path: String) throws {
    let bytes: [UInt8]
    do { bytes = try AtomicFile.read(path, limit: Self.mostFileBytes, mayBePipe: true) } catch {
      throw FileError(description: "can't read the file of logins: \(error)")
    }
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw FileError(description: "the file of logins \(path) isn't UTF-8")
    }
    try self.init(text, path)
  }

  /// Reads the text of a file.
  init(_ text: String, _ path: String) throws {
    var file = File()
    // By bytes: as characters, the two of CR LF are one.
    let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    for (index, bytes) in lines.enumerated() {
      let line = Substring(bytes.last == UInt8(ascii: "\r") ? bytes.dropLast() : bytes)
      do throws(File.Problem) { try file.take(line.trimmed) } catch {
        throw FileError(description: "the file of logins \(path), line \(index + 1): \(error.reason)")
      }
    }
    if !file.rules.keys.isEmpty { tokens = TokenChecker(rules: file.rules) }
    if let secret = file.secret {
      var proxy = ProxyLogin(secret: secret)
      proxy.nameHeader = file.names["x_auth_username"] ?? proxy.nameHeader
      proxy.rolesHeader = file.names["x_auth_roles"] ?? proxy.rolesHeader
      proxy.tokenHeader = file.names["x_auth_token"] ?? proxy.tokenHeader
      proxy.hashes = file.hashes ?? proxy.hashes
      self.proxy = proxy
    }
    guard tokens != nil || proxy != nil else {
      throw FileError(
        description: "the file of logins \(path) has neither keys in [jwt_keys] nor a secret in [chttpd_auth]"
      )
    }
  }

  /// What was read of a file.
  private struct File {
    struct Problem: Error { let reason: String }

    var section = ""
    var rules = TokenRules()
    var secret: [UInt8]?
    var names: [String: String] = [:]
    var hashes: [String]?

    mutating func take(_ line: String) throws(Problem) {
      guard let first = line.first, first != ";", first != "#" else { return }
      if first == "[" {
        section = String(line.dropFirst().prefix { $0 != "]" })
        guard line.last == "]", ["jwt_keys", "jwt_auth", "chttpd_auth"].contains(section) else {
          throw Problem(reason: "the sections are [jwt_keys], [jwt_auth] and [chttpd_auth]")
        }
        return
      }
      guard let equals = line.firstIndex(of: "=") else { throw Problem(reason: "it isn't NAME = VALUE") }
      let name = line[..<equals].trimmed
      let value = line[line.index(after: equals)...].trimmed
      guard !value.isEmpty else { throw Problem(reason: "\(name) has no value") }
      switch section {
      case "jwt_keys": try take(key: name, value)
      case "jwt_auth": try take(rule: name, value)
      case "chttpd_auth": try take(proxy: name, value)
      default: throw Problem(reason: "a section such as [jwt_keys] is missing before it")
      }
    }

    private mutating func take(key name: String, _ value: String) throws(Problem) {
      guard let colon = name.firstIndex(of: ":"), colon != name.startIndex,
        let family = TokenAlgorithm.Family(rawValue: String(name[..<colon])), name.last != ":"
      else { throw Problem(reason: "a key is hmac:NAME, rsa:NAME or ec:NAME") }
      let key: TokenKey
      if family == .hmac {
        guard let bytes = StrictBase64.plainBytes(value.utf8) else {
          throw Problem(reason: "the secret \(name) isn't base64")
        }
        guard bytes.count >= TokenKey.leastSecretBytes else {
          throw Problem(reason: "the secret \(name) has less than \(TokenKey.leastSecretBytes) bytes")
        }
        key = .secret(bytes)
      } else {
        let pem = Array(value.replacing("\\n", with: "\n").utf8)
        guard let publicKey = TokenKey.PublicKey(pem: pem), publicKey.family == family else {
          throw Problem(reason: "\(name) isn't a public \(family.rawValue.uppercased()) key in PEM")
        }
        if family == .rsa, publicKey.bits < TokenKey.leastRSABits {
          throw Problem(reason: "the key \(name) has less than \(TokenKey.leastRSABits) bits")
        }
        key = .publicKey(publicKey)
      }
      guard rules.keys.updateValue(key, forKey: ByteString(name)) == nil else {
        throw Problem(reason: "the key \(name) was there before")
      }
    }

    private mutating func take(rule name: String, _ value: String) throws(Problem) {
      switch name {
      case "required_claims": try takeClaims(value)
      case "roles_claim_name": rules.rolesPath = [value]
      case "roles_claim_path":
        // A point that is a part of a name has a backslash before it.
        let parts = value.replacing("\\.", with: "\u{0}").split(
          separator: ".", omittingEmptySubsequences: false)
        rules.rolesPath = parts.map { String($0.replacing("\u{0}", with: ".")) }
      default:
        throw Problem(reason: "[jwt_auth] has required_claims, roles_claim_name and roles_claim_path")
      }
    }

    /// `exp,iat,{iss,"https://a.example"}`
    private mutating func takeClaims(_ value: String) throws(Problem) {
      var rest = value[...]
      while !rest.isEmpty {
        if rest.first == "{" {
          guard let end = rest.firstIndex(of: "}"), let comma = rest[..<end].firstIndex(of: ","),
            rest[rest.index(after: rest.startIndex)..<comma].trimmed == "iss"
          else { throw Problem(reason: "a claim with a value is {iss,\"TEXT\"}") }
          let text = rest[rest.index(after: comma)..<end].trimmed
          guard text.count > 2, text.first == "\"", text.last == "\"" else {
            throw Problem(reason: "a claim with a value is {iss,\"TEXT\"}")
          }
          rules.issuer = String(text.dropFirst().dropLast())
          rest = rest[rest.index(after: end)...]
        } else {
          let claim = rest.prefix { $0 != "," }
          guard TokenRules.known.contains(claim.trimmed) else {
            throw Problem(
              reason:
                "the claims that can be required are \(TokenRules.known.sorted().joined(separator: ", "))")
          }
          rules.required.insert(claim.trimmed)
          rest = rest[claim.endIndex...]
        }
        rest = rest.drop { $0 == " " }
        if rest.first == "," {
          rest = rest.dropFirst().drop { $0 == " " }
        } else if !rest.isEmpty {
          throw Problem(reason: "claims have commas between them")
        }
      }
    }

    private mutating func take(proxy name: String, _ value: String) throws(Problem) {
      switch name {
      case "secret":
        guard value.utf8.count >= TokenKey.leastSecretBytes else {
          throw Problem(reason: "the secret has less than \(TokenKey.leastSecretBytes) bytes")
        }
        secret = Array(value.utf8)
      case "x_auth_username", "x_auth_roles", "x_auth_token": names[name] = value.lowercased()
      // It is always on here.
      case "proxy_use_secret":
        guard value == "true" else { throw Problem(reason: "a proxy without a secret isn't trusted here") }
      case "hash_algorithms":
        let wanted = value.split(separator: ",").map { $0.trimmed }
        guard !wanted.isEmpty, wanted.allSatisfy({ ProxyLogin.digests[$0] != nil }) else {
          throw Problem(
            reason: "the hash algorithms are \(ProxyLogin.digests.keys.sorted().joined(separator: ", "))")
        }
        hashes = wanted
      default:
        throw Problem(
          reason:
            "[chttpd_auth] has secret, proxy_use_secret, hash_algorithms, x_auth_username, x_auth_roles and x_auth_token"
        )
      }
    }
  }
}
