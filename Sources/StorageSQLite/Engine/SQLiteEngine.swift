import CSQLite
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A file of SQLite or SQLCipher as a storage engine (docs/storage-sqlite.md).
///
/// One connection writes, a pool of others reads; all are handed from thread to thread under locks.
public final class SQLiteEngine: EngineMaintenance, @unchecked Sendable {
  /// The name it was chosen by.
  public let name: String
  /// The library and its version: `SQLCipher 3.4.1 (SQLite 3.15.2)`.
  public let library: String
  /// The path of the file.
  public var location: String { path }
  /// The absolute path of the file; the log and its index lie beside it, as `-wal` and `-shm`.
  let path: String
  /// What a commit survives.
  public let durability: Durability
  /// Whether writes are refused.
  public let isReadOnly: Bool
  /// Pragmas as the library reports them of a connection that writes, asked for when they are first wanted. None of an engine
  /// that was closed before.
  public var settings: [(name: String, value: String)] {
    if let known = knownSettings.withLock({ $0 }) { return known }
    guard let found = try? askForSettings() else { return [] }
    knownSettings.withLock { $0 = found }
    return found
  }
  private let knownSettings: Lock<[(name: String, value: String)]?>
  private let cacheBytes: Int

  let file: SQLiteFile
  let queue = WriteQueue()
  let readers: ReaderPool
  /// What writes, made by the first write: who only reads has one connection less to open.
  private let writing: Lock<Writing>
  private struct Writing {
    var writer: SQLiteWriter?
    var isClosed = false
  }
  private let claim: OpenFiles.Claim
  private let forks: UInt64
  /// In the queue.
  private var isClosed = false

