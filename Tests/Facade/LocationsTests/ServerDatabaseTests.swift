import StoragePostgres
import TestSupport

@Suite("Databases on a server", .enabled(if: hasServer)) struct ServerDatabaseTests {
  @Test("documents, queries, indexes and observers work as in a directory")
  func documents() throws {
    try withServerDatabase { database, location in
      expect(database.engineName, equals: .postgres)
      expect(database.path, equals: location)
      expect(database.name, equals: location.schema)
      try database.inBatch { for n in 0..<100 { try database.save("doc\(n)", ["n": .int(Int64(n))]) } }
      try database.createIndex("byN", on: ["n"])
      let rows = try database.query("SELECT META().id FROM _ WHERE n >= 98 ORDER BY n").run()
      expect(rows.map { $0[0].string }, equals: ["doc98", "doc99"])
      try database.delete("doc1")
      try database.compact()
      try expect(database.documentCount, equals: 99)
      try expect(database.check(deep: true).map(\.description), equals: [])
    }
  }

  @Test("what was saved is there for the next open, and gone after a removal")
  func reopening() throws {
    let location = try newLocation()
    var database = try Database.open(DatabaseLocation(location))
    try database.save("a", ["n": 1])
    let uuid = database.publicUUID
    try database.close()
    expect(Database.exists(location))
    try expect(!Database.isEncrypted(location))
    try expect(
      databaseCode { try Database.open(location, options: .init(creation: .createNew)) },
      equals: .alreadyExists)
    database = try Database.open(location, options: .init(creation: .openExisting, isReadOnly: true))
    try expect(database.document("a")?["n"].int, equals: 1)
    expect(database.publicUUID, equals: uuid)
    // A second open that writes.
    let writer = try Database.open(location)
    try writer.save("b", ["file": writer.makeBlob(Array("content".utf8)).jsonValue])
    try expect(database.document("b")?.blob(forKey: "file")?.content(), equals: Array("content".utf8))
    try writer.close()
    try expect(databaseCode { try Database.delete(location) }, equals: .inUse)
    try database.close()
    try expect(
      tables(location.schema),
      equals: ["blobs", "database", "entries", "keyspaces", "pieces", "touchstone", "writers"])
    try Database.delete(location)
    expect(!Database.exists(location))
    try expect(tables(location.schema), equals: [])
    try expect(server().sql("SELECT 1 FROM pg_namespace WHERE nspname = '\(location.schema)'"), equals: [])
  }

  @Test("an open database removes itself")
  func removal() throws {
    let location = try newLocation()
    let database = try Database.open(location)
    try database.delete()
    expect(!Database.exists(location))
    try Database.open(location).delete()
  }

  @Test("a schema that was there stays, without the tables")
  func givenSchema() throws {
    let location = try newLocation("given")
    try server().sql("CREATE SCHEMA given; CREATE TABLE given.other (id integer)")
    let database = try Database.open(location)
    try database.save("a", ["n": 1])
    try database.delete()
    try expect(tables("given"), equals: ["other"])
  }

  @Test("an interrupted creation is nothing, and the next one removes what it left")
  func unfinished() throws {
    let location = try newLocation()
    let made = try Database.open(location)
    try made.save("old", ["n": 1])
    try made.close()
    try server().sql("UPDATE \"\(location.schema)\".database SET description = NULL")
    expect(!Database.exists(location))
    try expect(
      databaseCode { try Database.open(location, options: .init(creation: .openExisting)) }, equals: .notFound
    )
    let database = try Database.open(location)
    try expect(database.documentCount, equals: 0)
    try database.delete()
  }

  @Test("what isn't a database of this release is refused, and stays as it is")
  func foreign() throws {
    let engineOnly = try newLocation()
    try PostgresEngines.postgres.open(engineOnly, EngineOptions()).close()
    try expect(databaseCode { try Database.open(engineOnly) }, equals: .notADatabase)
    try expect(tables(engineOnly.schema), equals: ["entries", "keyspaces", "touchstone", "writers"])
    let other = try newLocation("other-one")
    try server().sql("CREATE SCHEMA \"other-one\"; CREATE TABLE \"other-one\".database (id integer)")
    try expect(databaseCode { try Database.open(other) }, equals: .notADatabase)
    try withServerDatabase { database, location in
      try database.close()
      let schema = "\"\(location.schema)\""
      for (change, back, code) in [
        ("version = 99", "version = 1", DatabaseError.Code.unsupportedVersion),
        (
          "description = '{\"engine\":\"postgres\",\"version\":2}'",
          "description = '{\"engine\":\"postgres\",\"version\":1}'", .unsupportedVersion
        ),
        ("description = 'x'", "description = '{\"engine\":\"postgres\",\"version\":1}'", .damaged),
      ] {
        try server().sql("UPDATE \(schema).database SET \(change)")
        let error = try thrown(DatabaseError.self) { try Database.open(location) }
        expect(error?.code, equals: code, "\(change)")
        expect(error?.path, equals: location)
        try server().sql("UPDATE \(schema).database SET \(back)")
      }
    }
  }

  @Test("names with odd characters are names", arguments: ["a b", "a\"b", "a'b", "Ä/@#", "%"])
  func oddNames(_ name: String) throws {
    let encoded = name.utf8.map { String(format: "%%%02X", $0) }.joined()
    let location = try server().location(encoded)
    let database = try Database.open(location)
    expect(database.name, equals: name)
    try database.save("a", ["blob": database.makeBlob([1, 2, 3]).jsonValue])
    try database.delete()
    expect(!Database.exists(location))
  }

  @Test("a dump restored elsewhere is the same database")
  func dump() throws {
    try withServerDatabase { database, location in
      try fill(database)
      let dump = try server().program(
        "pg_dump", ["-h", server().directory, "-U", "touchstone", "-n", "\"\(location.schema)\"", "postgres"])
      let restored = try PostgresServer()
      // Through a file: an argument isn't long enough.
      let file = NSTemporaryDirectory() + "/\(UUID().uuidString).sql"
      try dump.write(toFile: file, atomically: true, encoding: .utf8)
      defer { try? FileManager.default.removeItem(atPath: file) }
      chmod(file, 0o644)
      _ = try restored.program(
        "psql",
        [
          "-h", restored.directory, "-U", "touchstone", "-d", "postgres", "-q", "-v", "ON_ERROR_STOP=1", "-f",
          file,
        ])
      let copy = try Database.open(restored.location(location.schema))
      try expect(differences(database, copy, sequences: true).map(\.description), equals: [])
      try expect(copy.check(deep: true).map(\.description), equals: [])
      try copy.close()
    }
  }
}

/// Fills a database with something of everything.
func fill(_ database: Database) throws {
  try database.inBatch {
    for n in 0..<200 {
      try database.save(
        "doc\(n)", ["n": .int(Int64(n)), "text": .string(String(repeating: "text \(n) ", count: n % 40))])
    }
    for n in 0..<50 { try database.save("doc\(n)", ["n": .int(Int64(-n))]) }
    for n in 0..<20 { try database.delete("doc\(n * 3)") }
  }
  try database.apply(PulledRevision(id: "pulled", history: ["3-cc", "2-bb", "1-aa"], body: ["side": "a"]))
  try database.apply(PulledRevision(id: "pulled", history: ["3-dd", "2-bb", "1-aa"], body: ["side": "b"]))
  try database.setExpiration(of: "doc1", after: 1e7)
  try database.createIndex("byN", on: ["n"])
  try database.save("small", ["file": database.makeBlob(Array("a small blob".utf8)).jsonValue])
  try database.save("large", ["file": database.makeBlob(randomBytes(1_000_000)).jsonValue])
  try database.save("empty", ["file": database.makeBlob([UInt8]()).jsonValue])
}
