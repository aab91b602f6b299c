import TestSupport

@testable import Query
@testable import Touchstone

/// Names and texts are what their bytes are: é as one code point (NFC) and as two (NFD) are two names.
@Suite struct NameIdentityTests {
  private let nfc = "\u{E9}"
  private let nfd = "e\u{301}"

  private func withAccents(_ engine: EngineName, _ body: (Database) throws -> Void) throws {
    try withDatabase(engine) { database in
      try database.saveBatch(0..<60) { number in
        let members: [(String, JSONValue)] = [
          (nfc, .int(Int64(number))), (nfd, .int(Int64(1000 + number))),
          ("t", .string(number % 2 == 0 ? nfc : nfd)), ("k", .int(Int64(number))),
        ]
        return ("d\(number)", .value(.object(JSONObject(members))))
      }
      try body(database)
    }
  }

  /// The IDs that a query finds, the same with and without indexes.
  private func ids(_ database: Database, _ condition: String) throws -> [String] {
    try database.firstColumn("SELECT META().id FROM _ WHERE \(condition) ORDER BY k")
  }

  @Test("an index on a property isn't used for one that is spelled otherwise", arguments: someEngines)
  func indexes(_ engine: EngineName) throws {
    try withAccents(engine) { database in
      try database.createIndex("plain", on: ["`\(nfc)`"])
      try database.createIndex("partial", on: ["k"], where: "t = '\(nfc)'")
      try database.createIndex("function", on: ["`\(nfc)` + 1"])
      try expect(ids(database, "`\(nfd)` = 1005"), equals: ["d5"])
      try expect(ids(database, "`\(nfc)` = 5"), equals: ["d5"])
      try expect(ids(database, "`\(nfc)` = 1005"), equals: [])
      try expect(ids(database, "`\(nfd)` + 1 = 1006"), equals: ["d5"])
      try expect(ids(database, "t = '\(nfd)' AND k < 4"), equals: ["d1", "d3"])
      try expect(ids(database, "t = '\(nfc)' AND k < 4"), equals: ["d0", "d2"])
      try expect(ids(database, "t IN ('\(nfc)', '\(nfd)') AND k < 2"), equals: ["d0", "d1"])
      let plan = try database.query("SELECT META().id FROM _ WHERE t = '\(nfd)' AND k < 4").explain()
        .description
      expect(!plan.contains("partial"))
      // The other spelling is another definition, and another index.
      try expect(database.createIndex("plain", on: ["`\(nfd)`"]))
      try expect(database.createIndex("plain", on: ["`\(nfd)`"]), equals: false)
      try expect(ids(database, "`\(nfd)` = 1005"), equals: ["d5"])
      try expect(
        ValueIndexDefinition(["`\(nfd)`"]) != ValueIndexDefinition(["`\(nfc)`"])
          && ValueIndexDefinition(["a"], unnest: "b AS `\(nfd)`")
            != ValueIndexDefinition(["a"], unnest: "b AS `\(nfc)`")
      )
    }
  }

