import TestSupport

@testable import Query
@testable import Touchstone

/// A query keeps no more rows in memory than it may, and without temporary files says which clause would.
@Suite struct MemoryLimitTests {
  private let databases = TestDatabases()

  private func withTexts(_ engine: EngineName, _ body: (Database) throws -> Void) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<3_000) { number in
      // Each text is above those before, and has a kilobyte.
      let text = String(1_000_000 + number) + String(repeating: "x", count: 1_000)
      return (
        "d\(1_000_000 + number)",
        [
          "s": .string(text), "n": .int(Int64(number)), "m": .int(Int64(3_000 - number)),
          "k": .int(Int64(number % 3)), "w": "word",
        ]
      )
    }
    try body(database)
  }

  private static let limit = 1 << 20

  @Test("past the limit the clause is named", arguments: someEngines)
  func clauses(_ engine: EngineName) throws {
    try withTexts(engine) { database in
      try database.createIndex("n", on: ["n"])
      try database.createIndex("m", on: ["m"])
      try database.createFullTextIndex("fts", on: ["w"])
      for (text, clause) in [
        ("SELECT s FROM _ ORDER BY s", "ORDER BY"),
        ("SELECT n FROM _ ORDER BY s COLLATE UNICODE", "ORDER BY"),
        ("SELECT s FROM _ ORDER BY k, s LIMIT 2900", "ORDER BY"), ("SELECT DISTINCT s FROM _", "DISTINCT"),
        ("SELECT DISTINCT s FROM _ ORDER BY s LIMIT 1", "DISTINCT"),
        ("SELECT s, COUNT(*) FROM _ GROUP BY s", "GROUP BY"),
        ("SELECT k, ARRAY_AGG(s) FROM _ GROUP BY k", "GROUP BY"),
        ("SELECT COUNT(DISTINCT s) FROM _", "GROUP BY"),
        ("SELECT n % 1500, MAX(s) FROM _ GROUP BY n % 1500", "GROUP BY"),
        ("SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON b.s = a.s", "JOIN"),
      ] {
        let query = try database.query(
          text, options: .init(memoryLimit: Self.limit, temporaryFileLimit: 0))
        let error = #expect(throws: QueryError.self, "\(text)") { try query.run() }
        expect(error?.code, equals: .memoryLimit, "\(text)")
        expect(error?.message.hasPrefix(clause), equals: true, "\(text): \(error?.message ?? "")")
        expect(error?.message.contains("\(Self.limit) bytes"), equals: true)
        #expect(throws: QueryError.self) { try query.forEach { _ in true } }
        try expect(database.query(text).run().isEmpty, equals: false, "\(text)")
      }
      // IDs that several ways find, and those that MATCH does. Lists in parameters: how long they are is unknown when the
      // query is planned, so it takes the indexes and not a scan.
      let lists: [String: JSONValue] = [
        "n": .array((0...299).map { .int($0) }), "m": .array((1...300).map { .int($0) }),
      ]
      for (text, clause) in [
        ("SELECT COUNT(*) FROM _ WHERE n IN $n OR m IN $m", "OR"),
        ("SELECT COUNT(*) FROM _ WHERE MATCH(fts, 'word') AND n < 600 OR s = ''", "MATCH"),
      ] {
        let query = try database.query(text, options: .init(memoryLimit: 1 << 15, temporaryFileLimit: 0))
        let error = #expect(throws: QueryError.self, "\(text)") { try query.run(lists) }
        expect(
          error?.code == .memoryLimit && error?.message.hasPrefix(clause) == true,
          "\(text) \(error?.message ?? "")")
        try expect(database.query(text).run(lists)[0][0].int, equals: 600)
      }
    }
  }

  @Test("the limit is looked at row by row", arguments: someEngines)
  func early(_ engine: EngineName) throws {
    try withTexts(engine) { database in
      // A document in the middle, which no scan in either order reaches, gives another error.
      func late(_ source: String) -> String {
        "CASE WHEN \(source)n = 1500 THEN REGEXP_LIKE(\(source)w, '(') ELSE TRUE END"
      }
      for text in [
        "SELECT s FROM _ WHERE \(late("")) ORDER BY s", "SELECT DISTINCT s FROM _ WHERE \(late(""))",
        "SELECT s, COUNT(*) FROM _ WHERE \(late("")) GROUP BY s",
        "SELECT k, ARRAY_AGG(s) FROM _ WHERE \(late("")) GROUP BY k",
        "SELECT COUNT(DISTINCT s) FROM _ WHERE \(late(""))",
        "SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON b.s = a.s AND \(late("b."))",
      ] {
        let limited = try database.query(
          text, options: .init(memoryLimit: Self.limit, temporaryFileLimit: 0))
        try expect(queryCode { _ = try limited.run() }, equals: .memoryLimit, "\(text)")
        try expect(queryCode { _ = try database.query(text).run() }, equals: .evaluation, "\(text)")
      }
    }
  }

  @Test("what is given up on the way counts no longer", arguments: someEngines)
  func replaced(_ engine: EngineName) throws {
    try withTexts(engine) { database in
      for (text, rows) in [
        ("SELECT s FROM _ ORDER BY s DESC LIMIT 5", 5), ("SELECT MAX(s) AS m FROM _", 1),
        ("SELECT k, MAX(s) AS m, w FROM _ GROUP BY k ORDER BY k", 3), ("SELECT * FROM _", 3_000),
        ("SELECT k, MIN(s) AS m, MAX(s) AS n FROM _ GROUP BY k", 3),
        ("SELECT s FROM _ WHERE s > '1' LIMIT 2999", 2_999),
        ("SELECT DISTINCT k FROM _ ORDER BY k", 3),
        ("SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON b.n = a.n", 1),
      ] {
        let limited = try database.query(
          text, options: .init(memoryLimit: Self.limit, temporaryFileLimit: 0)
        ).run()
        expect(limited.count, equals: rows, "\(text)")
        try expect(limited, equals: (try database.query(text).run()), "\(text)")
      }
      // Where the rows of a group come in a row as well.
      try database.createIndex("w", on: ["w"])
      let text = "SELECT w, k, MAX(s) AS m FROM _ WHERE w >= 'a' GROUP BY w"
      let query = try database.query(
        text, options: .init(memoryLimit: Self.limit, temporaryFileLimit: 0))
      try expect(query.explain().description.contains("rows of a group in a row"))
      let rows = try query.run().map { try $0.json() }
      try expect(Set(rows), equals: Set(database.rows(text, usesIndexes: false)))
    }
  }

  @Test("what is computed for one row has the same limit", arguments: someEngines)
  func rows(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("d", ["l": .array((0..<2_000).map { .int(Int64($0)) })])
    let texts = (0..<100).map { "REPEAT(TOSTRING(l[\($0)]), 400000)" }.joined(separator: ", ")
    let query = try database.query(
      "SELECT ARRAY_LENGTH([\(texts)]) AS n FROM _", options: .init(memoryLimit: 8 << 20))
    let error = #expect(throws: QueryError.self) { try query.run() }
    expect(error?.code == .memoryLimit && error?.message.contains("for one row") == true)
    // Of the items of ANY one after the other has the memory.
    let any = try database.query(
      "SELECT 1 FROM _ WHERE ANY a IN l SATISFIES LENGTH(REPEAT(TOSTRING(a), 100000)) = 1 END",
      options: .init(memoryLimit: 8 << 20))
    try expect(any.run().isEmpty)
  }

  @Test("a search keeps no more words and documents than it may", arguments: someEngines)
  func searches(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<2_000) { number in
      ("d\(number)", ["w": .string("word w\(number + 10_000)"), "n": .int(Int64(number))])
    }
    try database.createFullTextIndex("fts", on: ["w"])
    for (text, limit, rows) in [
      ("SELECT n FROM _ WHERE MATCH(fts, 'w*')", 1 << 20, 2_000),
      ("SELECT n FROM _ WHERE MATCH(fts, 'word') ORDER BY RANK(fts) DESC LIMIT 5000", 1 << 17, 2_000),
    ] {
      let query = try database.query(text, options: .init(memoryLimit: limit))
      let error = #expect(throws: QueryError.self, "\(text)") { try query.run() }
      expect(error?.code == .memoryLimit && error?.message.hasPrefix("MATCH") == true, "\(text)")
      try expect(database.query(text).run().count, equals: rows, "\(text)")
    }
    // A plan asks for no more, and can be cancelled. Past the limit it goes by the number of all documents.
    let half = "SELECT n FROM _ WHERE MATCH(fts, 'w10*')"
    try expect(database.query(half).explain().description.contains("estimated rows 1000"))
    let planned = try database.query(half, options: .init(memoryLimit: 1 << 17))
    try expect(planned.explain().description.contains("estimated rows 2000"))
    // The plan is made anew.
    try database.createIndex("w", on: ["w"])
    let cancellation = QueryCancellation()
    cancellation.cancel()
    try expect(queryCode { _ = try planned.explain(cancellation: cancellation) }, equals: .cancelled)
    // A few words and documents are kept in less.
    for (text, rows) in [
      ("SELECT n FROM _ WHERE MATCH(fts, 'w1000*')", 10),
      ("SELECT n FROM _ WHERE MATCH(fts, 'word') ORDER BY RANK(fts) DESC LIMIT 5", 5),
    ] {
      try expect(
        database.query(text, options: .init(memoryLimit: 1 << 17)).run().count, equals: rows, "\(text)")
    }
    // What one search has kept is given back before the next.
    try database.createIndex("n", on: ["n"])
    let union = try database.query(
      "SELECT 1 FROM _ AS a JOIN _ AS b ON MATCH(b.fts, 'w1000*') OR b.n = a.n + 1500 WHERE a.n < 90",
      options: .init(memoryLimit: 1 << 17))
    try expect(union.explain().description.contains("Union by ID of [Full-text index fts"))
    try expect(union.run().count, equals: 990)
  }

  @Test("an index of long texts that begin alike keeps no more of them than it may", arguments: someEngines)
  func alike(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<400) { number in
      let text = String(repeating: "x", count: 4_000) + "\(number + 1_000)"
      return ("d\(number)", ["s": .string(text), "n": .int(Int64(number))])
    }
    try database.createIndex("s", on: ["s"])
    let text = "SELECT n FROM _ WHERE s >= 'x' ORDER BY s"
    let query = try database.query(text, options: .init(memoryLimit: 1 << 20))
    let error = #expect(throws: QueryError.self) { try query.run() }
    expect(error?.code == .memoryLimit && error?.message.contains("begin alike") == true)
    let all = try database.query(text, options: .init(memoryLimit: 3 << 20)).run()
    expect(all.map(\.[0].int), equals: (0..<400).map { Int64($0) })
    let descending = try database.query(text + " DESC LIMIT 3").run()
    expect(descending.map { $0[0].int }, equals: [399, 398, 397])
  }

  @Test("rows of which each takes more than the last take no more together", arguments: someEngines)
  func growing(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<20) { number in
      ("d\(number + 10)", ["n": .int(Int64(1_100_000 + number * 10_000))])
    }
    let query = try database.query(
      "SELECT n FROM _ WHERE LENGTH(REPEAT('a', n)) > 0 ORDER BY META().id",
      options: .init(memoryLimit: 8 << 20))
    try expect(query.run().count, equals: 20)
  }
}
