import Documents
import Encryption
import Storage
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// What all opens of one path in a process share: the directory's lock, the engine, the documents.
final class OpenDatabase: Sendable {
  let directory: DatabaseDirectory
  let options: DatabaseOptions
  let store: DocumentStore
  let isEncrypted: Bool
  private let lock: DirectoryLock
  private let description: Mutex<DatabaseDirectory.Description>
  private let opens = Mutex(1)

  private static let all = Mutex<[String: OpenDatabase]>([:])

  /// The open database at a path, or one that is opened now.
  static func open(_ directory: DatabaseDirectory, _ options: DatabaseOptions) throws -> OpenDatabase {
    // One at a time: two that open the same path mustn't both open the file.
    try all.withLock { all in
      if let open = all[directory.path] {
        try open.check(options)
        open.opens.withLock { $0 += 1 }
        return open
      }
      let open = try OpenDatabase(directory, options)
      all[directory.path] = open
      return open
    }
  }

  /// Gives up one open; the last one closes the file.
  func close() throws {
    try OpenDatabase.all.withLock { all in
      guard opens.withLock({ $0 }) == 1 else {
        opens.withLock { $0 -= 1 }
        return
      }
      try store.engine.close()
      lock.release()
      opens.withLock { $0 = 0 }
      all[directory.path] = nil
    }
  }

  private func check(_ wanted: DatabaseOptions) throws {
    guard wanted.creation != .createNew else {
      throw DatabaseError(.alreadyExists, "there is a database already", path: directory.path)
    }
    guard wanted.isReadOnly || !options.isReadOnly else {
      throw DatabaseError(.inUse, "the database is open for reading only in this process", path: directory.path)
    }
    try OpenDatabase.unlock(directory, wanted.key)?.withUnsafeBytes { _ in }
  }

  // MARK: Opening

  private init(_ directory: DatabaseDirectory, _ options: DatabaseOptions) throws {
    self.directory = directory
    self.options = options
    if !directory.isComplete {
      guard options.creation != .openExisting, !options.isReadOnly else {
        throw DatabaseError(
          directory.exists ? .notADatabase : .notFound, "there is no database", path: directory.path)
      }
      guard mkdir(directory.path, 0o755) == 0 || errno == EEXIST else {
        throw StorageError.system(errno, "can't make the directory", directory.path)
      }
    } else if options.creation == .createNew {
      throw DatabaseError(.alreadyExists, "there is a database already", path: directory.path)
    }
    lock = try DirectoryLock(directory.file("lock"), creates: !options.isReadOnly && !directory.isComplete)
    var created: (DocumentStore, DatabaseDirectory.Description)?
    if !directory.isComplete {
      try lock.takeAlone(seconds: 10, orShare: false)
      // Another process may have made it meanwhile.
      if !directory.isComplete { created = try OpenDatabase.create(directory, options) }
    }
    try lock.share()
    if let created {
      store = created.0
      description = Mutex(created.1)
    } else {
      let found = try directory.readDescription()
      store = try OpenDatabase.openStore(directory, found, options)
      description = Mutex(found)
    }
    isEncrypted = directory.isEncrypted
  }

  private static func create(_ directory: DatabaseDirectory, _ options: DatabaseOptions) throws -> (
    DocumentStore, DatabaseDirectory.Description
  ) {
    try directory.checkIsUnfinished()
    let type = try Engines.type(options.engine ?? (options.key == nil ? .sqlite : .sqlcipher))
    if type.encrypts, options.key == nil {
      throw DatabaseError(.keyRequired, "the engine \(type.name) needs a key", path: directory.path)
    }
    if !type.encrypts, options.key != nil {
      throw DatabaseError(.notEncrypted, "the engine \(type.name) can't encrypt", path: directory.path)
    }
    // What a creation left that didn't end.
    for name in try directory.contents() where name != "lock" { unlink(directory.file(name)) }
    let description = DatabaseDirectory.Description(
      version: DatabaseDirectory.version, engine: type.name, file: "data-1.\(type.fileExtension)")
    let dataKey = try options.key.map { try KeyFile.create(at: directory.keyPath, key: $0) }
    let engine = try openEngine(type, directory.file(description.file), .createNew, dataKey, options)
    let store = try DocumentStore(engine: engine, options: storeOptions(options))
    try directory.write(description)
    return (store, description)
  }

  private static func openStore(
    _ directory: DatabaseDirectory, _ description: DatabaseDirectory.Description, _ options: DatabaseOptions
  ) throws -> DocumentStore {
    let type = try Engines.type(EngineName(rawValue: description.engine))
    let dataKey = try unlock(directory, options.key)
    let engine = try openEngine(type, directory.file(description.file), .openExisting, dataKey, options)
    return try DocumentStore(engine: engine, options: storeOptions(options))
  }

