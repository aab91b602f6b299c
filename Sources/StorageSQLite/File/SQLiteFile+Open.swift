import CSQLite
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Opening a file and checking that it belongs to this engine.
extension SQLiteFile {
  /// Opens the first connection and checks the file.
  func open(cacheBytes: Int) throws -> Connection {
    let connection: Connection
    do {
      connection = try connectOnly()
    } catch let error as SQLiteError {
      throw StorageError(error, "opening a database", path: path)
    }
    do {
      try configure(connection, cacheBytes: cacheBytes)
      try identify(connection)
      try checkLength()
      if access == .readWrite, try connection.string("PRAGMA journal_mode = WAL") != "wal" {
        throw StorageError(.ioError, "the file system has no shared memory for a write-ahead log", path: path)
      }
      return connection
    } catch let error as SQLiteError {
      defer { connection.close() }
      // Old libraries report a plain error for some headers.
      throw [SQLITE_NOTADB, SQLITE_ERROR].contains(error.code)
        ? unreadable(error, connection) : StorageError(error, "opening a database", path: path)
    } catch {
      connection.close()
      throw error
    }
  }

  /// Throws if the file belongs to another program or has an unknown version.
  private func identify(_ connection: Connection) throws {
    // Reads the first page and the whole schema.
    _ = try connection.integer("SELECT count(*) FROM sqlite_master")
    let identity = try connection.integer("PRAGMA application_id") ?? 0
    guard identity == SQLiteLayout.applicationID else {
      throw StorageError(
        .notADatabase, "opening a database: it is the SQLite file of another program", path: path)
    }
    let version = try connection.integer("PRAGMA user_version") ?? 0
    guard version == SQLiteLayout.version else {
      throw StorageError(
        .unsupportedVersion,
        "opening a database: its layout is of version \(version), and this release knows \(SQLiteLayout.version)",
        path: path)
    }
    guard try connection.integer("PRAGMA page_size") == SQLiteLayout.pageBytes else {
      throw StorageError(.damaged, "opening a database: its pages have an impossible size", path: path)
    }
  }

  /// Throws if the process lacks permission. Checked here, because the library tries several ways and reports
  /// only the last failure.
  func checkPermission(toWrite: Bool) throws {
    guard Self.isAllowed(path, R_OK) else { throw Self.systemError("opening a database", path) }
    guard toWrite else { return }
    for needed in [path, Self.directory(of: path)] where !Self.isAllowed(needed, W_OK) {
      throw Self.systemError("opening a database for writing", path)
    }
  }

  /// Throws if the file ends within a page and no log can complete it. The library would read the missing
  /// bytes as zeros.
  func checkLength() throws {
    guard let size = Self.size(path), size % SQLiteLayout.pageBytes != 0 else { return }
    if key == nil, size < 16 {
      throw StorageError(.notADatabase, "opening a database: it is of \(size) bytes only", path: path)
    }
    guard Self.size(path + "-wal") ?? 0 <= Self.emptyLogBytes else { return }
    throw StorageError(
      .damaged, "opening a database: \(size) bytes are no whole number of pages: it was cut", path: path)
  }

  /// Makes the error for a file whose first page can't be read.
  private func unreadable(_ error: SQLiteError, _ connection: Connection) -> StorageError {
    let magic = Array("SQLite format 3\0".utf8)
    let isPlain = connection.readFile(count: magic.count) == magic
    func failure(_ code: StorageError.Code, _ found: String) -> StorageError {
      StorageError(
        code, "opening a database: \(found)", path: path, engineCode: Int(error.extendedCode),
        engineMessage: error.message)
    }
    guard let key else {
      return isPlain
        ? failure(.damaged, "the file's header is damaged")
        : failure(.notADatabase, "the file is no SQLite database, or is encrypted")
    }
    if isPlain { return failure(.notEncrypted, "a key was given, and the file isn't encrypted") }
    let size = Self.size(path) ?? 0
    if size % SQLiteLayout.pageBytes != 0 {
      return failure(.damaged, "the file is no whole number of pages: it was cut, or isn't a database")
    }
    if PageAuthentication.fits(key, connection, fileBytes: size) {
      return failure(.damaged, "the key is the file's, but the first page is damaged")
    }
    return failure(.wrongKey, "the key isn't the file's, or the file's beginning is damaged")
  }
}
