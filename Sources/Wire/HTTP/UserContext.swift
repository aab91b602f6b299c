/// Who asks: a name, and the roles that go with it.
package struct UserContext: Sendable {
  /// The role of administrators of the server.
  package static let adminRole = "_admin"

  /// The name; nil for who hasn't logged in.
  package let name: String?
  /// The roles, without an order. Those that begin with an underscore are the server's own.
  package let roles: [String]
  /// Whether it is an administrator of the server, who may do everything.
  package let isServerAdmin: Bool
  /// Whether the name and the roles came with the request, as those of a token, and no directory has to know them.
  package let bringsRoles: Bool

  /// Makes one. See the properties.
  package init(name: String?, roles: [String], bringsRoles: Bool = false) {
    self.name = name
    self.roles = roles
    self.bringsRoles = bringsRoles
    isServerAdmin = roles.contains { $0.utf8.elementsEqual(Self.adminRole.utf8) }
  }

  /// Whether it is who hasn't logged in.
  package var isAnonymous: Bool { name == nil && roles.isEmpty }

  /// The name under which documents and other things belong to the user: nil for who hasn't logged in, and for who brings roles, who may
  /// be somebody else than the server's user with that name.
  package var ownName: String? { bringsRoles ? nil : name }

  /// Who hasn't logged in.
  package static let anonymous = UserContext(name: nil, roles: [])
  /// Who asks a server that has no users: everybody may do everything there.
  package static let everybody = UserContext(name: nil, roles: [adminRole])
  /// An administrator of the server.
  package static func admin(_ name: String) -> UserContext { UserContext(name: name, roles: [adminRole]) }
}
