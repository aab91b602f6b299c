import Documents
import Encryption
import Storage

/// The place of a database that may be there or not: a directory, or a name on a server.
///
/// It is in memory of its own. Copies of it in place read words that the smaller case doesn't have, which valgrind reports.
indirect enum DatabasePlace {
  case directory(DatabaseDirectory)
  case server(ServerPlace)

  /// Reads a path or a location on a server. A relative path starts from `directory`.
  ///
  /// Throws `unknownEngine` if this build has no engine for the location, and as `DatabaseLocation.init` and
  /// `DatabaseDirectory.init` do.
  init(_ text: String, in directory: String? = nil) throws {
    try self.init(DatabaseLocation(text), in: directory)
  }

  init(_ location: DatabaseLocation, in directory: String? = nil) throws {
    self =
      location.isOnServer
      ? .server(try ServerPlace(location)) : .directory(try DatabaseDirectory(location.text, in: directory))
  }

  /// The path, or the location without passwords. It identifies the database in this process.
  var path: String {
    switch self {
    case .directory(let directory): directory.path
    case .server(let place): place.path
    }
  }

  /// The name of the database.
  var name: String {
    switch self {
    case .directory(let directory): directory.name
    case .server(let place): place.name
    }
  }

  /// Whether there is a complete database. Throws an error if a server can't be asked.
  func isComplete() throws -> Bool {
    switch self {
    case .directory(let directory): directory.isComplete
    case .server(let place): try place.description() != nil
    }
  }

  /// Whether the database is encrypted. Throws `notFound` and `notADatabase`.
  func isEncrypted() throws -> Bool {
    switch self {
    case .directory(let directory):
      guard directory.isComplete else { throw directory.missing }
      return try directory.readDescription().key != nil
    case .server(let place):
      guard try place.description() != nil else { throw place.missing }
      return false
    }
  }

  /// Prepares an open: converts the database if the options require another engine.
  func prepare(_ options: DatabaseOptions) throws {
    guard options.requireEngine, let engine = options.engine else { return }
    switch self {
    case .directory(let directory): try ClosedDatabase.convert(directory, to: engine, options)
    case .server(let place): try place.check(engine)
    }
  }

  /// Opens or makes the database, and holds its lock. Nil if another process made or removed it in the meantime.
  func open(_ options: DatabaseOptions) throws -> OpenedDatabase? {
    switch self {
    case .directory(let directory): try HeldDirectory.open(directory, options)
    case .server(let place): try HeldServer.open(place, options)
    }
  }

  /// Removes a database that isn't open.
  func delete() throws {
    switch self {
    case .directory(let directory):
      try OpenDatabase.delete(directory)
      try directory.removeLink()
    case .server(let place): try place.delete()
    }
  }
}
