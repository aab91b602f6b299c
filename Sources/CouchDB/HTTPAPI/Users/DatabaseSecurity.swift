import Bytes
import Fleece
import HTTP
import Touchstone
import Views

// CouchDB's security object of a database (docs/http-users.md):
//
//   security := { "admins": group?, "members": group?, any other member* }
//   group    := { "names": [ name* ]?, "roles": [ role* ]? }
//
// `readers` is an old name of `members`. An empty group of members, or none, lets everybody in.

/// Who administers a database, and who may read and write its documents.
package struct DatabaseSecurity: Sendable {
  /// Users by their names and roles.
  private struct Group {
    var names: [String] = []
    var roles: [String] = []

    init(roles: [String]) { self.roles = roles }

    /// Throws 400 if the value isn't a group.
    init(_ value: JSONValue?, _ what: String) throws {
      guard let value else { return }
      guard let members = value.object else {
        throw CouchDBError(400, "bad_request", "\(what) must be a JSON object")
      }
      names = try Self.strings(members["names"], "names")
      roles = try Self.strings(members["roles"], "roles")
    }

    private static func strings(_ value: JSONValue?, _ what: String) throws -> [String] {
      guard let value else { return [] }
      guard let items = value.array else {
        throw CouchDBError(400, "bad_request", "\(what) must be a JSON list of strings")
      }
      return try items.map { item in
        guard let text = item.string else {
          throw CouchDBError(400, "bad_request", "\(what) must be a JSON list of strings")
        }
        return text
      }
    }

    var isEmpty: Bool { names.isEmpty && roles.isEmpty }

    func contains(_ user: UserContext) -> Bool {
      if let name = user.name, names.contains(where: { $0.hasSameBytes(as: name) }) { return true }
      return user.roles.contains { role in roles.contains { $0.hasSameBytes(as: role) } }
    }
  }

  /// As it was set.
  package let text: [UInt8]
  /// The same as an object.
  package let object: JSONObject
  private let admins: Group
  private let members: Group

  /// Reads an object. Throws a `CouchDBError` of 400 for what isn't one.
  package init(text: [UInt8]) throws {
    guard let object = try JSONValue(body: text).object else {
      throw CouchDBError(400, "bad_request", "the security object must be a JSON object")
    }
    self.text = text
    self.object = object
    admins = try Group(object["admins"], "admins")
    members = try Group(object["members"] ?? object["readers"], "members")
  }

  /// That of a database for which none was set: only administrators of the server get in, as in CouchDB 3.
  package static let standard = DatabaseSecurity()

  private init() {
    text = Array(#"{"members":{"roles":["_admin"]},"admins":{"roles":["_admin"]}}"#.utf8)
    object = ["members": ["roles": ["_admin"]], "admins": ["roles": ["_admin"]]]
    admins = Group(roles: [UserContext.adminRole])
    members = admins
  }

  /// Whether a user administers the database.
  package func isAdmin(_ user: UserContext) -> Bool { user.isServerAdmin || admins.contains(user) }

  /// Whether a user may read and write documents.
  package func isMember(_ user: UserContext) -> Bool {
    members.isEmpty || isAdmin(user) || members.contains(user)
  }
}

extension Database {
  /// Its security object as it is now. One that can't be read lets only administrators of the server in.
  package func security() throws -> DatabaseSecurity {
    guard let text = try securityObject() else { return .standard }
    return (try? DatabaseSecurity(text: text)) ?? .standard
  }
}
