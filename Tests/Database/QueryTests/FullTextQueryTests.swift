import Datasets
import FullText
import TestSupport

@testable import Documents
@testable import Query
@testable import Storage
@testable import Touchstone

/// MATCH, RANK, SNIPPET and OFFSETS in queries.
@Suite struct FullTextQueryTests {
  private let databases = TestDatabases()

  /// A database with the rows of spec 3's examples, and some more.
  private func withSearch(
    _ engine: EngineName, options: TextAnalysisOptions = .init(), _ body: (Database) throws -> Void
  ) throws {
    let database = try databases.open(engine)
    try database.inBatch {
      try database.save(
        "1", ["title": "linux kernel", "body": "the quick database engine", "kind": "a", "ref": "2"])
      try database.save(
        "2",
        [
          "title": "databases", "body": "linux applications and replication of a database", "kind": "b",
          "ref": "3",
        ])
      try database.save(
        "3", ["title": "couchbase", "body": "couchbase database sqlite library", "kind": "a", "ref": "1"])
      try database.save("4", ["kind": "c"])
    }
    try database.createFullTextIndex("fts", on: ["title", "body"], options: options)
    try body(database)
  }

  private func ids(_ database: Database, _ query: String, _ parameters: [String: JSONValue] = [:]) throws
    -> [String]
  {
    try database.query(query).run(parameters).map { $0[0].string ?? "-" }
  }

  private func failure(_ database: Database, _ query: String) throws -> QueryError? {
    try thrown(QueryError.self) { _ = try database.query(query).run() }
  }

  @Test(
    "the worked examples",
    arguments: [
      ("lin*", "1 2"), ("'lin*'", "1 2"), ("title:linux database", "1"), ("title: linux", "1"),
      ("\"linux applications\"", "2"), ("linux OR couchbase library", "1 2 3"), ("database NOT linux", "3"),
      ("(couchbase OR quick) AND database", "1 3"), ("couchbase and database", ""),
      ("database NEAR/2 replication", "2"), ("^linux", "1 2"), ("", ""), ("foo:linux", ""),
    ]) func examples(_ text: String, _ wanted: String) throws
  {
    try withSearch(.lmdb) { database in
      let found = try ids(
        database, "SELECT META().id FROM _ WHERE MATCH(fts, $text) ORDER BY META().id",
        ["text": .string(text)])
      expect(found.joined(separator: " "), equals: wanted)
    }
  }

  @Test("MATCH stands under AND, OR and NOT, and in results", arguments: someEngines)
  func anywhere(_ engine: EngineName) throws {
    try withSearch(engine) { database in
      func found(_ condition: String) throws -> String {
        try ids(database, "SELECT META().id FROM _ WHERE \(condition) ORDER BY META().id").joined()
      }
      try expect(found("MATCH(fts, 'linux') AND kind = 'b'"), equals: "2")
      try expect(found("kind = 'b' AND MATCH(fts, 'linux')"), equals: "2")
      try expect(found("MATCH(fts, 'linux') OR kind = 'c'"), equals: "124")
      try expect(found("NOT MATCH(fts, 'linux')"), equals: "34")
      try expect(found("kind = 'a' AND NOT (MATCH(fts, 'linux') OR MATCH(fts, 'zzz'))"), equals: "3")
      try expect(found("MATCH(fts, 'linux') AND MATCH(fts, 'kernel')"), equals: "1")
      try expect(found("MATCH(fts, 'couchbase') OR MATCH(fts, 'kernel')"), equals: "13")
      try expect(found("MATCH(fts, NULL)"), equals: "")
      let values = try database.query("SELECT MATCH(fts, 'linux') FROM _ ORDER BY META().id").run()
      expect(values.map { $0[0].bool }, equals: [true, true, false, false])
      try database.createIndex("byKind", on: ["kind"])
      try expect(found("MATCH(fts, 'linux') AND kind = 'b'"), equals: "2")
      try expect(found("MATCH(fts, 'linux') OR kind = 'c'"), equals: "124")
      let groups = try database.query(
        "SELECT kind, COUNT(*) FROM _ WHERE MATCH(fts, 'database') GROUP BY kind ORDER BY kind"
      ).run()
      expect(groups.map { "\($0[0].string ?? "-")\($0[1].int ?? 0)" }, equals: ["a2", "b1"])
      let exists = try database.query(
        "SELECT META().id FROM _ WHERE EXISTS (SELECT 1 FROM _ WHERE MATCH(fts, 'kernel')) ORDER BY META().id"
      )
      try expect(exists.run().count, equals: 4)
    }
  }

