import Bytes
import Documents
import Fleece
import HTTP
import Replication
import Storage
import Touchstone
import Views

/// The two sides of a replication, found and opened.
struct ReplicationEnds: Sendable {
  /// One side.
  enum Side: Sendable {
    /// A database of this server.
    case here(Local)
    case elsewhere(RemoteDatabase)

    var database: Database? { if case .here(let local) = self { local.database } else { nil } }
    var shown: String {
      switch self {
      case .here(let local): local.shown
      case .elsewhere(let remote): remote.shown
      }
    }
  }

  /// A database of this server.
  struct Local: Sendable {
    let database: Database
    let name: String
    /// What is shown of it.
    let shown: String
    /// Who reads it, or writes to it.
    let user: UserContext

    /// Ends replications of who may not read or write any more.
    let rights: StandingRights

    /// Looks at what is written to it.
    var validation: ReplicationValidation {
      ReplicationValidation(database, name: name, user: user, rights)
    }

    /// What a replication needs to read it, and to write to it.
    var right: Right { Self.right(on: name) }

    static func right(on name: String) -> Right {
      DatabaseService.isSystemName(name) ? .databaseAdmin : .member
    }
  }

  let source: Side
  let target: Side

  /// Those that are here.
  var here: [Local] {
    [source, target].compactMap { side in if case .here(let local) = side { local } else { nil } }
  }

  /// The databases that are here.
  var databases: [Database] { [source.database, target.database].compactMap { $0 } }

  /// Finds the sides for a user; nil stands for the server. Throws a `CouchDBError` that says what is missing or not allowed.
  init(_ request: ReplicationRequest, for user: String?, _ finder: ReplicationFinder) throws {
    let context = try finder.context(of: user)
    source = try finder.side(request.source, for: context, creates: false)
    target = try finder.side(
      request.target, for: context, creates: request.createsTarget, isPartitioned: request.partitionsTarget)
    if request.createsTarget, request.partitionsTarget, case .elsewhere(let remote) = target,
      remote.isWebSocket
    {
      throw CouchDBError(501, "not_implemented", "over a WebSocket no target is made")
    }
    // Its documents have passwords, which their owners alone may see.
    if finder.hasUsers, case .here(let local) = source,
      local.name.hasSameBytes(as: ReplicatorDocument.database)
    {
      throw CouchDBError(403, "forbidden", "_replicator has passwords, and isn't replicated elsewhere")
    }
    switch (source, target) {
    case (.here(let source), .here(let target)):
      if source.database === target.database {
        throw CouchDBError(400, "bad_request", "source and target are the same database")
      }
    case (.elsewhere(let source), .elsewhere(let target)):
      // Over a WebSocket only current revisions go, and somebody has to resolve their conflicts.
      for remote in [source, target] where remote.isWebSocket {
        throw CouchDBError(
          501, "not_implemented",
          "\(remote.shown) replicates with a database of this server alone: between two other servers use http or https"
        )
      }
      if source.shown.hasSameBytes(as: target.shown) {
        throw CouchDBError(400, "bad_request", "source and target are the same database")
      }
    default: break
    }
  }
}

/// Finds databases by the names and URLs of a request.
struct ReplicationFinder: Sendable {
  let catalog: any DatabaseCatalog
  /// Nil if URLs lead nowhere.
  let targets: (any ReplicationTargets)?
  let logins: (any LoginSessions)?
  let hasUsers: Bool
  let rights: StandingRights

  /// The rights of a replication: those that its user has now. A replication without a user was described by an administrator, or when
  /// everybody was one. Throws 401 if the user is gone.
  func context(of user: String?) throws -> UserContext {
    guard let user else { return .everybody }
    guard let logins else { return .admin(user) }
    guard let context = logins.context(of: user) else {
      throw CouchDBError(
        401, "unauthorized", "there is no user \(user) any more, for whom this replication runs")
    }
    return context
  }

  /// Throws what forbids a user to replicate between the databases that a request names. URLs of this server log in for themselves, which takes
  /// long: they are checked when the replication begins, as everything is once more.
  func checkRights(_ request: ReplicationRequest, for user: String?) throws {
    let context = try context(of: user)
    for case .name(let name) in [request.source, request.target] {
      guard let database = try catalog.database(name) else { continue }
      try Authorization.check(ReplicationEnds.Local.right(on: name), of: context, database.security())
    }
  }

  /// Whether `checkRights` finds all that a user needs.
  func surelyHasRights(_ request: ReplicationRequest, for user: String?) -> Bool {
    let logsInHere = [request.source, request.target].contains { endpoint in
      if case .remote(let remote) = endpoint { targets?.ownName(of: remote) != nil } else { false }
    }
    return !logsInHere && (try? checkRights(request, for: user)) != nil
  }

  /// Opens a side. If `creates` is set, a database of this server is made where there is none, partitioned or not.
  func side(
    _ endpoint: ReplicationEndpoint, for user: UserContext, creates: Bool, isPartitioned: Bool = false
  ) throws -> ReplicationEnds.Side {
    switch endpoint {
    case .name(let name):
      return try here(name, shown: name, for: user, creates: creates, isPartitioned: isPartitioned)
    case .remote(let remote):
      guard let targets else {
        throw CouchDBError(501, "not_implemented", "this server doesn't connect to others")
      }
      guard let name = targets.ownName(of: remote) else {
        if let reason = targets.refusal(of: remote) { throw CouchDBError(403, "forbidden", reason) }
        return .elsewhere(remote)
      }
      return try here(
        name, shown: remote.shown, for: logIn(remote), creates: creates, isPartitioned: isPartitioned)
    }
  }

  private func here(
    _ name: String, shown: String, for user: UserContext, creates: Bool, isPartitioned: Bool
  ) throws -> ReplicationEnds.Side {
    if try catalog.database(name) == nil, creates {
      try Authorization.check(.serverAdmin, of: user, .standard)
      try DatabaseService.checkName(name)
      if isPartitioned { try DatabaseService.checkPartitionable(name) }
      _ = try catalog.create(name, isPartitioned: isPartitioned)
    }
    guard let database = try catalog.database(name) else {
      throw CouchDBError(500, "db_not_found", "could not open \(shown)")
    }
    let local = ReplicationEnds.Local(
      database: database, name: name, shown: shown, user: user, rights: rights)
    try Authorization.check(local.right, of: user, database.security())
    return .here(local)
  }

  /// Who a URL of this server logs in as. Throws what a client of that URL would be told.
  private func logIn(_ remote: RemoteDatabase) throws -> UserContext {
    guard let logins else { return .everybody }
    guard let login = remote.login else {
      throw CouchDBError(401, "unauthorized", "unauthorized to access or create database \(remote.shown)")
    }
    let waiter = BlockingWaiter<LoginResult>()
    logins.check(login.user, login.password, from: ByteString([])) { waiter.finish($0) }
    switch waiter.wait() {
    case .success(let login): return login.context
    case .failure(let problem):
      throw CouchDBError(
        500, "replication_auth_error",
        "the server of \(remote.shown) refuses the login: \(problem.reason)")
    }
  }
}

extension ReplicationFinder {
  /// What a replicator connects to. Throws a `CouchDBError` if it can't.
  func target(of remote: RemoteDatabase) throws -> ReplicatorTarget {
    guard let targets else {
      throw CouchDBError(501, "not_implemented", "this server doesn't connect to others")
    }
    do { return try targets.target(of: remote) } catch let error as ReplicationError {
      throw CouchDBError(400, "bad_request", "\(remote.shown) can't be reached: \(error.message)")
    }
  }
}
