import Documents
import Encryption
import Logs
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension HeldDirectory {
  private typealias Created = (
    store: DocumentStore, dataKey: SecretBytes?, description: DatabaseDirectory.Description
  )

  /// Opens the database in a directory, or makes it, and holds its lock. Nil if another process made or removed the database in the
  /// meantime.
  static func open(_ directory: DatabaseDirectory, _ options: DatabaseOptions) throws -> OpenedDatabase? {
    guard let found = try locked(directory, options) else { return nil }
    if let created = found.created {
      return (HeldDirectory(directory, found.lock, created.description), created.store, created.dataKey)
    }
    let description = try found.description ?? directory.readDescription()
    let dataKey = try OpenDatabase.unlock(directory, description, options.key)
    let store = try openStore(directory, description, dataKey, options)
    return (HeldDirectory(directory, found.lock, description), store, dataKey)
  }

  /// The directory's lock, shared, the database if this call made it, and the description if it was read under the lock. Nil if
  /// another process made or removed the database in the meantime.
  private static func locked(_ directory: DatabaseDirectory, _ options: DatabaseOptions) throws -> (
    lock: DirectoryLock, created: Created?, description: DatabaseDirectory.Description?
  )? {
    var hasMadeDirectory = false
    if directory.isComplete {
      guard options.creation != .createNew else {
        throw DatabaseError(.alreadyExists, "the database exists already", path: directory.path)
      }
    } else {
      guard options.creation != .openExisting, !options.isReadOnly else {
        throw directory.missing
      }
      // This check comes before the directory is made, so a refusal leaves nothing behind.
      try directory.checkIsOutsideOfOthers()
      _ = try engineType(forNew: directory, options)
      hasMadeDirectory = mkdir(directory.path, 0o755) == 0
      guard hasMadeDirectory || errno == EEXIST else {
        if errno == ENOENT { throw DatabaseDirectory.noParent(of: directory.path) }
        throw StorageError.system(errno, "can't make the directory", directory.path)
      }
      try directory.checkIsDirectory()
      if options.durability != .none { try directory.syncName() }
    }
    let lock: DirectoryLock
    do {
      lock = try DirectoryLock(directory.file("lock"), in: directory.path, creates: !options.isReadOnly)
    } catch let error as StorageError where error.code == .notFound {
      return nil
    }
    var created: Created?
    if !directory.isComplete {
      do {
        // The process that makes it in the meantime may keep it open.
        try lock.takeAlone(seconds: 10, unless: { directory.isComplete }, orShare: false)
      } catch let error as StorageError where error.code == .notFound {
        return nil
      } catch let error as DatabaseError where error.code == .inUse && directory.isComplete {
        return nil
      }
      guard lock.isCurrent else { return nil }
      // Another process may have made it in the meantime.
      if !directory.isComplete {
        created = try create(directory, options, hasMadeDirectory: hasMadeDirectory)
      } else if options.creation == .createNew {
        throw DatabaseError(.alreadyExists, "the database exists already", path: directory.path)
      }
    } else if options.creation == .createNew {
      // Another process has made it since the first look.
      throw DatabaseError(.alreadyExists, "the database exists already", path: directory.path)
    }
    try lock.share()
    guard lock.isCurrent, directory.isComplete else { return nil }
    guard created == nil, !options.isReadOnly, let description = try? directory.readDescription() else {
      return (lock, created, nil)
    }
    if try directory.leftovers(description).isEmpty { return (lock, nil, description) }
    try removeLeftovers(directory, lock)
    guard lock.isCurrent, directory.isComplete else { return nil }
    return (lock, nil, nil)
  }

  /// Removes what an interrupted operation left, unless another process has the database open. Then a later
  /// open removes it. The lock may be released and taken again.
  private static func removeLeftovers(_ directory: DatabaseDirectory, _ lock: DirectoryLock) throws {
    do { try lock.takeAlone(orShare: true) } catch let error as DatabaseError where error.code == .inUse {
      return
    }
    defer { lock.shareAgain() }
    // Another process may have replaced files in the meantime.
    do { try directory.removeLeftovers(directory.readDescription()) } catch {
      Log.write(
        .warning, .database, directory.path,
        "can't remove the files of an interrupted operation: \(LogText.of(error))")
    }
  }

  /// The engine of a new database. Throws if it is unknown or doesn't fit the key.
  private static func engineType(forNew directory: DatabaseDirectory, _ options: DatabaseOptions) throws
    -> EngineType
  {
    let type = try wantedEngineType(directory, options)
    try directory.checkFits(type)
    return type
  }

  private static func wantedEngineType(_ directory: DatabaseDirectory, _ options: DatabaseOptions) throws
    -> EngineType
  {
    if let type = options.engineType { return type }
    let isEncrypted = options.key != nil
    let type = try Engines.type(
      options.engine ?? (isEncrypted ? .sqlcipher : .sqlite), encrypted: isEncrypted)
    try type.checkHasFiles(directory.path)
    if type.encrypts, options.key == nil {
      throw DatabaseError(
        .keyRequired, "the engine \(type.name) always encrypts, but no key was given", path: directory.path)
    }
    if !type.encrypts, options.key != nil {
      throw DatabaseError(
        .notEncrypted,
        "a key was given, but the engine \(type.name) can't encrypt; choose another engine, or give no key",
        path: directory.path)
    }
    return type
  }

  /// Makes the database in a directory that has nothing else. If that fails, nothing is left.
  private static func create(
    _ directory: DatabaseDirectory, _ options: DatabaseOptions, hasMadeDirectory: Bool
  ) throws -> Created {
    try directory.checkIsUnfinished()
    let type = try engineType(forNew: directory, options)
    // Removes the files of an interrupted creation.
    try FileTree.removeContents(of: directory.path, but: "lock")
    do { return try createFiles(directory, type, options) } catch {
      // What can't be removed now is removed by the next creation.
      try? OpenDatabase.removeUnfinishedFiles(of: directory, keepsDirectory: !hasMadeDirectory)
      throw error
    }
  }

  private static func createFiles(
    _ directory: DatabaseDirectory, _ type: EngineType, _ options: DatabaseOptions
  ) throws -> Created {
    let description = DatabaseDirectory.Description(
      version: DatabaseDirectory.version, engine: type.name, file: "data-1.\(type.fileExtension)",
      key: options.key == nil ? nil : DatabaseDirectory.key)
    let dataKey = try options.key.map {
      try KeyFile.create(at: directory.file(DatabaseDirectory.key), key: $0)
    }
    let engine = try OpenDatabase.openEngine(
      type, directory.file(description.file), .createNew, dataKey, options)
    let store = try makeStore(engine, directory, description, dataKey, options, isNew: true)
    Log.write(.info, .database, directory.path, "made, with the engine \(type.name)")
    return (store, dataKey, description)
  }

  private static func openStore(
    _ directory: DatabaseDirectory, _ description: DatabaseDirectory.Description, _ dataKey: SecretBytes?,
    _ options: DatabaseOptions
  ) throws -> DocumentStore {
    let type = try Engines.type(EngineName(rawValue: description.engine))
    let engine = try OpenDatabase.openEngine(
      type, directory.file(description.file), .openExisting, dataKey, options)
    return try makeStore(engine, directory, description, dataKey, options, isNew: false)
  }

  /// The documents over an open engine; for a new database, the description is written too. If anything fails, the engine is closed: some
  /// engines hold the file for as long as they are open.
  private static func makeStore(
    _ engine: any StorageEngine, _ directory: DatabaseDirectory,
    _ description: DatabaseDirectory.Description, _ dataKey: SecretBytes?, _ options: DatabaseOptions,
    isNew: Bool
  ) throws -> DocumentStore {
    do {
      if !isNew, options.checksFile { try OpenDatabase.checkFile(engine, directory.path) }
      let blobs = try OpenDatabase.blobStore(directory, description, dataKey, options)
      let store = try DocumentStore(
        engine: engine, options: OpenDatabase.storeOptions(options, directory.path), blobs: blobs)
      do { if isNew { try directory.write(description) } } catch {
        store.closeBlobs()
        throw error
      }
      return store
    } catch {
      try? engine.close()
      throw error
    }
  }
}