  @Test("joins name the source", arguments: [EngineName.lmdb, .sqlite])
  func joins(_ engine: EngineName) throws {
    try withSearch(engine) { database in
      let rows = try database.query(
        """
        SELECT META(a).id AS one, META(b).id AS two, RANK(b.fts) AS r FROM _ AS a JOIN _ AS b ON META(b).id = a.ref
        WHERE MATCH(b.fts, 'linux') AND MATCH(a.fts, 'database') ORDER BY one
        """
      ).run()
      let pairs = rows.map { "\($0[0].string ?? "-")\($0[1].string ?? "-")" }
      expect(pairs, equals: ["12", "31"])
      expect(rows.allSatisfy { ($0[2].double ?? 0) > 0 })
      let outer = try database.query(
        """
        SELECT META(a).id AS one, META(b).id AS two FROM _ AS a LEFT JOIN _ AS b
        ON META(b).id = a.ref AND MATCH(b.fts, 'linux') ORDER BY one
        """
      ).run()
      let outerPairs = outer.map { "\($0[0].string ?? "-")\($0[1].string ?? "-")" }
      expect(outerPairs, equals: ["12", "2-", "31", "4-"])
      // A MATCH that each outer row meets anew, with ranks and without.
      let inner = """
        FROM _ AS a LEFT JOIN _ AS b ON MATCH(b.fts, 'database OR linux') AND META(b).id != META(a).id
        ORDER BY one, two
        """
      let crossing = try database.query("SELECT META(a).id AS one, META(b).id AS two " + inner)
      let plan = try crossing.explain().description
      expect(plan.contains("Full-text index fts as b"), "\(plan)")
      let hits = try ids(
        database, "SELECT META().id FROM _ WHERE MATCH(fts, 'database OR linux') ORDER BY META().id")
      let expected = ["1", "2", "3", "4"].flatMap { one -> [String] in
        let others = hits.filter { $0 != one }
        return others.isEmpty ? [one + "-"] : others.map { one + $0 }
      }
      for _ in 0..<2 {
        let found = try crossing.run().map { "\($0[0].string ?? "-")\($0[1].string ?? "-")" }
        expect(found, equals: expected)
      }
      let alone = try database.query(
        "SELECT META().id, RANK(fts) FROM _ WHERE MATCH(fts, 'database OR linux')"
      ).run()
      let ranks = Dictionary(uniqueKeysWithValues: alone.map { ($0[0].string ?? "-", $0[1].double ?? -1) })
      let ranked = try database.query(
        "SELECT META(a).id AS one, META(b).id AS two, RANK(b.fts) AS r " + inner
      ).run()
      let areRight = ranked.allSatisfy { row in
        row[1].string.map { ranks[$0] == row[2].double } ?? true
      }
      expect(areRight && ranked.count == expected.count)
      let unnamed = try failure(
        database, "SELECT 1 FROM _ AS a JOIN _ AS b ON META(b).id = a.ref WHERE MATCH(fts, 'x')")
      expect(unnamed?.code, equals: .invalidUse)
    }
  }

