import Blobs
import Documents
import Encryption
import FoundationEssentials
import Logs
import Query
import Scripts
import Storage
import Views

#if canImport(Glibc)
  import Glibc
#endif

/// The state that all opens of one path in a process share: the directory's lock, the engine and the
/// documents.
final class OpenDatabase: Sendable {
  let directory: DatabaseDirectory
  /// The options of the first open that can write; until there is one, those of the first open.
  var options: DatabaseOptions { currentOptions.withLock { $0 } }
  private let currentOptions: Lock<DatabaseOptions>
  let store: DocumentStore
  /// The key that encrypts the data; nil if the database isn't encrypted. The user's key may change while the
  /// database is open, here or in another process, but this one can't.
  let heldDataKey: SecretBytes?
  var isEncrypted: Bool { heldDataKey != nil }
  let lock: DirectoryLock
  let description: Lock<DatabaseDirectory.Description>
  /// The number of opens. Guarded by the path's lock.
  private(set) nonisolated(unsafe) var opens = 1
  /// Held while files are changed or closed. It is taken before the path's lock, and never inside a batch,
  /// because its holder may wait for the batch to end.
  let maintenance = Lock(())
  /// The planner's knowledge about the indexes.
  let planning = PlanningKnowledge()
  /// The engine's files that checks read.
  let heldFiles: HeldFiles
  /// What the queries log.
  let queryLog: QueryLog
  /// Notices the commits of other processes, if an open asked for it.
  private let watch = Lock<ChangeWatch?>(nil)
  /// The background work of the database. Set once, when it is opened for writing.
  private(set) nonisolated(unsafe) var upkeep: Upkeep?
  /// Called when the files are closed. A database in memory removes its data.
  private let onClose: Lock<(@Sendable () -> Void)?>
  /// The single thread of asynchronous writes.
  let asyncWriter = Workers()
  /// The threads of asynchronous reads and queries.
  let asyncReaders = Workers(maximum: max(2, ProcessInfo.processInfo.activeProcessorCount))

  /// The views.
  let views: ViewIndexes

  static let paths = PathLocks<OpenDatabase>()
  /// The paths whose files this process is replacing. Changed under the path's lock.
  private static let reserved = Lock<Set<ByteString>>([])

  /// Returns the open database at a path, or opens it. `onClose` is called once its files are closed.
  static func open(
    _ directory: DatabaseDirectory, _ options: DatabaseOptions, onClose: (@Sendable () -> Void)? = nil
  ) throws -> OpenDatabase {
    if options.requireEngine, let engine = options.engine {
      try ClosedDatabase.convert(directory, to: engine, options)
    }
    // Opens of one path run one at a time, so that the file is opened only once.
    return try paths.withLock(directory.path) { there in
      try checkNotReserved(directory)
      if let open = there {
        try open.check(options)
        if !options.isReadOnly, open.options.isReadOnly { try open.allowWriting(options) }
        if options.watchesOtherProcesses { try open.watchOtherProcesses(recordsPurges: !options.isReadOnly) }
        open.opens += 1
        Log.write(.verbose, .database, directory.path, "opened once more, \(open.opens) times in all")
        return open
      }
      let open = try OpenDatabase(directory, options, onClose)
      if !options.isReadOnly {
        open.renewIndexes()
      }
      do {
        if !options.isReadOnly { try open.startUpkeep() }
        if options.watchesOtherProcesses { try open.watchOtherProcesses(recordsPurges: !options.isReadOnly) }
      } catch {
        open.upkeep?.close()
        try? open.store.engine.close()
        open.lock.release()
        throw error
      }
      there = open
      Log.write(.info, .database, directory.path, "opened: \(open.logText)")
      return open
    }
  }

  /// The engine and the options, for the log.
  private var logText: String {
    let options = options
    return "\(store.engine.name), \(store.engine.library), durability \(options.durability.rawValue)"
      + (isEncrypted ? ", encrypted" : "") + (options.isReadOnly ? ", for reading only" : "")
  }

  /// Rebuilds outdated indexes. If this fails, for example on a full disk, they stay as they are until the next
  /// opening.
  private func renewIndexes() {
    do { try store.renewIndexes() } catch {
      Log.write(
        LogText.level(of: error), .index, directory.path,
        "can't rebuild outdated indexes: \(LogText.of(error))")
    }
  }

