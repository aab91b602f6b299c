import Bytes
import Fleece
import HTTP
import Views

// A document of `_users`, as in CouchDB:
//
//   { "_id": "org.couchdb.user:" name, "type": "user", "name": name, "roles": [ role* ], "password": text }
//
// The password is stored as a hash (UserPassword.swift).

/// What CouchDB demands of a document of `_users`, and what becomes of the password in it.
package enum UserDocument {
  /// The database.
  package static let database = "_users"
  /// What the ID of each user's document begins with.
  package static let idPrefix = "org.couchdb.user:"
  /// The most bytes of a password: a longer one costs nothing more to guess.
  package static let mostPasswordBytes = 4_096

  /// The name of the user whose document has an ID; nil if it is none's.
  package static func name(ofID id: String) -> String? {
    guard id.utf8.starts(with: idPrefix.utf8), id.utf8.count > idPrefix.utf8.count else { return nil }
    return String(decoding: id.utf8.dropFirst(idPrefix.utf8.count), as: UTF8.self)
  }

  /// Throws the error with which CouchDB refuses a document. `old` is the body of the document that it replaces, nil if there is none.
  /// `isAdmin` says whether the user administers the database.
  package static func check(
    _ id: String, _ new: JSONObject, isDeleted: Bool, replacing old: JSONObject?, by user: UserContext,
    isAdmin: Bool
  ) throws {
    // Who is neither that user nor an administrator doesn't get to know whether there is such a document.
    let isOwn = user.ownName.map { id.hasSameBytes(as: idPrefix + $0) } ?? false
    guard isAdmin || isOwn || user.name == nil && old == nil else { throw CouchDBError.missing }
    if isDeleted { return }
    try checkBody(id, new)
    if let old, old["name"]?.string.map({ $0.hasSameBytes(as: new["name"]?.string ?? "") }) != true {
      throw forbidden("Usernames can not be changed.")
    }
    if !isAdmin {
      let before = Set(roles(old ?? [:]).map { ByteString($0) })
      guard before == Set(roles(new).map { ByteString($0) }) else {
        throw forbidden(old == nil ? "Only _admin may set roles" : "Only _admin may edit roles")
      }
    }
  }

  private static func checkBody(_ id: String, _ new: JSONObject) throws {
    guard new["type"]?.string == "user" else { throw forbidden("doc.type must be user") }
    guard let name = new["name"]?.string, !name.isEmpty else { throw forbidden("doc.name is required") }
    guard let roles = new["roles"] else { throw forbidden("doc.roles must exist") }
    guard let roles = roles.array else { throw forbidden("doc.roles must be an array") }
    guard id.hasSameBytes(as: idPrefix + name) else {
      throw forbidden("Doc ID must be of the form org.couchdb.user:name")
    }
    for role in roles {
      guard let role = role.string else { throw forbidden("doc.roles can only contain strings") }
      guard role.utf8.first != UInt8(ascii: "_") else {
        throw forbidden("No system roles (starting with underscore) in users db.")
      }
    }
    guard name.utf8.first != UInt8(ascii: "_") else {
      throw forbidden("Username may not start with underscore.")
    }
    guard !name.utf8.contains(UInt8(ascii: ":")) else {
      throw forbidden("Character `:` is not allowed in usernames.")
    }
    try checkHash(new)
  }

  private static func checkHash(_ new: JSONObject) throws {
    if new["password_sha"]?.string != nil, new["salt"]?.string == nil {
      throw forbidden("Users with password_sha must have a salt.")
    }
    guard let scheme = new["password_scheme"], !scheme.isNull else { return }
    guard let scheme = scheme.string, ["simple", "pbkdf2"].contains(scheme) else {
      throw forbidden("Password scheme `\(scheme.string ?? "")` not supported.")
    }
    guard scheme == "pbkdf2" else { return }
    guard let iterations = new["iterations"]?.int else { throw forbidden("iterations must be a number.") }
    guard new["derived_key"]?.string != nil else { throw forbidden("derived_key must be a string.") }
    guard 1...Int64(UserPassword.mostIterations) ~= iterations else {
      throw forbidden("iterations must be from 1 to \(UserPassword.mostIterations).")
    }
  }

  /// The roles of a document.
  package static func roles(_ body: JSONObject) -> [String] {
    (body["roles"]?.array ?? []).compactMap(\.string).filter { $0.utf8.first != UInt8(ascii: "_") }
  }

  /// The body with a hash in the place of the password; the same body if it has no password. Throws 400 for a password that isn't text,
  /// or is too long. Takes about 0.2 s for 600,000 iterations, which is the default.
  package static func hashingPassword(_ body: JSONObject, iterations: Int? = nil) throws -> JSONObject {
    guard let value = body["password"], !value.isNull else { return body }
    guard let password = value.string else {
      throw CouchDBError(400, "bad_request", "password must be a string")
    }
    guard password.utf8.count <= mostPasswordBytes else {
      throw CouchDBError(400, "bad_request", "a password has at most \(mostPasswordBytes) bytes")
    }
    let hash = try UserPassword(
      Array(password.utf8), iterations: iterations ?? UserPassword.standardIterations)
    let others = body.filter { member in
      !UserPassword.memberNames.contains { $0.hasSameBytes(as: member.key) }
    }
    return JSONObject(hash.members + others.map { ($0.key, $0.value) })
  }

  /// The text of a body: first the members of the hash, in CouchDB's order, then the others in the order of their names.
  static func jsonText(_ body: JSONObject) throws -> [UInt8] {
    let hash = UserPassword.memberNames.filter { body[$0] != nil }
    let others = body.map(\.key).filter { name in !hash.contains { $0.hasSameBytes(as: name) } }
    var json = JSONWriter()
    json.append(literal: "{")
    for (index, name) in (hash + others.sorted { $0.precedesInBytes($1) }).enumerated() {
      if index > 0 { json.append(literal: ",") }
      json.append(string: name)
      json.append(literal: ":")
      try json.append(body[name] ?? .null)
    }
    json.append(literal: "}")
    var text: [UInt8] = []
    json.write(to: &text)
    return text
  }

  /// The body of a new document.
  package static func body(name: String, password: String, roles: [String]) -> JSONObject {
    [
      "type": "user", "name": .string(name), "roles": .array(roles.map { .string($0) }),
      "password": .string(password),
    ]
  }

  private static func forbidden(_ reason: String) -> CouchDBError { CouchDBError(403, "forbidden", reason) }
}