  @Test("RANK orders, the best come first, and EXPLAIN shows how")
  func ranks() throws {
    try withSearch(.lmdb) { database in
      let query =
        "SELECT META().id, RANK(fts) FROM _ WHERE MATCH(fts, 'linux OR kernel') ORDER BY RANK(fts) DESC"
      try expect(ids(database, query), equals: ["1", "2"])
      try expect(ids(database, query + " LIMIT 1"), equals: ["1"])
      try expect(ids(database, query + " LIMIT 1 OFFSET 1"), equals: ["2"])
      let plan = try database.query("EXPLAIN " + query + " LIMIT 1").run().map { $0[0].string ?? "" }
        .joined(separator: "\n")
      expect(plan.contains("Full-text index fts as _: "))
      expect(plan.contains("the best by rank"))
      expect(plan.contains("IDs only"))
      expect(!plan.contains("Top by"))
      let filtered = try ids(
        database,
        "SELECT META().id FROM _ WHERE MATCH(fts, 'database') AND kind = 'a' ORDER BY RANK(fts) DESC LIMIT 5")
      expect(Set(filtered), equals: ["1", "3"])
      let least = try ids(
        database, "SELECT META().id FROM _ WHERE MATCH(fts, 'linux OR kernel') ORDER BY RANK(fts) LIMIT 1")
      expect(least, equals: ["2"])
      let unmatched = try database.query(
        "SELECT RANK(fts) FROM _ WHERE MATCH(fts, 'kernel') OR kind = 'c' ORDER BY META().id"
      ).run()
      expect(unmatched.last?[0].double, equals: 0)
    }
  }

  @Test("snippets and offsets")
  func highlights() throws {
    try withSearch(.lmdb) { database in
      let rows = try database.query(
        "SELECT SNIPPET(fts), SNIPPET(fts, '[', ']', '..', 3), OFFSETS(fts) FROM _ WHERE MATCH(fts, 'replication') ORDER BY RANK(fts) DESC LIMIT 3"
      ).run()
      expect(rows.count, equals: 1)
      let row = try #require(rows.first)
      expect(row[0].string?.contains("<b>replication</b>"), equals: true)
      expect(row[1].string?.contains("[replication]"), equals: true)
      expect(row[2].count, equals: 1)
      let hit = row[2][0]
      expect(hit["column"].string, equals: "body")
      expect(hit["start"].int, equals: 23)
      expect(hit["length"].int, equals: 11)
      expect(hit["term"].int, equals: 0)
    }
  }

  @Test("what is wrong is said, with its place")
  func mistakes() throws {
    try withSearch(.lmdb) { database in
      try database.createIndex("byKind", on: ["kind"])
      let missing = try failure(database, "SELECT 1 FROM _ WHERE MATCH(ftx, 'a')")
      expect(missing?.code, equals: .index)
      expect(missing?.message.contains("\"ftx\""), equals: true)
      expect(missing?.column, equals: 29)
      try expect(failure(database, "SELECT 1 FROM _ WHERE MATCH(byKind, 'a')")?.code, equals: .index)
      let malformed = try failure(database, "SELECT 1 FROM _ WHERE MATCH(fts, 'a OR ')")
      expect(malformed?.code, equals: .syntax)
      expect(malformed?.message.contains("column"), equals: true)
      try expect(failure(database, "SELECT RANK(fts) FROM _ WHERE kind = 'a'")?.code, equals: .invalidUse)
      try expect(failure(database, "SELECT SNIPPET(fts) FROM _")?.code, equals: .invalidUse)
      try expect(failure(database, "SELECT 1 FROM _ WHERE MATCH(fts, 7)")?.code, equals: .evaluation)
      try expect(failure(database, "SELECT 1 FROM _ WHERE MATCH(fts, kind)")?.code, equals: .unsupported)
      let query = try database.query("SELECT 1 FROM _ WHERE MATCH(fts, $t)")
      #expect(throws: QueryError.self) { _ = try query.run(["t": "\"a"]) }
      try database.deleteIndex("fts")
      #expect(throws: QueryError.self) { _ = try query.run(["t": "a"]) }
    }
  }

