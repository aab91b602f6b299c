import CSQLite
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// One file of this engine, and how connections to it are opened.
struct SQLiteFile: Sendable {
  enum Access: String, Sendable {
    case readWrite
    /// Beside writers of other processes.
    case readOnly
    /// In a directory that can't be written, when nothing is left in a write-ahead log.
    case immutable
    /// In a directory that can't be written, when a log is left: it is read without the shared memory and
    /// the locks that SQLite would have to make beside the file.
    case withoutLocks
  }

  /// How long a connection waits for another process before it gives up.
  static let longestWait = Duration.seconds(60)

  /// A log of so many bytes holds no more than its header.
  static let emptyLogBytes = 32

  let path: String
  let library: Library
  let key: SecretKey?
  let durability: Durability
  var access = Access.readWrite
  /// Where its connections found rows.
  let places = RowPlaces()

  var synchronous: String {
    switch durability {
    case .full: "FULL"
    case .normal: "NORMAL"
    case .none: "OFF"
    }
  }

  /// What a connection is for, which says what has to be set on it.
  enum Use {
    case writing
    case reading
  }

  /// Opens a connection with what every connection of that use needs. Throws `SQLiteError`.
  func connect(cacheBytes: Int, for use: Use = .writing) throws -> Connection {
    let connection = try connectOnly()
    do {
      try configure(connection, cacheBytes: cacheBytes, for: use)
      return connection
    } catch {
      connection.close()
      throw error
    }
  }

  /// Opens a connection that has read nothing yet.
  func connectOnly() throws -> Connection {
    // The flags are what an attached file may be opened with; the URI says how this one is.
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI
    let connection = try Connection(uri, library: library, flags: flags)
    connection.waitWhenBusy(upTo: Self.longestWait)
    return connection
  }

  /// Gives the key, reads the file's first page with it, and sets what every connection has set.
  func configure(_ connection: Connection, cacheBytes: Int, for use: Use = .writing) throws {
    try unlock(connection)
    if access == .withoutLocks { try connection.execute("PRAGMA locking_mode = EXCLUSIVE") }
    try connection.execute(
      """
      PRAGMA cache_size = -\(max(cacheBytes, 256 << 10) >> 10);
      PRAGMA temp_store = MEMORY;
      PRAGMA synchronous = \(synchronous);
      """)
    if use == .writing {
      try connection.execute(
        "PRAGMA secure_delete = OFF; PRAGMA journal_size_limit = \(SQLiteLayout.logBytes)")
    }
    // Checkpoints are the writer's own business, outside of the library's commit.
    _ = csqlite_wal_autocheckpoint(connection.functions, connection.handle, 0)
  }

  /// Gives the key and the page size, which SQLCipher needs before anything is read. Without a key only a new file needs the
  /// size.
  private func unlock(_ connection: Connection) throws {
    guard let key else { return }
    try key.withText { try connection.setKey($0) }
    try connection.execute("PRAGMA cipher_page_size = \(SQLiteLayout.pageBytes)")
  }

  var uri: String {
    let query =
      switch access {
      case .readWrite: "mode=rw"
      case .readOnly: "mode=ro"
      case .immutable: "mode=ro&immutable=1"
      case .withoutLocks: "mode=ro&vfs=unix-none"
      }
    return "file://\(Self.percentEncoded(path))?\(query)"
  }

  static func percentEncoded(_ path: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var encoded: [UInt8] = []
    encoded.reserveCapacity(path.utf8.count + 16)
    for byte in path.utf8 {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "-"),
        UInt8(ascii: "_"):
        encoded.append(byte)
      default: encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }

  // MARK: A new file

  /// Makes a file at `path` with no keyspaces. It appears whole or not at all. False when there is one.
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

  /// Lets `body` make a file under another name, syncs it and gives it the name `path`. False, and nothing
  /// left, when there is a file of that name; nothing is left either when `body` throws.
  func publish(_ body: (_ temporary: String) throws -> Void) throws -> Bool {
    let temporary = "\(path)-new-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
    defer { for suffix in ["", "-wal", "-shm", "-journal"] { unlink(temporary + suffix) } }
    // Made here and not by the library, which doesn't tell well why it can't.
    let descriptor = Glibc.open(temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw Self.systemError("creating a database", path) }
    _ = Glibc.close(descriptor)
    try body(temporary)
    if durability != .none { try Self.sync(temporary, path) }
    let failure = NewFileName.take(path, for: temporary)
    guard failure == 0 else {
      if failure == EEXIST { return false }
      errno = failure
      throw Self.systemError("naming a new file", path)
    }
    if durability != .none { try Self.sync(Self.directory(of: path), path) }
    return true
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

  /// The absolute form of a path: SQLite takes one that begins with `file:` for something else.
  static func absolute(_ path: String) throws -> String {
    guard !path.isEmpty, !path.utf8.contains(0) else {
      throw StorageError(.invalidArgument, "a path is empty or holds a zero byte", path: path)
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

  /// Whether the process may read or write (`R_OK`, `W_OK`) what lies at `path`. When not, `errno` says why.
  static func isAllowed(_ path: String, _ mode: Int32) -> Bool {
    faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0
  }

  /// Bytes of the file at `path`; nil when there is none.
  static func size(_ path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : nil
  }
}
