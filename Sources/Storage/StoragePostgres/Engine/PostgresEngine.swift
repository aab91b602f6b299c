import CPostgres
import Glibc
import Storage
import StorageFlat

/// A storage engine on a PostgreSQL server. docs/storage-postgres.md describes its tables and statements.
final class PostgresEngine: EngineMaintenance {
  let location: String
  let durability: Durability
  let isReadOnly: Bool
  let library: String
  let place: PostgresLocation
  let queue = GroupCommit()
  let pool: ConnectionPool
  private let forks = ForkCount.register()
  private let life = Lock(Life())
  /// What the writer keeps between transactions. Only used inside of the queue.
  let writing: WriterMemory

  private struct Life {
    /// The keyspaces that were read last.
    var catalog: PostgresCatalog?
    /// The server's transactions of all snapshots.
    var sessions: [ReadSession] = []
    var readers = 0
    var isClosed = false
  }

  convenience init(location: String, options: EngineOptions) throws {
    let place = try PostgresLocation(location)
    guard options.key == nil else {
      throw StorageError(.notEncrypted, "the engine postgres can't encrypt", path: place.shown)
    }
    var settings = PostgresSettings(location: place)
    settings.isReadOnly = options.isReadOnly
    settings.synchronousCommit = PostgresSettings.synchronousCommit(options.durability)
    try self.init(settings, options)
  }

  /// Opens with other settings, for tests.
  init(_ settings: PostgresSettings, _ options: EngineOptions) throws {
    place = settings.location
    location = place.shown
    durability = options.durability
    isReadOnly = settings.isReadOnly
    pool = ConnectionPool(settings)
    writing = WriterMemory()
    guard options.creation != .createNew || !options.isReadOnly else {
      throw StorageError(.invalidArgument, "a new database can't be opened for reading only", path: location)
    }
    let connection = try reporting("the server can't be reached or refuses", location) {
      try Self.connect(settings)
    }
    library = "\(connection.server), libpq \(PQlibVersion() / 10_000).\(PQlibVersion() % 10_000)"
    do {
      try reporting("the database can't be opened", location) {
        try PostgresSchema(connection: connection, location: place).open(
          options.creation, isReadOnly: isReadOnly)
        try connection.prepare()
      }
    } catch {
      connection.close()
      throw error
    }
    pool.giveBack(connection)
  }

  /// Connects for the first time. Only a server that is starting is waited for: anything else may be a wrong location.
  static func connect(_ settings: PostgresSettings) throws -> Connection {
    let deadline = Deadline(seconds: settings.connectSeconds)
    while true {
      do { return try Connection(settings) } catch let error as PostgresError
        where error.state == "57P03" && !deadline.isOver
      {
        usleep(50_000)
      }
    }
  }

  var name: String { "postgres" }

  var settings: [(name: String, value: String)] {
    [
      ("synchronous_commit", pool.settings.synchronousCommit),
      ("plan_cache_mode", "force_generic_plan"), ("isolation of snapshots", "repeatable read, read only"),
      ("isolation of writers", "read committed, behind a row lock"),
    ]
  }

  // MARK: Reading

  func beginRead() throws -> any ReadTransaction {
    let isCrowded = try life.withLock { life in
      try checkOpen(life)
      guard life.readers < PostgresSettings.maximumReaders else {
        throw StorageError(
          .tooManyReaders, "\(life.readers) snapshots are open, which is the limit", path: location)
      }
      life.readers += 1
      return life.sessions.count >= PostgresSettings.ownConnections
    }
    do {
      return try reporting("a snapshot can't be begun", location) {
        let session = try isCrowded ? sharedSession() : newSession()
        do { return PostgresTransaction(self, session, try catalog(of: session)) } catch {
          release(session)
          throw error
        }
      }
    } catch {
      life.withLock { $0.readers -= 1 }
      throw error
    }
  }

  /// Begins a transaction of the server, whose first statement makes its snapshot.
  private func newSession() throws -> ReadSession {
    let session = try pool.withConnection { connection in
      do {
        let answers = try connection.exchange([
          .text("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"), .prepared(.state, []),
        ])
        return ReadSession(connection, try DatabaseRow(answers[1], location))
      } catch {
        connection.sendEnding("ROLLBACK")
        throw error
      }
    }
    life.withLock { $0.sessions.append(session) }
    return session
  }

