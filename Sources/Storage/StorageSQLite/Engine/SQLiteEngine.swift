import CSQLite
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A storage engine over one file of SQLite or SQLCipher (docs/storage-sqlite.md).
///
/// One connection writes. A pool of other connections reads. Locks protect every connection when it passes
/// from thread to thread.
package final class SQLiteEngine: EngineMaintenance, @unchecked Sendable {
  /// The name that selects the engine.
  package let name: String
  /// The library and its version: `SQLCipher 3.4.1 (SQLite 3.15.2)`.
  package let library: String
  /// The path of the file.
  package var location: String { path }
  /// The absolute path of the file. The log and its index are beside it, as `-wal` and `-shm`.
  let path: String
  /// The failures that a commit survives.
  package let durability: Durability
  /// Whether the engine was opened only for reading.
  package let isReadOnly: Bool
  /// The pragmas of a connection that writes, as the library reports them. They are read at the first use.
  /// Empty if the engine was closed before that.
  package var settings: [(name: String, value: String)] {
    if let known = knownSettings.withLock({ $0 }) { return known }
    guard let found = try? askForSettings() else { return [] }
    knownSettings.withLock { $0 = found }
    return found
  }
  private let knownSettings: Lock<[(name: String, value: String)]?>
  private let cacheBytes: Int

  let file: SQLiteFile
  let queue = GroupCommit()
  let readers: ReaderPool
  /// The writer. The first write creates it, so that an engine that only reads saves one connection.
  private let writing: Lock<Writing>
  private struct Writing {
    var writer: SQLiteWriter?
    var isClosed = false
  }
  let log: WriteAheadLog
  let claim: OpenFiles.Claim
  private let forks: UInt64
  /// Only used inside the queue.
  private var isClosed = false

  private static func openForWriting(_ file: SQLiteFile, _ options: EngineOptions) throws -> Connection {
    do {
      let first = try file.open(cacheBytes: options.cacheBytes)
      if options.isBulkLoad {
        // Without a log nothing is written twice. The next opening sets WAL mode again.
        try storing("preparing a bulk load", file.path) { try first.execute("PRAGMA journal_mode = OFF") }
      }
      return first
    } catch let error as StorageError where error.code == .diskFull {
      throw StorageError(
        .diskFull, error.message + "; it can still be opened for reading only", path: file.path,
        engineCode: error.engineCode, engineMessage: error.engineMessage)
    }
  }

  /// Opens a connection, with the file kept still if nothing may be written beside it, or nothing can: there is no room for the
  /// library's shared memory on a full disk. The caller leaves the visit.
  private static func openForReading(
    _ file: inout SQLiteFile, _ claim: OpenFiles.Claim, _ options: EngineOptions
  ) throws -> (Connection, StillFile?, StillFile.Visit?) {
    let path = file.path
    if !StillFile.isNeeded(path) {
      file.access = .readOnly
      do { return (try file.open(cacheBytes: options.cacheBytes), nil, nil) } catch let error as StorageError
        where error.code == .diskFull
      {}
    }
    let still = StillFile(path, claim)
    let (first, visit) = try still.connecting(upTo: StillFile.patience) { visit in
      file.access = visit.access
      return try file.open(cacheBytes: options.cacheBytes)
    }
    return (first, still, visit)
  }

  /// Opens or creates a file. `SQLiteEngines` lists the kinds of engine.
  ///
  /// - Parameters:
  ///   - name: the name that selects the engine.
  ///   - encrypts: whether the engine encrypts. If so, it requires a key.
  ///   - libraryPath: the library, as a file or a name for dlopen.
  ///   - path: the path of the file.
  ///   - options: how to open the file.
  /// - Throws: a `StorageError` that names the file.
  package init(name: String, encrypts: Bool, libraryPath: String, path: String, options: EngineOptions) throws
  {
    let path = try SQLiteFile.absolute(path)
    let library = try Self.library(libraryPath, encrypts: encrypts, path)
    var file = SQLiteFile(
      path: path, library: library, key: try Self.key(options.key, encrypts: encrypts, name: name, path),
      durability: options.durability)
    file.newAccess = options.access
    try Self.ensureExists(file, options)
    let claim = try OpenFiles.claim(path, library: libraryPath)
    self.claim = claim
    let log = WriteAheadLog(path: path, claim)
    self.log = log
    do {
      try file.checkPermission(toWrite: !options.isReadOnly)
      let (first, still, visit) =
        options.isReadOnly
        ? try Self.openForReading(&file, claim, options) : (try Self.openForWriting(file, options), nil, nil)
      let reader: EngineConnection?
      let queue = queue
      do {
        // A read-only or bulk-load engine never opens another connection for writing. Its settings are read
        // from this one now.
        knownSettings = Lock(
          options.isReadOnly || options.isBulkLoad
            ? try storing("reading settings", path) { try Self.settings(of: first, file) } : nil)
        self.library = try storing("reading settings", path) { try Self.libraryName(first) }
        (writing, reader) = try storing("the database can't be opened", path) {
          // The first connection was opened with all settings for writing. Here it becomes a reader.
          if !options.isBulkLoad { try ReaderPool.prepare(first) }
          let connection = try EngineConnection(first, path: path, places: file.places, cacheRank: .whole)
          connection.visit = visit
          return options.isBulkLoad
            ? (Lock(Writing(writer: try SQLiteWriter(connection, queue, log))), nil)
            : (Lock(Writing()), connection)
        }
      } catch {
        first.close()
        throw error
      }
      let readers = ReaderPool(file, claim, still, cacheBytes: options.cacheBytes, first: reader)
      self.readers = readers
      if let still, let visit { still.leave(visit) }
      log.givesUpSnapshots.withLock { $0 = { [weak readers] in readers?.giveUpKept() } }
    } catch {
      claim.release { file.removeEmptyLog() }
      throw error
    }
    self.name = name
    self.path = path
    self.file = file
    durability = options.durability
    isReadOnly = options.isReadOnly
    cacheBytes = options.cacheBytes
    forks = csqlite_forks()
  }

  deinit {
    guard !isClosed else { return }
    guard csqlite_forks() == forks else {
      readers.abandon()
      writing.withLock { $0.writer }?.abandon()
      return
    }
    claim.release {
      readers.abandon()
      closeWriter()
      file.removeEmptyLog()
    }
  }

  /// Closes all connections. If no other process has the file open, the library copies the log into the file
  /// and removes the log.
  package func close() throws {
    try checkFork()
    try queue.exclusively {
      guard !isClosed else { return }
      try claim.release {
        try readers.close()
        isClosed = true
        // The last connection copies the log into the file and removes the log.
        closeWriter()
        file.removeEmptyLog()
      }
    }
  }

  private func closeWriter() {
    writing.withLock { writing in
      writing.isClosed = true
      writing.writer?.close()
    }
  }

  func writer() throws -> SQLiteWriter {
    try writing.withLock { writing in
      if let writer = writing.writer { return writer }
      guard !writing.isClosed else {
        throw StorageError(.closed, "the database is closed and can't be written", path: path)
      }
      let writer = try storing("the database can't be opened for writing", path) {
        let connection = try claim.opening(path) {
          try file.connect(cacheBytes: cacheBytes, vfs: file.library.logLayer)
        } close: {
          $0.close()
        }
        do { try file.syncNames() } catch {
          connection.close()
          throw error
        }
        return try SQLiteWriter(
          EngineConnection(connection, path: path, places: file.places, cacheRank: .whole), queue, log)
      }
      writing.writer = writer
      let snapshot = writer.snapshot
      log.givesUpSnapshots.withLock {
        $0 = { [weak readers] in
          readers?.giveUpKept()
          snapshot.giveUp()
        }
      }
      return writer
    }
  }

  // MARK: Transactions

  /// Begins a snapshot on a connection of the pool. Throws `tooManyReaders` past 2,500 snapshots.
  package func beginRead() throws -> any ReadTransaction {
    try checkFork()
    return SQLiteReadTransaction(try readers.take(), readers)
  }

  /// Reads with one statement. A single statement is a snapshot by itself.
  package func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws
    -> Bool
  {
    try checkFork()
    let connection = try readers.take(beginsSnapshot: false)
    defer { readers.give(connection) }
    return try connection.read(key, in: keyspace, body)
  }

  /// Runs `body` in the write transaction. Waits up to 60 seconds for other processes, then throws `busy`.
  package func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try checkFork()
    guard !isReadOnly else { throw readOnlyError("writing") }
    try queue.run(try writer(), body)
  }

  /// Throws `closed` in a forked child. A connection and its locks belong to the process that opened it.
  func checkFork() throws {
    guard csqlite_forks() == forks else {
      throw StorageError(
        .closed, "the database was opened before this process was forked; open it again in this process",
        path: path)
    }
  }

  func readOnlyError(_ tried: String) -> StorageError {
    StorageError(.readOnly, "\(tried): the database was opened for reading only", path: path)
  }

  /// Throws `closed` if the engine is closed. Call it only inside the queue.
  func checkOpen() throws {
    if isClosed { throw StorageError(.closed, "the database is closed", path: path) }
  }

  // MARK: Opening

  private static func library(_ libraryPath: String, encrypts: Bool, _ path: String) throws -> Library {
    do {
      let library = try Library.load(libraryPath)
      guard library.hasKeys || !encrypts else {
        throw StorageError(.unsupported, "the library \(libraryPath) has no encryption", path: path)
      }
      if encrypts { try setDefaultPageSize(library, path) }
      return library
    } catch let error as LibraryError {
      throw StorageError(.unsupported, "the database can't be opened: \(error)", path: path)
    }
  }

  /// Sets SQLCipher's default page size, which is one setting for the whole process.
  ///
  /// SQLCipher uses the default for files that it creates itself, with 1,024 bytes unless set. VACUUM builds
  /// the new database in such a file. If its page size differs from the database's, VACUUM damages the
  /// database (seen with 3.4.1).
  private static func setDefaultPageSize(_ library: Library, _ path: String) throws {
    try preparedLibraries.withLock { prepared in
      guard prepared.insert(library.path).inserted else { return }
      try storing("preparing the library", path) {
        let connection = try Connection(
          ":memory:", library: library, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY)
        defer { connection.close() }
        try CipherSettings.setDefaultPageBytes(SQLiteLayout.pageBytes, on: connection)
      }
    }
  }

  private static let preparedLibraries = Lock<Set<String>>([])

  private static func key(_ key: [UInt8]?, encrypts: Bool, name: String, _ path: String) throws -> SecretKey?
  {
    guard let key else {
      guard !encrypts else {
        throw StorageError(.keyRequired, "the engine \(name) needs a key, but none was given", path: path)
      }
      return nil
    }
    guard encrypts else {
      throw StorageError(.notEncrypted, "a key was given, but the engine \(name) can't encrypt", path: path)
    }
    guard let secret = SecretKey(key) else {
      throw StorageError(
        .invalidArgument, "a key must have \(SecretKey.count) bytes, not \(key.count)", path: path)
    }
    return secret
  }

  /// Creates the file if the options ask for it. Throws if the existing file doesn't meet the options.
  private static func ensureExists(_ file: SQLiteFile, _ options: EngineOptions) throws {
    let path = file.path
    var status = stat()
    if stat(path, &status) == 0 {
      if options.creation == .createNew {
        throw StorageError(.alreadyExists, "the database can't be created: the file exists", path: path)
      }
      guard status.st_mode & S_IFMT == S_IFREG else {
        throw StorageError(
          .notADatabase, "the database can't be opened: this isn't a regular file", path: path)
      }
      guard status.st_size > 0 else {
        throw StorageError(.notADatabase, "the database can't be opened: the file is empty", path: path)
      }
      return
    }
    guard errno == ENOENT else { throw SQLiteFile.systemError("the database can't be opened", path) }
    guard options.creation != .openExisting, !options.isReadOnly else {
      throw StorageError(.notFound, "the database can't be opened: there is no file", path: path)
    }
    guard path.utf8.count <= SQLiteLayout.longestPath else {
      throw StorageError(
        .invalidArgument,
        "the database can't be created: its path has \(path.utf8.count) bytes, and SQLite opens paths of up to "
          + "\(SQLiteLayout.longestPath) bytes", path: path)
    }
    let isNew = try file.create()
    if !isNew && options.creation == .createNew {
      throw StorageError(.alreadyExists, "the database can't be created: the file exists", path: path)
    }
  }

  // MARK: Settings

  /// The names by path. A library reports the same name for every file.
  private static let libraryNames = Lock<[String: String]>([:])

  private static func libraryName(_ connection: Connection) throws -> String {
    let path = connection.library.path
    if let known = libraryNames.withLock({ $0[path] }) { return known }
    var name = "SQLite \(connection.library.version)"
    if let cipher = try connection.string("PRAGMA cipher_version") { name = "SQLCipher \(cipher) (\(name))" }
    libraryNames.withLock { $0[path] = name }
    return name
  }

  private func askForSettings() throws -> [(name: String, value: String)] {
    // The engine can't be closed while this reader is taken.
    let reader = try readers.take(isOwn: true, beginsSnapshot: false)
    defer { readers.give(reader) }
    let connection = try file.connect(cacheBytes: cacheBytes)
    defer { connection.close() }
    return try Self.settings(of: connection, file)
  }

  private static func settings(of connection: Connection, _ file: SQLiteFile) throws -> [(
    name: String, value: String
  )] {
    var names = [
      "page_size", "journal_mode", "synchronous", "cache_size", "mmap_size", "secure_delete", "temp_store",
      "auto_vacuum", "journal_size_limit",
    ]
    if file.key != nil { names += ["cipher_page_size", "cipher_provider", "cipher"] }
    var settings: [(name: String, value: String)] = []
    for name in names {
      if let value = try connection.string("PRAGMA \(name)") { settings.append((name, value)) }
    }
    settings.append(("wal_autocheckpoint", "\(SQLiteLayout.checkpointPages)"))
    if file.access != .readWrite { settings.append(("access", file.access.rawValue)) }
    return settings
  }
}
