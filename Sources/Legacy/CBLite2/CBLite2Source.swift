// A Couchbase Lite 2.x or 3.x database is a directory NAME.cblite2 (docs/cblite2.md):
//
//   db.sqlite3        everything but blobs; db.sqlite3-wal beside it holds what isn't in it yet
//   Attachments/      blobs, by their digests, as ours are
//
// user_version 201-599 says which release wrote it. Tables: kvmeta (last sequences), kv_info (settings), kv_default
// (documents), kv_del_default (tombstones, from 3.1 on), kv_.SCOPE.COLLECTION and kv_del_.SCOPE.COLLECTION.

import Blobs
import CSQLite
import Fleece
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// A `.cblite2` database, open for reading. Neither the database nor anything beside it is changed.
///
/// A file with a write-ahead log or a journal is copied first, because SQLite reads a log only where it can
/// write.
final class CBLite2Source {
  /// The file that holds everything but blobs.
  static let fileName = "db.sqlite3"
  private static let magic = Array("SQLite format 3\u{0}".utf8)

  let path: String
  let connection: Connection
  /// `user_version`: 201 for 2.0 and 2.1, 301 for 2.5, 302 for 2.7, 400 for 3.0, 500 for 3.1.
  let version: Int
  let sharedKeys: SharedKeys
  /// The names of all tables that aren't virtual.
  let tables: Set<String>
  let blobs: BlobStore
  /// Commits in the write-ahead log that SQLite leaves out.
  let logDamage: WriteAheadLogCheck.Damage?
  private let copy: String?

  deinit {
    connection.close()
    if let copy {
      for suffix in CBLite2Source.suffixes { unlink(copy + suffix) }
    }
  }

  private static let suffixes = ["", "-wal", "-shm", "-journal"]

  /// Opens the database in the directory `path`. Copies are made in `scratch` and removed later.
  init(_ path: String, scratch: String) throws {
    self.path = path
    let file = try CBLite2Source.file(in: path)
    try CBLite2Source.checkHeader(file)
    try CBLite2Source.checkNotOpen(file)
    let library = try Library.load(Library.sqlitePath)
    if ["-wal", "-journal"].contains(where: { CBLite2Source.size(of: file + $0) > 0 }) {
      let copy = scratch + "/db.sqlite3"
      self.copy = copy
      for suffix in ["", "-wal", "-journal"] { try CBLite2Source.copyFile(file + suffix, to: copy + suffix) }
      // Opening the copy removes what it leaves out.
      do { logDamage = try WriteAheadLogCheck.damage(of: copy + "-wal") } catch let error as SQLiteError {
        throw CBLite2Source.damaged(error, path)
      }
      connection = try CBLite2Source.open(copy, library, SQLITE_OPEN_READWRITE, path)
    } else {
      copy = nil
      logDamage = nil
      let uri = "file:" + Connection.uriPath(file) + "?immutable=1"
      connection = try CBLite2Source.open(uri, library, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, path)
    }
    do {
      try connection.distrust(fileBytes: CBLite2Source.size(of: file))
      try connection.execute("PRAGMA mmap_size = 268435456")
      version = try connection.integer("PRAGMA user_version") ?? 0
      tables = Set(
        try connection.strings(
          "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"))
      try CBLite2Source.check(version, tables, path)
      // The tables of indexes have a colon in their names, and aren't read.
      let object = try connection.foreignObject {
        !$0.contains(":") && ($0.hasPrefix("kv") || $0 == "indexes")
      }
      if let object {
        throw CBLite2Error(
          .notADatabase,
          "the schema of the database was changed: its \(object) isn't Couchbase Lite's, and reading it would run "
            + "what somebody wrote into the file", path: path)
      }
      try CBLite2Source.checkVersioning(connection, path)
      try CBLite2Source.checkPages(connection, path)
      sharedKeys = try CBLite2Source.loadSharedKeys(connection, path)
    } catch let error as SQLiteError {
      throw CBLite2Source.damaged(error, path)
    }
    blobs = try BlobStore(directory: path + "/Attachments", isReadOnly: true)
  }

  static func damaged(_ error: SQLiteError, _ path: String) -> CBLite2Error {
    CBLite2Error(.damaged, "the database's file can't be read (\(error.message))", path: path)
  }

  // MARK: Checks

