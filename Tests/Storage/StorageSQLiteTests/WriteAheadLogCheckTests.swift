import CSQLite
import SQLiteLibrary
import TestTools

/// What SQLite leaves out of a damaged write-ahead log, beside what SQLite itself reads of it.
@Suite struct WriteAheadLogCheckTests {
  private let directory = TemporaryDirectory()
  private static let libraries = [Library.sqlitePath, Library.sqlcipherPath]
  private static let rows = 12

  private func connect(_ path: String, _ library: String) throws -> Connection {
    let connection = try Connection(
      path, library: Library.load(library), flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
    if library == Library.sqlcipherPath {
      // A raw key, which needs no stretching. SQLCipher's pages have a pragma of their own, and don't survive SQLite's.
      let key = String(repeating: "5a", count: 32)
      try connection.execute("PRAGMA key = \"x'\(key)'\"; PRAGMA cipher_page_size = 1024")
    } else {
      try connection.execute("PRAGMA page_size = 1024")
    }
    return connection
  }

  /// Runs SQL on a database with a log, and returns the files before they are closed.
  private func made(_ library: String, _ statements: [String]) throws -> (file: [UInt8], log: [UInt8]) {
    let path = directory.file("made")
    defer { for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) } }
    let connection = try connect(path, library)
    defer { connection.close() }
    try connection.execute(
      """
      PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t (a, b);
      PRAGMA wal_checkpoint(TRUNCATE)
      """)
    for statement in statements { try connection.execute(statement) }
    return (try bytes(path), try bytes(path + "-wal"))
  }

  private func bytes(_ path: String) throws -> [UInt8] {
    try [UInt8](Data(contentsOf: URL(filePath: path)))
  }

  private func damage(_ log: [UInt8]) throws -> WriteAheadLogCheck.Damage? {
    let path = directory.file("log")
    try Data(log).write(to: URL(filePath: path))
    return try WriteAheadLogCheck.damage(of: path)
  }

  /// The number of rows that SQLite finds.
  private func rows(_ file: [UInt8], _ log: [UInt8], _ library: String) throws -> Int {
    let path = directory.file("read")
    defer { for suffix in ["", "-wal", "-shm"] { unlink(path + suffix) } }
    try Data(file).write(to: URL(filePath: path))
    try Data(log).write(to: URL(filePath: path + "-wal"))
    let connection = try connect(path, library)
    defer { connection.close() }
    return try connection.integer("SELECT COUNT(*) FROM t") ?? 0
  }

  private static let inserts = (0..<rows).map { "INSERT INTO t VALUES (\($0), zeroblob(300))" }

  @Test(arguments: libraries) func commitsThatSQLiteLeavesOutAreFound(_ library: String) throws {
    let (file, log) = try made(library, Self.inserts)
    try expect(damage(log) == nil)
    try expect(rows(file, log, library), equals: Self.rows)
    for place in stride(from: 0, to: log.count, by: isLong ? 97 : 499) {
      var changed = log
      changed[place] ^= 1
      let left = try rows(file, changed, library)
      // A change to the last commit looks as a crash does.
      try expect((damage(changed) != nil), equals: left < Self.rows - 1, "byte \(place), \(left) rows")
      if let found = try damage(changed) { expect(found.offset <= place && place < found.offset + 1_100) }
    }
  }

  @Test(arguments: libraries) func anEndWithinAFrameIsFound(_ library: String) throws {
    let log = try made(library, Self.inserts).log
    let frame = 24 + 1_024
    for end in stride(from: 32, through: log.count, by: isLong ? 61 : 251) {
      let rest = (end - 32) % frame
      let found = try damage(Array(log[..<end]))
      expect((found != nil), equals: rest >= 16, "\(end)")
      if let found { expect(found.offset, equals: end - rest) }
    }
    // As a crash between two frames leaves it.
    for count in 0...(log.count - 32) / frame {
      try expect(damage(Array(log[..<(32 + count * frame)])) == nil)
    }
  }

  @Test(arguments: libraries) func remainsOfAnOlderLogAreNoDamage(_ library: String) throws {
    let (file, log) = try made(
      library, Self.inserts + ["PRAGMA wal_checkpoint(RESTART)", "DELETE FROM t WHERE a = 1"])
    expect(log.count > 10 * 1_048)
    try expect(damage(log) == nil)
    try expect(rows(file, log, library), equals: Self.rows - 1)
  }

  @Test(arguments: libraries) func framesOfATransactionThatWasRolledBackAreNoDamage(_ library: String) throws
  {
    let (file, log) = try made(
      library,
      ["PRAGMA cache_size = 5", "BEGIN"] + (0..<50).map { _ in "INSERT INTO t VALUES (0, zeroblob(900))" }
        + ["ROLLBACK", "INSERT INTO t VALUES (1, 1)"])
    expect(log.count > 10 * 1_048)
    try expect(damage(log) == nil)
    try expect(rows(file, log, library), equals: 1)
  }

  @Test func noLogAndAnEmptyOneAreSound() throws {
    try expect(WriteAheadLogCheck.damage(of: directory.file("none")) == nil)
    try expect(damage([]) == nil)
    try expect(damage([UInt8](repeating: 0, count: 32)) == nil)
    try expect(damage([UInt8](repeating: 7, count: 5_000))?.offset, equals: 0)
  }
}
