// Reads an SQLite file without changing it.
//
// A file without a log is opened in place as immutable. SQLite then makes no file beside it and takes no lock
// (SourceGuard does). A file with a write-ahead log, or with a journal to roll back, is copied to a directory
// of its own and opened there. Otherwise SQLite would make a NAME-shm beside the source, or roll back in it.

import CSQLite
import Encryption
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The SQLite file of an old database, open for reading.
final class SQLiteSourceFile {
  let connection: Connection
  /// The key, if the file is encrypted.
  let key: SecretBytes?
  /// Commits in the write-ahead log that SQLite leaves out.
  let logDamage: WriteAheadLogCheck.Damage?
  private let copy: String?

  static let magic = Array("SQLite format 3\0".utf8)

  /// Opens the file. `scratch` is a directory for a copy, if one is needed. The caller removes it.
  init(_ location: SourceFiles, key: UserKey?, scratch: String) throws {
    let header = try Self.header(location)
    let isPlain = Array(header.prefix(16)) == Self.magic
    if isPlain {
      guard key == nil else {
        throw UpgradeError(
          .notEncrypted, "a key was given, but the database isn't encrypted", path: location.path)
      }
      try Self.checkLength(header, location)
    } else {
      try Self.checkUnreadable(header, location, hasKey: key != nil)
    }
    let needsCopy =
      Self.length(location.file + "-wal") > 32 || Self.hasHotJournal(location.file + "-journal")
    var name: String
    if needsCopy {
      copy = scratch + "/source.sqlite3"
      name = scratch + "/source.sqlite3"
      for suffix in ["", "-wal", "-journal"] where Self.length(location.file + suffix) > 0 {
        try Self.copyFile(location.file + suffix, to: name + suffix)
      }
      // Opening the copy removes what it leaves out.
      logDamage = try WriteAheadLogCheck.damage(of: name + "-wal")
    } else {
      logDamage = nil
      copy = nil
      name = "file:\(Connection.uriPath(Self.absolute(location.file)))?immutable=1"
    }
    if isPlain {
      self.key = nil
      // A copy may need a rollback, so it is opened for writing.
      connection = try Connection(
        name, library: try Library.load(Library.sqlitePath),
        flags: needsCopy ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY | SQLITE_OPEN_URI)
    } else {
      guard let key else { throw Self.keyRequired(location) }
      (connection, self.key) = try Self.openEncrypted(name, key, location)
    }
    do {
      try prepare(fileBytes: Self.length(location.file))
    } catch {
      connection.close()
      throw error
    }
  }

  deinit { connection.close() }

  private func prepare(fileBytes: Int) throws {
    try connection.createCollation("REVID", RevisionOrder.compare)
    // No comparison uses these collations. SQLite must know the collations of an index even if the index
    // isn't used.
    for name in ["JSON", "JSON_RAW", "JSON_ASCII"] {
      try connection.createCollation(name) { compareBytes($0, $1) }
    }
    // A damaged file may fail here. The first statement that needs the file says so.
    try? connection.distrust(fileBytes: fileBytes)
    try? connection.execute("PRAGMA cache_size = -8192")
  }

  // MARK: Checks before opening

  private static func header(_ location: SourceFiles) throws -> [UInt8] {
    guard let kind = SourceFiles.kind(location.file) else {
      throw UpgradeError(.notFound, "there is no database", path: location.path)
    }
    guard kind == S_IFREG else {
      throw UpgradeError(.foreign, "the file of the database doesn't exist", path: location.file)
    }
    let file = open(location.file, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw StorageError.system(errno, "can't open", location.file) }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = pread(file, &bytes, bytes.count, 0)
    guard count >= 0 else { throw StorageError.system(errno, "can't read", location.file) }
    guard count == bytes.count else {
      guard bytes.prefix(min(count, 16)) == magic.prefix(count) else {
        throw notSQLite(location)
      }
      throw UpgradeError(
        .truncated,
        count == 0
          ? "the file is empty: it was never written, or it was cut off"
          : "the file ends after \(count) bytes, so it was cut off; restore it from a backup",
        path: location.file)
    }
    return bytes
  }

  /// Checks that a plain file has all pages that its header counts.
  private static func checkLength(_ header: [UInt8], _ location: SourceFiles) throws {
    func number(_ offset: Int, _ count: Int) -> Int {
      header[offset..<(offset + count)].reduce(0) { $0 << 8 | Int($1) }
    }
    let pageBytes = number(16, 2) == 1 ? 65_536 : number(16, 2)
    // The page count is valid if it was written by the last change. A log may hold more pages.
    guard number(24, 4) == number(92, 4), length(location.file + "-wal") <= 32 else { return }
    let bytes = length(location.file)
    guard pageBytes >= 512, bytes < number(28, 4) * pageBytes else { return }
    throw UpgradeError(
      .truncated,
      "the file has \(bytes) bytes, but its header says \(number(28, 4) * pageBytes), so it was cut off; restore it from a backup",
      path: location.file)
  }

