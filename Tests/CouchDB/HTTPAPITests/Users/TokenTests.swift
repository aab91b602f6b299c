import Bytes
import CCrypto
import Fleece
import Foundation
import HTTP
import Storage
import TestSupport
import Testing
import Views

@testable import HTTPAPI

/// Signed tokens (JWT), and proxies that name users.
@Suite struct TokenTests {
  static let secret = Array("0123456789abcdef0123456789abcdef".utf8)
  static let now = 1_700_000_000

  private static func base64URL(_ bytes: some Sequence<UInt8>) -> String {
    Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
      .replacing("=", with: "")
  }

  static func mac(_ text: String, _ secret: [UInt8], _ digest: OpaquePointer?) -> [UInt8] {
    var mac = [UInt8](repeating: 0, count: 64)
    var count: UInt32 = 0
    let bytes = Array(text.utf8)
    HMAC(digest, secret, Int32(secret.count), bytes, bytes.count, &mac, &count)
    return Array(mac.prefix(Int(count)))
  }

  /// A token that is signed with a secret.
  static func token(
    _ claims: String, header: String = #"{"alg":"HS256","typ":"JWT"}"#, secret: [UInt8] = Self.secret,
    digest: OpaquePointer? = EVP_sha256()
  ) -> String {
    let text = base64URL(header.utf8) + "." + base64URL(claims.utf8)
    return text + "." + base64URL(mac(text, secret, digest))
  }

  static let file = """
    ; as in CouchDB's configuration
    [jwt_keys]
    hmac:_default = \(Data(secret).base64EncodedString())
    hmac:second = \(Data(secret.reversed()).base64EncodedString())
    rsa:_default = \(SignedTokens.rsaKey)
    ec:e256 = \(SignedTokens.p256Key)
    ec:e384 = \(SignedTokens.p384Key)
    ec:e512 = \(SignedTokens.p521Key)

    """

  private static func checker(_ more: String = "") throws -> TokenChecker {
    var checker = try #require(try HeaderLogins(file + more, "f").tokens)
    checker.now = { Self.now }
    return checker
  }

  private func refusal(_ token: String, _ checker: TokenChecker? = nil) throws -> String {
    do {
      let user = try (checker ?? Self.checker()).user(of: token)
      return "let in: \(user.name ?? "")"
    } catch let error as CouchDBError { return "\(error.status) \(error.reason)" }
  }