  /// The data key of an encrypted database; nil for a plain one.
  private static func unlock(_ directory: DatabaseDirectory, _ key: UserKey?) throws -> SecretBytes? {
    switch (directory.isEncrypted, key) {
    case (false, nil): return nil
    case (false, _?):
      throw DatabaseError(.notEncrypted, "a key was given and the database isn't encrypted", path: directory.path)
    case (true, nil):
      throw DatabaseError(.keyRequired, "the database is encrypted and no key was given", path: directory.path)
    case (true, let key?):
      do { return try KeyFile.open(at: directory.keyPath, key: key) } catch let error as EncryptionError {
        switch error.code {
        case .wrongKey: throw DatabaseError(.wrongKey, error.message, path: directory.path)
        case .unsupportedVersion:
          throw DatabaseError(.unsupportedVersion, error.message, path: directory.keyPath)
        default: throw DatabaseError(.damaged, error.message, path: directory.keyPath)
        }
      }
    }
  }

  private static func openEngine(
    _ type: EngineType, _ path: String, _ creation: EngineOptions.Creation, _ dataKey: SecretBytes?,
    _ options: DatabaseOptions
  ) throws -> any StorageEngine {
    func open(_ key: [UInt8]?) throws -> any StorageEngine {
      try type.open(
        path,
        EngineOptions(
          creation: creation, isReadOnly: options.isReadOnly, durability: options.durability, key: key,
          cacheBytes: options.cacheBytes, libraryPath: options.libraryPath))
    }
    guard let dataKey else { return try open(nil) }
    do { return try dataKey.withArray { try open($0) } } catch let error as StorageError
      where error.code == .wrongKey
    {
      // The key file vouches for the data key, so it is the data that is broken.
      throw DatabaseError(.damaged, "the data can't be read with the database's own key: \(error)", path: path)
    }
  }

  private static func storeOptions(_ options: DatabaseOptions) -> DocumentStore.Options {
    DocumentStore.Options(
      maximumTreeDepth: options.maximumTreeDepth, keepsReplacedBodies: options.keepsReplacedBodies)
  }

  // MARK: Housekeeping

  /// The raw data key in the right hands: what the `sqlcipher` tool opens the file with.
  func dataKey(_ key: UserKey) throws -> SecretBytes? { try OpenDatabase.unlock(directory, key) }

  var engineFile: String { directory.file(description.withLock { $0.file }) }

  /// Drops what only history needs and gives unused space back to the file system.
  func compact() throws {
    guard !options.isReadOnly else {
      throw DatabaseError(.readOnly, "the database is open for reading only", path: directory.path)
    }
    try store.dropReplacedBodies()
    if store.engine.compactsInPlace { return try store.engine.compact() }
    try lock.takeAlone(orShare: true)
    defer { try? lock.share() }
    try replaceFile()
  }

  /// Copies the data into a new file and makes it the database's. Readers keep the old one until they end.
  private func replaceFile() throws {
    let old = description.withLock { $0 }
    var new = old
    let type = try Engines.type(EngineName(rawValue: old.engine))
    let number = old.file.dropFirst("data-".count).prefix { $0.isNumber }
    new.file = "data-\((Int(number) ?? 0) + 1).\(type.fileExtension)"
    // The transaction keeps writers out; who waits for it finds that the engine has changed, and begins anew.
    try store.exclusively {
      try directory.removeData(new.file)
      try store.engine.backup(to: directory.file(new.file))
      let engine = try OpenDatabase.openEngine(
        type, directory.file(new.file), .openExisting, nil, options)
      do {
        try directory.write(new)
        try store.replaceEngine(engine)
      } catch {
        try? engine.close()
        throw error
      }
      description.withLock { $0 = new }
      try directory.removeData(old.file)
    }
  }

  // MARK: Deleting

  /// Removes a database that nobody has open, at once: a crash leaves it whole or gone.
  static func delete(_ directory: DatabaseDirectory) throws {
    try all.withLock { all in
      guard all[directory.path] == nil else {
        throw DatabaseError(.inUse, "the database is open in this process", path: directory.path)
      }
      guard directory.exists else {
        throw DatabaseError(.notFound, "there is no database", path: directory.path)
      }
      guard directory.isComplete else {
        throw DatabaseError(.notADatabase, "the directory holds no database", path: directory.path)
      }
      let lock = try DirectoryLock(directory.file("lock"), creates: true)
      try lock.takeAlone(orShare: false)
      // Without its description it is no database any more; then the rest goes.
      guard unlink(directory.descriptionPath) == 0 else {
        throw StorageError.system(errno, "can't remove", directory.descriptionPath)
      }
      try AtomicFile.syncDirectory(of: directory.descriptionPath)
      try removeTree(directory.path)
    }
  }

  private static func removeTree(_ path: String) throws {
    guard let stream = opendir(path) else { throw StorageError.system(errno, "can't read", path) }
    var names: [String] = []
    while let entry = readdir(stream) {
      names.append(
        withUnsafePointer(to: &entry.pointee.d_name) {
          $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        })
    }
    closedir(stream)
    for name in names where name != "." && name != ".." {
      let inner = path + "/" + name
      var status = stat()
      guard lstat(inner, &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR {
        try removeTree(inner)
      } else if unlink(inner) != 0 {
        throw StorageError.system(errno, "can't remove", inner)
      }
    }
    guard rmdir(path) == 0 else { throw StorageError.system(errno, "can't remove", path) }
  }
}