  /// Notices commits of other processes from now on. Purges are recorded for them, and for this one.
  private func watchOtherProcesses(recordsPurges: Bool) throws {
    // What isn't in files has no other processes.
    guard directory.exists else { return }
    if recordsPurges { try store.recordPurges() }
    watch.withLock { watch in
      guard watch == nil else { return }
      let new = ChangeWatch(store, directory: directory.path)
      watch = new
      store.onObservers { [weak new] in new?.observersChanged() }
      new.observersChanged()
    }
  }

  /// Prevents opens of a path in this process until `unreserve(_:)`. Throws `inUse` if it is open already.
  static func reserve(_ directory: DatabaseDirectory) throws {
    try paths.withLock(directory.path) { there in
      try checkNotReserved(directory)
      guard there == nil else {
        throw DatabaseError(.inUse, "the database is open in this process", path: directory.path)
      }
      reserved.withLock { _ = $0.insert(ByteString(directory.path)) }
    }
  }

  static func unreserve(_ directory: DatabaseDirectory) {
    reserved.withLock { _ = $0.remove(ByteString(directory.path)) }
  }

  static func checkNotReserved(_ directory: DatabaseDirectory) throws {
    guard !reserved.withLock({ $0.contains(ByteString(directory.path)) }) else {
      throw DatabaseError(.inUse, "this process is converting or removing the database", path: directory.path)
    }
  }

  /// Gives up one open. The last one closes the files. Throws `inUse` inside a batch, and while the database
  /// is being read.
  func close() throws {
    let isLast = OpenDatabase.paths.withLock(directory.path) { _ in
      guard opens > 1 else { return true }
      opens -= 1
      return false
    }
    guard isLast else { return }
    guard !store.isInBatch else {
      throw DatabaseError(
        .inUse, "the database can't be closed inside one of its batches", path: directory.path)
    }
    try maintenance.withLock { _ in
      try OpenDatabase.paths.withLock(directory.path) { there in
        // Another thread may have opened it again in the meantime.
        guard opens == 1 else {
          opens = max(0, opens - 1)
          return
        }
        try closeFiles()
        lock.release()
        there = nil
      }
    }
  }

  /// Closes the engine and everything that uses its files. If the engine can't be closed, nothing changes.
  /// The caller holds `maintenance` and the path's lock. Afterwards it releases the directory's lock and
  /// forgets this object.
  func closeFiles() throws {
    views.isEnding.withLock { $0 = true }
    do { try heldFiles.closing { try store.closing { try store.engine.close() } } } catch {
      views.isEnding.withLock { $0 = false }
      throw error
    }
    upkeep?.close()
    watch.withLock { $0 }?.close()
    store.closeBlobs()
    onClose.withLock { onClose in
      onClose?()
      onClose = nil
    }
    opens = 0
    Log.write(.info, .database, directory.path, "closed")
  }

  private func startUpkeep() throws {
    let upkeep = Upkeep(
      store, options.compaction, path: directory.path,
      makeFileSmaller: { [weak self] in try self?.makeFileSmaller() },
      collectBlobs: { [weak self] in try self?.collectBlobs() })
    self.upkeep = upkeep
    try upkeep.start()
  }

  /// How long an open that can write waits for reads by read-only opens.
  private static let secondsForReaders = 5.0

  /// Reopens a read-only database for writing. Its readers continue with the new engine. Throws `inUse` if a
  /// read lasts too long. Called under the path's lock.
  private func allowWriting(_ wanted: DatabaseOptions) throws {
    let description = description.withLock { $0 }
    let type = try Engines.type(EngineName(rawValue: description.engine))
    let dataKey = try OpenDatabase.unlock(directory, description, wanted.key)
    let file = directory.file(description.file)
    let before = options
    try lock.create()
    try store.allowWriting(
      OpenDatabase.storeOptions(wanted, directory),
      close: { engine in
        var waited = 0.0
        while true {
          do { return try engine.close() } catch let error as StorageError
            where error.code == .inUse && waited < OpenDatabase.secondsForReaders
          {
            usleep(2_000)
            waited += 0.002
          }
        }
      },
      open: { try OpenDatabase.openEngine(type, file, .openExisting, dataKey, wanted) },
      back: { try OpenDatabase.openEngine(type, file, .openExisting, dataKey, before) })
    store.blobs?.allowWriting(durability: wanted.durability)
    currentOptions.withLock { $0 = wanted.withoutKey }
    renewIndexes()
    try startUpkeep()
    Log.write(.info, .database, directory.path, "opened for writing too: \(logText)")
  }