  @Test("tokens of all algorithms name a user and the roles") func algorithms() throws {
    let claims = #"{"sub":"ann","_couchdb.roles":["readers","x"]}"#
    let hmac = [("256", EVP_sha256()), ("384", EVP_sha384()), ("512", EVP_sha512())].map {
      Self.token(claims, header: "{\"alg\":\"HS\($0.0)\"}", digest: $0.1)
    }
    let signed = [
      SignedTokens.rs256, SignedTokens.rs384, SignedTokens.rs512, SignedTokens.es256, SignedTokens.es384,
      SignedTokens.es512,
    ]
    for token in hmac + signed {
      let user = try Self.checker().user(of: token)
      expect(user.name == "ann" && user.roles == ["readers", "x"] && user.bringsRoles, "\(token)")
      // A byte of each part changed.
      for (index, character) in token.enumerated() where character != "." && index % 29 == 0 {
        var bytes = Array(token.utf8)
        bytes[index] = bytes[index] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        let text = try refusal(String(decoding: bytes, as: UTF8.self))
        expect(text.hasPrefix("400 "), "\(index): \(text)")
      }
      // Parts of others, and less of one.
      try expect(refusal(String(token.dropLast(4))).hasPrefix("400 "))
      try expect(refusal(token + "AAAA").hasPrefix("400 "))
    }
    let other = Self.token(
      claims, header: #"{"alg":"HS256","kid":"second"}"#, secret: Self.secret.reversed())
    try expect(Self.checker().user(of: other).name, equals: "ann")
  }

  @Test("a token that isn't signed, or with another key, is refused") func forged() throws {
    let claims = #"{"sub":"root","_couchdb.roles":["_admin"]}"#
    func unsigned(_ header: String) -> String {
      Self.base64URL(header.utf8) + "." + Self.base64URL(claims.utf8) + "."
    }
    for name in ["none", "None", "NONE", "nOnE", "HS255", "HS1", "", "PS256", "EdDSA", "hs256", "RS2560"] {
      try expect(
        refusal(unsigned("{\"alg\":\"\(name)\"}")), equals: "400 Invalid alg header parameter", "\(name)")
    }
    try expect(refusal(unsigned("{}")), equals: "400 Missing alg header parameter")
    try expect(refusal(unsigned(#"{"alg":["HS256"]}"#)), equals: "400 Invalid alg header parameter")
    try expect(refusal(unsigned(#"{"alg":"HS256"}"#)), equals: "400 Bad HMAC")
    try expect(refusal(unsigned(#"{"alg":"RS256"}"#)), equals: "400 Bad signature")
    try expect(refusal(unsigned(#"{"alg":"ES256","kid":"e256"}"#)), equals: "400 Bad signature")
    // A public key isn't a secret.
    let pem = Array(SignedTokens.rsaKey.replacing("\\n", with: "\n").utf8)
    for secret in [pem, pem + [0x0A]] {
      try expect(refusal(Self.token(claims, secret: secret)), equals: "400 Bad HMAC")
      try expect(
        refusal(Self.token(claims, header: #"{"alg":"HS256","kid":"e256"}"#, secret: secret)),
        equals: "400 Unknown kid")
    }
    try expect(refusal(Self.token(claims, secret: [])), equals: "400 Bad HMAC")
    for kid in ["\"none\"", "\"\"", "1", "null", "[]", "\"../../dev/null\"", "\"rsa:_default\""] {
      try expect(
        refusal(Self.token(claims, header: "{\"alg\":\"HS256\",\"kid\":\(kid)}")), equals: "400 Unknown kid")
    }
    // A signature of a curve under the name of another one, and one of zeros.
    let parts = SignedTokens.es256.split(separator: ".")
    let header = Self.base64URL(#"{"alg":"ES384","kid":"e256"}"#.utf8)
    try expect(refusal("\(header).\(parts[1]).\(parts[2])"), equals: "400 Bad signature")
    let zeros = Self.base64URL([UInt8](repeating: 0, count: 64))
    try expect(refusal("\(parts[0]).\(parts[1]).\(zeros)"), equals: "400 Bad signature")
    try expect(
      refusal(Self.token(claims, header: #"{"alg":"HS256","crit":["b64"],"b64":false}"#)),
      equals: "400 Invalid crit header parameter")
  }

  @Test("times and other claims hold, whether they are required or not") func claims() throws {
    let (now, checker) = (Self.now, try Self.checker())
    let cases: [(String, String)] = [
      (#"{"sub":"a","exp":\#(now + 1)}"#, "let in: a"),
      (#"{"sub":"a","exp":\#(now)}"#, "401 exp not in future"),
      (#"{"sub":"a","exp":0}"#, "401 exp not in future"),
      (#"{"sub":"a","exp":-1e300}"#, "401 exp not in future"),
      (#"{"sub":"a","exp":1e300}"#, "let in: a"),
      (#"{"sub":"a","exp":"\#(now + 9)"}"#, "400 Invalid exp claim"),
      (#"{"sub":"a","exp":null}"#, "400 Invalid exp claim"),
      (#"{"sub":"a","nbf":\#(now)}"#, "let in: a"),
      (#"{"sub":"a","nbf":\#(now + 1)}"#, "401 nbf not in past"),
      (#"{"sub":"a","iat":"x"}"#, "400 Invalid iat claim"),
      (#"{}"#, "401 Token missing sub claim."), (#"{"sub":""}"#, "401 Token missing sub claim."),
      (#"{"sub":["a"]}"#, "401 Token missing sub claim."),
      ("{\"sub\":\"a\\u0000\"}", "401 Token missing sub claim."),
      (#"[]"#, "400 the payload of the token isn't a JSON object"),
      (#"{"sub":"#, "400 the payload of the token isn't a JSON object"),
    ]
    for (claims, wanted) in cases {
      try expect(refusal(Self.token(claims), checker), equals: wanted, "\(claims)")
    }
    let strict = try Self.checker(
      "[jwt_auth]\nrequired_claims = exp, {iss, \"https://a.example\"},iat\nroles_claim_path = app.couch\\.db.roles\n"
    )
    for (claims, wanted) in [
      (#"{"sub":"a"}"#, "400 Missing iss claim"),
      (#"{"sub":"a","iss":"b"}"#, "400 Invalid iss claim"),
      (#"{"sub":"a","iss":"https://a.example","exp":\#(now + 1)}"#, "400 Missing iat claim"),
      (#"{"sub":"a","iss":"https://a.example","iat":1}"#, "400 Missing exp claim"),
      (#"{"sub":"a","iss":"https://a.example","iat":1,"exp":\#(now + 1)}"#, "let in: a"),
    ] { try expect(refusal(Self.token(claims), strict), equals: wanted, "\(claims)") }
    let nested =
      #"{"sub":"a","iss":"https://a.example","iat":1,"exp":1e12,"app":{"couch.db":{"roles":["r",1]}}}"#
    try expect(strict.user(of: Self.token(nested)).roles, equals: ["r"])
    try expect(checker.user(of: Self.token(#"{"sub":"a","_couchdb.roles":"r"}"#)).roles, equals: [])
  }

  @Test("nonsense of any length is refused") func nonsense() throws {
    for token in [
      "", ".", "..", "...", "a.b", "a.b.c", "a.b.c.d", "=.=.=", " . . ", "\u{0}.\u{0}.\u{0}", "é.é.é",
      Self.token(#"{"sub":"a"}"#) + "=", Self.token(#"{"sub":"a"}"#).replacing(".", with: ". "),
      Self.base64URL(#"{"alg":"HS256"}"#.utf8), String(repeating: ".", count: 16_000),
      Self.base64URL([UInt8](repeating: UInt8(ascii: "["), count: 9_000)) + ".e30.",
    ] { try expect(refusal(token).hasPrefix("400 "), "\(token.prefix(40))") }
    // 20 MB: only its length is looked at.
    let large = String(repeating: "A", count: 20 << 20)
    try expect(refusal(large), equals: "400 the token has more than 16384 bytes")
    try expect(refusal("\(large).\(large).\(large)"), equals: "400 the token has more than 16384 bytes")
    var random = SeededGenerator(seed: testSeed)
    let good = Array(SignedTokens.es256.utf8)
    for _ in 0..<500 {
      var bytes = good
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0x20..<0x7F, using: &random)
      }
      guard bytes != good else { continue }
      try expect(refusal(String(decoding: bytes, as: UTF8.self)).hasPrefix("400 "))
    }
  }

  @Test("a file of logins says what is wrong in which line") func files() throws {
    let key = Data(Self.secret).base64EncodedString()
    let cases: [(String, String)] = [
      ("", "has neither keys"), ("[jwt_keys]\n", "has neither keys"),
      ("hmac:a = \(key)", "line 1: a section"), ("[other]", "line 1: the sections"),
      ("[jwt_keys", "line 1: the sections"), ("[jwt_keys]\nhmac:a", "line 2: it isn't NAME = VALUE"),
      ("[jwt_keys]\n\nhmac:a =", "line 3: hmac:a has no value"),
      ("[jwt_keys]\nhmac = \(key)", "line 2: a key is"), ("[jwt_keys]\naes:a = \(key)", "line 2: a key is"),
      ("[jwt_keys]\nhmac:a = !", "line 2: the secret hmac:a isn't base64"),
      ("[jwt_keys]\nhmac:a = aGVsbG8=", "line 2: the secret hmac:a has less than 16 bytes"),
      ("[jwt_keys]\nhmac:a = \(key)\nhmac:a = \(key)", "line 3: the key hmac:a was there before"),
      ("[jwt_keys]\nrsa:a = \(key)", "line 2: rsa:a isn't a public RSA key"),
      ("[jwt_keys]\nrsa:a = \(SignedTokens.p256Key)", "line 2: rsa:a isn't a public RSA key"),
      ("[jwt_keys]\nec:a = \(SignedTokens.rsaKey)", "line 2: ec:a isn't a public EC key"),
      ("[jwt_keys]\nrsa:a = \(SignedTokens.smallRSAKey)", "line 2: the key rsa:a has less than 2048 bits"),
      ("[jwt_auth]\nrequired_claims = foo", "line 2: the claims"),
      ("[jwt_auth]\nrequired_claims = exp nbf", "line 2: the claims"),
      ("[jwt_auth]\nrequired_claims = {aud,\"x\"}", "line 2: a claim with a value"),
      ("[jwt_auth]\nother = 1", "line 2: [jwt_auth] has"),
      ("[chttpd_auth]\nsecret = short", "line 2: the secret has less than 16 bytes"),
      ("[chttpd_auth]\nproxy_use_secret = false", "line 2: a proxy without a secret"),
      ("[chttpd_auth]\nhash_algorithms = md5", "line 2: the hash algorithms"),
      ("[chttpd_auth]\ntimeout = 1", "line 2: [chttpd_auth] has"),
    ]
    for (text, wanted) in cases {
      do {
        _ = try HeaderLogins(text, "f")
        expect(Bool(false), "\(text) was read")
      } catch let error as HeaderLogins.FileError {
        expect(error.description.contains(wanted), "\(text): \(error)")
      }
    }
    #expect(throws: HeaderLogins.FileError.self) { try HeaderLogins(file: "/nowhere/logins") }
    try expect(HeaderLogins(Self.file.replacing("\n", with: "\r\n"), "f").handlers, equals: ["jwt"])
  }

  @Test("a proxy with the secret names a user, and nobody else does") func proxies() throws {
    let logins = try HeaderLogins("[chttpd_auth]\nsecret = a secret of some length\n", "f")
    expect(logins.handlers, equals: ["proxy"])
    let secret = Array("a secret of some length".utf8)
    func hex(_ name: String, _ digest: OpaquePointer?, _ secret: [UInt8]) -> String {
      Hex.text(Self.mac(name, secret, digest))
    }
    func user(_ headers: [String: String], _ logins: HeaderLogins) -> UserContext? {
      logins.user { headers[$0] }
    }
    func headers(_ name: String, _ token: String, _ roles: String? = nil) -> [String: String] {
      var headers = ["x-auth-couchdb-username": name, "x-auth-couchdb-token": token]
      headers["x-auth-couchdb-roles"] = roles
      return headers
    }
    for digest in [EVP_sha256(), EVP_sha1()] {
      let found = user(headers("ann", hex("ann", digest, secret), "r, s,,"), logins)
      expect(found?.name == "ann" && found?.roles == ["r", "s"] && found?.bringsRoles == true)
    }
    let right = hex("ann", EVP_sha256(), secret)
    expect(user(headers("ann", right.uppercased()), logins)?.name, equals: "ann")
    for wrong in [
      headers("bob", right), headers("ann", ""), headers("ann", String(right.dropLast(2))),
      headers("ann", right + "00"), headers("ann", "zz"), headers("ann", hex("ann", EVP_sha512(), secret)),
      headers("ann", hex("ann", EVP_sha256(), [])), headers("", hex("", EVP_sha256(), secret)),
      ["x-auth-couchdb-username": "ann"], ["x-auth-couchdb-token": right], [:],
      headers("ann", right, String(repeating: "r,", count: 10_000)),
    ] { expect(user(wrong, logins) == nil, "\(wrong)") }
    let named = try HeaderLogins(
      "[chttpd_auth]\nsecret = a secret of some length\nx_auth_username = X-Name\nx_auth_token = X-Token\n"
        + "x_auth_roles = X-Roles\nhash_algorithms = sha512\n", "f")
    let other = ["x-name": "ann", "x-token": hex("ann", EVP_sha512(), secret), "x-roles": "q"]
    expect(user(other, named)?.roles, equals: ["q"])
    expect(user(headers("ann", right), named) == nil)
    // Without a proxy, headers name nobody.
    try expect(HeaderLogins(Self.file, "f").user { headers("ann", right)[$0] } == nil)
  }
}