  /// A transaction that sees the last commit: another snapshot's, if there is one, so that connections aren't used up.
  private func sharedSession() throws -> ReadSession {
    let row = try pool.withConnection { connection in
      let row = try DatabaseRow(try connection.run(.state, []), location)
      pool.giveBack(connection)
      return row
    }
    let found = try life.withLock { life -> ReadSession? in
      if let session = life.sessions.last(where: { $0.row.commits == row.commits && !$0.isLost }) {
        session.users += 1
        return session
      }
      guard life.sessions.count < PostgresSettings.maximumConnections else {
        throw StorageError(
          .tooManyReaders,
          "snapshots of \(life.sessions.count) different commits are open, which is the limit", path: location
        )
      }
      return nil
    }
    return try found ?? newSession()
  }

  /// The keyspaces that a session sees.
  private func catalog(of session: ReadSession) throws -> PostgresCatalog {
    let known = knownCatalog(session.row.catalog)
    return try session.locked { connection in
      if let known, connection.hasReadCatalog { return known }
      let catalog = try PostgresCatalog(session.row, try connection.run(.keyspaces, []), location)
      connection.hasReadCatalog = true
      remember(catalog)
      return catalog
    }
  }

  /// The keyspaces as they were last, if they have this version.
  func knownCatalog(_ version: Int) -> PostgresCatalog? {
    life.withLock { $0.catalog.flatMap { $0.version == version ? $0 : nil } }
  }

  func remember(_ catalog: PostgresCatalog) {
    life.withLock { life in
      if catalog.version >= life.catalog?.version ?? -1 { life.catalog = catalog }
    }
  }

  func readerEnded(_ session: ReadSession) {
    guard !isForked else { return }
    life.withLock { $0.readers -= 1 }
    release(session)
  }

  private func release(_ session: ReadSession) {
    let isUnused = life.withLock { life in
      session.users -= 1
      guard session.users == 0 else { return false }
      life.sessions.removeAll { $0 === session }
      return true
    }
    if isUnused { pool.giveBack(session.end()) }
  }

  func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws -> Bool {
    try Self.check(key, in: keyspace)
    try life.withLock { try checkOpen($0) }
    let answer = try key.withUnsafeBytes { key in
      try reporting("a value can't be read", location) {
        try pool.withConnection { connection -> Answer? in
          let parameters = [Parameter.integer(keyspace.number), .bytes(key)]
          let answer = try connection.run(.get, parameters)
          // What isn't there may have been dropped with its keyspace.
          if answer.count == 0 {
            guard try connection.run(.isKeyspace, [parameters[0]]).count == 1 else {
              pool.giveBack(connection)
              throw Self.noSuchKeyspace(keyspace)
            }
          }
          pool.giveBack(connection)
          return answer.count == 1 ? answer : nil
        }
      }
    }
    guard let answer else { return false }
    try withExtendedLifetime(answer) { try body(answer.bytes(0, 0).bytes) }
    return true
  }

  // MARK: Writing

  func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try life.withLock { try checkOpen($0) }
    guard !isReadOnly else {
      throw StorageError(.readOnly, "the engine is open for reading", path: location)
    }
    try queue.run(PostgresWriteGroup(self), body)
  }

  // MARK: Closing

  func close() throws {
    guard !isForked else { return }
    try queue.exclusively {
      try life.withLock { life in
        guard !life.isClosed else { return }
        guard life.readers == 0 else {
          throw StorageError(.inUse, "\(life.readers) snapshots are open", path: location)
        }
        life.isClosed = true
      }
      writing.close()
      pool.closeAll()
    }
  }

  // MARK: Checks

  var isForked: Bool { ForkCount.now != forks }

  var forked: StorageError {
    StorageError(
      .closed, "the engine postgres can't be used in a forked child of the process that opened it",
      path: location)
  }

  /// The number of open snapshots. Throws `closed`.
  func openReaders() throws -> Int {
    try life.withLock { life in
      try checkOpen(life)
      return life.readers
    }
  }

  private func checkOpen(_ life: Life) throws {
    if life.isClosed { throw StorageError(.closed, "the engine is closed", path: location) }
    if isForked { throw forked }
  }

  static func noSuchKeyspace(_ keyspace: Keyspace) -> StorageError {
    StorageError(.noSuchKeyspace, "there is no keyspace with number \(keyspace.number)")
  }

  static func check(_ key: RawSpan, in keyspace: Keyspace) throws {
    let isSound =
      keyspace.shape == .sequences
      ? key.byteCount == 8 && key.withUnsafeBytes { $0[0] < 0x80 }
      : 1...StorageLimits.maximumKeyBytes ~= key.byteCount
    guard isSound else {
      throw StorageError(
        .invalidKey, "a keyspace of \(keyspace.shape) can't have a key of \(key.byteCount) bytes")
    }
  }
}
