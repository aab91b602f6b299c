import Logs
import Storage

/// The place of a database on a server. docs/storage-postgres.md says what is there.
struct ServerPlace {
  /// The location with what is secret in it. Only the engine gets it.
  private let location: DatabaseLocation
  let type: EngineType
  private let server: EngineServer
  /// The location without passwords.
  let path: String
  let name: String

  /// Finds the engine of a location. Throws `unknownEngine`, `invalidLocation` and `invalidName`.
  init(_ location: DatabaseLocation) throws {
    self.location = location
    type = try Engines.type(ofScheme: location.scheme ?? "", path: location.description)
    guard let server = type.server else {
      throw DatabaseError(.unknownEngine, "the engine \(type.name) has no server", path: location.description)
    }
    self.server = server
    // Reads the location, and asks no server.
    let home = try Self.checked(location) { try server.home(location.text, EngineOptions(isReadOnly: true)) }
    defer { home.close() }
    path = home.location
    name = home.name
  }

  private static func checked<Result>(_ location: DatabaseLocation, _ body: () throws -> Result) throws
    -> Result
  {
    do { return try body() } catch let error as StorageError where error.code == .invalidArgument {
      throw DatabaseError(.invalidLocation, error.message, path: location.description)
    }
  }

  /// What is beside the entries. The caller closes it.
  func home(_ options: DatabaseOptions) throws -> any ServerHome {
    try server.home(
      location.text, EngineOptions(isReadOnly: options.isReadOnly, durability: options.durability))
  }

  /// Opens the engine.
  func openEngine(_ creation: FileCreation, _ options: DatabaseOptions, isBulkLoad: Bool = false) throws
    -> any StorageEngine
  {
    try type.open(
      location.text,
      EngineOptions(
        creation: creation, isReadOnly: options.isReadOnly, durability: options.durability,
        cacheBytes: options.cacheBytes, isBulkLoad: isBulkLoad,
        compression: options.compression))
  }

  /// The error of a database that isn't there.
  var missing: DatabaseError { DatabaseError(.notFound, "there is no database", path: path) }

  /// The description of the database; nil if there is no complete one.
  func description() throws -> ServerDescription? {
    let home = try home(DatabaseOptions(isReadOnly: true))
    defer { home.close() }
    return try description(home)
  }

  /// Reads the description. Throws `notADatabase`, `unsupportedVersion` and `damaged`.
  func description(_ home: any ServerHome) throws -> ServerDescription? {
    do {
      guard case .complete(let text) = try home.state() else { return nil }
      return try ServerDescription(text, path: path)
    } catch let error as StorageError {
      guard let code = Self.code(of: error) else { throw error }
      throw DatabaseError(code, error.message, path: path)
    }
  }

  private static func code(of error: StorageError) -> DatabaseError.Code? {
    switch error.code {
    case .notADatabase: .notADatabase
    case .unsupportedVersion: .unsupportedVersion
    case .damaged: .damaged
    default: nil
    }
  }

  /// Throws `invalidLocation` if a database here can't have this engine.
  func check(_ engine: EngineName) throws {
    guard engine.rawValue == type.name else {
      throw DatabaseError(
        .invalidLocation,
        "a database on this server has the engine \(type.name), and can't have the engine \(engine); convert it into a directory",
        path: path)
    }
  }

  /// Gives the database the name of another place on the same server. Throws `inUse` if it is open, and `alreadyExists`.
  func move(to target: ServerPlace) throws {
    guard target.path != path else {
      throw DatabaseError(.alreadyExists, "the database has this name already", path: path)
    }
    try OpenDatabase.reserve(target.path)
    defer { OpenDatabase.unreserve(target.path) }
    try alone(isThere: { try description($0) != nil }) { home in
      let newHome = try target.home(DatabaseOptions())
      defer { newHome.close() }
      let taken = DatabaseError(.alreadyExists, "the database exists already", path: target.path)
      guard try target.description(newHome) == nil else { throw taken }
      guard try newHome.takeAlone(seconds: 0, unless: { false }) else {
        throw DatabaseError(.inUse, "another process is making a database of the new name", path: target.path)
      }
      // Another process may have made it since.
      guard try target.description(newHome) == nil else { throw taken }
      // An interrupted creation or conversion.
      if try newHome.state() == .unfinished { try newHome.remove() }
      guard try home.isStillAlone(), try newHome.isStillAlone() else {
        throw DatabaseError(.inUse, "the connection that locked the database was lost; try again", path: path)
      }
      do { try home.rename(to: target.name) } catch let error as StorageError
        where error.code == .alreadyExists
      {
        throw DatabaseError(.alreadyExists, error.message, path: target.path)
      }
      Log.write(.info, .database, path, "renamed to \(target.name)")
    }
  }

  /// Removes the database, or what an interrupted creation or conversion has left, if no open shares its lock. Throws `inUse`.
  func delete() throws {
    try alone(isThere: { try description($0) != nil || $0.state() == .unfinished }) { home in
      try home.remove()
      Log.write(.info, .database, path, "removed")
    }
  }

  /// Calls `body` with the home, while nobody else opens the database. Throws `inUse` if it is open, and `missing`.
  private func alone(
    isThere: (any ServerHome) throws -> Bool, _ body: (any ServerHome) throws -> Void
  ) throws {
    try OpenDatabase.paths.withLock(path) { there in
      try OpenDatabase.checkNotReserved(path)
      guard there == nil else {
        throw DatabaseError(.inUse, "the database is open in this process", path: path)
      }
      let home = try home(DatabaseOptions())
      defer { home.close() }
      guard try isThere(home) else { throw missing }
      guard try home.takeAlone(seconds: 0, unless: { false }) else {
        throw DatabaseError(
          .inUse, "the database is open in another process; close it there first", path: path)
      }
      // Another process may have removed it since.
      guard try isThere(home) else { throw missing }
      try body(home)
    }
  }
}