  private static func file(in path: String) throws -> String {
    var status = stat()
    guard stat(path, &status) == 0 else {
      guard errno == ENOENT || errno == ENOTDIR else { throw ioError("can't be examined", path) }
      throw CBLite2Error(.notFound, "there is no database", path: path)
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      throw CBLite2Error(
        .notADatabase, "this is a file, but a .cblite2 database is a directory", path: path)
    }
    let file = path + "/" + fileName
    guard stat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      if access(path + "/db.forest", F_OK) == 0 || access(path + "/db.forest.0", F_OK) == 0 {
        throw CBLite2Error(
          .olderVersion,
          "this is a Couchbase Lite 1.x database with ForestDB storage; upgrade it with `touchstone upgrade`",
          path: path)
      }
      throw CBLite2Error(.notADatabase, "there is no \(fileName) in the directory", path: path)
    }
    return file
  }

  /// Tells an encrypted file from another kind of file. Neither begins like an SQLite file.
  private static func checkHeader(_ file: String) throws {
    let descriptor = Glibc.open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw ioError("can't be opened", file) }
    defer { close(descriptor) }
    var header = [UInt8](repeating: 0, count: 100)
    let count = pread(descriptor, &header, header.count, 0)
    guard count >= 0 else { throw ioError("can't be read", file) }
    guard count == header.count else {
      throw CBLite2Error(.damaged, "the file has \(count) bytes, fewer than SQLite's header", path: file)
    }
    if header.starts(with: magic) { return }
    // SQLite's encryption extension leaves these bytes unchanged.
    let pageBytes = Int(header[16]) << 8 | Int(header[17])
    let isPlain =
      (pageBytes == 1 || (pageBytes >= 512 && pageBytes & (pageBytes - 1) == 0)) && header[18] <= 2
      && header[19] <= 2 && header[21...23].elementsEqual([64, 32, 32])
    guard isPlain else {
      throw CBLite2Error(.damaged, "\(fileName) isn't an SQLite file", path: file)
    }
    throw CBLite2Error(
      .encrypted,
      "the database is encrypted with the cipher of Couchbase Lite's Enterprise Edition (SQLite's SEE), which "
        + "isn't available here; decrypt it first, with cblite decrypt or with changeEncryptionKey(nil) in an app",
      path: file)
  }

  /// Throws `inUse` if another process holds a lock on the bytes that SQLite reserves for locks.
  private static func checkNotOpen(_ file: String) throws {
    let descriptor = Glibc.open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw ioError("can't be opened", file) }
    defer { close(descriptor) }
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = 0x4000_0000
    lock.l_len = 512
    guard fcntl(descriptor, F_GETLK, &lock) == 0, lock.l_type != Int16(F_UNLCK) else { return }
    throw CBLite2Error(
      .inUse, "the process \(lock.l_pid) has the database open; close it there, or import a copy", path: file)
  }

  private static func check(_ version: Int, _ tables: Set<String>, _ path: String) throws {
    if tables.contains("kv_default") || tables.contains("kv_info") {
      guard version <= 599 else {
        throw CBLite2Error(
          .newerVersion, "the database has version \(version); versions 201 to 599 can be imported",
          path: path)
      }
      guard version > 200, tables.contains("kv_default"), tables.contains("kv_info") else {
        throw CBLite2Error(
          .damaged, "the database has version \(version), but tables of a 2.x database are missing",
          path: path)
      }
      return
    }
    guard tables.contains("docs"), tables.contains("revs") else {
      throw CBLite2Error(
        .notADatabase, "this is an SQLite file, but not a Couchbase Lite database", path: path)
    }
    throw CBLite2Error(
      .olderVersion, "this is a Couchbase Lite 1.x database; upgrade it with touchstone upgrade", path: path)
  }

  private static func checkVersioning(_ connection: Connection, _ path: String) throws {
    guard let bytes = try info("versioning", connection) else { return }
    guard bytes.count == 8 else {
      throw CBLite2Error(.damaged, "the versioning of the database can't be read", path: path)
    }
    guard bytes.allSatisfy({ $0 == 0 }) || (bytes[7] == 1 && bytes.dropLast().allSatisfy { $0 == 0 }) else {
      throw CBLite2Error(
        .newerVersion,
        "the database has version vectors (Couchbase Lite 4.0 and later) instead of revision trees, so it can't be "
          + "imported", path: path)
    }
  }

  /// Runs SQLite's check of the pages. Without it, missing rows would go unnoticed.
  private static func checkPages(_ connection: Connection, _ path: String) throws {
    let faults: [String]
    do { faults = try connection.strings("PRAGMA quick_check(3)") } catch let error as SQLiteError
      where error.code == SQLITE_ERROR
    {
      // SQLite can't check a schema with functions or tokenizers that only the application has.
      return
    }
    guard faults == ["ok"] else {
      throw CBLite2Error(
        .damaged, "the database's file is damaged (\(faults.joined(separator: "; ")))", path: path)
    }
  }

  private static func loadSharedKeys(_ connection: Connection, _ path: String) throws -> SharedKeys {
    guard let bytes = try info("SharedKeys", connection), !bytes.isEmpty else { return .empty }
    do { return try bytes.withUnsafeBytes { try SharedKeys(fleece: $0) } } catch {
      throw CBLite2Error(.damaged, "the property names of the database can't be read (\(error))", path: path)
    }
  }

  // MARK: Settings and tables

  private static func info(_ key: String, _ connection: Connection) throws -> [UInt8]? {
    let statement = try connection.prepare("SELECT body FROM kv_info WHERE key = ?")
    defer { statement.finalize() }
    try statement.bind(1, key)
    return try statement.step() && !statement.isNull(0) ? Array(statement.bytes(0)) : nil
  }

  /// Returns a record of the settings, or nil if there is none.
  func info(_ key: String) throws -> [UInt8]? { try CBLite2Source.info(key, connection) }

  /// Returns the number of revisions that each branch keeps, or nil if the database doesn't say.
  func maximumTreeDepth() throws -> Int? {
    guard let bytes = try info("maxRevTreeDepth"), bytes.count == 8 else { return nil }
    let depth = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    return depth > 0 && depth < 1 << 31 ? Int(depth) : nil
  }

  /// Returns the sequence of the last change in a collection, or 0 if it isn't stored.
  func lastSequence(of collection: CBLite2Collection) throws -> UInt64 {
    guard tables.contains("kvmeta") else { return 0 }
    let statement = try connection.prepare("SELECT lastSeq FROM kvmeta WHERE name = ?")
    defer { statement.finalize() }
    try statement.bind(1, collection.store)
    guard try statement.step(), statement.type(0) == SQLITE_INTEGER else { return 0 }
    return UInt64(max(0, statement.integer(0)))
  }

  /// Returns the number of rows of a table, or 0 if there is no such table.
  func rows(in table: String) throws -> Int {
    guard tables.contains(table) else { return 0 }
    return try connection.integer("SELECT count(*) FROM \(Connection.quoted(table)) NOT INDEXED") ?? 0
  }

  /// Returns the names of a table's columns.
  func columns(of table: String) throws -> Set<String> {
    let statement = try connection.prepare("PRAGMA table_info(\(Connection.quoted(table)))")
    defer { statement.finalize() }
    var columns: Set<String> = []
    while try statement.step() { columns.insert(statement.string(1) ?? "") }
    return columns
  }

  /// Returns the names of the indexes that an application made.
  func indexNames() throws -> [String] {
    if tables.contains("indexes") { return try connection.strings("SELECT name FROM indexes ORDER BY name") }
    return try connection.strings(
      """
      SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '%fl\\_%(%' ESCAPE '\\'
      UNION SELECT substr(name, 13) FROM sqlite_master WHERE name LIKE 'kv\\_default::%' ESCAPE '\\'
        AND sql LIKE 'CREATE VIRTUAL%' ORDER BY 1
      """)
  }

  // MARK: Files

  private static func size(of path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  private static func open(_ file: String, _ library: Library, _ flags: Int32, _ path: String) throws
    -> Connection
  {
    do { return try Connection(file, library: library, flags: flags) } catch let error as SQLiteError {
      throw damaged(error, path)
    }
  }

  private static func copyFile(_ source: String, to target: String) throws {
    let input = Glibc.open(source, O_RDONLY | O_CLOEXEC)
    guard input >= 0 else {
      if errno == ENOENT { return }
      throw ioError("can't be opened", source)
    }
    defer { close(input) }
    let output = Glibc.open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard output >= 0 else { throw ioError("can't be created", target) }
    defer { close(output) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
    defer { buffer.deallocate() }
    var done = 0
    while true {
      let count = read(input, buffer.baseAddress, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw ioError("can't be read", source) }
      guard count > 0 else { return }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      guard FileWriting.writeAll(bytes, at: done, to: output) else {
        throw ioError("can't be written", target)
      }
      done += count
    }
  }

  private static func ioError(_ what: String, _ path: String) -> CBLite2Error {
    CBLite2Error(.ioError, "the file \(what): \(String(cString: strerror(errno)))", path: path)
  }
}

/// A collection of a 3.1 database. Databases of earlier releases have only the default one.
struct CBLite2Collection: Hashable {
  /// The name: `_default`, `name` or `scope.name`.
  let name: String
  /// The name in tables: `default`, `.name` or `.scope.name`, with capital letters escaped.
  let store: String

  static let `default` = CBLite2Collection(name: "_default", store: "default")

  private init(name: String, store: String) {
    self.name = name
    self.store = store
  }

  /// Creates a collection from its name: `_default`, `name` or `scope.name`. The scope `_default` can be left
  /// out.
  init(named name: String) {
    guard !["_default", "_default._default", ""].contains(name) else {
      self = .default
      return
    }
    let short = name.hasPrefix("_default.") ? String(name.dropFirst(9)) : name
    self.init(name: short, store: "." + CBLite2Collection.escaped(short))
  }

  /// Creates a collection from the name of its table. Nil if it isn't the table of a named collection.
  init?(table: String) {
    guard table.hasPrefix("kv_."), table.utf8.count > 4 else { return nil }
    let store = String(table.dropFirst(3))
    self.init(name: CBLite2Collection.unescaped(String(store.dropFirst())), store: store)
  }

  /// Adds a backslash before each capital letter.
  private static func escaped(_ name: String) -> String {
    var result = ""
    for scalar in name.unicodeScalars {
      if ("A"..."Z").contains(scalar) { result += "\\" }
      result.unicodeScalars.append(scalar)
    }
    return result
  }

  private static func unescaped(_ name: String) -> String {
    String(String.UnicodeScalarView(name.unicodeScalars.filter { $0 != "\\" }))
  }

  var table: String { "kv_" + store }
  var tombstoneTable: String { "kv_del_" + store }
}
