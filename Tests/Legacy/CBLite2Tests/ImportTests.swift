import TestSupport

/// Databases made with plain SQL, of bytes that the format's description gives.
@Suite("Imports of made .cblite2 databases") struct ImportTests {
  private let directory = TemporaryDirectory()

  /// Imports a database of `version` that `make` has filled into a new one.
  private func imported(
    _ engine: EngineName = .lmdb, version: Int = 201, _ make: (MadeDatabase) throws -> Void
  ) throws -> (Database, CBLite2ImportReport) {
    let made = try MadeDatabase(directory.file("a.cblite2"), version: version)
    try make(made)
    let database = try newDatabase(directory.file("db"), engine)
    return (database, try database.importCBLite2(made.close()))
  }

  /// No fault in a database, which is closed then.
  private func closeSound(_ database: Database) throws {
    try expectSound(database)
    try database.close()
  }

  @Test(
    "A schema that would run what somebody wrote into it is refused",
    arguments: [
      "ALTER TABLE kvmeta RENAME TO kept; CREATE VIEW kvmeta AS SELECT * FROM kept",
      "CREATE VIEW kv__local AS SELECT 'a' AS key, x'00' AS version, randomblob(1000000000) AS body",
      "ALTER TABLE kv_default ADD COLUMN expiration INTEGER AS (length(hex(zeroblob(100000000))))",
    ])
  func schemaWithCode(_ schema: String) throws {
    let made = try MadeDatabase(directory.file("a.cblite2"))
    try made.connection.execute(schema)
    let database = try newDatabase(directory.file("db"))
    let error = try #require(throws: CBLite2Error.self) { try database.importCBLite2(made.close()) }
    expect(error.code == .notADatabase && error.message.contains("schema"), "\(error)")
    try expect(database.documentCount, equals: 0)
    try closeSound(database)
  }

  @Test("A 2.x row: the tree with the body in it", arguments: someEngines)
  func row2x(_ engine: EngineName) throws {
    let made = try MadeDatabase(directory.file("a.cblite2"), version: 302)
    try made.setSharedKeys(["n", "even"])
    try made.insert(
      "doc-001", sequence: 1, version: hex("01ABCD"),
      body: hex(
        "00000018 FFFF 82 03 01ABCD 00 7002 0000 0001 0001 3400 8005 00000000"))
    let before = try files(below: made.close())
    let database = try newDatabase(directory.file("db"), engine)
    let report = try database.importCBLite2(made.path)
    expect(report.documents == 1 && report.revisions == 1 && report.skipped == 0)
    let document = try #require(try database.document("doc-001"))
    expect(document.revisionID.description, equals: "1-abcd")
    try expect(document.value(), equals: ["n": 1, "even": false])
    expect(document.sequence, equals: 1)
    try expectSound(database)
    try expect(files(below: made.path), equals: before)
    try database.close()
  }

  @Test(
    "3.x rows: the tree beside the body, a tombstone without one, and rows that 2.x wrote",
    arguments: someEngines)
  func rows3x(_ engine: EngineName) throws {
    let (database, report) = try imported(engine, version: 400) { made in
      try made.setSharedKeys(["n"])
      try made.insert(
        "live", sequence: 1, version: hex("014CBE54D79C405E368613186B0BC7AC9EE4A50FBB"),
        body: hex("7001 0000 0007 8003"),
        extra: hex("0000001E FFFF 02 15 014CBE54D79C405E368613186B0BC7AC9EE4A50FBB 00 00000000"))
      try made.insert(
        "dead", sequence: 3, flags: 1, version: hex("02448BEBAEAE6F31E130BFC0477A807910781A688C"),
        body: hex("7000"),
        extra: hex(
          """
          0000001E 0001 03 15 02448BEBAEAE6F31E130BFC0477A807910781A688C 00
          0000001E FFFF 00 15 011FDF9D4BDAE09F6651938D9EC1D47177280F5A77 02 00000000
          """))
      try made.insert(
        "old", sequence: 4, version: hex("01AA"),
        body: hex("00000013 FFFF 82 02 01AA 00 7001 0000 0009 8003 00000000"))
      try made.insert("bare", sequence: 5, version: hex("01BB"), body: hex("7001 0000 000A 8003"))
    }
    expect(report.documents == 3 && report.tombstones == 1 && report.revisions == 5 && report.skipped == 0)
    try expect(database.document("live")?.value(), equals: ["n": 7])
    try expect(database.document("old")?.value(), equals: ["n": 9])
    try expect(database.document("bare")?.value(), equals: ["n": 10])
    let dead = try #require(try database.revisions(of: "dead"))
    expect(
      dead.map(\.id.description),
      equals: [
        "2-448bebaeae6f31e130bfc0477a807910781a688c", "1-1fdf9d4bdae09f6651938d9ec1d47177280f5a77",
      ])
    expect(dead.map(\.isDeleted) == [true, false] && dead.map(\.sequence) == [3, 2])
    try expect(database.lastSequence, equals: 5)
    try closeSound(database)
  }

