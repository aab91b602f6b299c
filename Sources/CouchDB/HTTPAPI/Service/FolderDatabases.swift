import Bytes
import Glibc
import Logs
import Storage
import Touchstone
import Views

/// The databases of a folder. They are opened when a client asks for them, and stay open until `close`.
package final class FolderDatabases: DatabaseCatalog {
  private struct State {
    var opened: [ByteString: Database] = [:]
    /// Those that wait for the end of what reads them, to be deleted. Nobody finds them any more.
    var deleted: Set<ByteString> = []
    /// Those that are being opened or made, each with the number of those who wait for it or do it.
    var turns: [ByteString: (turn: Turn, users: Int)] = [:]
    var followers: [@Sendable (String, CatalogEvent) -> Void] = []
  }

  /// Who has it opens or makes a database. To open one may take as long as another process writes it: nobody waits who asks for
  /// another one.
  private final class Turn: Sendable { let lock = Lock(()) }

  /// The revisions that a database keeps of a document when a client has made it: as many as CouchDB's do. With less, a replica that is
  /// further behind would make conflicts.
  package static let revisionsLimit = 1_000
  /// How long a database that is read is waited for before it is deleted.
  private static let patience = Duration.seconds(5)

  private let folder: DatabaseFolder
  package let letsClientsMake: Bool
  private let opensPlain: Bool
  private let state = Lock(State())

  /// Makes a catalog of the databases in a folder, whose options count for those that are opened and made. `letsClientsMake` says whether
  /// clients make and delete databases, `opensPlain` whether plain ones are opened too where the options have a key.
  package init(_ folder: DatabaseFolder, letsClientsMake: Bool = true, opensPlain: Bool = false) {
    self.folder = folder
    self.letsClientsMake = letsClientsMake
    self.opensPlain = opensPlain
  }

  package func names() throws -> [String] {
    let deleted = state.withLock { $0.deleted }
    let names = try folder.names()
    return deleted.isEmpty ? names : names.filter { !deleted.contains(ByteString($0)) }
  }

  package func database(_ name: String) throws -> Database? {
    guard DatabaseFolder.isValidName(name) else { return nil }
    let key = ByteString(name)
    if let found = find(key) { return found }
    return try takingTurn(key) {
      if let found = find(key) { return found }
      guard folder.exists(name) else { return nil }
      let database: Database
      do { database = try folder.openExisting(name, options: options(for: name)) } catch let error
        as DatabaseError
        where error.code == .notFound
      {
        // Another process has just deleted it.
        return nil
      }
      state.withLock { $0.opened[key] = database }
      tell(name, .opened(database))
      return database
    }
  }

  /// The options that open a database.
  private func options(for name: String) throws -> DatabaseOptions {
    var options = folder.options
    if options.key != nil, opensPlain, try !Database.isEncrypted(folder.path(of: name)) { options.key = nil }
    return options
  }

  /// The database that is open, and none for one that is being deleted. Nil if the folder has to be asked.
  private func find(_ key: ByteString) -> Database?? {
    state.withLock { state in
      state.deleted.contains(key) ? .some(nil) : state.opened[key].map { .some($0) }
    }
  }

  /// Calls `body` while nobody else opens or makes the database.
  private func takingTurn<Result>(_ key: ByteString, _ body: () throws -> Result) rethrows -> Result {
    let turn = state.withLock { state in
      let turn = state.turns[key]?.turn ?? Turn()
      state.turns[key] = (turn, (state.turns[key]?.users ?? 0) + 1)
      return turn
    }
    defer {
      state.withLock { state in
        let users = (state.turns[key]?.users ?? 1) - 1
        state.turns[key] = users == 0 ? nil : (turn, users)
      }
    }
    return try turn.lock.withLock { _ in try body() }
  }

  package func create(_ name: String, isPartitioned: Bool) throws -> Bool {
    let key = ByteString(name)
    return try takingTurn(key) {
      guard state.withLock({ $0.opened[key] == nil }), !folder.exists(name) else { return false }
      guard letsClientsMake else { throw CouchDBError(403, "forbidden", "databases aren't made here") }
      var options = folder.options
      options.creation = .createNew
      let database: Database
      do { database = try folder.open(name, options: options) } catch let error as DatabaseError
        where error.code == .alreadyExists
      {
        // Another process has just made it.
        return false
      }
      do {
        if options.maximumTreeDepth == nil { try database.setMaximumTreeDepth(Self.revisionsLimit) }
        if isPartitioned { try database.replicatingChanges { try $0.setPartitioned() } }
      } catch {
        try? database.delete()
        throw error
      }
      // Nobody has it before it is what was asked for.
      state.withLock { $0.opened[key] = database }
      tell(name, .created(database))
      return true
    }
  }

  package func delete(_ name: String) throws -> Bool {
    guard let database = try database(name) else { return false }
    guard letsClientsMake else { throw CouchDBError(403, "forbidden", "databases aren't deleted here") }
    let key = ByteString(name)
    // Of several who delete it, one does.
    let isOurs = state.withLock { $0.opened[key] === database && $0.deleted.insert(key).inserted }
    guard isOurs else { return false }
    defer { state.withLock { _ = $0.deleted.remove(key) } }
    var isThere = true
    do { try deleteUnread(database) } catch let error as DatabaseError where error.code == .notFound {
      // Another process has deleted it.
      isThere = false
    }
    state.withLock { _ = $0.opened.removeValue(forKey: key) }
    tell(name, .deleted)
    return isThere
  }

  package func follow(_ handler: @escaping @Sendable (String, CatalogEvent) -> Void) {
    let opened = state.withLock { state in
      state.followers.append(handler)
      return state.opened
    }
    for (key, database) in opened { handler(key.string, .opened(database)) }
  }

  private func tell(_ name: String, _ event: CatalogEvent) {
    for follower in state.withLock({ $0.followers }) { follower(name, event) }
  }

  /// Deletes a database when nobody reads it any more.
  private func deleteUnread(_ database: Database) throws {
    let deadline = ContinuousClock.now + Self.patience
    while true {
      do { return try database.delete() } catch  where Self.isInUse(error) {
        guard ContinuousClock.now < deadline else {
          throw CouchDBError(503, "service_unavailable", Self.whyInUse(error))
        }
        usleep(2_000)
      }
    }
  }

  /// Who keeps it from being deleted.
  private static func whyInUse(_ error: any Error) -> String {
    guard let error = error as? DatabaseError else { return "the database is being read; try again later" }
    return "the database isn't deleted: \(error.message)"
  }

  private static func isInUse(_ error: any Error) -> Bool {
    (error as? DatabaseError)?.code == .inUse || (error as? StorageError)?.code == .inUse
  }

  /// That of the folder's file. It is made from the first database if there is one, which is also that of a folder without the file.
  package func identity(isReadOnly: Bool) -> String? {
    do {
      if let known = try FolderIdentity.read(in: folder.path) { return known }
      guard !isReadOnly, !folder.options.isReadOnly else { return firstIdentity }
      if letsClientsMake { try folder.makeIfMissing() }
      guard folder.isThere else { return nil }
      return try FolderIdentity.make(firstIdentity ?? DocumentUUID.make(), in: folder.path)
    } catch {
      Log.write(.warning, .network, folder.path, "the uuid of the server can't be kept: \(LogText.of(error))")
      return firstIdentity
    }
  }

  /// That of the first database that can be opened.
  private var firstIdentity: String? {
    for name in (try? names()) ?? [] {
      if let database = try? database(name) { return database.publicDigits }
    }
    return nil
  }

  /// Closes the databases. Throws what closing one of them throws, after the others are closed.
  package func close() throws {
    state.withLock { $0.opened = [:] }
    try folder.close()
  }
}
