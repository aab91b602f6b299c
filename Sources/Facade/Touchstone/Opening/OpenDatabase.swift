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

/// The state that all opens of one path in a process share: the database's lock, the engine and the
/// documents.
final class OpenDatabase: Sendable {
  let place: DatabasePlace
  /// The path of its directory, or its location without passwords.
  let path: String
  /// What is beside its entries.
  let home: any DatabaseHome
  /// The options of the first open that can write; until there is one, those of the first open.
  var options: DatabaseOptions { currentOptions.withLock { $0 } }
  private let currentOptions: Lock<DatabaseOptions>
  let store: DocumentStore
  /// The key that encrypts the data; nil if the database isn't encrypted. The user's key may change while the
  /// database is open, here or in another process, but this one can't.
  let heldDataKey: SecretBytes?
  var isEncrypted: Bool { heldDataKey != nil }
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
  let asyncReaders = Workers(maximum: OpenDatabase.asyncReaders)
  /// Asked once: Foundation reads files of the system to find the number of processors.
  private static let asyncReaders = max(2, ProcessInfo.processInfo.activeProcessorCount)

  /// The views.
  let views: ViewIndexes

  static let paths = PathLocks<OpenDatabase>()
  /// The paths whose files this process is replacing. Changed under the path's lock.
  private static let reserved = Lock<Set<ByteString>>([])

