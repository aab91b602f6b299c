import Bytes
import HTTP
import Logs
import Storage
import Touchstone
import Views

// The rights of a request are checked when it begins. Feeds, WebSockets and replications go on for longer. They ask for a grant, and
// are told when it ends: because a document of `_users`, the file of users or a security object has changed.

/// Watches the rights of what goes on for longer than a request.
///
/// All calls may come from any thread. Rights are looked at again on one thread, in order: at once after a change that this process
/// sees, and every `interval` seconds for the others, such as those of the file of users.
package final class StandingRights: Sendable {
  /// A right that somebody had when something began that lasts.
  package final class Grant: Sendable {
    fileprivate let user: UserContext
    fileprivate let right: Right
    fileprivate let database: Database?
    fileprivate let ended: @Sendable (CouchDBError) -> Void

    fileprivate init(
      _ user: UserContext, _ right: Right, _ database: Database?,
      _ ended: @escaping @Sendable (CouchDBError) -> Void
    ) {
      self.user = user
      self.right = right
      self.database = database
      self.ended = ended
    }
  }

  /// Who a user is now; nil if there is no such user any more. It may wait.
  package typealias Lookup = @Sendable (String) -> UserContext?

  private struct State {
    var grants: [ObjectIdentifier: Grant] = [:]
    /// What is to be looked at: all grants, those of users with names, or those of certain databases.
    var hasAll = false
    var hasUsers = false
    var databases: Set<ObjectIdentifier> = []
    var isEnqueued = false
    var timer: TimerToken?
    var isStopped = false
  }

  /// How often all grants are looked at, in seconds.
  package static let interval = 10.0

  private let lookup: Lookup?
  private let timer: any CallTimer
  private let lane = Workers()
  private let state = Lock(State())

  /// Makes one. `lookup` is nil where nobody looks users up: they stay who they were then. Changes of `users` are followed.
  package init(_ users: UsersDatabase?, lookup: Lookup?, timer: any CallTimer = SystemTimer()) {
    self.lookup = lookup
    self.timer = timer
    users?.whenChanged { [weak self] in self?.look { $0.hasUsers = true } }
  }

  deinit { state.withLock { $0.timer.take() }?.cancel() }

  /// Who a user is now; nil if there is no such user any more. Who brings the own roles along stays the same.
  package func current(_ user: UserContext) -> UserContext? {
    guard let name = user.name, !user.bringsRoles, let lookup else { return user }
    return lookup(name)
  }

  // MARK: Grants

  /// Watches a right that a user has. `ended` is called once, when the user hasn't got it any more: perhaps at once, on this thread, if
  /// that has happened meanwhile. Nil for who can't lose it.
  package func grant(
    _ user: UserContext, _ right: Right, _ database: Database? = nil,
    _ ended: @escaping @Sendable (CouchDBError) -> Void
  ) -> Grant? {
    let isFixed = user.name == nil || user.bringsRoles || lookup == nil
    if isFixed && (user.isServerAdmin || database == nil) { return nil }
    let grant = Grant(user, right, database, ended)
    let isAdded = state.withLock { state in
      guard !state.isStopped else { return false }
      state.grants[ObjectIdentifier(grant)] = grant
      return true
    }
    guard isAdded else { return nil }
    schedule()
    var known = Known()
    check(grant, &known)
    return grant
  }

  /// What the grant was for has ended.
  package func end(_ grant: Grant) {
    state.withLock { _ = $0.grants.removeValue(forKey: ObjectIdentifier(grant)) }
  }

  /// The number of rights that are watched.
  var count: Int { state.withLock { $0.grants.count } }

  // MARK: Looking

  /// The security object of a database was changed.
  package func securityChanged(_ database: Database) {
    look { $0.databases.insert(ObjectIdentifier(database)) }
  }

  /// Looks at nothing any more.
  package func stop() {
    let timer = state.withLock { state in
      state.isStopped = true
      state.grants = [:]
      return state.timer.take()
    }
    timer?.cancel()
  }

  private func schedule() {
    let isWanted = state.withLock { $0.timer == nil && !$0.grants.isEmpty && !$0.isStopped }
    guard isWanted else { return }
    let token = timer.schedule(after: Self.interval) { [weak self] in
      guard let self else { return }
      state.withLock { $0.timer = nil }
      look { $0.hasAll = true }
      schedule()
    }
    let isTaken = state.withLock { state in
      guard state.timer == nil, !state.isStopped else { return false }
      state.timer = token
      return true
    }
    if !isTaken { token.cancel() }
  }

  private func look(_ note: (inout State) -> Void) {
    let isNew = state.withLock { state in
      guard !state.isStopped, !state.grants.isEmpty else { return false }
      note(&state)
      defer { state.isEnqueued = true }
      return !state.isEnqueued
    }
    if isNew { lane.enqueue { [weak self] in self?.look() } }
  }

  private func look() {
    let grants = state.withLock { state in
      let grants = state.grants.values.filter { grant in
        state.hasAll || state.hasUsers && grant.user.name != nil && !grant.user.bringsRoles
          || grant.database.map { state.databases.contains(ObjectIdentifier($0)) } ?? false
      }
      (state.hasAll, state.hasUsers, state.databases, state.isEnqueued) = (false, false, [], false)
      return grants
    }
    var known = Known()
    for grant in grants { check(grant, &known) }
  }

  /// What was read while several grants are looked at.
  private struct Known {
    var users: [ByteString: UserContext?] = [:]
    var security: [ObjectIdentifier: DatabaseSecurity] = [:]
  }

  private func check(_ grant: Grant, _ known: inout Known) {
    do {
      guard let user = current(grant.user, &known) else {
        throw CouchDBError(401, "unauthorized", "there is no user \(grant.user.name ?? "") any more")
      }
      try Authorization.check(grant.right, of: user, security(grant.database, &known))
    } catch let error as CouchDBError {
      let isThere = state.withLock { $0.grants.removeValue(forKey: ObjectIdentifier(grant)) != nil }
      if isThere { grant.ended(error) }
    } catch {
      // A database that is closed ends what uses it.
      Log.write(.debug, .network, grant.database?.path, "rights can't be read: \(LogText.of(error))")
    }
  }

  private func current(_ user: UserContext, _ known: inout Known) -> UserContext? {
    guard let name = user.name.map({ ByteString($0) }) else { return user }
    if let found = known.users[name], !user.bringsRoles { return found }
    let found = current(user)
    if !user.bringsRoles { known.users[name] = .some(found) }
    return found
  }

  private func security(_ database: Database?, _ known: inout Known) throws -> DatabaseSecurity {
    guard let database else { return .standard }
    if let found = known.security[ObjectIdentifier(database)] { return found }
    let security = try database.security()
    known.security[ObjectIdentifier(database)] = security
    return security
  }
}
