import TestSupport

@testable import Query
@testable import Touchstone

/// Conditions as programs write them: long, and flat.
@Suite struct LongConditionTests {
  private func withNumbers(_ engine: EngineName, _ body: (Database) throws -> Void) throws {
    try withDatabase(engine) { database in
      try database.fill((0..<50).map { ("d\($0)", #"{"a":\#($0),"b":\#($0),"c":\#($0)}"#) })
      try body(database)
    }
  }

  @Test("an AND may be as long as it likes")
  func long() throws {
    try withNumbers(.lmdb) { database in
      let conditions = (0..<30_000).map { "a < \($0 + 5)" }.joined(separator: " AND ")
      let text = "SELECT a FROM _ WHERE \(conditions) ORDER BY a"
      try expect(database.rows(text), equals: (0..<5).map { #"{"a":\#($0)}"# })
      try database.createIndex("ab", on: ["a", "b"])
      try database.createIndex("ba", on: ["b", "a"])
      try expect(database.rows(text), equals: (0..<5).map { #"{"a":\#($0)}"# })
      let relevance = try #require(try database.query(text).relevance())
      try expect(database.read { try relevance.mayConcern($0, purged: [], [:], QueryCancellation()) })
    }
  }

  @Test("lists on several keys of an index aren't multiplied without end", arguments: someEngines)
  func lists(_ engine: EngineName) throws {
    try withNumbers(engine) { database in
      try database.createIndex("abc", on: ["a", "b", "c"])
      let list = JSONValue.array((0..<5_000).map { .int(Int64($0)) })
      let query = try database.query("SELECT COUNT(*) FROM _ WHERE a IN $l AND b IN $l AND c IN $l")
      let plan = try query.explain().description
      expect(plan.contains("Index abc") && !plan.contains("_.b IN $l, "), "\(plan)")
      try expect(query.run(["l": list])[0][0].int, equals: 50)
      // Short ones are, as far as they are known to be short.
      let short = "SELECT COUNT(*) FROM _ WHERE a IN (1, 2, 3) AND b IN (2, 3, 4) AND c IN (3, 4, 5)"
      try expect(database.query(short).explain().description.contains("_.c IN"))
      try expect(database.rows(short), equals: [#"{"$1":1}"#])
      let mixed = "SELECT COUNT(*) FROM _ WHERE a IN $l AND b IN (2, 3, 4) AND c IN $l"
      try expect(database.query(mixed).run(["l": list])[0][0].int, equals: 3)
    }
  }

  /// Without a bound of what is tried it takes half an hour, and a time limit would count what other tests take.
  @Test("many ORs are planned in time") func alternatives() throws {
    try withNumbers(.lmdb) { database in
      try database.createIndex("a", on: ["a"])
      try database.createIndex("b", on: ["b"])
      let conditions = (0..<1_000).map { "(a = 1 OR b = \($0))" }.joined(separator: " AND ")
      try expect(database.rows("SELECT c FROM _ WHERE \(conditions)"), equals: [#"{"c":1}"#])
    }
  }
}