  /// Checks a file that doesn't begin like an SQLite file. Throws unless it can be an encrypted database and
  /// there is a key.
  private static func checkUnreadable(_ header: [UInt8], _ location: SourceFiles, hasKey: Bool) throws {
    if header.starts(with: Array("PK\u{3}\u{4}".utf8)) {
      throw UpgradeError(.foreign, "this is a zip file; unpack it first", path: location.path)
    }
    // SQLite's own encryption leaves bytes 16 to 23 unchanged. These values are those of pages with 32
    // reserved bytes.
    if header[21] == 64, header[22] == 32, header[23] == 32, header[18] == 2, header[19] == 2 {
      throw UpgradeError(
        .unknownCipher,
        "this is an encrypted database of Couchbase Lite 2 or later, whose cipher (SQLite's SEE) isn't available here; "
          + "decrypt it with Couchbase Lite", path: location.path)
    }
    let bytes = length(location.file)
    guard bytes % 512 == 0 else {
      throw notSQLite(location)
    }
    if !hasKey { throw keyRequired(location) }
  }

  private static func notSQLite(_ location: SourceFiles) -> UpgradeError {
    UpgradeError(
      .foreign,
      "this is neither a plain nor an encrypted SQLite file; give a NAME.cblite2 directory or a NAME.cblite "
        + "file of Couchbase Lite 1.x", path: location.path)
  }

  private static func keyRequired(_ location: SourceFiles) -> UpgradeError {
    UpgradeError(
      .keyRequired,
      "the file is encrypted, or it isn't a database; if it is encrypted, give its password or key",
      path: location.path)
  }

  static func length(_ path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  /// Whether a journal must be rolled back because its transaction didn't end. A finished journal is removed,
  /// truncated, or begins with zeros.
  private static func hasHotJournal(_ path: String) -> Bool {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return false }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 8)
    guard pread(file, &bytes, 8, 0) == 8 else { return false }
    return bytes == [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
  }

  // MARK: Opening

  private static func openEncrypted(
    _ name: String, _ key: UserKey, _ location: SourceFiles
  ) throws -> (Connection, SecretBytes) {
    for candidate in try SourceKey.candidates(key) {
      let secret = try candidate()
      do {
        let connection = try secret.withArray { try CipherSettings.sqlcipher3.open(name, key: .raw($0)) }
        return (connection, secret)
      } catch let error as SQLiteError where error.code == SQLITE_NOTADB {
        continue
      }
    }
    throw UpgradeError(
      .wrongKey,
      key.isRaw
        ? "the key is wrong, or the file isn't an encrypted 1.x database"
        : "the password is wrong, or the file isn't an encrypted 1.x database", path: location.path)
  }

  private static func absolute(_ path: String) -> String {
    guard let resolved = realpath(path, nil) else { return path }
    defer { free(resolved) }
    return String(cString: resolved)
  }

  private static func copyFile(_ path: String, to target: String) throws {
    let source = open(path, O_RDONLY | O_CLOEXEC)
    guard source >= 0 else { throw StorageError.system(errno, "can't open", path) }
    defer { close(source) }
    let file = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw StorageError.system(errno, "can't make", target) }
    defer { close(file) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4_096)
    defer { buffer.deallocate() }
    var done = 0
    while true {
      let count = read(source, buffer.baseAddress, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw StorageError.system(errno, "can't read", path) }
      guard count > 0 else { return }
      let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
      guard FileWriting.writeAll(bytes, at: done, to: file) else {
        throw StorageError.system(errno, "can't write", target)
      }
      done += count
    }
  }
}

/// The order of revision IDs in 1.x (the collation REVID).
enum RevisionOrder {
  static let compare: Connection.Comparison = { left, right in
    let leftDash = left.firstIndex(of: UInt8(ascii: "-"))
    let rightDash = right.firstIndex(of: UInt8(ascii: "-"))
    if let leftDash, let rightDash, leftDash <= 8, rightDash <= 8, leftDash != 1 || rightDash != 1,
      let leftNumber = generation(left[..<leftDash]), let rightNumber = generation(right[..<rightDash])
    {
      if leftNumber != rightNumber { return leftNumber < rightNumber ? -1 : 1 }
      return bytes(left[(leftDash + 1)...], right[(rightDash + 1)...])
    }
    return bytes(left[...], right[...])
  }

  private static func generation(_ digits: Slice<UnsafeRawBufferPointer>) -> Int? {
    var number = 0
    for digit in digits {
      guard digit >= 0x30, digit <= 0x39 else { return nil }
      number = number * 10 + Int(digit - 0x30)
    }
    return number > 0 ? number : nil
  }

  private static func bytes(_ left: Slice<UnsafeRawBufferPointer>, _ right: Slice<UnsafeRawBufferPointer>)
    -> Int
  {
    if left.lexicographicallyPrecedes(right) { return -1 }
    return left.elementsEqual(right) ? 0 : 1
  }
}
