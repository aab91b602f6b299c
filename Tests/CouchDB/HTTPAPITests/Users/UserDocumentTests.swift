import Fleece
import HTTP
import TestSupport
import Testing
import Views

@testable import HTTPAPI

/// Documents of `_users`: what CouchDB demands of them, and how passwords are stored.
@Suite struct UserDocumentTests {
  private func body(_ json: String) throws -> JSONObject {
    try #require(try JSONValue(body: Array(json.utf8)).object)
  }

  @Test(
    "hashes that other programs made are checked",
    arguments: [
      // CouchDB 3.5.
      #"{"password_scheme":"pbkdf2","pbkdf2_prf":"sha256","salt":"376bfdc02843b03881670009106e6c9e","iterations":600000,"derived_key":"065a73e4887427573c46a95378654ce0dada7b3183da1bf03c4ffa58e8cef04c"}"#,
      // Made with Python's hashlib.
      #"{"password_scheme":"pbkdf2","salt":"abc","iterations":10,"derived_key":"0ec9e7daceebb0616e68db4265ec409c22795a8e"}"#,
      #"{"password_scheme":"pbkdf2","pbkdf2_prf":"sha512","salt":"abc","iterations":10,"derived_key":"e0a84dd4f0ca8f80559b1efa8640d5f07a0a37229dd98988e1372d1bbb39f0d13ac5f395743db2a84486d6e5eadfc677af080071d7ca9cd09de25d4055f2fa41"}"#,
      #"{"password_scheme":"simple","salt":"abc","password_sha":"cf2b7e4e50a003a1a04361027f6a339c2dda6bb1"}"#,
      #"{"salt":"abc","password_sha":"cf2b7e4e50a003a1a04361027f6a339c2dda6bb1"}"#,
    ]) func foreignHashes(_ json: String) throws
  {
    let hash = try #require(UserPassword(body(json)))
    expect(hash.matches(Array("pw".utf8)))
    expect(!hash.matches(Array("pW".utf8)) && !hash.matches([]))
    expect(
      JSONValue.object(JSONObject(hash.members))["salt"],
      equals: .string(String(decoding: hash.salt, as: UTF8.self)))
  }

  @Test(
    "hashes that can't be, or take too long, are none",
    arguments: [
      "{}", #"{"salt":"a"}"#, #"{"password_scheme":"bcrypt","salt":"a","derived_key":"00"}"#,
      #"{"password_scheme":"pbkdf2","salt":"a","iterations":10,"derived_key":"00"}"#,
      #"{"password_scheme":"pbkdf2","pbkdf2_prf":"md5","salt":"a","iterations":10,"derived_key":"0bfe4d6bbb5c0ab1ad13e2d34a0a0a6f0c2b5ae8"}"#,
      #"{"password_scheme":"pbkdf2","salt":"a","iterations":10000001,"derived_key":"0bfe4d6bbb5c0ab1ad13e2d34a0a0a6f0c2b5ae8"}"#,
      #"{"password_scheme":"pbkdf2","salt":"a","iterations":0,"derived_key":"0bfe4d6bbb5c0ab1ad13e2d34a0a0a6f0c2b5ae8"}"#,
      #"{"password_scheme":"pbkdf2","salt":"a","iterations":1.5,"derived_key":"0bfe4d6bbb5c0ab1ad13e2d34a0a0a6f0c2b5ae8"}"#,
      #"{"password_scheme":"simple","password_sha":"0bfe4d6bbb5c0ab1ad13e2d34a0a0a6f0c2b5ae8"}"#,
    ]) func unusable(_ json: String) throws
  { try expect(UserPassword(body(json)) == nil) }