  @Test("columns, aliases and groups are told apart by their bytes", arguments: someEngines)
  func columns(_ engine: EngineName) throws {
    try withAccents(engine) { database in
      let row = try database.query("SELECT `\(nfc)`, `\(nfd)` FROM _ WHERE META().id = 'd5'").run()[0]
      expect(row.columnNames.map { Array($0.utf8) }, equals: [Array(nfc.utf8), Array(nfd.utf8)])
      expect(row[0].int == 5 && row[1].int == 1005)
      expect(row[nfc].int == 5 && row[nfd].int == 1005)
      try expect(row.json(), equals: "{\"\(nfc)\":5,\"\(nfd)\":1005}")
      try expect(row.jsonObject().count, equals: 2)
      // Twenty columns are found by another way than two.
      let many = (0..<20).map { "k AS c\($0)" }.joined(separator: ", ")
      let wide = try database.query("SELECT `\(nfc)`, `\(nfd)`, \(many) FROM _ WHERE k = 5").run()[0]
      expect(wide[nfc].int == 5 && wide[nfd].int == 1005 && wide["c19"].int == 5 && !wide["c20"].exists)
      // An alias hides the property of its own spelling only.
      try expect(
        database.query("SELECT k AS `\(nfc)` FROM _ WHERE `\(nfd)` = 1005").run().map { $0[0].int },
        equals: [5])
      try expect(
        database.query("SELECT k AS `\(nfc)` FROM _ WHERE `\(nfc)` = 7").run().map { $0[0].int }, equals: [7])
      let grouped = try database.query(
        "SELECT t, MAX(`\(nfc)`) AS a, MAX(`\(nfd)`) AS b, COUNT(*) AS n FROM _ GROUP BY t ORDER BY a"
      ).run()
      expect(grouped.map { Array(($0[0].string ?? "").utf8) }, equals: [Array(nfc.utf8), Array(nfd.utf8)])
      expect(grouped.map { $0[1].int } == [58, 59] && grouped.map { $0[2].int } == [1058, 1059])
      let cases = try database.query(
        "SELECT CASE t WHEN '\(nfc)' THEN 'c' WHEN '\(nfd)' THEN 'd' END AS c FROM _ WHERE k < 2 ORDER BY k"
      ).run()
      expect(cases.map { $0[0].string }, equals: ["c", "d"])
    }
  }

  @Test("sources, variables and parameters are told apart by their bytes", arguments: someEngines)
  func sources(_ engine: EngineName) throws {
    try withAccents(engine) { database in
      try database.createIndex("k", on: ["k"])
      let joined = try database.query(
        """
        SELECT `\(nfc)`.k AS a, `\(nfd)`.k AS b FROM _ AS `\(nfc)` JOIN _ AS `\(nfd)` ON `\(nfd)`.k = `\(nfc)`.k + 1
        WHERE `\(nfc)`.k = 3
        """
      ).run()
      try expect(joined.map { try $0.json() }, equals: [#"{"a":3,"b":4}"#])
      let nested = try database.query(
        """
        SELECT k FROM _ WHERE k < 5 AND ANY `\(nfc)` IN [1, 2] SATISFIES
        ANY `\(nfd)` IN [2, 4] SATISFIES `\(nfd)` = k AND `\(nfc)` * 2 = `\(nfd)` END END ORDER BY k
        """
      ).run()
      expect(nested.map { $0[0].int }, equals: [2, 4])
      let query = try database.query(
        Query.select(.property("k")).from().where(.property("k") .== .parameter(nfc)))
      expect(query.parameterNames.map { Array($0.utf8) }, equals: [Array(nfc.utf8)])
      try expect(query.run([nfc: 3]).map { $0[0].int }, equals: [3])
      try expect(queryCode { _ = try query.run([nfd: 3]) }, equals: .unsetParameter)
    }
  }

  @Test("trees that differ in normalization are different trees")
  func trees() throws {
    for text in [
      "`@`", "a.`@`", "'@'", "{\"@\": 1}", "META(`@`).id", "`@`.*", "MATCH(`@`, 'x')", "RANK(a.`@`)",
      "ANY `@` IN a SATISFIES TRUE END", "EXISTS (SELECT a AS `@` FROM _)", "EXISTS (SELECT a FROM _ AS `@`)",
      "EXISTS (SELECT 1 FROM _ UNNEST a AS `@`)",
    ] {
      let one = try QueryExpression(parsing: text.replacing("@", with: nfc))
      let two = try QueryExpression(parsing: text.replacing("@", with: nfd))
      expect(one != two, "\(text)")
      expect(Array(two.description.utf8), equals: Array(text.replacing("@", with: nfd).utf8), "\(two)")
      try expect(one, equals: (try QueryExpression(parsing: one.description)))
    }
    // A dot that an accent follows is a dot.
    expect(
      QueryExpression.property("a.\u{301}b"),
      equals: .property(PropertyReference([.name("a"), .name("\u{301}b")])))
  }
}