  @Test("Conflicts come with both bodies, and notes about remotes are counted", arguments: someEngines)
  func conflict(_ engine: EngineName) throws {
    let (database, report) = try imported(engine) { made in
      try made.setSharedKeys(["side"])
      try made.insert(
        "doc", sequence: 7, flags: 2, version: hex("02BB"),
        body: hex(
          """
          00000013 0002 82 02 02BB 00 7001 0000 4162 8003
          00000013 0002 A2 02 02AA 06 7001 0000 4161 8003
          0000000B FFFF 00 02 0111 05 00000000 0001 0001
          """))
    }
    expect(report.conflicts == 1 && report.otherWinners == 0 && report.remoteNotes == 1, "\(report)")
    let leaves = try database.leaves(of: "doc")
    expect(leaves.map(\.id.description), equals: ["2-bb", "2-aa"])
    expect(leaves.map(\.body), equals: [["side": "b"], ["side": "a"]])
    let sequences = try #require(try database.revisions(of: "doc")).map(\.sequence)
    expect(sequences, equals: [7, 6, 5])
    try expectSound(database)
    // It goes on: the loser is resolved, and its body was where those of losers are.
    try database.save("doc", ["side": "c"])
    try database.purge("doc", branch: try #require(RevisionID("2-aa")))
    try closeSound(database)
  }

  @Test("A pulled conflict that 2.x keeps from winning is reported when it wins here")
  func otherWinner() throws {
    let (database, report) = try imported { made in
      try made.insert(
        "doc", sequence: 7, flags: 2, version: hex("02BB"),
        body: hex(
          """
          0000000D 0002 82 02 02BB 00 7000 0000000D 0002 A2 02 02CC 06 7000
          0000000B FFFF 00 02 0111 05 00000000
          """))
    }
    expect(report.conflicts == 1 && report.otherWinners == 1)
    try expect(database.document("doc")?.revisionID.description, equals: "2-cc")
    try closeSound(database)
  }

  @Test("Into a database with other property names and documents", arguments: someEngines)
  func merging(_ engine: EngineName) throws {
    let made = try MadeDatabase(directory.file("a.cblite2"))
    try made.setSharedKeys(["n", "even"])
    for n in 1...3 {
      try made.insert(
        "doc-\(n)", sequence: n, version: hex("01AB"),
        body: hex("00000017 FFFF 82 02 01AB 00 7002 0000 000\(n) 0001 3400 8005 00000000")
      )
    }
    made.close()
    let database = try newDatabase(directory.file("db"), engine)
    try database.save("mine", ["even": "x", "other": 1, "n": 2.5])
    try database.apply(PulledRevision(id: "doc-2", history: ["2-cc", "1-ab"], body: ["n": 2, "even": true]))
    try database.apply(PulledRevision(id: "doc-3", history: ["1-cc"], body: ["n": -3]))
    let report = try database.importCBLite2(made.path)
    expect(report.documents == 1 && report.unchanged == 1 && report.merged == 1, "\(report)")
    try expect(database.document("doc-1")?.value(), equals: ["n": 1, "even": false])
    try expect(database.document("doc-2")?.value(), equals: ["n": 2, "even": true])
    try expect(database.leaves(of: "doc-3").map(\.id.description), equals: ["1-cc", "1-ab"])
    try expect(database.leaves(of: "doc-3")[1].body, equals: ["n": 3, "even": false])
    try expect(database.document("mine")?.value(), equals: ["even": "x", "other": 1, "n": 2.5])
    let again = try database.importCBLite2(made.path)
    expect(again.documents == 0 && again.merged == 0 && again.unchanged == 3)
    try closeSound(database)
  }

  @Test("Indexes are kept while documents come in", arguments: someEngines)
  func indexes(_ engine: EngineName) throws {
    let made = try MadeDatabase(directory.file("a.cblite2"))
    try made.setSharedKeys(["n"])
    for n in 1...9 {
      try made.insert(
        "doc-\(n)", sequence: n, version: hex("01AB"),
        body: hex("00000011 FFFF 82 02 01AB 00 7001 0000 000\(n) 8003 00000000")
          .replacingSize())
    }
    made.close()
    let database = try newDatabase(directory.file("db"), engine)
    try database.createIndex("byN", on: ["n"])
    try database.importCBLite2(made.path, batchCount: 4)
    var found = 0
    for _ in try database.query("SELECT n FROM _ WHERE n > 4").run() { found += 1 }
    expect(found, equals: 5)
    try closeSound(database)
  }

  @Test("Expirations of every release; what has expired stays behind")
  func expirations() throws {
    let future = 4_000_000_000_000
    let (database, report) = try imported(version: 500) { made in
      let extra = hex("0000000B FFFF 02 02 01AA 00 00000000")
      try made.insert(
        "later", sequence: 1, version: hex("01AA"), body: hex("7000"), extra: extra, expiration: future)
      try made.insert(
        "past", sequence: 2, version: hex("01AA"), body: hex("7000"), extra: extra, expiration: 1_000)
      try made.insert("never", sequence: 3, version: hex("01AA"), body: hex("7000"), extra: extra)
      try made.makeStore("kv_expiry")
      // 4,000,000,000 seconds as a varint.
      try made.insert("never", into: "kv_expiry", sequence: nil, version: nil, body: hex("80D0ACF30E"))
    }
    expect(report.documents == 2 && report.expired == 1 && report.expirations == 2)
    try expect(database.expirations().map(\.documentID).sorted(), equals: ["later", "never"])
    try expect(
      Set(try database.expirations().map { $0.date.timeIntervalSince1970 }), equals: [Double(future) / 1_000])
    try expect(database.document("past") == nil)
    try closeSound(database)
  }

  @Test("Collections: the default one, or the one that is asked for; tombstones from the tables of their own")
  func collections() throws {
    let made = try MadeDatabase(directory.file("a.cblite2"), version: 500)
    let extra = hex("0000000B FFFF 02 02 01AA 00 00000000")
    let dead = hex("0000000B FFFF 03 02 01AA 00 00000000")
    for store in ["del_default", ".travel.\\Air\\Lines", "del_.travel.\\Air\\Lines", ".empty"] {
      try made.makeStore("kv_" + store)
    }
    try made.insert("live", sequence: 2, version: hex("01AA"), body: hex("7000"), extra: extra)
    try made.insert(
      "dead", into: "kv_del_default", sequence: 1, flags: 1, version: hex("01AA"), body: hex("7000"),
      extra: dead)
    try made.insert(
      "airline", into: "kv_.travel.\\Air\\Lines", sequence: 1, version: hex("01AA"), body: hex("7000"),
      extra: extra
    )
    made.close()
    let database = try newDatabase(directory.file("db"))
    let report = try database.importCBLite2(made.path)
    expect(report.documents == 1 && report.tombstones == 1)
    expect(report.otherCollections.map(\.name), equals: ["empty", "travel.AirLines"])
    expect(report.otherCollections.map(\.documents), equals: [0, 1])
    try expect(database.changes().map(\.documentID), equals: ["dead", "live"])
    let other = try newDatabase(directory.file("other"))
    try expect(other.importCBLite2(made.path, collection: "travel.AirLines").documents, equals: 1)
    try expect(other.document("airline") != nil)
    try expect(
      cblite2Code { try other.importCBLite2(made.path, collection: "travel.nowhere") },
      equals: .noSuchCollection)
    try database.close()
    try other.close()
  }

  @Test("Local documents come along, checkpoints stay")
  func local() throws {
    let (database, report) = try imported { made in
      try made.makeStore("kv__local")
      try made.makeStore("kv_checkpoints")
      try made.insert(
        "settings", into: "kv__local", sequence: nil, version: Array("4-local".utf8),
        body: Array(#"{"a":1}"#.utf8))
      try made.insert(
        "_abc==", into: "kv__local", sequence: nil, version: Array("1-local".utf8), body: Array("{}".utf8))
      try made.insert("bad", into: "kv__local", sequence: nil, version: nil, body: Array("[1]".utf8))
      try made.insert(
        "cp", into: "kv_checkpoints", sequence: nil, version: nil, body: Array(#"{"local":10}"#.utf8))
    }
    expect(
      report.localDocuments == 2 && report.checkpoints == 1 && report.details.map(\.id) == ["_local/bad"])
    try expect(database.localDocument("_abc==")?.generation, equals: 1)
    try expect(database.localDocument("settings")?.revisionID, equals: "4-local")
    try expect(database.localDocument("settings")?.body, equals: ["a": 1])
    try database.close()
  }

  @Test("What a write-ahead log holds comes along, and neither file changes", arguments: someEngines)
  func writeAheadLog(_ engine: EngineName) throws {
    let made = try MadeDatabase(directory.file("a.cblite2"), wal: true)
    try made.connection.execute("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA wal_autocheckpoint = 0")
    try made.insert(
      "doc", sequence: 1, version: hex("01AA"), body: hex("0000000D FFFF 82 02 01AA 00 7000 00000000"))
    // As a crash leaves it.
    let copy = directory.file("copy.cblite2")
    try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
    for name in ["db.sqlite3", "db.sqlite3-wal"] {
      try FileManager.default.copyItem(atPath: made.path + "/" + name, toPath: copy + "/" + name)
    }
    made.close()
    let before = try files(below: copy)
    expect(before["db.sqlite3-wal"]?.isEmpty, equals: false)
    let database = try newDatabase(directory.file("db"), engine)
    try expect(database.importCBLite2(copy).documents, equals: 1)
    try expect(files(below: copy), equals: before)
    let leftovers = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter {
      $0.hasPrefix(".")
    }
    expect(leftovers.isEmpty)
    try database.close()
  }

  @Test("Commits that a damaged write-ahead log has lost are reported", arguments: someEngines)
  func damagedLog(_ engine: EngineName) throws {
    let made = try MadeDatabase(directory.file("a.cblite2"), wal: true)
    try made.connection.execute("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA wal_autocheckpoint = 0")
    for number in 1...3 {
      try made.insert(
        "doc\(number)", sequence: number, version: hex("01AA"),
        body: hex("0000000D FFFF 82 02 01AA 00 7000 00000000"))
    }
    let copy = directory.file("copy.cblite2")
    try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: true)
    for name in ["db.sqlite3", "db.sqlite3-wal"] {
      try FileManager.default.copyItem(atPath: made.path + "/" + name, toPath: copy + "/" + name)
    }
    made.close()
    var log = try [UInt8](Data(contentsOf: URL(filePath: copy + "/db.sqlite3-wal")))
    log[100] ^= 1
    try Data(log).write(to: URL(filePath: copy + "/db.sqlite3-wal"))
    let database = try newDatabase(directory.file("db"), engine)
    let report = try database.importCBLite2(copy)
    expect(report.documents, equals: 0)
    expect(
      report.details.map(\.reason),
      equals: ["the write-ahead log: commits are behind a frame that is damaged, at byte 32"])
    try database.close()
  }

  @Test("Blobs are copied when they are what their digests say; others are reported", arguments: someEngines)
  func blobs(_ engine: EngineName) throws {
    let made = try MadeDatabase(directory.file("a.cblite2"))
    try made.setSharedKeys(["a", "b", "c", "digest"])
    func blob(_ digest: String) -> JSONValue { ["@type": "blob", "digest": .string(digest)] }
    // "abc", another, one that isn't there.
    let good = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="
    let bad = "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="
    let missing = "sha1-jpXeN4M1G+JCS9TawHy/9McLC9I="
    let body: JSONValue = ["a": blob(good), "b": blob(bad), "c": blob(missing)]
    let keys = SharedKeysBuilder(try SharedKeys(keys: ["a", "b", "c", "digest"]))
    let encoder = BodyEncoder()
    try encoder.encode(body, keys: keys)
    try made.insert(
      "doc", sequence: 1, flags: 4, version: hex("01AA"),
      body: (hex("00000000 FFFF 8A 02 01AA 00") + Array(encoder.fleece) + [0, 0, 0, 0]).replacingSize())
    made.close()
    let attachments = made.path + "/Attachments"
    try FileManager.default.createDirectory(atPath: attachments, withIntermediateDirectories: true)
    try Data("abc".utf8).write(to: URL(filePath: attachments + "/qZk+NkcGgWq6PiVxeFDCbJzQ2J0=.blob"))
    try Data("changed".utf8).write(to: URL(filePath: attachments + "/2jmj7l5rSw0yVb_vlWAYkK_YBwk=.blob"))
    let database = try newDatabase(directory.file("db"), engine)
    let report = try database.importCBLite2(made.path)
    expect(report.documents == 1 && report.blobs == 1 && report.missingBlobs == 2, "\(report)")
    let document = try #require(try database.document("doc"))
    try expect(document.value(), equals: body)
    let stored = try #require(document["a"].blob)
    try expect(database.contents(of: stored), equals: Array("abc".utf8))
    try database.close()
  }

  @Test("What is no such database is told what it is")
  func refusals() throws {
    let database = try newDatabase(directory.file("db"))
    func attempt(_ path: String) throws -> CBLite2Error.Code? {
      try cblite2Code { try database.importCBLite2(path) }
    }
    func make(_ name: String, version: Int = 201, _ change: (MadeDatabase) throws -> Void) throws -> String {
      let made = try MadeDatabase(directory.file(name + ".cblite2"), version: version)
      try change(made)
      return made.close()
    }
    try expect(attempt(directory.file("nothing.cblite2")), equals: .notFound)
    try FileManager.default.createDirectory(
      atPath: directory.file("empty.cblite2"), withIntermediateDirectories: true)
    try expect(attempt(directory.file("empty.cblite2")), equals: .notADatabase)
    try Data("{}".utf8).write(to: URL(filePath: directory.file("empty.cblite2") + "/db.forest.0"))
    try expect(attempt(directory.file("empty.cblite2")), equals: .olderVersion)
    let foreign = try make("foreign") {
      try $0.connection.execute("DROP TABLE kv_default; DROP TABLE kv_info; CREATE TABLE a(b)")
    }
    try expect(attempt(foreign), equals: .notADatabase)
    let old = try make("old", version: 101) {
      try $0.connection.execute(
        "DROP TABLE kv_default; DROP TABLE kv_info; CREATE TABLE docs(a); CREATE TABLE revs(b)")
    }
    try expect(attempt(old), equals: .olderVersion)
    try expect(attempt(try make("new", version: 700) { _ in }), equals: .newerVersion)
    try expect(
      attempt(try make("lacking") { try $0.connection.execute("DROP TABLE kv_default") }), equals: .damaged)
    let vectors = try make("vectors", version: 500) {
      try $0.connection.execute("UPDATE kv_info SET body = x'0000000000000002' WHERE key = 'versioning'")
    }
    try expect(attempt(vectors), equals: .newerVersion)
    try expect(attempt(make("keys") { try $0.setInfo("SharedKeys", [1, 2, 3]) }), equals: .damaged)
    // As SQLite's encryption extension leaves the header.
    var header = [UInt8](repeating: 0xA5, count: 4_096)
    header.replaceSubrange(16..<24, with: [0x10, 0, 2, 2, 32, 64, 32, 32])
    let encrypted = try make("encrypted") { _ in }
    try Data(header).write(to: URL(filePath: encrypted + "/db.sqlite3"))
    try expect(attempt(encrypted), equals: .encrypted)
    try Data([UInt8](repeating: 0xFF, count: 4_096)).write(to: URL(filePath: encrypted + "/db.sqlite3"))
    try expect(attempt(encrypted), equals: .damaged)
    try Data([1, 2, 3]).write(to: URL(filePath: encrypted + "/db.sqlite3"))
    try expect(attempt(encrypted), equals: .damaged)
    try expect(database.lastSequence, equals: 0)
    try database.close()
  }

  @Test("A document that can't be is skipped, and the rest comes")
  func skips() throws {
    let made = try MadeDatabase(directory.file("a.cblite2"))
    let good = hex("0000000D FFFF 82 02 01AA 00 7000 00000000")
    let bad: [(String, [UInt8]?, [UInt8])] = [
      ("no version", nil, good), ("other version", hex("01AB"), good),
      ("cut", hex("01AA"), Array(good.dropLast(6))), ("empty", hex("01AA"), []),
      ("vector", hex("00AA"), hex("0000000D FFFF 82 02 00AA 00 7000 00000000")),
      ("loop", hex("01AA"), hex("0000000D 0000 82 02 01AA 00 7000 00000000")),
      ("parent", hex("01AA"), hex("0000000D 0007 82 02 01AA 00 7000 00000000")),
      (
        "same parent", hex("01AA"),
        hex("0000000D 0001 82 02 01AA 00 7000 0000000B FFFF 00 02 01BB 00 00000000")
      ),
      (
        "twice", hex("01AA"),
        hex("0000000D FFFF 82 02 01AA 00 7000 0000000D FFFF 82 02 01AA 00 7000 00000000")
      ),
      ("no body", hex("01AA"), hex("0000000B FFFF 02 02 01AA 00 00000000")),
      ("array", hex("01AA"), hex("0000000D FFFF 82 02 01AA 00 6000 00000000")),
      ("fleece", hex("01AA"), hex("0000000D FFFF 82 02 01AA 00 8001 00000000")),
      ("key", hex("01AA"), hex("00000013 FFFF 82 02 01AA 00 7001 0005 0001 8003 00000000")),
      ("remote", hex("01AA"), good + hex("0001 0005")), ("rest", hex("01AA"), good + hex("0001")),
      ("no digest", hex("01"), hex("0000000C FFFF 82 01 01 00 7000 00000000")),
      ("_underscore", hex("01AA"), good), (String(repeating: "x", count: 481), hex("01AA"), good),
      ("control\u{1}", hex("01AA"), good), ("", hex("01AA"), good),
    ]
    for (index, (id, version, body)) in bad.enumerated() {
      try made.insert(id, sequence: index + 1, version: version, body: body)
    }
    try made.insert("good", sequence: 100, version: hex("01AA"), body: good)
    try made.connection.execute(
      """
      INSERT INTO kv_default VALUES (x'FF', 101, 0, x'01AA', x'\(good.map { String(format: "%02x", $0) }.joined())');
      INSERT INTO kv_default VALUES ('text body', 102, 0, x'01AA', 'text');
      INSERT INTO kv_default VALUES (NULL, 'x', 'y', 3, 4.5);
      """)
    made.close()
    for engine in someEngines {
      let database = try newDatabase(directory.file("db-\(engine)"), engine)
      let report = try database.importCBLite2(made.path)
      try expect(database.changes().map(\.documentID), equals: ["good"], "\(report)")
      expect(report.skipped == bad.count + 3 && report.read == bad.count + 4)
      expect(report.details.count, equals: report.skipped)
      try expectSound(database)
      try database.close()
    }
  }
}

extension [UInt8] {
  /// A tree of one revision whose size is put right: up to the terminator.
  func replacingSize() -> [UInt8] {
    var bytes = self
    let size = count - 4
    for byte in 0..<4 { bytes[byte] = UInt8(truncatingIfNeeded: size >> (24 - 8 * byte)) }
    return bytes
  }
}