  @Test("a password is replaced by a hash, with a new salt each time") func hashing() throws {
    let user = UserDocument.body(name: "a", password: "pw", roles: ["r"])
    let first = try UserDocument.hashingPassword(user, iterations: 10)
    let second = try UserDocument.hashingPassword(user, iterations: 10)
    for hashed in [first, second] {
      expect(hashed["password"] == nil)
      let text = String(decoding: try UserDocument.jsonText(hashed), as: UTF8.self)
      expect(text.hasPrefix(#"{"password_scheme":"pbkdf2","pbkdf2_prf":"sha256","salt":""#), "\(text)")
      expect(text.hasSuffix(#"","name":"a","roles":["r"],"type":"user"}"#), "\(text)")
      expect(UserPassword(hashed)?.matches(Array("pw".utf8)), equals: true)
    }
    expect(first["salt"] != second["salt"] && first["derived_key"] != second["derived_key"])
    expect(UserPassword(first)?.mark != UserPassword(second)?.mark)
    // Another password takes the place of the old hash, also of an old kind.
    var changed = first
    changed["password"] = "new"
    changed["password_sha"] = "00"
    let third = try UserDocument.hashingPassword(changed, iterations: 10)
    expect(third["password_sha"] == nil && UserPassword(third)?.matches(Array("pw".utf8)) == false)
    // Without a password nothing changes.
    try expect(UserDocument.hashingPassword(first, iterations: 10), equals: first)
    let none = try body(#"{"password":null}"#)
    try expect(UserDocument.hashingPassword(none, iterations: 10), equals: none)
    for bad in [#"{"password":1}"#, "{\"password\":\"\(String(repeating: "x", count: 4_097))\"}"] {
      let bad = try body(bad)
      expect(refusal { try UserDocument.hashingPassword(bad, iterations: 10) }?.status, equals: 400)
    }
  }

  @Test(
    "documents are held to CouchDB's rules",
    arguments: [
      (#"{"type":"u"}"#, "doc.type must be user"),
      (#"{"type":"user"}"#, "doc.name is required"),
      (#"{"type":"user","name":""}"#, "doc.name is required"),
      (#"{"type":"user","name":"a"}"#, "doc.roles must exist"),
      (#"{"type":"user","name":"a","roles":"r"}"#, "doc.roles must be an array"),
      (#"{"type":"user","name":"a","roles":[1]}"#, "doc.roles can only contain strings"),
      (#"{"type":"user","name":"b","roles":[]}"#, "Doc ID must be of the form org.couchdb.user:name"),
      (
        #"{"type":"user","name":"a","roles":["_admin"]}"#,
        "No system roles (starting with underscore) in users db."
      ),
      (
        #"{"type":"user","name":"a","roles":[],"password_sha":"00"}"#,
        "Users with password_sha must have a salt."
      ),
      (#"{"type":"user","name":"a","roles":[],"password_scheme":"x"}"#, "Password scheme `x` not supported."),
      (#"{"type":"user","name":"a","roles":[],"password_scheme":"pbkdf2"}"#, "iterations must be a number."),
      (
        #"{"type":"user","name":"a","roles":[],"password_scheme":"pbkdf2","iterations":1}"#,
        "derived_key must be a string."
      ),
    ]) func rules(_ json: String, _ reason: String) throws
  {
    let new = try body(json)
    let found = refusal {
      try UserDocument.check(
        "org.couchdb.user:a", new, isDeleted: false, replacing: nil, by: .everybody, isAdmin: true)
    }
    expect(found?.status, equals: 403)
    expect(found?.reason, equals: reason)
  }

  @Test("names with colons and underscores, and other names, are refused") func names() throws {
    for (name, reason) in [
      ("_a", "Username may not start with underscore."),
      ("a:b", "Character `:` is not allowed in usernames."),
    ] {
      let new = UserDocument.body(name: name, password: "x", roles: [])
      let found = refusal {
        try UserDocument.check(
          UserDocument.idPrefix + name, new, isDeleted: false, replacing: nil, by: .everybody, isAdmin: true)
      }
      expect(found?.reason, equals: reason)
    }
    let old = UserDocument.body(name: "b", password: "", roles: [])
    let new = UserDocument.body(name: "a", password: "", roles: [])
    let found = refusal {
      try UserDocument.check(
        "org.couchdb.user:a", new, isDeleted: false, replacing: old, by: .everybody, isAdmin: true)
    }
    expect(found?.reason, equals: "Usernames can not be changed.")
  }

  @Test("users change their own documents, and not their roles") func ownDocuments() throws {
    let id = "org.couchdb.user:a"
    let me = UserContext(name: "a", roles: ["r"])
    func status(
      _ roles: [String], _ old: [String]?, by user: UserContext, isDeleted: Bool = false
    ) -> Int {
      refusal {
        try UserDocument.check(
          id, UserDocument.body(name: "a", password: "x", roles: roles), isDeleted: isDeleted,
          replacing: old.map { UserDocument.body(name: "a", password: "", roles: $0) }, by: user,
          isAdmin: user.isServerAdmin)
      }?.status ?? 200
    }
    expect(status(["r", "s"], ["s", "r"], by: me), equals: 200)
    expect(status(["r"], ["r", "s"], by: me), equals: 403)
    expect(status(["r", "t"], ["r", "s"], by: me), equals: 403)
    expect(status(["r"], nil, by: me), equals: 403)
    expect(status([], nil, by: me), equals: 200)
    expect(status(["r"], ["r"], by: me, isDeleted: true), equals: 200)
    // Others don't get to know whether it is there.
    let other = UserContext(name: "b", roles: ["r"])
    expect(status(["r"], ["r"], by: other), equals: 404)
    expect(status([], nil, by: other), equals: 404)
    expect(status(["r"], ["r"], by: other, isDeleted: true), equals: 404)
    // Whoever hasn't logged in may only be new.
    expect(status([], nil, by: .anonymous), equals: 200)
    expect(status(["r"], nil, by: .anonymous), equals: 403)
    expect(status(["r"], ["r"], by: .anonymous), equals: 404)
    expect(status(["x"], ["r"], by: .admin("root")), equals: 200)
  }

  /// The status and the reason of the error that is thrown; nil if none is.
  private func refusal<Result>(_ body: () throws -> Result) -> (status: Int, reason: String)? {
    do {
      _ = try body()
      return nil
    } catch {
      let error = error as? CouchDBError
      return (error?.status ?? 0, error?.reason ?? "")
    }
  }
}