  /// Opens or creates a file. `SQLiteEngines` has the kinds to choose from.
  ///
  /// - Parameters:
  ///   - name: the name it is chosen by.
  ///   - encrypts: whether it takes a key, and requires it.
  ///   - libraryPath: a library, as dlopen finds it.
  public init(name: String, encrypts: Bool, libraryPath: String, path: String, options: EngineOptions) throws
  {
    let path = try SQLiteFile.absolute(path)
    let library = try Self.library(libraryPath, encrypts: encrypts, path)
    var file = SQLiteFile(
      path: path, library: library, key: try Self.key(options.key, encrypts: encrypts, name: name, path),
      durability: options.durability)
    try Self.ensureExists(file, options)
    claim = try OpenFiles.claim(path, library: libraryPath)
    do {
      let first: Connection
      try file.checkPermission(toWrite: !options.isReadOnly)
      if options.isReadOnly {
        (first, file.access) = try Self.openReadOnly(file, options)
      } else {
        first = try file.open(cacheBytes: options.cacheBytes)
        if options.isBulkLoad {
          // Without a log nothing is written twice. The next opening sets it again.
          try storing("preparing a bulk load", path) { try first.execute("PRAGMA journal_mode = OFF") }
        }
      }
      let reader: EngineConnection?
      do {
        // Those of a connection that nobody opens twice are asked for now.
        knownSettings = Lock(
          options.isReadOnly || options.isBulkLoad
            ? try storing("reading settings", path) { try Self.settings(of: first, file) } : nil)
        self.library = try storing("reading settings", path) { try Self.libraryName(first) }
        (writing, reader) = try storing("opening a database", path) {
          // The first connection has what writing needs.
          if !options.isBulkLoad { try ReaderPool.prepare(first) }
          let connection = try EngineConnection(first, path: path, places: file.places, cacheRank: .whole)
          return options.isBulkLoad
            ? (Lock(Writing(writer: try SQLiteWriter(connection))), nil) : (Lock(Writing()), connection)
        }
      } catch {
        first.close()
        throw error
      }
      readers = ReaderPool(file, cacheBytes: options.cacheBytes, first: reader)
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

  /// Closes all connections. The last one in any process copies the log into the file and removes it.
  public func close() throws {
    try checkFork()
    try queue.exclusively {
      guard !isClosed else { return }
      try claim.release {
        try readers.close()
        isClosed = true
        // The last connection copies what is in the log into the file, and removes the log.
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
        throw StorageError(.closed, "writing to a closed database", path: path)
      }
      let writer = try storing("opening a database for writing", path) {
        let connection = try file.connect(cacheBytes: cacheBytes)
        return try SQLiteWriter(
          EngineConnection(connection, path: path, places: file.places, cacheRank: .whole))
      }
      writing.writer = writer
      return writer
    }
  }

  // MARK: Transactions

  /// Begins a snapshot on a connection of the pool. Throws `tooManyReaders` past 2,500.
  public func beginRead() throws -> any ReadTransaction {
    try checkFork()
    return SQLiteReadTransaction(try readers.take(), readers)
  }

  /// Reads with one statement, which is a snapshot by itself.
  public func read(_ key: RawSpan, in keyspace: Keyspace, _ body: (_ value: RawSpan) throws -> Void) throws
    -> Bool
  {
    try checkFork()
    let connection = try readers.take(beginsSnapshot: false)
    defer { readers.give(connection) }
    return try connection.read(key, in: keyspace, body)
  }

  /// Runs `body` in the write transaction, which waits up to 60 seconds for other processes, then throws `busy`.
  public func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try checkFork()
    guard !isReadOnly else { throw readOnlyError("writing") }
    try queue.run(try writer(), body)
  }

  /// A connection and its locks belong to the process that opened it.
  func checkFork() throws {
    guard csqlite_forks() == forks else {
      throw StorageError(
        .closed, "the database was opened before this process was forked from its parent", path: path)
    }
  }

  func readOnlyError(_ tried: String) -> StorageError {
    StorageError(.readOnly, "\(tried): the database was opened for reading only", path: path)
  }

  /// Throws `closed` when it is. To be called in the queue.
  func checkOpen() throws {
    if isClosed { throw StorageError(.closed, "using a closed database", path: path) }
  }

  // MARK: Opening

  private static func library(_ libraryPath: String, encrypts: Bool, _ path: String) throws -> Library {
    do {
      let library = try Library.load(libraryPath)
      guard library.hasKeys || !encrypts else {
        throw StorageError(.unsupported, "the library \(libraryPath) doesn't encrypt", path: path)
      }
      if encrypts { try setDefaultPageSize(library, path) }
      return library
    } catch let error as LibraryError {
      throw StorageError(.unsupported, "opening a database: \(error)", path: path)
    }
  }

  /// Where SQLCipher keeps a default, one for the process: the size of pages in files that it makes for itself.
  /// When VACUUM builds the new file aside with pages of another size than the database's, as SQLCipher's own
  /// default of 1,024 is, the database is damaged (seen with 3.4.1).
  private static func setDefaultPageSize(_ library: Library, _ path: String) throws {
    try preparedLibraries.withLock { prepared in
      guard prepared.insert(library.path).inserted else { return }
      try storing("preparing the library", path) {
        let connection = try Connection(
          ":memory:", library: library, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY)
        defer { connection.close() }
        try connection.execute("PRAGMA cipher_default_page_size = \(SQLiteLayout.pageBytes)")
      }
    }
  }

  private static let preparedLibraries = Lock<Set<String>>([])

  private static func key(_ key: [UInt8]?, encrypts: Bool, name: String, _ path: String) throws -> SecretKey?
  {
    guard let key else {
      guard !encrypts else {
        throw StorageError(.keyRequired, "the engine \(name) needs a key", path: path)
      }
      return nil
    }
    guard encrypts else {
      throw StorageError(.notEncrypted, "a key was given, and the engine \(name) doesn't encrypt", path: path)
    }
    guard let secret = SecretKey(key) else {
      throw StorageError(
        .invalidArgument, "a key is \(SecretKey.count) bytes, not \(key.count)", path: path)
    }
    return secret
  }

  /// Makes the file when that is asked for; throws when what is there isn't what is asked for.
  private static func ensureExists(_ file: SQLiteFile, _ options: EngineOptions) throws {
    let path = file.path
    var status = stat()
    if stat(path, &status) == 0 {
      if options.creation == .createNew {
        throw StorageError(.alreadyExists, "creating a database: there is a file", path: path)
      }
      guard status.st_mode & S_IFMT == S_IFREG else {
        throw StorageError(.notADatabase, "opening a database: it is not a regular file", path: path)
      }
      guard status.st_size > 0 else {
        throw StorageError(.notADatabase, "opening a database: the file is empty", path: path)
      }
      return
    }
    guard errno == ENOENT else { throw SQLiteFile.systemError("opening a database", path) }
    guard options.creation != .openExisting, !options.isReadOnly else {
      throw StorageError(.notFound, "opening a database: there is no file", path: path)
    }
    let isNew = try file.create()
    if !isNew && options.creation == .createNew {
      throw StorageError(.alreadyExists, "creating a database: there is a file", path: path)
    }
  }

  /// Opens a file that isn't to be written.
  private static func openReadOnly(_ file: SQLiteFile, _ options: EngineOptions) throws -> (
    Connection, SQLiteFile.Access
  ) {
    var ways = [SQLiteFile.Access.readOnly]
    if !SQLiteFile.isAllowed(SQLiteFile.directory(of: file.path), W_OK) {
      let isLogLeft = SQLiteFile.size(file.path + "-wal") ?? 0 > SQLiteFile.emptyLogBytes
      // New libraries can read beside a log and its shared memory without writing, when they may open both.
      ways = isLogLeft ? [.readOnly, .withoutLocks] : [.immutable]
    }
    var file = file
    while true {
      file.access = ways.removeFirst()
      do {
        return (try file.open(cacheBytes: options.cacheBytes), file.access)
      } catch let error as StorageError where !ways.isEmpty {
        let code = error.engineCode.map { Int32($0) & 0xFF }
        guard code == SQLITE_CANTOPEN || code == SQLITE_READONLY else { throw error }
      }
    }
  }

  // MARK: Settings

  /// By their paths: a library says the same of each file.
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
    // While it is taken the engine can't be closed.
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
