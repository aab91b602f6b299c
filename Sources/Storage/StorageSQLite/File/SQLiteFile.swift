import CSQLite
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A file of this engine, and the ways to open connections to it.
struct SQLiteFile: Sendable {
  enum Access: String, Sendable {
    case readWrite
    /// Only for reading, while other processes may write.
    case readOnly
    // The ways of a process that may write nothing beside the file (`StillFile`).
    /// If the write-ahead log is empty.
    case immutable
    /// If a log is left that nobody uses. Reads the log without the shared memory and the locks that SQLite would have
    /// to create beside the file.
    case withoutLocks
    /// If another process uses the log. Reads that process's shared memory.
    case sharedReadOnly
  }

  /// The maximum time that a connection waits for another process.
  static let longestWait = Duration.seconds(60)

  /// The maximum size of a log that contains only its header, in bytes.
  static let emptyLogBytes = 32

  let path: String
  let library: Library
  let key: SecretKey?
  let durability: Durability
  var access = Access.readWrite
  /// Who may use a new file; nil for what the umask allows.
  var newAccess: FileAccess?
  /// The cache of row numbers, shared by all connections.
  let places = RowPlaces()

  var synchronous: String {
    switch durability {
    case .full: "FULL"
    case .normal: "NORMAL"
    case .none: "OFF"
    }
  }

  /// The use of a connection. It decides which settings the connection needs.
  enum Use {
    case writing
    case reading
  }

  /// Opens a connection with all settings for its use. Throws `SQLiteError`.
  /// `vfs` is as in `connectOnly`.
  func connect(cacheBytes: Int, for use: Use = .writing, vfs: String? = nil) throws -> Connection {
    let connection = try connectOnly(vfs: vfs)
    do {
      try configure(connection, cacheBytes: cacheBytes, for: use)
      return connection
    } catch {
      connection.close()
      throw error
    }
  }

  /// Opens a connection that hasn't read anything yet. `vfs` names a VFS of the library for it, or is nil for the usual one.
  func connectOnly(vfs: String? = nil) throws -> Connection {
    // The flags limit how attached files may be opened. The URI says how to open this file.
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI
    let connection = try Connection(uri, library: library, flags: flags, vfs: vfs)
    connection.waitWhenBusy(upTo: Self.longestWait)
    return connection
  }

  var uri: String {
    let query =
      switch access {
      case .readWrite: "mode=rw"
      case .readOnly: "mode=ro"
      case .immutable: "mode=ro&immutable=1"
      case .withoutLocks: "mode=ro&vfs=unix-none"
      case .sharedReadOnly: "mode=ro&readonly_shm=1"
      }
    return "file://\(Connection.uriPath(path))?\(query)"
  }

  // MARK: A new file

  /// Creates a file at `path` with no keyspaces. The file appears complete or not at all. Returns false if
  /// there is a file already.
  func create() throws -> Bool {
    try publish { temporary in
      let file = SQLiteFile(path: temporary, library: library, key: key, durability: .none)
      let connection = try storing("creating a database", path) { try file.connect(cacheBytes: 0) }
      defer { connection.close() }
      try storing("creating a database", path) {
        try connection.execute(
          """
          \(key == nil ? "PRAGMA page_size = \(SQLiteLayout.pageBytes);" : "")
          PRAGMA journal_mode = MEMORY;
          BEGIN;
          \(SQLiteLayout.creation(in: "main"))
          INSERT INTO layout VALUES (1);
          PRAGMA application_id = \(SQLiteLayout.applicationID);
          PRAGMA user_version = \(SQLiteLayout.version);
          COMMIT;
          PRAGMA journal_mode = WAL;
          """)
      }
    }
  }

  /// Lets `body` create a file under another name, syncs the file, and renames it to `path`.
  ///
  /// Returns false if there is a file at `path` already. In that case, and if `body` throws, nothing is left
  /// behind.
  func publish(_ body: (_ temporary: String) throws -> Void) throws -> Bool {
    let temporary = "\(path)-new-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    defer { for suffix in ["", "-wal", "-shm", "-journal"] { unlink(temporary + suffix) } }
    // Created here, because the library reports poorly why it can't create a file.
    let descriptor = Glibc.open(
      temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, newAccess == nil ? 0o644 : 0o600)
    guard descriptor >= 0 else { throw Self.systemError("creating a database", path) }
    defer { _ = Glibc.close(descriptor) }
    try newAccess?.apply(to: descriptor, path: path)
    try body(temporary)
    if durability != .none { try Self.sync(temporary, path) }
    let failure = NewFileName.take(path, for: temporary)
    guard failure == 0 else {
      if failure == EEXIST { return false }
      errno = failure
      throw Self.systemError("renaming a new file", path)
    }
    try syncNames()
    return true
  }

  /// Syncs the names of the file and its log. The library syncs the name of a new log too, at the first commit, but says
  /// nothing when that fails; a loss of power would then take the log.
  func syncNames() throws {
    if durability != .none { try AtomicFile.syncDirectory(of: path) }
  }

  private static func sync(_ path: String, _ named: String) throws {
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw systemError("syncing a new file", named) }
    defer { _ = Glibc.close(descriptor) }
    guard fsync(descriptor) == 0 else { throw systemError("syncing a new file", named) }
  }

  static func systemError(_ tried: String, _ path: String) -> StorageError {
    let number = errno
    let code: StorageError.Code =
      switch number {
      case ENOSPC, EDQUOT, EFBIG: .diskFull
      case EACCES, EPERM: .permissionDenied
      case EROFS: .readOnly
      case ENOENT, ENOTDIR: .notFound
      default: .ioError
      }
    return StorageError(
      code, tried, path: path, engineCode: Int(number), engineMessage: String(cString: strerror(number)))
  }

  // MARK: Paths

  /// Returns the absolute form of a path. SQLite would read a path that begins with `file:` as a URI.
  static func absolute(_ path: String) throws -> String {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw StorageError(.invalidArgument, "the path is empty or contains a zero byte", path: path)
    }
    if path.utf8.first == UInt8(ascii: "/") { return path }
    guard let current = getcwd(nil, 0) else { throw systemError("finding the current directory", path) }
    defer { free(current) }
    return String(cString: current) + "/" + path
  }

  static func directory(of path: String) -> String {
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  /// Returns whether the process may read or write the file at `path` (`R_OK`, `W_OK`). If not, `errno` has
  /// the reason.
  static func isAllowed(_ path: String, _ mode: Int32) -> Bool {
    faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0
  }

  /// Returns the size of the file at `path` in bytes, or nil if there is none.
  static func size(_ path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : nil
  }
}
