import CSQLite
import Datasets
import SQLiteLibrary
import TestSupport

/// What is no 1.x database that can be read: each says so, and nothing is made.
@Suite("What isn't a 1.x database") struct DetectionTests {
  private let directory = TemporaryDirectory()

  private func error(_ source: String, _ directory: TemporaryDirectory) throws -> UpgradeError {
    let before = try directory.names()
    let error = try #require(throws: UpgradeError.self, "\(source)") {
      try Database.upgrade(source, to: directory.new)
    }
    try expect(directory.names(), equals: before)
    return error
  }

  private func write(_ bytes: [UInt8], _ path: String) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path))
  }

  private func sqlite(_ path: String, _ sql: String) throws {
    let connection = try Connection(
      path, library: try Library.load(Library.sqlitePath), flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
    defer { connection.close() }
    try connection.execute(sql)
  }

  @Test("is told by what it holds")
  func kinds() throws {
    let path = directory.path
    try expect(error(path + "/nothing.cblite", directory).code, equals: .notFound)
    try write([], path + "/empty.cblite")
    try expect(error(path + "/empty.cblite", directory).code, equals: .truncated)
    try write(Array("SQLite format 3\0".utf8) + [1, 2, 3], path + "/short.cblite")
    try expect(error(path + "/short.cblite", directory).code, equals: .truncated)
    try write(
      Array("This is a text file, and no database at all. ".utf8) + [UInt8](repeating: 65, count: 200),
      path + "/text.cblite")
    try expect(error(path + "/text.cblite", directory).code, equals: .foreign)
    try write(Array("hello".utf8), path + "/word.cblite")
    try expect(error(path + "/word.cblite", directory).code, equals: .foreign)
    // An ending that was forgotten.
    try expect(error(path + "/word", directory).message.contains("word.cblite?"))
    try write([0x50, 0x4B, 3, 4] + [UInt8](repeating: 1, count: 1_020), path + "/zip.cblite")
    try expect(error(path + "/zip.cblite", directory).message.contains("zip"))
    try write((0..<2_048).map { UInt8(truncatingIfNeeded: $0 * 31 + 5) }, path + "/noise.cblite")
    try expect(error(path + "/noise.cblite", directory).code, equals: .keyRequired)
    try sqlite(path + "/other.db", "CREATE TABLE people (name TEXT); INSERT INTO people VALUES ('a')")
    let other = try error(path + "/other.db", directory)
    expect(other.code == .foreign && other.message.contains("docs and revs"))
    try sqlite(path + "/lacking.cblite", "CREATE TABLE docs (x); CREATE TABLE revs (y)")
    try expect(error(path + "/lacking.cblite", directory).code, equals: .foreign)
    try FileManager.default.createDirectory(
      atPath: path + "/later.cblite2/Attachments", withIntermediateDirectories: true)
    try sqlite(
      path + "/later.cblite2/db.sqlite3",
      "CREATE TABLE kv_default (key TEXT PRIMARY KEY, sequence INTEGER, flags INTEGER, version BLOB, body BLOB);"
        + "CREATE TABLE kvmeta (name TEXT PRIMARY KEY); PRAGMA user_version = 201")
    let later = try error(path + "/later.cblite2", directory)
    expect(later.code == .laterVersion && later.message.contains("import"))
    try FileManager.default.createDirectory(
      atPath: path + "/forest.cblite2", withIntermediateDirectories: true)
    try write([1], path + "/forest.cblite2/db.forest.0")
    try expect(error(path + "/forest.cblite2", directory).code, equals: .truncated)
    try FileManager.default.createDirectory(atPath: path + "/bare.cblite2", withIntermediateDirectories: true)
    try expect(error(path + "/bare.cblite2", directory).code, equals: .foreign)
    try Database.open(path + "/ours").close()
    try expect(error(path + "/ours.touchstone", directory).code, equals: .notOld)
    try expect(error(path, directory).message.contains("lacking.cblite"))
  }

  @Test("is told when it was cut off, at any length")
  func truncated() throws {
    var settings = LegacyDatabase()
    settings.documents = 200
    let source = try directory.makeOld(settings)
    let whole = Array(try Data(contentsOf: URL(fileURLWithPath: source + "/db.sqlite3")))
    for part in [99, 100, 1_000, 4_096, 5_000, whole.count / 2, whole.count - 4_096, whole.count - 1] {
      try write(Array(whole.prefix(part)), source + "/db.sqlite3")
      let code = try error(source, directory).code
      expect([.truncated, .damaged].contains(code), "\(part) bytes: \(code)")
    }
  }

  @Test("is told when somebody is writing to it")
  func locked() throws {
    var settings = LegacyDatabase()
    settings.version = .v10
    settings.documents = 20
    let source = try directory.makeOld(settings)
    do {
      let writer = try Connection(
        source, library: try Library.load(Library.sqlitePath), flags: SQLITE_OPEN_READWRITE)
      defer { writer.close() }
      try writer.execute("BEGIN EXCLUSIVE")
      let error = try error(source, directory)
      expect(error.code == .inUse && error.message.contains("close it"))
      try writer.execute("ROLLBACK")
    }
    try Database.upgrade(source, to: directory.new)
  }

  @Test("is told when it changes while it is read")
  func changed() throws {
    var settings = LegacyDatabase()
    settings.documents = 3_000
    let source = try directory.makeOld(settings)
    let code = try upgradeCode {
      try Database.upgrade(source, to: directory.new) { progress in
        guard progress.phase == .copying, progress.done == 512 else { return }
        try change(source + "/db.sqlite3", "INSERT INTO info VALUES ('changed', '1')")
      }
    }
    expect(code, equals: .changed)
    try expect(directory.names(), equals: ["old.cblite2"])
  }

  @Test(
    "is told when reading it would run what somebody wrote into its schema",
    arguments: [
      "DROP TABLE info; CREATE VIEW info AS SELECT 'a' AS key, 'b' AS value",
      """
      DROP TABLE localdocs; CREATE VIEW localdocs AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
        SELECT x AS docid, x AS revid, '{}' AS json FROM n
      """,
      "DROP TABLE info; CREATE VIRTUAL TABLE info USING fts4(key, value)",
      "ALTER TABLE docs ADD COLUMN computed INTEGER AS (length(hex(zeroblob(100000000))))",
    ])
  func code(_ schema: String) throws {
    var settings = LegacyDatabase()
    settings.documents = 20
    let source = try directory.makeOld(settings)
    try change(source + "/db.sqlite3", schema)
    let error = try error(source, directory)
    expect(error.code, equals: .foreign, "\(error)")
  }

  @Test("costs a bounded amount of work at each step")
  func endless() throws {
    let path = directory.path + "/endless.db"
    try sqlite(path, "CREATE TABLE docs (doc_id INTEGER PRIMARY KEY, docid TEXT)")
    let connection = try Connection(
      path, library: try Library.load(Library.sqlitePath), flags: SQLITE_OPEN_READONLY)
    defer { connection.close() }
    try connection.distrust(fileBytes: 0)
    connection.limitSteps(to: 1_000_000)
    let numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
    #expect {
      try connection.integer("\(numbers) SELECT count(*) FROM n")
    } throws: {
      ($0 as? SQLiteError)?.code == SQLITE_INTERRUPT
    }
    // Each step has the whole budget again: many of them may cost more together.
    let statement = try connection.prepare("\(numbers) SELECT x FROM n LIMIT 200000")
    defer { statement.finalize() }
    var count = 0
    while try statement.step() { count += 1 }
    expect(count, equals: 200_000)
  }

  @Test("isn't mistaken: what has nothing is a 1.x database too")
  func empty() throws {
    var settings = LegacyDatabase()
    settings.documents = 0
    let source = try directory.makeOld(settings)
    let report = try Database.upgrade(source, to: directory.new, options: UpgradeOptions(verifies: true))
    expect(report.documents.read, equals: 0)
    let database = try Database.open(directory.new)
    // UUIDs come along, in the spelling of iOS too.
    expect(database.privateUUID, equals: "1446079e-e8dd-6013-79da-60601e2173cb")
    try database.close()
  }
}
