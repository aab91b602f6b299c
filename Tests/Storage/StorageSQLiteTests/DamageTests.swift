import SQLiteLibrary
import TestTools

@testable import StorageSQLite

struct DamageTests {
  let directory = TemporaryDirectory()

  /// Opens, checks and reads everything; every failure has to be a storage error.
  private func useAll(_ kind: Kind, _ path: String, _ seed: UInt64) {
    do {
      let engine = try kind.open(path, .openExisting)
      defer { try? engine.close() }
      _ = try? engine.checkIntegrity()
      try engine.read { transaction in
        for keyspace in try transaction.keyspaces().values {
          try transaction.scan(keyspace) { key, value in key.byteCount + value.byteCount >= 0 }
        }
      }
      try engine.write { (transaction: any WriteTransaction) in
        for keyspace in try transaction.keyspaces().values where keyspace.shape != .sequences {
          try transaction.put([1, 2, 3], [4], in: keyspace)
          try transaction.deleteRange(.all, in: keyspace)
        }
      }
    } catch is StorageError {
    } catch {
      Issue.record("not a storage error: \(error) (seed \(seed))")
    }
  }

  @Test(arguments: Kind.all) func randomDamageGivesErrorsAndNeverMore(_ kind: Kind) throws {
    let original = directory.file("original")
    let engine = try kind.open(original)
    try engine.fill(count: 300, bytes: 700)
    try engine.fill("other", count: 20, bytes: 20_000)
    try engine.close()
    let bytes = try contents(original)
    var generator = SeededGenerator(seed: testSeed)
    for round in 0..<120 {
      var damaged = bytes
      if round % 3 == 0 {
        damaged.removeLast(Int.random(in: 1..<damaged.count, using: &generator))
      } else {
        // Early pages, which hold the trees' tops, more often than others.
        let end = round % 3 == 1 ? 16_384 : damaged.count
        for _ in 0..<Int.random(in: 1...40, using: &generator) {
          damaged[Int.random(in: 0..<end, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
        }
      }
      let path = directory.file("damaged-\(round)")
      try replaceContents(path, damaged)
      useAll(kind, path, testSeed)
    }
  }

  @Test(
    "a view, a trigger, another table or index, or a table with another definition is refused at opening",
    arguments: Kind.all)
  func aSchemaOfSomebodyElseIsRefused(_ kind: Kind) throws {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
    let changes = [
      "CREATE TRIGGER t AFTER INSERT ON k1 BEGIN DELETE FROM k1; END",
      "CREATE VIEW v AS SELECT 1",
      "CREATE TABLE other (a)",
      "CREATE INDEX i ON k1 (value)",
      "CREATE VIRTUAL TABLE f USING fts4(a)",
      "ALTER TABLE k1 ADD COLUMN more",
      "ALTER TABLE keyspaces RENAME TO z;"
        + "CREATE VIEW keyspaces AS \(endless) SELECT z.* FROM n, z WHERE i < 0",
      "ALTER TABLE k1 RENAME TO z; CREATE VIEW k1 AS \(endless) SELECT z.* FROM n, z WHERE i < 0",
      "ALTER TABLE layout RENAME TO k9",
      "DROP TABLE layout",
    ]
    for (number, change) in changes.enumerated() {
      let path = directory.file("schema\(number)")
      let engine = try kind.open(path)
      try engine.fill(count: 3, bytes: 10)
      let file = engine.file
      try engine.close()
      let connection = try file.connect(cacheBytes: 0)
      try connection.execute(change)
      connection.close()
      for isReadOnly in [false, true] {
        try expect(
          storageCode { try kind.open(path, .openExisting, isReadOnly: isReadOnly).close() },
          equals: .damaged,
          "\(change)")
      }
    }
  }

  @Test(arguments: Kind.all) func aDamagedPageIsFoundByTheCheck(_ kind: Kind) throws {
    let path = directory.file("a")
    let engine = try kind.open(path)
    try engine.fill(count: 500, bytes: 700)
    try expect(engine.checkIntegrity(), equals: [])
    try engine.close()
    var bytes = try contents(path)
    for offset in 0..<64 { bytes[20 * 4096 + 8 + offset] ^= 0x5A }
    try replaceContents(path, bytes)
    let again = try kind.open(path, .openExisting)
    try expect(again.checkIntegrity() != [])
    try again.close()
  }

  @Test(arguments: Kind.all) func aWrongCountAndALostTableAreFoundByTheCheck(_ kind: Kind) throws {
    let path = directory.file("a")
    let engine = try kind.open(path)
    try engine.fill(count: 10, bytes: 10)
    let database = try engine.idleWriter()
    try database.execute("UPDATE keyspaces SET entries = 11")
    try expect(engine.checkIntegrity(), equals: ["keyspace “k” has 10 entries, but its count says 11"])
    try database.execute("UPDATE keyspaces SET entries = 10; CREATE TABLE k77 (a)")
    try expect(engine.checkIntegrity(), equals: ["the table k77 belongs to no keyspace"])
    try database.execute("DROP TABLE k77; DROP TABLE k1")
    try expect(engine.checkIntegrity(), equals: ["keyspace “k” has no table k1"])
    try engine.close()
  }

  @Test(arguments: Kind.all) func anotherProgramsFileAndAnUnknownVersionAreRefused(_ kind: Kind) throws {
    let path = directory.file("a")
    try kind.open(path).closing { try $0.idleWriter().execute("PRAGMA user_version = 99") }
    try expect(storageCode { _ = try kind.open(path) }, equals: .unsupportedVersion)

    let other = directory.file("other")
    let second = try kind.open(other)
    try second.idleWriter().execute("PRAGMA application_id = 1")
    try second.close()
    try expect(storageCode { _ = try kind.open(other) }, equals: .notADatabase)
  }

  @Test(arguments: Kind.all) func whatIsNoFileOrEmptyIsRefused(_ kind: Kind) throws {
    try expect(storageCode { _ = try kind.open(directory.path) }, equals: .notADatabase)
    let empty = directory.file("empty")
    try replaceContents(empty, [])
    try expect(storageCode { _ = try kind.open(empty) }, equals: .notADatabase)
    try expect(storageCode { _ = try kind.open(directory.file("none"), .openExisting) }, equals: .notFound)
    try expect(storageCode { _ = try kind.open(directory.file("none"), isReadOnly: true) }, equals: .notFound)
    try expect(storageCode { _ = try kind.open(directory.file("no/where")) } != nil)
    try expect(storageCode { _ = try kind.open(empty, .createNew) }, equals: .alreadyExists)
  }
}
