import Touchstone

/// How a command makes a database that doesn't exist.
enum NewDatabase {
  /// The engines of the help, of which a build may lack the last ones.
  static let engineNames = "sqlite, lmdb, sqlcipher, lmdb-encrypted, sqlcipher-plain, rocksdb or wiredtiger"

  /// The option of commands that open a database and make it if they are told an engine.
  static let engine = DatabaseArguments.engine(
    "Makes DB with this engine if it doesn't exist: \(engineNames)")

  /// Makes a database and opens it. On a server it has the engine of its location. Without `engine` it is sqlite, or sqlcipher if there is a new key. An engine that
  /// encrypts needs a key: the new one, or else the key, or else a prompt.
  static func make(
    _ path: String, engine: EngineName?, keys: Keys, makesParents: Bool = false,
    watchesOtherProcesses: Bool = false
  ) throws -> Database {
    var key = try keys.new()
    if DatabaseLocation.isOnServer(path) {
      // Its location has the engine.
      var options = DatabaseOptions(engine: engine, creation: .createNew, key: key)
      options.watchesOtherProcesses = watchesOtherProcesses
      return try Database.open(path, options: options)
    }
    let engine = engine ?? (key == nil ? .sqlite : .sqlcipher)
    if try Engines.type(engine, encrypted: key != nil).encrypts {
      key = try key ?? keys.requiredNew(for: path, engine: engine)
    } else if key != nil {
      throw Keys.cannotEncrypt(engine)
    }
    var options = DatabaseOptions(
      engine: engine, creation: .createNew, key: key, makesParents: makesParents)
    options.watchesOtherProcesses = watchesOtherProcesses
    return try Database.open(path, options: options)
  }
}

extension DatabaseArguments {
  /// Opens the database. With an engine, makes it if it doesn't exist; `isNew` says so then. Throws a `UsageError` if it exists
  /// with another engine.
  func open(
    makingWith engine: EngineName?, watchesOtherProcesses: Bool = false
  ) throws -> (database: Database, isNew: Bool) {
    guard let engine else { return (try open(watchesOtherProcesses: watchesOtherProcesses), false) }
    guard Database.exists(path) else {
      let made = try NewDatabase.make(
        path, engine: engine, keys: keys, watchesOtherProcesses: watchesOtherProcesses)
      return (made, true)
    }
    let database = try open(watchesOtherProcesses: watchesOtherProcesses)
    let wanted = try Engines.type(engine, encrypted: database.isEncrypted).name
    guard database.engineName.rawValue == wanted else {
      let found = database.engineName
      try database.close()
      throw UsageError(
        "\(shownPath) exists and its engine is \(found), not \(engine); leave out --engine, or change the engine with "
          + "'touchstone convert \(shownPath) --engine \(engine)'")
    }
    return (database, false)
  }
}
