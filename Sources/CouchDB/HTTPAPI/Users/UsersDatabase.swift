import Bytes
import Documents
import Fleece
import HTTP
import Logs
import Storage
import Touchstone
import Views

/// The users of the database `_users` of a catalog: who they are, and whether a password is theirs.
///
/// All calls may come from any thread.
package final class UsersDatabase: Sendable {
  /// A user that has a document.
  package struct User: Sendable {
    /// The name.
    package let name: String
    /// The roles, without those of the server.
    package let roles: [String]
    /// A number that changes with the password.
    package let mark: UInt64
  }

  private struct Entry {
    let user: User
    let until: Double
  }

  private struct State {
    var known: [ByteString: Entry] = [:]
    /// Counts what makes remembered users wrong.
    var changes: UInt64 = 0
    var database: Database?
    var observer: ChangeObserver?
    var closeHandler: Int?
  }

  /// The most users that are remembered.
  static let mostKnown = 10_000
  /// How long a user is remembered at most, in seconds. Changes end it earlier.
  static let knownSeconds = 60.0
  /// So many passwords are hashed at a time for documents that are saved.
  private static let mostHashing = 2

  private let catalog: any DatabaseCatalog
  /// The iterations of hashes of new passwords.
  package let iterations: Int
  private let timer: any CallTimer
  private let state = Lock(State())
  private let changed = Lock<[@Sendable () -> Void]>([])
  private let hashing = CountingSemaphore()
  /// What passwords of unknown users are compared with.
  private let nobody: UserPassword

  /// Makes one. `iterations` is how slow new hashes are.
  package init(
    _ catalog: any DatabaseCatalog, iterations: Int? = nil, timer: any CallTimer = SystemTimer()
  ) {
    self.catalog = catalog
    self.iterations = iterations ?? UserPassword.standardIterations
    self.timer = timer
    nobody = .ofNobody(iterations: self.iterations)
    for _ in 0..<Self.mostHashing { hashing.signal() }
  }

  deinit {
    let (database, observer, handler) = state.withLock { ($0.database, $0.observer, $0.closeHandler) }
    observer?.cancel()
    if let handler { database?.removeCloseHandler(handler) }
  }

  // MARK: Finding

  /// A user that is remembered. Takes no time.
  package func recall(_ name: ByteString) -> User? {
    let now = timer.now
    return state.withLock { state in state.known[name].flatMap { $0.until > now ? $0.user : nil } }
  }

  /// A user; nil if there is none, or if the database can't be read, which the log says.
  package func find(_ name: ByteString) -> User? { read(name)?.user }

  /// The user, if the password is right. Takes as long for a name that isn't known: the time of `iterations`, or longer where a document has
  /// more.
  package func check(_ name: ByteString, _ password: [UInt8]) -> User? {
    let found = read(name)
    let hash = found?.password ?? nobody
    let isRight = hash.matches(password)
    if isRight, let found, found.password != nil { return found.user }
    UserPassword.spend(iterations: iterations - hash.iterations)
    return nil
  }

  /// Forgets who was remembered: a document has changed.
  package func forget() {
    state.withLock { state in
      state.known = [:]
      state.changes += 1
    }
    tellOfChange()
  }

  /// Calls `handler` after each change of a user from now on, on any thread. It must not wait.
  func whenChanged(_ handler: @escaping @Sendable () -> Void) { changed.withLock { $0.append(handler) } }

  private func tellOfChange() { for handler in changed.withLock({ $0 }) { handler() } }

  /// How many users are remembered.
  var knownCount: Int { state.withLock { $0.known.count } }

  private func read(_ name: ByteString) -> (user: User, password: UserPassword?)? {
    guard let text = String(validating: name.bytes, as: UTF8.self), !text.isEmpty else { return nil }
    do {
      guard let database = try catalog.database(UserDocument.database) else { return nil }
      attach(database)
      let changes = state.withLock { $0.changes }
      guard let body = try Self.body(text, in: database) else { return nil }
      let password = UserPassword(body)
      let user = User(name: text, roles: UserDocument.roles(body), mark: password?.mark ?? 0)
      remember(user, name, changes)
      return (user, password)
    } catch {
      Log.write(
        LogText.level(of: error), .network, UserDocument.database, "users can't be read: \(LogText.of(error))"
      )
      return nil
    }
  }

  private static func body(_ name: String, in database: Database) throws -> JSONObject? {
    do {
      guard let document = try database.document(UserDocument.idPrefix + name),
        case let body = try document.value().object ?? [:],
        // Another document may have come here by a replication.
        body["name"]?.string?.hasSameBytes(as: name) == true
      else { return nil }
      return body
    } catch let error as DocumentError where error.code == .invalidDocumentID { return nil }
  }

  private func remember(_ user: User, _ name: ByteString, _ changes: UInt64) {
    let now = timer.now
    state.withLock { state in
      // Without an observer nobody would say that it has changed.
      guard state.changes == changes, state.observer != nil else { return }
      if state.known.count >= Self.mostKnown { state.known = state.known.filter { $0.value.until > now } }
      if state.known.count >= Self.mostKnown { state.known = [:] }
      state.known[name] = Entry(user: user, until: now + Self.knownSeconds)
    }
  }

  // MARK: Following

  /// Hears of changes of a database from now on, unless it does already.
  private func attach(_ database: Database) {
    let (isNew, before, handler) = state.withLock { state -> (Bool, ChangeObserver?, (Database, Int)?) in
      guard state.database !== database else { return (false, nil, nil) }
      let old = state.database.flatMap { old in state.closeHandler.map { (old, $0) } }
      defer {
        state.database = database
        (state.observer, state.closeHandler, state.known) = (nil, nil, [:])
        state.changes += 1
      }
      return (true, state.observer, old)
    }
    before?.cancel()
    if let (old, number) = handler { old.removeCloseHandler(number) }
    guard isNew else { return }
    let number = database.addCloseHandler { [weak self, weak database] in
      guard let self, let database else { return }
      detach(database)
    }
    state.withLock { if $0.database === database { $0.closeHandler = number } }
    do {
      let observer = try database.observeForReplication { [weak self] in self?.forget() }
      let isWanted = state.withLock { state in
        guard state.database === database else { return false }
        state.observer = observer
        return true
      }
      if !isWanted { observer.cancel() }
    } catch { detach(database) }
  }

  private func detach(_ database: Database) {
    let observer = state.withLock { state -> ChangeObserver? in
      guard state.database === database else { return nil }
      defer {
        (state.database, state.observer, state.closeHandler, state.known) = (nil, nil, nil, [:])
        state.changes += 1
      }
      return state.observer
    }
    observer?.cancel()
    tellOfChange()
  }

  // MARK: Saving

  /// The body with a hash in the place of the password. Few are hashed at a time: others wait, and ask `checkWanted` meanwhile, which
  /// throws when nobody waits any more.
  func hashingPassword(_ body: JSONObject, _ checkWanted: () throws -> Void) throws -> JSONObject {
    guard body["password"].map({ !$0.isNull }) ?? false else { return body }
    while !hashing.wait(seconds: 0.1) { try checkWanted() }
    defer { hashing.signal() }
    return try UserDocument.hashingPassword(body, iterations: iterations)
  }
}
