import TestSupport

@testable import Query
@testable import Touchstone

/// Expressions that stand in several clauses at once mean the same in each.
@Suite struct GroupScopeTests {
  @Test("a constant of GROUP BY is a constant in LIMIT and OFFSET", arguments: someEngines)
  func constants(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.fill((0..<5).map { ("d\($0)", #"{"k":\#($0)}"#) })
      try expect(database.rows("SELECT 1 AS c FROM _ GROUP BY TRUE LIMIT 1"), equals: [#"{"c":1}"#])
      try expect(
        database.rows("SELECT k FROM _ GROUP BY (1 + 1), k ORDER BY k LIMIT 2 OFFSET 1"),
        equals: [
          #"{"k":1}"#, #"{"k":2}"#,
        ])
      try expect(
        database.rows("SELECT k FROM _ GROUP BY $p, k ORDER BY k LIMIT $p OFFSET $p", ["p": 2]),
        equals: [#"{"k":2}"#, #"{"k":3}"#])
      try expect(database.rows("SELECT COUNT(*) AS n FROM _ LIMIT 1"), equals: [#"{"n":5}"#])
      try expect(
        database.rows(
          "SELECT k FROM _ GROUP BY k ORDER BY k LIMIT CASE WHEN EXISTS (SELECT 1 FROM _ WHERE k = 3) THEN 1 ELSE 2 END"
        ), equals: [#"{"k":0}"#])
    }
  }

  @Test("COLLATE around a comparison is for the comparison", arguments: someEngines)
  func collations(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.fill([
        ("1", #"{"a":"line"}"#), ("2", #"{"a":"a_b"}"#), ("3", #"{"a":"B"}"#), ("4", #"{"a":"b"}"#),
        ("5", #"{"a":"Z"}"#),
      ])
      func ids(_ text: String) throws -> String { try database.firstColumn(text).joined(separator: " ") }
      for isIndexed in [false, true] {
        if isIndexed { try database.createIndex("a", on: ["a"]) }
        // By bytes 'B' alone is below 'Ba'; with NOCASE 'a_b', 'B' and 'b' are.
        try expect(ids("SELECT META().id FROM _ ORDER BY (a >= 'Ba'), META().id"), equals: "3 1 2 4 5")
        try expect(
          ids("SELECT META().id FROM _ ORDER BY (a >= 'Ba') COLLATE NOCASE, META().id"), equals: "2 3 4 1 5")
        try expect(
          ids(
            "SELECT META().id, (a >= 'Ba') AS c FROM _ ORDER BY (a >= 'Ba') COLLATE NOCASE DESC, META().id"),
          equals: "1 5 2 3 4")
        try expect(ids("SELECT META().id FROM _ ORDER BY a COLLATE NOCASE, META().id"), equals: "2 3 4 1 5")
        try expect(
          ids("SELECT META().id FROM _ ORDER BY CONTAINS(a, 'B') COLLATE (UNICODE NOCASE), META().id"),
          equals: "1 5 2 3 4")
        let groups = try database.rows(
          "SELECT COUNT(*) AS n, MIN(META().id) AS m FROM _ GROUP BY (a = 'b') COLLATE NOCASE ORDER BY m")
        expect(groups, equals: [#"{"n":3,"m":"1"}"#, #"{"n":2,"m":"3"}"#])
        let keys = try database.rows(
          "SELECT (a = 'b') COLLATE NOCASE AS k, COUNT(*) AS n FROM _ GROUP BY (a = 'b') COLLATE NOCASE ORDER BY n"
        )
        expect(keys, equals: [#"{"k":true,"n":2}"#, #"{"k":false,"n":3}"#])
        let folded = try database.query(
          "SELECT COUNT(*) AS n FROM _ GROUP BY a COLLATE NOCASE HAVING (a = 'b') COLLATE NOCASE ORDER BY n"
        ).run()
        expect(folded.map { $0[0].int }, equals: [2])
      }
    }
  }
}
