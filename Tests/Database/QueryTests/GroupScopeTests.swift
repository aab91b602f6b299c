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

  @Test("aggregates of one argument don't disturb each other", arguments: someEngines)
  func sharedArguments(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let values = ["2", "\"b\"", "null", "-1.5", "[1]", "\"a\"", "18446744073709551615", "2.0", "false"]
      try database.fill(
        values.enumerated().map { ("d\($0)", #"{"g":\#($0 % 2),"x":\#($1),"y":\#($0)}"#) } + [
          ("e", #"{"g":0}"#)
        ])
      let parts = [
        ("COUNT(*)", "6,4"), ("COUNT(x)", "4,4"), ("COUNTN(x)", "2,2"), ("MIN(x)", "false,-1.5"),
        ("MAX(x)", #"[1],"b""#),
        ("SUM(x)", "1.8446744073709552e+19,0.5"), ("AVG(x)", "9.223372036854776e+18,0.25"),
        ("COUNT(DISTINCT x)", "4,4"),
        ("MIN(x) FILTER (WHERE x > 0)", "2,2.0"), ("MAX(x) FILTER (WHERE y < 3)", #"2,"b""#),
        ("MAX(y)", "8,7"),
        ("SUM(y)", "20,16"),
        ("MIN(y)", "0,1"), ("MEDIAN(y)", "4,4.0"), ("MAX(x COLLATE NOCASE)", #"[1],"b""#),
      ]
      let columns = parts.map(\.0).joined(separator: ", ")
      let rows = try database.rows("SELECT RAW [\(columns)] FROM _ GROUP BY g ORDER BY g")
      for part in parts {
        let alone = try database.rows("SELECT RAW \(part.0) FROM _ GROUP BY g ORDER BY g")
        expect(alone.joined(separator: ","), equals: part.1, "\(part.0)")
      }
      let all = (0..<2).map { group in parts.map { $0.1.split(separator: ",")[group] }.joined(separator: ",")
      }
      expect(rows, equals: all.map { "[\($0)]" })
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
