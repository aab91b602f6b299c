import TestSupport

@testable import Query
@testable import Touchstone

/// Integers above `Int64.max`, in texts of queries, in comparisons, in indexes and in sums.
@Suite struct UnsignedIntegerTests {
  @Test("a literal above Int64.max is the integer that it says")
  func literals() throws {
    try expect(QueryExpression(parsing: "18446744073709551615"), equals: .literal(.uint(.max)))
    try expect(QueryExpression(parsing: "9223372036854775808"), equals: .literal(.uint(1 << 63)))
    try expect(QueryExpression(parsing: "9223372036854775807"), equals: .literal(.int(.max)))
    try expect(QueryExpression(parsing: "-9223372036854775808"), equals: .literal(.int(.min)))
    try expect(
      QueryExpression(parsing: "18446744073709551616"), equals: .literal(.double(18_446_744_073_709_551_616)))
    try expect(
      QueryExpression(parsing: "-9223372036854775809"), equals: .literal(.double(-9_223_372_036_854_775_809)))
    try expect(QueryExpression(parsing: "18446744073709551615").description, equals: "18446744073709551615")
  }

  @Test(arguments: [
    ("18446744073709551615", "18446744073709551615"), ("18446744073709551615 - 1", "18446744073709551614"),
    ("18446744073709551615 - 9223372036854775808", "9223372036854775807"),
    ("9223372036854775808 + -1", "9223372036854775807"), ("9223372036854775808 / 2", "4611686018427387904"),
    ("18446744073709551615 / 18446744073709551615", "1"), ("1 / 18446744073709551615", "0"),
    ("18446744073709551615 % 10", "5"), ("-9223372036854775808 % 9223372036854775808", "0"),
    ("-7 % 18446744073709551615", "-7"), ("-9223372036854775808 / 9223372036854775808", "-1"),
    ("9223372036854775808 * 1", "9223372036854775808"),
    ("18446744073709551615 + 1", "1.8446744073709552e+19"),
    ("18446744073709551615 * 18446744073709551615", "3.402823669209385e+38"),
    ("18446744073709551615 / 0", "missing"), ("18446744073709551615 % 0", "missing"),
    ("18446744073709551615 / -1", "-1.8446744073709552e+19"),
    ("18446744073709551615 + 0.5", "1.8446744073709552e+19"),
    ("-9223372036854775808", "-9223372036854775808"), ("-(9223372036854775808)", "-9223372036854775808"),
    ("18446744073709551615 = 18446744073709551615", "true"),
    ("18446744073709551615 > 18446744073709551614", "true"),
    ("18446744073709551614 IN (18446744073709551615)", "false"), ("18446744073709551615 > -1", "true"),
    ("18446744073709551615 = 18446744073709551615.0", "false"),
    ("9223372036854775808 = 9223372036854775808.0", "true"),
    ("ABS(18446744073709551615)", "18446744073709551615"),
    ("TOSTRING(18446744073709551615)", "\"18446744073709551615\""),
    ("9223372036854775807 + 1", "9.223372036854776e+18"),
  ]) func expressions(_ text: String, _ expected: String) throws {
    let harness = try EvaluationHarness(#"{"big":18446744073709551615}"#)
    try expect(harness.evaluate(text), equals: expected, "\(text)")
    // The same of a property, which isn't computed beforehand.
    let property = text.replacing("18446744073709551615.0", with: "1.8446744073709552e19")
      .replacing("18446744073709551615", with: "big")
    try expect(harness.evaluate(property), equals: expected, "\(property)")
  }

  @Test("queries find, order and add them exactly, with an index or without", arguments: someEngines)
  func queries(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let numbers: [JSONValue] = [
        .uint(.max), .uint(.max - 1), .uint(1 << 63), .int(.max), .int(.max - 1), 0, -1, .double(0x1p63),
        .double(0x1p64), 1.5, "18446744073709551615",
      ]
      try database.inBatch {
        for (number, value) in numbers.enumerated() { try database.save("d\(number)", ["n": value]) }
      }
      let conditions: [(String, [String])] = [
        ("n = 18446744073709551615", ["d0"]), ("n = 18446744073709551614", ["d1"]),
        ("n > 18446744073709551614 AND n < 'a'", ["d0", "d10", "d8"]),
        ("n = 9223372036854775808", ["d2", "d7"]),
        ("n BETWEEN 9223372036854775807 AND 9223372036854775808", ["d2", "d3", "d7"]),
        ("n IN (18446744073709551614, 9223372036854775807)", ["d1", "d3"]),
        ("18446744073709551614 < n AND n < 1e300", ["d0", "d8"]),
        ("n = $max", ["d0"]),
        ("n != 18446744073709551615 AND n >= 9223372036854775808 AND n < 1e300", ["d1", "d2", "d7", "d8"]),
        ("n - 1 = 18446744073709551614", ["d0"]), ("n IS 18446744073709551615", ["d0"]),
      ]
      for isIndexed in [false, true] {
        if isIndexed { try database.createIndex("n", on: ["n"]) }
        for (condition, wanted) in conditions {
          let query = try database.query("SELECT META().id FROM _ WHERE \(condition)")
          let parameters: [String: JSONValue] = condition.contains("$") ? ["max": .uint(.max)] : [:]
          try expect(
            query.run(parameters).map { $0[0].string ?? "" }.sorted(), equals: wanted, "\(condition)")
        }
        let ordered = try database.query("SELECT META().id FROM _ WHERE n > 1 ORDER BY n DESC, META().id")
          .run()
        expect(ordered.map { $0[0].string }, equals: ["d10", "d8", "d0", "d1", "d2", "d7", "d3", "d4", "d9"])
        let covered = try database.query("SELECT n FROM _ WHERE n = 18446744073709551615").run()
        expect(covered[0][0].uint == .max && covered[0][0].int == nil)
        try expect(covered[0].json(), equals: #"{"n":18446744073709551615}"#)
      }
      try database.createIndex("big", on: ["META().id"], where: "n = 18446744073709551615")
      try expect(
        database.rows("SELECT META().id FROM _ WHERE n = 18446744073709551615 AND META().id > 'a'"),
        equals: [#"{"id":"d0"}"#])
      let sum = try database.query(
        "SELECT SUM(n) AS s, MAX(n) AS m FROM _ WHERE n IN (18446744073709551615, 0, -1)")
      try expect(sum.run()[0]["s"].uint == .max - 1 && sum.run()[0]["m"].uint == .max)
      try expect(
        database.query("SELECT n FROM _ LIMIT 18446744073709551615").run().count, equals: numbers.count)
      // Doubles beyond 64 bits are numbers, too.
      for (page, count) in [
        ("LIMIT 1e30", numbers.count), ("LIMIT -1e30", 0), ("LIMIT 2 OFFSET 1e30", 0),
        ("LIMIT 2 OFFSET -1e30", 2),
      ] {
        try expect(database.query("SELECT n FROM _ \(page)").run().count, equals: count, "\(page)")
        try expect(database.query("SELECT n FROM _ ORDER BY n \(page)").run().count, equals: count, "\(page)")
      }
    }
  }
}
