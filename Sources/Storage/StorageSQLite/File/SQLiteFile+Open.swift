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
      throw StorageError(error, "the database can't be opened", path: path)
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
        ? unreadable(error, connection) : StorageError(error, "the database can't be opened", path: path)
    } catch {
      connection.close()
      throw error
    }
  }

  /// Throws if the file belongs to another program or has an unknown version.
  private func identify(_ connection: Connection) throws {
    // Reads the first page.
    _ = try connection.integer("PRAGMA schema_version")
    let identity = try connection.integer("PRAGMA application_id") ?? 0
    guard identity == SQLiteLayout.applicationID else {
      throw StorageError(
        .notADatabase, "the database can't be opened: this is an SQLite file of another program", path: path)
    }
    let version = try connection.integer("PRAGMA user_version") ?? 0
    guard version == SQLiteLayout.version else {
      throw StorageError(
        .unsupportedVersion,
        "the database can't be opened: its layout has version \(version); this release reads version \(SQLiteLayout.version)",
        path: path)
    }
    guard try connection.integer("PRAGMA page_size") == SQLiteLayout.pageBytes else {
      throw StorageError(.damaged, "the database can't be opened: its page size is impossible", path: path)
    }
    try SQLiteSchema(path: path).check(connection)
  }

  /// Throws if the process lacks permission. Checked here, because the library tries several ways and reports
  /// only the last failure.
  func checkPermission(toWrite: Bool) throws {
    guard Self.isAllowed(path, R_OK) else { throw Self.systemError("the database can't be opened", path) }
    guard toWrite else { return }
    for needed in [path, Self.directory(of: path)] where !Self.isAllowed(needed, W_OK) {
      throw Self.systemError("the database can't be opened for writing", path)
    }
  }

  /// Throws if the file ends within a page and no log can complete it. The library would read the missing
  /// bytes as zeros.
  func checkLength() throws {
    guard let size = Self.size(path), size % SQLiteLayout.pageBytes != 0 else { return }
    if key == nil, size < 16 {
      throw StorageError(
        .notADatabase, "the database can't be opened: the file has only \(size) bytes", path: path)
    }
    guard Self.size(path + "-wal") ?? 0 <= Self.emptyLogBytes else { return }
    throw StorageError(
      .damaged,
      "the database can't be opened: its \(size) bytes aren't a whole number of pages, so it was cut off",
      path: path)
  }

  /// Makes the error for a file whose first page can't be read.
  private func unreadable(_ error: SQLiteError, _ connection: Connection) -> StorageError {
    let magic = Array("SQLite format 3\0".utf8)
    let isPlain = connection.readFile(count: magic.count) == magic
    func failure(_ code: StorageError.Code, _ found: String) -> StorageError {
      StorageError(
        code, "the database can't be opened: \(found)", path: path, engineCode: Int(error.extendedCode),
        engineMessage: error.message)
    }
    guard let key else {
      return isPlain
        ? failure(.damaged, "the file's header is damaged")
        : failure(.notADatabase, "the file isn't an SQLite database, or it is encrypted")
    }
    if isPlain { return failure(.notEncrypted, "a key was given, but the file isn't encrypted") }
    let size = Self.size(path) ?? 0
    if size % SQLiteLayout.pageBytes != 0 {
      return failure(
        .damaged, "the file isn't a whole number of pages, so it was cut off or isn't a database")
    }
    if PageAuthentication.fits(key, connection, fileBytes: size) {
      return failure(.damaged, "the key is right, but the first page is damaged")
    }
    return failure(.wrongKey, "the key is wrong, or the beginning of the file is damaged")
  }
}