  private func check(_ wanted: DatabaseOptions) throws {
    guard wanted.creation != .createNew else {
      throw DatabaseError(.alreadyExists, "the database exists already", path: directory.path)
    }
    let options = options
    let differing =
      wanted.isReadOnly
      ? nil : options.isReadOnly ? nil : options.firstDifference(from: wanted)
    if let differing {
      throw DatabaseError(
        .otherOptions,
        "the database is open in this process with \(differing.name) \(differing.left), but this open has"
          + " \(differing.right); use the same options, or close it first", path: directory.path)
    }
    try dataKey(wanted.key)?.withUnsafeBytes { _ in }
  }

  // MARK: Opening

  private init(
    _ directory: DatabaseDirectory, _ options: DatabaseOptions, _ onClose: (@Sendable () -> Void)?
  ) throws {
    self.directory = directory
    self.onClose = Lock(onClose)
    heldFiles = HeldFiles(of: directory.path)
    // The user's key isn't needed any more, and may change.
    currentOptions = Lock(options.withoutKey)
    queryLog = QueryLog(directory.path)
    var attempts = 0
    while true {
      if let found = try OpenDatabase.locked(directory, options) {
        lock = found.lock
        if let created = found.created {
          store = created.store
          heldDataKey = created.dataKey
          description = Lock(created.description)
        } else {
          let found = try directory.readDescription()
          let dataKey = try OpenDatabase.unlock(directory, found, options.key)
          store = try OpenDatabase.openStore(directory, found, dataKey, options)
          heldDataKey = dataKey
          description = Lock(found)
        }
        let scripts = ScriptProcess(program: options.scriptsPath, limits: options.scriptLimits)
        views = ViewIndexes(store, workers: asyncReaders, languages: [JavaScript(process: scripts)])
        return
      }
      attempts += 1
      guard attempts < 100 else {
        throw DatabaseError(
          .inUse, "other processes keep making and removing the database; try again", path: directory.path)
      }
    }
  }

  private typealias Created = (
    store: DocumentStore, dataKey: SecretBytes?, description: DatabaseDirectory.Description
  )

