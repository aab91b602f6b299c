import TestSupport

@testable import Query
@testable import Touchstone

/// Conditions one part of which an index or the IDs can serve, and another part of which only the row can.
@Suite struct RowBoundTests {
  @Test("what an index can't serve of a condition is asked of the row", arguments: someEngines)
  func conditions(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.saveBatch(0..<120) { number in
        (
          "d\(number % 10)-\(number)",
          [
            "a": .int(Int64(number % 13)), "b": .int(Int64(number % 7)), "t": .string("d\(number % 5)"),
            "s": .string("d\((number + 3) % 10)"),
            "l": [.int(Int64(number % 3)), .int(Int64(number % 11))],
            "n": .int(Int64(number)),
          ]
        )
      }
      func rows(_ condition: String, usesIndexes: Bool) throws -> [String] {
        try database.rows(
          "SELECT n FROM _ WHERE \(condition) ORDER BY n", ["two": 2], usesIndexes: usesIndexes)
      }
      let conditions = [
        "a BETWEEN 1 AND b", "a BETWEEN b AND 9", "a BETWEEN b AND b + 1", "a NOT BETWEEN 1 AND b",
        "a BETWEEN $two AND b AND a < 5", "a >= 2 AND a BETWEEN 0 AND b",
        "a BETWEEN 1 AND b AND b BETWEEN 2 AND a",
        "a IN (1, b)", "a IN (b)", "a IN [b, 3, n]", "a IN l", "a NOT IN (1, b)", "3 IN (a, b)", "a = b",
        "a < b",
        "META().id BETWEEN 'd1' AND t", "META().id BETWEEN t AND 'd4'", "META().id BETWEEN t AND s",
        "META().id IN ('d1-1', t)", "META().id IN (t)", "META().id > t AND META().id < 'd5'",
        "a BETWEEN 1 AND b OR META().id BETWEEN 'd7' AND s", "t LIKE s", "a BETWEEN 2 AND NULL",
        "a BETWEEN 2 AND nothing",
      ]
      let expected = try conditions.map { try rows($0, usesIndexes: false) }
      // Without an index the IDs alone serve some of them.
      for (condition, wanted) in zip(conditions, expected) {
        try expect(rows(condition, usesIndexes: true), equals: wanted, "\(condition)")
      }
      expect(expected.filter { !$0.isEmpty }.count > 18)
      try database.createIndex("a", on: ["a"])
      try database.createIndex("ab", on: ["t", "a", "b"])
      try database.createIndex("some", on: ["b"], where: "a BETWEEN 1 AND 9")
      try database.createIndex("all", on: ["a", "b", "n"])
      for (condition, wanted) in zip(conditions, expected) {
        try expect(rows(condition, usesIndexes: true), equals: wanted, "\(condition), with indexes")
        // Groups along an index, and joins, take their bounds from other rows.
        let text = "SELECT t, COUNT(*) AS c FROM _ WHERE t >= 'd1' AND \(condition) GROUP BY t ORDER BY t"
        try expect(
          database.rows(text, ["two": 2]), equals: database.rows(text, ["two": 2], usesIndexes: false),
          "\(condition)")
      }
      for on in [
        "y.a BETWEEN x.b AND y.b", "y.a IN (x.b, y.b)", "y.a BETWEEN x.b AND x.a",
        "META(y).id BETWEEN x.t AND y.s",
      ] {
        let text =
          "SELECT x.n AS x, y.n AS y FROM _ AS x JOIN _ AS y ON \(on) WHERE x.n < 9 ORDER BY x.n, y.n"
        try expect(database.rows(text), equals: database.rows(text, usesIndexes: false), "\(on)")
      }
      // The index serves the bound that it can, and the row is asked for the whole.
      for condition in ["a BETWEEN 1 AND b", "META().id BETWEEN 'd1' AND t"] {
        let plan = try database.query("SELECT n FROM _ WHERE \(condition)").explain().description
        expect(plan.contains(">= ") && plan.contains("filter:"), "\(plan)")
      }
    }
  }
}
