import SQLiteLibrary
import StorageSQLite
import TestTools

struct LibraryTests {
  private let directory = TemporaryDirectory()

  @Test func twoLibrariesAnswerTheirOwnVersionsInOneProcess() throws {
    let sqlite = try Library.load(Library.sqlitePath)
    let cipher = try Library.load(Library.sqlcipherPath)
    expect(sqlite.version != cipher.version)
    expect(!sqlite.hasKeys && cipher.hasKeys)
    try expect(Library.load(Library.sqlitePath).functions, equals: sqlite.functions)
  }

  @Test func aMissingLibraryIsNamed() throws {
    let error = #expect(throws: LibraryError.self) { try Library.load("libnothing-at-all.so.0") }
    expect(error?.path, equals: "libnothing-at-all.so.0")
    expect(error?.reason.contains("libnothing-at-all.so.0"), equals: true)
    try expect(
      storageCode {
        _ = try SQLiteEngines.sqlite.open(
          directory.file("a"), EngineOptions(libraryPath: "libnothing-at-all.so.0"))
      }, equals: .unsupported)
  }

  @Test func aLibraryWithoutTheFunctionsIsRefusedByTheNameOfOne() throws {
    let error = #expect(throws: LibraryError.self) { try Library.load("libm.so.6") }
    expect(error?.reason.contains("sqlite3_"), equals: true)
  }

  @Test func aLibraryWithoutEncryptionIsRefusedForAnEncryptedFile() throws {
    try expect(
      storageCode {
        _ = try SQLiteEngines.sqlcipher.open(
          directory.file("a"), EngineOptions(key: Kind.key, libraryPath: Library.sqlitePath))
      }, equals: .unsupported)
  }

  /// A file that is removed while it is open gives its inode back when it is closed: to a file of the other library, here.
  @Test func aFileGetsTheInodeOfOneThatTheOtherLibraryIsJustClosing() throws {
    try onThreads(4) { thread in
      let kind = Kind.all[thread % Kind.all.count]
      let path = directory.file("\(thread)")
      for _ in 0..<(isLong ? 5_000 : 400) {
        let engine = try kind.open(path, .createNew, durability: .none)
        unlink(path)
        try engine.close()
        for suffix in ["-wal", "-shm"] { unlink(path + suffix) }
      }
    }
  }

  @Test func neitherLibraryIsLinked() throws {
    let bundles = Bundle.allBundles.map(\.bundlePath) + CommandLine.arguments.prefix(1)
    for path in bundles where FileManager.default.isExecutableFile(atPath: path) {
      var isDirectory: ObjCBool = false
      guard FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory), !isDirectory.boolValue
      else { continue }
      let output = try runTool("ldd", path)
      expect(!output.contains("sqlite3"), "\(path)")
      expect(!output.contains("sqlcipher"), "\(path)")
    }
  }

  @Test func statementsBindAndReadEveryType() throws {
    for path in [Library.sqlitePath, Library.sqlcipherPath] {
      let connection = try Connection(":memory:", library: Library.load(path), flags: 0x2 | 0x4)
      defer { connection.close() }
      let statement = try connection.prepare("SELECT ?1, ?2, ?3, ?4, ?5, ?6")
      defer { statement.finalize() }
      try statement.bind(1, -42)
      try statement.bind(2, 1.5)
      try statement.bind(3, "grüße")
      try statement.bind(4, [0, 1, 255])
      try statement.bind(5, "")
      try statement.bind(6, [UInt8]())
      try expect(statement.step())
      expect(statement.integer(0), equals: -42)
      expect(statement.double(1), equals: 1.5)
      expect(statement.string(2), equals: "grüße")
      expect([UInt8](statement.bytes(3)), equals: [0, 1, 255])
      expect(statement.string(4), equals: "")
      expect(!statement.isNull(5) && statement.bytes(5).isEmpty)
      try expect(!statement.step())
    }
  }

  @Test func aFailureNamesTheStatementAndTheLibrarysWords() throws {
    let connection = try Connection(":memory:", library: Library.load(Library.sqlitePath), flags: 0x2 | 0x4)
    defer { connection.close() }
    let error = #expect(throws: SQLiteError.self) { try connection.execute("SELECT a FROM nowhere") }
    expect(error?.code, equals: 1)
    expect(error?.message, equals: "no such table: nowhere")
    expect(error?.statement, equals: "SELECT a FROM nowhere")
  }

  @Test func aCollationOrdersRows() throws {
    let connection = try Connection(
      ":memory:", library: Library.load(Library.sqlcipherPath), flags: 0x2 | 0x4)
    defer { connection.close() }
    try connection.createCollation("LENGTH") { $0.count - $1.count }
    try connection.execute("CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('ccc'), ('a'), ('bb')")
    try expect(
      connection.strings("SELECT a FROM t ORDER BY a COLLATE LENGTH DESC"), equals: ["ccc", "bb", "a"])
  }
}