  /// The directory's lock, shared, and the database if this call made it. Nil if another process made or
  /// removed the database in the meantime.
  private static func locked(_ directory: DatabaseDirectory, _ options: DatabaseOptions) throws -> (
    lock: DirectoryLock, created: Created?
  )? {
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
      guard mkdir(directory.path, 0o755) == 0 || errno == EEXIST else {
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
        created = try OpenDatabase.create(directory, options)
      } else if options.creation == .createNew {
        throw DatabaseError(.alreadyExists, "the database exists already", path: directory.path)
      }
    } else if options.creation == .createNew {
      // Another process has made it since the first look.
      throw DatabaseError(.alreadyExists, "the database exists already", path: directory.path)
    }
    try lock.share()
    guard lock.isCurrent, directory.isComplete else { return nil }
    if created == nil, !options.isReadOnly, try removeLeftovers(directory, lock) {
      guard lock.isCurrent, directory.isComplete else { return nil }
    }
    return (lock, created)
  }

  /// Removes what an interrupted operation left, unless another process has the database open. Then a later
  /// open removes it. Returns false if there was nothing; otherwise the lock was released and taken again.
  private static func removeLeftovers(_ directory: DatabaseDirectory, _ lock: DirectoryLock) throws -> Bool {
    guard let description = try? directory.readDescription(), try !directory.leftovers(description).isEmpty
    else { return false }
    do { try lock.takeAlone(orShare: true) } catch let error as DatabaseError where error.code == .inUse {
      return true
    }
    defer { lock.shareAgain() }
    // Another process may have replaced files in the meantime.
    do { try directory.removeLeftovers(directory.readDescription()) } catch {
      Log.write(
        .warning, .database, directory.path,
        "can't remove the files of an interrupted operation: \(LogText.of(error))")
    }
    return true
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

  private static func create(_ directory: DatabaseDirectory, _ options: DatabaseOptions) throws -> Created {
    try directory.checkIsUnfinished()
    let type = try engineType(forNew: directory, options)
    // Removes the files of an interrupted creation.
    try FileTree.removeContents(of: directory.path, but: "lock")
    let description = DatabaseDirectory.Description(
      version: DatabaseDirectory.version, engine: type.name, file: "data-1.\(type.fileExtension)",
      key: options.key == nil ? nil : DatabaseDirectory.key)
    let dataKey = try options.key.map {
      try KeyFile.create(at: directory.file(DatabaseDirectory.key), key: $0)
    }
    let engine = try openEngine(type, directory.file(description.file), .createNew, dataKey, options)
    let blobs = try blobStore(directory, description, dataKey, options)
    let store = try DocumentStore(engine: engine, options: storeOptions(options, directory), blobs: blobs)
    try directory.write(description)
    Log.write(.info, .database, directory.path, "made, with the engine \(type.name)")
    return (store, dataKey, description)
  }

  private static func openStore(
    _ directory: DatabaseDirectory, _ description: DatabaseDirectory.Description, _ dataKey: SecretBytes?,
    _ options: DatabaseOptions
  ) throws -> DocumentStore {
    let type = try Engines.type(EngineName(rawValue: description.engine))
    let engine = try openEngine(type, directory.file(description.file), .openExisting, dataKey, options)
    if options.checksFile { try checkFile(engine, directory) }
    let blobs = try blobStore(directory, description, dataKey, options)
    return try DocumentStore(engine: engine, options: storeOptions(options, directory), blobs: blobs)
  }

  /// The data key of an encrypted database; nil for a plain one.
  static func unlock(
    _ directory: DatabaseDirectory, _ description: DatabaseDirectory.Description, _ key: UserKey?
  ) throws -> SecretBytes? {
    switch (directory.keyPath(description), key) {
    case (nil, nil): return nil
    case (nil, _?):
      throw DatabaseError(
        .notEncrypted, "a key was given, but the database isn't encrypted", path: directory.path)
    case (_?, nil):
      throw DatabaseError(
        .keyRequired, "the database is encrypted, but no key was given", path: directory.path)
    case (let keyPath?, let key?):
      do { return try KeyFile.open(at: keyPath, key: key) } catch let error as EncryptionError {
        switch error.code {
        case .wrongKey: throw DatabaseError(.wrongKey, error.message, path: directory.path)
        case .unsupportedVersion:
          throw DatabaseError(.unsupportedVersion, error.message, path: keyPath)
        default: throw DatabaseError(.damaged, error.message, path: keyPath)
        }
      }
    }
  }

  static func openEngine(
    _ type: EngineType, _ path: String, _ creation: FileCreation, _ dataKey: SecretBytes?,
    _ options: DatabaseOptions, isBulkLoad: Bool = false, access: FileAccess? = nil
  ) throws -> any StorageEngine {
    func open(_ key: [UInt8]?) throws -> any StorageEngine {
      var engineOptions = EngineOptions(
        creation: creation, isReadOnly: options.isReadOnly, durability: options.durability, key: key,
        cacheBytes: options.cacheBytes, libraryPath: options.libraryPath, isBulkLoad: isBulkLoad)
      engineOptions.access = access
      return try type.open(path, engineOptions)
    }
    guard let dataKey else { return try open(nil) }
    do { return try dataKey.withArray { try open($0) } } catch let error as StorageError
      where error.code == .wrongKey
    {
      // The data key matches the key file, so the data itself is damaged.
      throw DatabaseError(
        .damaged, "the data can't be read with the data key of the database: \(error)", path: path)
    }
  }

  static func blobStore(
    _ directory: DatabaseDirectory, _ description: DatabaseDirectory.Description, _ dataKey: SecretBytes?,
    _ options: DatabaseOptions
  ) throws -> BlobStore {
    try BlobStore(
      directory: directory.blobsPath(description), dataKey: dataKey, isReadOnly: options.isReadOnly,
      durability: options.durability, newAccess: DatabaseAccess.ofBlobs(directory, description))
  }

  private static func storeOptions(_ options: DatabaseOptions, _ directory: DatabaseDirectory)
    -> DocumentStore.Options
  {
    var store = DocumentStore.Options(
      maximumTreeDepth: options.maximumTreeDepth, keepsReplacedBodies: options.keepsReplacedBodies,
      verifiesChecksums: options.verifiesChecksums, indexKinds: [ValueIndexKind(), FullTextIndexKind()])
    store.path = directory.path
    if let revisions = options.revisionsPerBlock { store.revisionsPerBlock = revisions }
    return store
  }

  /// The raw data key, with which the `sqlcipher` tool opens the file.
  func dataKey(_ key: UserKey?) throws -> SecretBytes? {
    try OpenDatabase.unlock(directory, description.withLock { $0 }, key)
  }

  var engineFile: String { directory.file(description.withLock { $0.file }) }
}