  /// Returns the open database at a path, or opens it. `onClose` is called once its files are closed.
  static func open(
    _ place: DatabasePlace, _ options: DatabaseOptions, onClose: (@Sendable () -> Void)? = nil
  ) throws -> OpenDatabase {
    try place.prepare(options)
    // Opens of one path run one at a time, so that the file is opened only once.
    return try paths.withLock(place.path) { there in
      try checkNotReserved(place.path)
      if let open = there {
        try open.check(options)
        if !options.isReadOnly, open.options.isReadOnly { try open.allowWriting(options) }
        if options.watchesOtherProcesses { try open.watchOtherProcesses(recordsPurges: !options.isReadOnly) }
        open.opens += 1
        Log.write(.verbose, .database, place.path, "opened once more, \(open.opens) times in all")
        return open
      }
      let open = try OpenDatabase(place, options, onClose)
      if !options.isReadOnly {
        open.renewIndexes()
      }
      do {
        if !options.isReadOnly { try open.startUpkeep() }
        if options.watchesOtherProcesses { try open.watchOtherProcesses(recordsPurges: !options.isReadOnly) }
      } catch {
        open.upkeep?.close()
        try? open.store.engine.close()
        open.home.release()
        throw error
      }
      there = open
      Log.write(.info, .database, place.path, "opened: \(open.logText)")
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
        LogText.level(of: error), .index, path,
        "can't rebuild outdated indexes: \(LogText.of(error))")
    }
  }

  /// Notices commits of other processes from now on. Purges are recorded for them, and for this one.
  private func watchOtherProcesses(recordsPurges: Bool) throws {
    // What is in memory has no other processes.
    guard home.isThere else { return }
    if recordsPurges { try store.recordPurges() }
    watch.withLock { watch in
      guard watch == nil else { return }
      let new = home.makeWatch(store)
      watch = new
      store.onObservers { [weak new] in new?.observersChanged() }
      new.observersChanged()
    }
  }

  /// Prevents opens of a path in this process until `unreserve(_:)`. Throws `inUse` if it is open already.
  static func reserve(_ path: String) throws {
    try paths.withLock(path) { there in
      try checkNotReserved(path)
      guard there == nil else {
        throw DatabaseError(.inUse, "the database is open in this process", path: path)
      }
      reserved.withLock { _ = $0.insert(ByteString(path)) }
    }
  }

  static func unreserve(_ path: String) { reserved.withLock { _ = $0.remove(ByteString(path)) } }

  static func checkNotReserved(_ path: String) throws {
    guard !reserved.withLock({ $0.contains(ByteString(path)) }) else {
      throw DatabaseError(.inUse, "this process is converting or removing the database", path: path)
    }
  }

  /// Gives up one open. The last one closes the files. Throws `inUse` inside a batch, and while the database
  /// is being read.
  func close() throws {
    let isLast = OpenDatabase.paths.withLock(path) { _ in
      guard opens > 1 else { return true }
      opens -= 1
      return false
    }
    guard isLast else { return }
    guard !store.isInBatch else {
      throw DatabaseError(
        .inUse, "the database can't be closed inside one of its batches", path: path)
    }
    try maintenance.withLock { _ in
      try OpenDatabase.paths.withLock(path) { there in
        // Another thread may have opened it again in the meantime.
        guard opens == 1 else {
          opens = max(0, opens - 1)
          return
        }
        try closeFiles()
        home.release()
        there = nil
      }
    }
  }

  /// Closes the engine and everything that uses its files. If the engine can't be closed, nothing changes.
  /// The caller holds `maintenance` and the path's lock. Afterwards it releases the database's lock and
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
    Log.write(.info, .database, path, "closed")
  }

  private func startUpkeep() throws {
    let upkeep = Upkeep(
      store, options.compaction, path: path, inTurn: { [home] in try home.inTurn($0) },
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
    let dataKey = try home.unlock(wanted.key)
    let before = options
    try home.prepareForWriting()
    try store.allowWriting(
      OpenDatabase.storeOptions(wanted, path),
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
      open: { try home.openEngine(dataKey, wanted) }, back: { try home.openEngine(dataKey, before) })
    store.blobs?.allowWriting(durability: wanted.durability)
    currentOptions.withLock { $0 = wanted.withoutKey }
    renewIndexes()
    try startUpkeep()
    Log.write(.info, .database, path, "opened for writing too: \(logText)")
  }

  private func check(_ wanted: DatabaseOptions) throws {
    guard wanted.creation != .createNew else {
      throw DatabaseError(.alreadyExists, "the database exists already", path: path)
    }
    let options = options
    let differing =
      wanted.isReadOnly
      ? nil : options.isReadOnly ? nil : options.firstDifference(from: wanted)
    if let differing {
      throw DatabaseError(
        .otherOptions,
        "the database is open in this process with \(differing.name) \(differing.left), but this open has"
          + " \(differing.right); use the same options, or close it first", path: path)
    }
    try dataKey(wanted.key)?.withUnsafeBytes { _ in }
  }

  // MARK: Opening

  private init(
    _ place: DatabasePlace, _ options: DatabaseOptions, _ onClose: (@Sendable () -> Void)?
  ) throws {
    self.place = place
    path = place.path
    self.onClose = Lock(onClose)
    heldFiles = HeldFiles(of: path)
    // The user's key isn't needed any more, and may change.
    currentOptions = Lock(options.withoutKey)
    queryLog = QueryLog(path)
    var attempts = 0
    while true {
      if let found = try place.open(options) {
        (home, store, heldDataKey) = (found.home, found.store, found.dataKey)
        let scripts = ScriptProcess(program: options.scriptsPath, limits: options.scriptLimits)
        views = ViewIndexes(store, workers: asyncReaders, languages: [JavaScript(process: scripts)])
        return
      }
      attempts += 1
      guard attempts < 100 else {
        throw DatabaseError(
          .inUse, "other processes keep making and removing the database; try again", path: path)
      }
    }
  }

  static func storeOptions(_ options: DatabaseOptions, _ path: String) -> DocumentStore.Options {
    var store = DocumentStore.Options(
      maximumTreeDepth: options.maximumTreeDepth, keepsReplacedBodies: options.keepsReplacedBodies,
      verifiesChecksums: options.verifiesChecksums, indexKinds: [ValueIndexKind(), FullTextIndexKind()])
    store.path = path
    if let revisions = options.revisionsPerBlock { store.revisionsPerBlock = revisions }
    if let revisions = options.wideTree { store.wideTree = revisions }
    return store
  }

  /// The raw data key, with which the `sqlcipher` tool opens the file.
  func dataKey(_ key: UserKey?) throws -> SecretBytes? {
    try home.unlock(key)
  }

  var engineFile: String { home.dataPath }
}