  @Test("definitions: the same is no work, another replaces, names are shared", arguments: someEngines)
  func definitions(_ engine: EngineName) throws {
    try withSearch(engine, options: .init(language: .english)) { database in
      try expect(
        !database.createFullTextIndex("fts", on: ["title", "body"], options: .init(language: .english)))
      try expect(database.createFullTextIndex("fts", on: ["title"], options: .init(language: .english)))
      try expect(ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, 'library')"), equals: [])
      let listed = try #require(try database.indexes.first)
      expect(listed.kind, equals: "fulltext")
      expect(listed.text, equals: "title (english)")
      try expect(database.createIndex("fts", on: ["title"]))
      try expect(database.createFullTextIndex("fts", on: ["body"], where: "kind = 'a'", weights: [2]))
      try expect(
        ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, 'database') ORDER BY META().id"),
        equals: [
          "1", "3",
        ])
      try expect(database.check(), equals: [])
      for wrong in [["title", "title"], ["NOW_MILLIS()"], []] {
        #expect(throws: QueryError.self) { _ = try database.createFullTextIndex("x", on: wrong) }
      }
    }
  }

  @Test("what values give words, and how they follow a batch", arguments: [EngineName.lmdb, .sqlite])
  func values(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.createFullTextIndex("fts", on: ["v"])
    try database.inBatch {
      try database.save("array", ["v": ["one", ["two", 3], ["k": "four"]]])
      try database.save("number", ["v": 42])
      try database.save("double", ["v": 1.5])
      try database.save("bool", ["v": true])
      try database.save("null", ["v": .null])
      // The batch sees what it has written.
      try expect(ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, '\"two 3\"')"), equals: ["array"])
      try database.save("array", ["v": ["one", "five"]])
      try expect(ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, 'two')"), equals: [])
      try expect(ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, '\"one five\"')"), equals: ["array"])
    }
    try expect(ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, '42')"), equals: ["number"])
    try expect(ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, '\"1 5\"')"), equals: ["double"])
    try expect(ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, 't')"), equals: ["bool"])
    try expect(ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, 'k OR null')"), equals: [])
    try database.inUndoneBatch {
      try database.save("number", ["v": 43])
    }
    try expect(ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, '42')"), equals: ["number"])
    try expect(database.check(), equals: [])
  }

  @Test("a document of 10 MB", arguments: [EngineName.lmdb, .sqlite])
  func large(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.createFullTextIndex("fts", on: ["v"])
    var text = String(repeating: "many words that come again ", count: 380_000)
    text += "needle at the end " + String(repeating: "z", count: 100_000)
    try database.save("large", ["v": .string(text)])
    try database.save("small", ["v": "a needle"])
    try expect(
      ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, '\"needle at the\"')"), equals: ["large"])
    try expect(
      ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, '\"again needle\" again')"), equals: ["large"])
    try expect(
      ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, 'needle') ORDER BY RANK(fts) DESC"),
      equals: [
        "small", "large",
      ])
    try expect(
      ids(
        database, "SELECT META().id FROM _ WHERE MATCH(fts, '\(String(repeating: "z", count: 700))*')"),
      equals: [
        "large"
      ])
    try database.save("large", ["v": "gone"])
    try expect(ids(database, "SELECT META().id FROM _ WHERE MATCH(fts, 'many OR z*')"), equals: [])
    try expect(database.check(), equals: [])
  }

  @Test("flipped bytes are errors or other results, never a crash", arguments: [EngineName.lmdb, .sqlite])
  func damage(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    try withDatabase(engine) { database in
      try database.saveBatch(0..<300) { number in
        let words = (0..<40).map { _ in "w\(Int.random(in: 0..<60, using: &random))" }
        return ("d\(number)", ["v": .string(words.joined(separator: " ")), "t": .string(words[0])])
      }
      try database.createFullTextIndex("fts", on: ["v", "t"])
      let record = try #require(try database.read { try $0.indexes.first })
      let queries = try [
        "SELECT META().id, RANK(fts) FROM _ WHERE MATCH(fts, 'w1 OR w2 w3') ORDER BY RANK(fts) DESC LIMIT 5",
        "SELECT META().id FROM _ WHERE MATCH(fts, '\"w1 w2\" OR w3 NEAR w4 OR w5* OR t:w7')",
      ].map { try database.query($0) }
      var errors = 0
      for _ in 0..<150 {
        let suffix = Bool.random(using: &random) ? "" : ".blocks"
        let saved = try database.engine.write { transaction in
          let keyspace = try #require(try transaction.keyspace(named: record.keyspaceName + suffix))
          let saved = try #require(try transaction.entries(of: keyspace).randomElement(using: &random))
          var value = saved.value
          if value.isEmpty { return saved }
          switch Int.random(in: 0..<3, using: &random) {
          case 0: value.removeLast(Int.random(in: 1...value.count, using: &random))
          default:
            let place = Int.random(in: 0..<value.count, using: &random)
            value[place] ^= UInt8(1) << UInt8.random(in: 0..<8, using: &random)
          }
          try transaction.put(saved.key, value, in: keyspace)
          return saved
        }
        for query in queries { do { _ = try query.run() } catch { errors += 1 } }
        do { _ = try database.check() } catch { errors += 1 }
        do {
          try database.inBatch {
            try database.save("d1", ["v": "w1 w2 w3"])
            try database.delete("d2")
            throw QueryError(.cancelled, "undone")
          }
        } catch {}
        try database.engine.write { transaction in
          let keyspace = try #require(try transaction.keyspace(named: record.keyspaceName + suffix))
          try transaction.put(saved.key, saved.value, in: keyspace)
        }
      }
      expect(errors > 0, "TOUCHSTONE_SEED=\(testSeed)")
      try expect(database.check(), equals: [])
    }
  }

  @Test("an index goes along into another engine", arguments: [EngineName.lmdb, .sqlite])
  func conversion(_ engine: EngineName) throws {
    try withSearch(engine, options: .init(language: .english)) { database in
      let directory = TemporaryDirectory()
      let query =
        "SELECT META().id, RANK(fts) FROM _ WHERE MATCH(fts, 'database OR linux') ORDER BY RANK(fts) DESC"
      func rows(_ database: Database) throws -> [String] {
        try database.query(query).run().map { "\($0[0].string ?? "-") \($0[1].double ?? 0)" }
      }
      let before = try rows(database)
      expect(before.count, equals: 3)
      let other: EngineName = engine == .lmdb ? .sqlite : .lmdb
      try Database.copy(database.path, to: "copy", in: directory.path, engine: other)
      let copy = try Database.open(
        "copy", in: directory.path, options: DatabaseOptions(engine: other, durability: .none))
      try expect(rows(copy), equals: before)
      try copy.save("9", ["title": "linux"])
      try expect(rows(copy).count, equals: 4)
      try expect(copy.check(), equals: [])
      try copy.compact()
      try expect(rows(copy).count, equals: 4)
      try expect(copy.check(), equals: [])
      try copy.close()
    }
  }

  @Test("a live query tells of matches that come")
  func live() throws {
    try withSearch(.lmdb) { database in
      let rows = Lock<[Int]>([])
      let signal = CountingSemaphore()
      let query = try database.query("SELECT META().id FROM _ WHERE MATCH(fts, 'linux')")
      let live = try database.observe(query) { outcome in
        let count = (try? outcome.get().count) ?? -1
        rows.withLock { $0.append(count) }
        signal.signal()
      }
      signal.wait()
      try database.save("7", ["title": "more of linux"])
      signal.wait()
      expect(rows.withLock { $0 }, equals: [2, 3])
      live.cancel()
    }
  }
}
