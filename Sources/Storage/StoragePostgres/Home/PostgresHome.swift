import Storage

/// What stands beside the entries of a database in a schema: its description in the table `database`, its blobs in `blobs` and
/// `pieces`, and the lock of the sessions that have it open.
final class PostgresHome: ServerHome {
  let location: String
  var name: String { place.schema }
  private let place: PostgresLocation
  private let lock: SessionLock
  private let listener: CommitListener
  /// The connections without prepared statements: the tables may not be there.
  private let plain: ConnectionPool
  private let store: PostgresBlobs
  /// Whether the server was reached.
  private let isReached = Lock(false)
  var blobs: any BlobHome { store }

  init(_ location: String, _ options: EngineOptions) throws {
    let place = try PostgresLocation(location)
    guard options.key == nil else {
      throw StorageError(.notEncrypted, "the engine postgres can't encrypt", path: place.shown)
    }
    var settings = PostgresSettings(location: place)
    settings.isOfHome = true
    settings.isReadOnly = options.isReadOnly
    settings.synchronousCommit = PostgresSettings.synchronousCommit(options.durability)
    self.location = place.shown
    self.place = place
    store = PostgresBlobs(settings)
    // What is said of the database itself is durable whatever its commits are.
    var own = settings
    own.isReadOnly = false
    own.synchronousCommit = "on"
    plain = ConnectionPool(own, preparesStatements: false)
    lock = SessionLock(own, for: "database")
    listener = CommitListener(own)
  }

  /// Connects for the first time, so that a wrong location is an error at once, and a lost connection later is not.
  private func connectFirst() throws {
    try isReached.withLock { isReached in
      guard !isReached else { return }
      plain.giveBack(try PostgresEngine.connect(plain.settings))
      isReached = true
    }
  }

  private func withSchema<Result>(_ what: String, _ body: (HomeSchema) throws -> Result) throws -> Result {
    try reporting(what, location) {
      try connectFirst()
      return try plain.withConnection { connection in
        let result = try body(HomeSchema(connection: connection, location: place))
        plain.giveBack(connection)
        return result
      }
    }
  }

  func state() throws -> ServerHomeState {
    try withSchema("the database can't be looked for") { try $0.state() }
  }

  func begin() throws {
    try withSchema("the database can't be made") { schema in
      let state = try schema.state()
      if case .complete = state {
        throw StorageError(.alreadyExists, "the server has a database in this schema", path: location)
      }
      try schema.begin(state)
    }
  }

  func publish(_ description: String) throws {
    try reporting("the description of the database can't be stored", location) {
      try plain.withConnection { connection in
        let text = description.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''")
        _ = try connection.exchange([
          .text("UPDATE \(place.quotedSchema).database SET description = '\(text)' WHERE id = 1")
        ])
        plain.giveBack(connection)
      }
    }
  }

  func remove() throws { try withSchema("the database can't be removed") { try $0.remove() } }

  func rename(to name: String) throws {
    try withSchema("the database can't be renamed") { try $0.rename(to: name) }
  }

  // MARK: The lock

  func share(seconds: Double) throws -> Bool {
    try reporting("the database can't be locked", location) { try lock.share(seconds: seconds) }
  }

  func takeAlone(seconds: Double, unless isDone: () throws -> Bool) throws -> Bool {
    // The server takes a moment to end the session of a process that has just ended.
    try reporting("the database can't be locked", location) {
      try lock.takeAlone(seconds: max(seconds, 0.5), unless: isDone)
    }
  }

  func inTurn(_ body: () throws -> Void) throws -> Bool {
    let turn = SessionLock(plain.settings, for: "upkeep")
    defer { turn.close() }
    let isTaken = try reporting("the work in the background can't be locked", location) {
      try turn.takeAlone(seconds: 0) { false }
    }
    if isTaken { try body() }
    return isTaken
  }

  func workTurn(for purpose: String) -> any WorkTurn {
    PostgresTurn(plain.settings, location: location, for: purpose)
  }

  func isStillAlone() throws -> Bool {
    try reporting("the database can't be locked", location) { try lock.isStillAlone() }
  }

  func giveUpAlone() { lock.giveUpAlone() }

  func allowWriting(_ durability: Durability) { store.allowWriting(durability) }

  func waitForCommit(seconds: Double) -> Bool? { listener.wait(seconds: seconds) }
  func wake() { listener.wake() }

  func rest() { plain.closeAll() }

  func close() {
    listener.close()
    lock.close()
    plain.closeAll()
    store.close()
  }
}
