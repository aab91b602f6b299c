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
    /// A database of this server, and what is shown of it.
    case here(Database, String)
    case elsewhere(RemoteDatabase)

    var database: Database? { if case .here(let database, _) = self { database } else { nil } }
    var shown: String {
      switch self {
      case .here(_, let shown): shown
      case .elsewhere(let remote): remote.shown
      }
    }
  }

  let source: Side
  let target: Side

  /// The databases that are here.
  var databases: [Database] { [source.database, target.database].compactMap { $0 } }

  /// Finds the sides. Throws a `CouchDBError` that says what is missing or not allowed.
  init(_ request: ReplicationRequest, _ finder: ReplicationFinder) throws {
    source = try finder.side(request.source, creates: false)
    target = try finder.side(request.target, creates: request.createsTarget)
    // Its documents have passwords, which their owners alone may see.
    if finder.hasUsers, case .here(let database, _) = source,
      try finder.catalog.database(ReplicatorDocument.database) === database
    {
      throw CouchDBError(403, "forbidden", "_replicator has passwords, and isn't replicated elsewhere")
    }
    switch (source, target) {
    case (.here(let source, _), .here(let target, _)):
      if source === target {
        throw CouchDBError(400, "bad_request", "source and target are the same database")
      }
    case (.elsewhere, .elsewhere):
      throw CouchDBError(
        501, "not_implemented", "the source or the target must be a database of this server")
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

  func side(_ endpoint: ReplicationEndpoint, creates: Bool) throws -> ReplicationEnds.Side {
    switch endpoint {
    case .name(let name): return try here(name, shown: name, creates: creates)
    case .remote(let remote):
      guard let targets else {
        throw CouchDBError(501, "not_implemented", "this server doesn't connect to others")
      }
      guard let name = targets.ownName(of: remote) else {
        if let reason = targets.refusal(of: remote) { throw CouchDBError(403, "forbidden", reason) }
        return .elsewhere(remote)
      }
      try logIn(remote)
      return try here(name, shown: remote.shown, creates: creates)
    }
  }

  private func here(_ name: String, shown: String, creates: Bool) throws -> ReplicationEnds.Side {
    if let database = try catalog.database(name) { return .here(database, shown) }
    guard creates else { throw CouchDBError(500, "db_not_found", "could not open \(shown)") }
    try DatabaseService.checkName(name)
    _ = try catalog.create(name)
    guard let database = try catalog.database(name) else {
      throw CouchDBError(500, "db_not_found", "could not open \(shown)")
    }
    return .here(database, shown)
  }

  /// Throws what a client of that URL would be told.
  private func logIn(_ remote: RemoteDatabase) throws {
    guard let logins else { return }
    guard let login = remote.login else {
      throw CouchDBError(401, "unauthorized", "unauthorized to access or create database \(remote.shown)")
    }
    let waiter = BlockingWaiter<LoginRefusal?>()
    logins.check(login.user, login.password, from: ByteString([])) { waiter.finish($0) }
    if let problem = waiter.wait() {
      throw CouchDBError(
        500, "replication_auth_error", "the server of \(remote.shown) refuses the login: \(problem.reason)")
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
