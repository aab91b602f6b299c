import TestSupport

@testable import Query
@testable import Touchstone

/// ROLLUP, CUBE, GROUPING SETS and GROUPING.
@Suite struct GroupingSetTests {
  private func fill(_ database: Database) throws {
    try database.fill([
      ("1", #"{"a":"x","b":"p","n":1}"#), ("2", #"{"a":"x","b":"q","n":2}"#),
      ("3", #"{"a":"y","b":"p","n":4}"#),
      ("4", #"{"a":null,"b":"p","n":8}"#),
    ])
  }

  @Test("ROLLUP has the groups of all its beginnings", arguments: someEngines)
  func rollup(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try fill(database)
      let wanted = [
        #"{"a":"x","b":"p","s":1,"g":0}"#, #"{"a":"x","b":"q","s":2,"g":0}"#,
        #"{"a":"y","b":"p","s":4,"g":0}"#,
        #"{"a":null,"b":"p","s":8,"g":0}"#, #"{"a":"x","b":null,"s":3,"g":1}"#,
        #"{"a":"y","b":null,"s":4,"g":1}"#,
        // NULL of a document, and NULL of a set without the key, are different groups.
        #"{"a":null,"b":null,"s":8,"g":1}"#, #"{"a":null,"b":null,"s":15,"g":3}"#,
      ]
      for isIndexed in [false, true] {
        if isIndexed { try database.createIndex("ab", on: ["a", "b"]) }
        for form in ["ROLLUP(a, b)", "GROUPING SETS ((a, b), (a), ())", "GROUPING SETS (ROLLUP(a, b))"] {
          let rows = try database.rows(
            "SELECT a, b, SUM(n) AS s, GROUPING(a, b) AS g FROM _ GROUP BY \(form)")
          expect(rows.sorted(), equals: wanted.sorted(), "\(form)")
        }
      }
    }
  }

  @Test("CUBE, sets beside plain keys, HAVING, ORDER BY and windows", arguments: someEngines)
  func others(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try fill(database)
      func rows(_ text: String) throws -> [String] { try database.rows(text) }
      try expect(
        rows(
          "SELECT b, COUNT(*) AS n FROM _ WHERE a IS VALUED GROUP BY CUBE(a, b) HAVING GROUPING(a) = 1 ORDER BY n"
        ),
        equals: [#"{"b":"q","n":1}"#, #"{"b":"p","n":2}"#, #"{"b":null,"n":3}"#])
      try expect(
        rows(
          "SELECT b, a, SUM(n) AS s FROM _ WHERE a IS VALUED GROUP BY b, ROLLUP(a) ORDER BY b, GROUPING(a), a"
        ),
        equals: [
          #"{"b":"p","a":"x","s":1}"#, #"{"b":"p","a":"y","s":4}"#, #"{"b":"p","a":null,"s":5}"#,
          #"{"b":"q","a":"x","s":2}"#, #"{"b":"q","a":null,"s":2}"#,
        ])
      // Aggregates see the values of rows, and a composite term is one step.
      try expect(
        rows("SELECT MAX(a) AS m, a FROM _ GROUP BY ROLLUP((a, b)) ORDER BY COUNT(*) DESC LIMIT 1"),
        equals: [#"{"m":"y","a":null}"#])
      try expect(
        rows(
          "SELECT UPPER(a) AS u, COUNT(*) AS n FROM _ WHERE a IS VALUED GROUP BY ROLLUP(UPPER(a)) ORDER BY u, n"
        ),
        equals: [#"{"u":null,"n":3}"#, #"{"u":"X","n":2}"#, #"{"u":"Y","n":1}"#])
      try expect(
        rows(
          "SELECT a, RANK() OVER (ORDER BY SUM(n) DESC) AS r FROM _ GROUP BY ROLLUP(a) ORDER BY r LIMIT 2"),
        equals: [#"{"a":null,"r":1}"#, #"{"a":null,"r":2}"#])
      // Without rows there are the groups of the empty sets only.
      try expect(
        rows("SELECT a, COUNT(*) AS c, SUM(n) AS s, GROUPING(a) AS g FROM _ WHERE n > 99 GROUP BY ROLLUP(a)"),
        equals: [#"{"a":null,"c":0,"g":1}"#])
      try expect(
        rows("SELECT COUNT(*) AS c FROM _ WHERE FALSE GROUP BY GROUPING SETS ((), (a, b), ())"),
        equals: [#"{"c":0}"#, #"{"c":0}"#])
      try expect(
        rows("SELECT COUNT(*) AS c FROM _ WHERE n > 99 GROUP BY CUBE(a) HAVING COUNT(*) > 0"), equals: [])
      try expect(rows("SELECT COUNT(*) AS c FROM _ WHERE n > 99 GROUP BY b, ROLLUP(a)"), equals: [])
      try expect(
        rows(
          "SELECT x.a, (SELECT COUNT(*) AS n FROM _ AS y WHERE y.a = x.a)[0].n AS c FROM _ AS x GROUP BY ROLLUP(x.a)"
        )
        .sorted(),
        equals: [
          #"{"a":"x","c":2}"#, #"{"a":"y","c":1}"#, #"{"a":null,"c":0}"#, #"{"a":null,"c":0}"#,
        ].sorted())
    }
  }

  @Test("EXPLAIN shows no names that queries can't have")
  func explained() throws {
    try withDatabase(.lmdb) { database in
      try fill(database)
      let plan = try database.query("SELECT a, SUM(n) AS s, GROUPING(a) AS g FROM _ GROUP BY ROLLUP(a)")
        .explain().description
      expect(!plan.utf8.contains { $0 < 0x20 && $0 != 0x0A }, "\(plan)")
      expect(plan.contains("Unnest [0, 1] as grouping_set"), "\(plan)")
      expect(
        plan.contains("Group by CASE WHEN grouping_set IN (0) THEN _.a END, grouping_set"), "\(plan)")
    }
  }

  @Test("the builder makes them, and mistakes are told")
  func builder() throws {
    let (a, b) = (QueryExpression.property("a"), QueryExpression.property("b"))
    let base = Query.select(.property("a")).from()
    try expect(
      base.groupBy(rollup: a, b), equals: SelectStatement(parsing: "SELECT a FROM _ GROUP BY ROLLUP(a, b)"))
    try expect(
      base.groupBy(cube: a, b), equals: SelectStatement(parsing: "SELECT a FROM _ GROUP BY CUBE(a, b)"))
    expect(
      base.groupBy(sets: [[b], [a, b]]).description,
      equals: "SELECT a FROM _ GROUP BY GROUPING SETS ((b), (a, b))")
    try withDatabase(.lmdb) { database in
      for statement in [
        base.groupBy(cube: a, b, a, b, a, b, a, b, a), base.groupBy(sets: []).groupBy(sets: [[]]),
      ] {
        #expect(throws: QueryError.self) { try database.query(statement) }
      }
      #expect(throws: QueryError.self) { try database.query("SELECT GROUPING(n) FROM _ GROUP BY ROLLUP(a)") }
      #expect(throws: QueryError.self) { try database.query("SELECT 1 GROUP BY ROLLUP($p)") }
      #expect(throws: QueryError.self) {
        try SelectStatement(parsing: "SELECT a FROM _ GROUP BY CUBE(a)").json()
      }
    }
  }
}
