import Bytes
import HTTP
import Storage
import Touchstone
import Views

/// What somebody has to be to be allowed something. Each right includes those below it but for `metrics`.
package enum Right: Sendable, CaseIterable, CustomStringConvertible {
  /// An administrator of the server.
  case serverAdmin
  /// An administrator of the database.
  case databaseAdmin
  /// A member of the database.
  case member
  /// An administrator of the server, or who has the role `_metrics`.
  case metrics
  /// Who has logged in.
  case user
  /// Anybody, also who hasn't logged in.
  case everybody

  package var description: String {
    switch self {
    case .serverAdmin: "server admin"
    case .databaseAdmin: "database admin"
    case .member: "member"
    case .metrics: "metrics"
    case .user: "user"
    case .everybody: "everybody"
    }
  }
}

/// Decides who may do what: the only place that does.
package enum Authorization {
  /// The role of who may read measurements of the server.
  static let metricsRole = "_metrics"

  /// Throws the `CouchDBError` of who hasn't a right: 401, or 403 if another login is the only help. `security` is that of the database
  /// that is asked for, and isn't read for administrators of the server.
  package static func check(
    _ right: Right, of user: UserContext, _ security: @autoclosure () throws -> DatabaseSecurity
  ) throws {
    if right == .everybody || user.isServerAdmin { return }
    switch right {
    case .everybody: return
    case .user:
      guard user.name != nil else { throw refusal(401, "You are not an authenticated user") }
    case .metrics:
      guard user.roles.contains(where: { $0.hasSameBytes(as: metricsRole) }) else {
        throw refusal(401, "You are not a server admin.")
      }
    case .serverAdmin: throw refusal(401, "You are not a server admin.")
    case .databaseAdmin:
      guard try security().isAdmin(user) else { throw refusal(401, "You are not a server or db admin.") }
    case .member:
      guard try !security().isMember(user) else { return }
      throw user.name == nil
        ? refusal(401, "You are not authorized to access this db.")
        : refusal(403, "You are not allowed to access this db.")
    }
  }

  /// Throws the error of who may write documents, and not design documents.
  static func checkDesignWriter(_ user: UserContext, _ security: @autoclosure () throws -> DatabaseSecurity)
    throws
  {
    if try user.isServerAdmin || security().isAdmin(user) { return }
    throw refusal(user.name == nil ? 401 : 403, "You are not a db or server admin.")
  }

  private static func refusal(_ status: Int, _ reason: String) -> CouchDBError {
    CouchDBError(status, status == 401 ? "unauthorized" : "forbidden", reason)
  }
}

/// A request, as a table of routes knows it: who asks, and for what.
protocol AuthorizedCall: Sendable {
  /// Throws the error of who hasn't a right to what is asked for.
  func check(_ right: Right) throws
}

extension ServerCall: AuthorizedCall {
  func check(_ right: Right) throws { try Authorization.check(right, of: request.context, .standard) }
}

extension DatabaseCall: AuthorizedCall {
  func check(_ right: Right) throws {
    try Authorization.check(needed(right), of: request.context, security())
    // The owner of a document there is a user with a password. Who brings a name along may be somebody else.
    if request.context.bringsRoles, !request.context.isServerAdmin,
      name.hasSameBytes(as: ReplicatorDocument.database)
    {
      throw CouchDBError(403, "forbidden", "\(name) is for users that have logged in with a password")
    }
  }

  /// In the databases of the server, members have their own documents, and nothing else: the other routes need an administrator.
  func needed(_ right: Right) -> Right {
    guard right == .member, DatabaseService.isSystemName(name), !isForDocument else { return right }
    return ["_all_docs", "_changes"].contains(segment(0)) ? .serverAdmin : .databaseAdmin
  }

  /// The database's security object. It is read once.
  func security() throws -> DatabaseSecurity { try knownSecurity.value(of: database) }

  /// Who asks, as functions of design documents see it.
  func validationUser() throws -> ValidationUser {
    ValidationUser(
      database: name, name: request.user, roles: request.context.roles, security: try security().object)
  }

  /// Whether who asks administers the database.
  func isDatabaseAdmin() throws -> Bool {
    try request.context.isServerAdmin || security().isAdmin(request.context)
  }

  /// Throws the error of who may write documents, and not design documents.
  func checkDesignWriter() throws { try Authorization.checkDesignWriter(request.context, security()) }

  /// Whether the request is for one document, or for the database as a whole.
  private var isForDocument: Bool {
    guard let first = path.first else { return true }
    return first.bytes.first != UInt8(ascii: "_")
  }
}

/// The security object of a database while a request is answered.
final class KnownSecurity: Sendable {
  private let known = Lock<DatabaseSecurity?>(nil)

  /// The object, which is read by the first call.
  func value(of database: Database) throws -> DatabaseSecurity {
    if let known = known.withLock({ $0 }) { return known }
    let value = try database.security()
    known.withLock { $0 = value }
    return value
  }

  /// Another one was set.
  func set(_ value: DatabaseSecurity) { known.withLock { $0 = value } }
}
