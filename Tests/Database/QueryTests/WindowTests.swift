import TestSupport

@testable import Query
@testable import Touchstone

/// Functions over windows.
@Suite struct WindowTests {
  private let databases = TestDatabases()

  /// Six documents: two partitions `g`, an order `n` with peers, values `v` with null and missing ones.
  private func opened(_ engine: EngineName = someEngines[0]) throws -> Database {
    let database = try databases.open(engine)
    try database.fill([
      ("a", #"{"g":1,"n":1,"v":10}"#), ("b", #"{"g":1,"n":2,"v":null}"#), ("c", #"{"g":1,"n":2,"v":30}"#),
      ("d", #"{"g":1,"n":4}"#), ("e", #"{"g":2,"n":1,"v":5.5}"#), ("f", #"{"g":2,"n":null,"v":7}"#),
    ])
    return database
  }

  @Test(
    arguments: [
      ("ROW_NUMBER() OVER (PARTITION BY g ORDER BY n, META().id)", "[1,2,3,4,2,1]"),
      ("ROW_NUMBER() OVER (PARTITION BY g ORDER BY n NULLS LAST, META().id)", "[1,2,3,4,1,2]"),
      ("RANK() OVER (PARTITION BY g ORDER BY n)", "[1,2,2,4,2,1]"),
      ("DENSE_RANK() OVER (PARTITION BY g ORDER BY n)", "[1,2,2,3,2,1]"),
      ("RANK() OVER (ORDER BY n DESC)", "[4,2,2,1,4,6]"),
      (
        "PERCENT_RANK() OVER (PARTITION BY g ORDER BY n)",
        "[0.0,0.3333333333333333,0.3333333333333333,1.0,1.0,0.0]"
      ),
      ("CUME_DIST() OVER (PARTITION BY g ORDER BY n)", "[0.25,0.75,0.75,1.0,1.0,0.5]"),
      ("NTILE(4) OVER (ORDER BY META().id)", "[1,1,2,2,3,4]"),
      ("NTILE(9) OVER (ORDER BY META().id)", "[1,2,3,4,5,6]"),
      ("NTILE(2.9) OVER (ORDER BY META().id)", "[1,1,1,2,2,2]"),
      ("NTILE(0) OVER (ORDER BY n)", "[null,null,null,null,null,null]"),
      ("LAG(v) OVER (ORDER BY META().id)", "[null,10,null,30,null,5.5]"),
      ("LAG(v, 2, 'none') OVER (ORDER BY META().id)", "[\"none\",\"none\",10,null,30,null]"),
      ("LAG(v) IGNORE NULLS OVER (ORDER BY META().id)", "[null,10,10,30,30,5.5]"),
      ("LEAD(v, 1, 0) RESPECT NULLS OVER (PARTITION BY g ORDER BY META().id)", "[null,30,null,0,7,0]"),
      ("LEAD(v, -1) OVER (ORDER BY META().id)", "[null,null,null,null,null,null]"),
      ("FIRST_VALUE(v) OVER (PARTITION BY g ORDER BY META().id)", "[10,10,10,10,5.5,5.5]"),
      ("LAST_VALUE(v) OVER (PARTITION BY g ORDER BY n)", "[10,30,30,null,5.5,7]"),
      ("LAST_VALUE(v) IGNORE NULLS OVER (PARTITION BY g ORDER BY n)", "[10,30,30,30,5.5,7]"),
      (
        "FIRST_VALUE(v) IGNORE NULLS OVER (ORDER BY META().id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
        "[30,30,5.5,5.5,7,null]"
      ),
      (
        "NTH_VALUE(v, 2) OVER (PARTITION BY g ORDER BY META().id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "[null,null,null,null,7,7]"
      ),
      (
        "NTH_VALUE(v, 2) FROM LAST IGNORE NULLS OVER (PARTITION BY g ORDER BY META().id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
        "[10,10,10,10,5.5,5.5]"
      ),
      ("NTH_VALUE(v, 0) OVER (ORDER BY n)", "[null,null,null,null,null,null]"),
      ("RATIO_TO_REPORT(v) OVER (PARTITION BY g)", "[0.25,null,0.75,null,0.44,0.56]"),
      // Aggregates.
      ("COUNT(*) OVER ()", "[6,6,6,6,6,6]"), ("COUNT(v) OVER (PARTITION BY g)", "[2,2,2,2,2,2]"),
      ("SUM(v) OVER (PARTITION BY g ORDER BY n)", "[10,40,40,40,12.5,7]"),
      ("SUM(v) OVER (PARTITION BY g ORDER BY META().id ROWS UNBOUNDED PRECEDING)", "[10,10,40,40,5.5,12.5]"),
      (
        "SUM(v) OVER (ORDER BY META().id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        "[10,40,30,35.5,12.5,12.5]"
      ),
      (
        "SUM(v) OVER (ORDER BY META().id ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING)", "[null,null,10,10,30,30]"
      ),
      (
        "COUNT(v) OVER (ORDER BY META().id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)", "[3,3,2,2,1,0]"
      ),
      ("SUM(v) FILTER (WHERE v > 6) OVER (PARTITION BY g)", "[40,40,40,40,7,7]"),
      ("COUNT(DISTINCT g) OVER (ORDER BY META().id)", "[1,1,1,1,2,2]"),
      (
        "ARRAY_AGG(v) OVER (PARTITION BY g ORDER BY META().id)",
        "[[10],[10,null],[10,null,30],[10,null,30],[5.5],[5.5,7]]"
      ),
      ("MAX(v) OVER (ORDER BY META().id ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)", "[10,30,30,5.5,7,7]"),
      ("AVG(v) OVER (PARTITION BY g)", "[20.0,20.0,20.0,20.0,6.25,6.25]"),
      // RANGE, GROUPS and EXCLUDE.
      (
        "COUNT(*) OVER (PARTITION BY g ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)", "[1,3,3,1,1,0]"
      ),
      (
        "COUNT(*) OVER (PARTITION BY g ORDER BY n RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING)", "[3,3,3,1,1,0]"
      ),
      (
        "COUNT(*) OVER (PARTITION BY g ORDER BY n DESC RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
        "[3,3,3,1,1,0]"
      ),
      (
        "COUNT(*) OVER (PARTITION BY g ORDER BY n GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "[1,3,3,3,2,1]"
      ),
      (
        "COUNT(*) OVER (PARTITION BY g ORDER BY n GROUPS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
        "[3,1,1,0,0,1]"
      ),
      (
        "COUNT(*) OVER (PARTITION BY g ORDER BY n GROUPS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP)",
        "[3,2,2,3,1,1]"
      ),
      (
        "COUNT(*) OVER (PARTITION BY g ORDER BY n RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES)",
        "[4,3,3,4,2,2]"
      ),
      (
        "COUNT(*) OVER (PARTITION BY g ORDER BY n ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW)",
        "[3,3,3,3,1,1]"
      ),
      (
        "COUNT(*) OVER (ORDER BY n ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE NO OTHERS)",
        "[3,3,3,2,3,2]"
      ),
      (
        "SUM(v) OVER (ORDER BY META().id ROWS BETWEEN g PRECEDING AND CURRENT ROW)", "[10,10,30,30,35.5,12.5]"
      ),
      // Expressions around and inside.
      ("1 + ROW_NUMBER() OVER (ORDER BY META().id) * 10", "[11,21,31,41,51,61]"),
      ("v - AVG(v) OVER (PARTITION BY g)", "[-10.0,null,10.0,-,-0.75,0.75]"),
    ] as [(String, String)])
  func values(_ call: String, _ expected: String) throws {
    let database = try opened()
    let query = try database.query("SELECT META().id AS id, \(call) AS w, g FROM _ ORDER BY META().id")
    let found = try query.run().map { row in
      let value = try row["w"].jsonValue()
      return try value.map { try $0.canonicalJSON() } ?? "-"
    }
    expect(
      "[" + found.joined(separator: ",") + "]", equals: expected, "\(call)")
    let statement = try SelectStatement(parsing: "SELECT \(call) FROM _")
    try expect(SelectStatement(parsing: statement.description), equals: statement)
  }

  @Test("windows see the rows that WHERE and GROUP BY leave, and ORDER BY and LIMIT come after them")
  func clauses() throws {
    let database = try opened()
    for (text, expected) in [
      (
        "SELECT g, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY g) AS s, RANK() OVER (ORDER BY COUNT(*)) AS r FROM _ GROUP BY g ORDER BY g",
        [#"{"g":1,"n":4,"s":4,"r":2}"#, #"{"g":2,"n":2,"s":6,"r":1}"#]
      ),
      (
        "SELECT META().id, COUNT(*) OVER () AS n FROM _ WHERE g = 1 ORDER BY META().id DESC LIMIT 1",
        [#"{"id":"d","n":4}"#]
      ),
      (
        "SELECT META().id FROM _ ORDER BY ROW_NUMBER() OVER (ORDER BY META().id DESC) LIMIT 2",
        [#"{"id":"f"}"#, #"{"id":"e"}"#]
      ),
      ("SELECT DISTINCT COUNT(*) OVER (PARTITION BY g) AS n FROM _ ORDER BY n", [#"{"n":2}"#, #"{"n":4}"#]),
      (
        "SELECT META().id, SUM(v) OVER w AS s, COUNT(*) OVER (w ROWS 1 PRECEDING) AS c FROM _ WINDOW p AS (PARTITION BY g), w AS (p ORDER BY META().id) ORDER BY META().id LIMIT 2",
        [#"{"id":"a","s":10,"c":1}"#, #"{"id":"b","s":10,"c":2}"#]
      ),
      (
        "SELECT x.n, u, ROW_NUMBER() OVER (PARTITION BY x.n ORDER BY u DESC) AS r FROM _ AS x UNNEST [x.n, 9] AS u WHERE x.v = 10 ORDER BY u",
        [#"{"n":1,"u":1,"r":2}"#, #"{"n":1,"u":9,"r":1}"#]
      ),
      ("SELECT COUNT(*) OVER () AS n FROM _ WHERE g = 99", []),
      ("SELECT COUNT(*) OVER () AS n", [#"{"n":1}"#]),
    ] as [(String, [String])] {
      let query = try database.query(text)
      try expect(
        query.run().map { try JSONValue(json: $0.json()) }, equals: expected.map { try JSONValue(json: $0) },
        "\(text)")
    }
  }

  @Test("mistakes are named")
  func mistakes() throws {
    let database = try opened()
    for (text, code, message) in [
      ("SELECT 1 FROM _ WHERE ROW_NUMBER() OVER () = 1", .invalidUse, "isn't allowed in WHERE"),
      (
        "SELECT ROW_NUMBER() OVER () AS r FROM _ WHERE r = 1", .invalidUse,
        "\"r\" is a window function, which isn't allowed in WHERE"
      ),
      ("SELECT g FROM _ GROUP BY g HAVING COUNT(*) OVER () > 1", .invalidUse, "isn't allowed in HAVING"),
      ("SELECT SUM(ROW_NUMBER() OVER ()) FROM _", .invalidUse, "isn't allowed in another aggregate"),
      (
        "SELECT SUM(RANK() OVER (ORDER BY g)) OVER () FROM _", .invalidUse,
        "isn't allowed in another window function"
      ),
      ("SELECT RANK() OVER () FROM _", .invalidUse, "RANK needs a window with ORDER BY"),
      (
        "SELECT RANK() OVER (ORDER BY g ROWS 1 PRECEDING) FROM _", .invalidUse,
        "RANK takes no window with ROWS"
      ),
      ("SELECT SUM(v) OVER (ROWS 1 PRECEDING) FROM _", .invalidUse, "which needs an ORDER BY"),
      ("SELECT SUM(v) OVER (ORDER BY g, n RANGE 1 PRECEDING) FROM _", .invalidUse, "an ORDER BY of one term"),
      ("SELECT SUM(v) OVER w FROM _", .unknownName, "there is no window \"w\""),
      (
        "SELECT SUM(v) OVER (w PARTITION BY g) FROM _ WINDOW w AS (ORDER BY g)", .invalidUse,
        "a PARTITION BY of its own"
      ),
      ("SELECT SUM(v) OVER (w ORDER BY g) FROM _ WINDOW w AS (ORDER BY g)", .invalidUse, "a second ORDER BY"),
      (
        "SELECT SUM(v) OVER (w ROWS 1 PRECEDING) FROM _ WINDOW w AS (ORDER BY g ROWS 2 PRECEDING)",
        .invalidUse, "extend its frame"
      ),
      ("SELECT 1 FROM _ WINDOW w AS (), w AS ()", .duplicateName, "two windows are called \"w\""),
      ("SELECT SUM(*) OVER () FROM _", .invalidUse, "only COUNT takes *"),
    ] as [(String, QueryError.Code, String)] {
      let error = #expect(throws: QueryError.self, "\(text)") { try database.query(text) }
      expect(error?.code, equals: code, "\(text)")
      expect(error?.message.contains(message), equals: true, "\(text): \(error?.message ?? "")")
    }
    for distance in ["-1", "'a'", "1.5"] {
      let query = try database.query("SELECT SUM(v) OVER (ORDER BY n ROWS \(distance) PRECEDING) FROM _")
      try expect(queryCode { _ = try query.run() }, equals: .evaluation, "\(distance)")
    }
  }

  @Test("rows of an index in the order of the window are numbered as they come", arguments: someEngines)
  func streaming(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.saveBatch(0..<500) { number in
      (
        "d\(1000 + number)",
        ["g": .int(Int64(number % 7)), "n": .int(Int64(number * 37 % 101)), "v": .int(Int64(number))]
      )
    }
    try database.createIndex("gn", on: ["g", "n"])
    let text =
      """
      SELECT g, n, RANK() OVER (PARTITION BY g ORDER BY n) AS r, DENSE_RANK() OVER (PARTITION BY g ORDER BY n) AS d,
      COUNT(*) OVER (PARTITION BY g ORDER BY n ROWS UNBOUNDED PRECEDING) AS c FROM _ WHERE g >= 0
      """
    let indexed = try database.query(text)
    let plain = try database.query(text, options: .init(usesIndexes: false))
    let plans = try [indexed, plain].map { try $0.explain().description }
    expect(plans[0].contains(", as rows come"), "\(plans[0])")
    expect(plans[1].contains(", over kept rows"), "\(plans[1])")
    let rows = try [indexed, plain].map { try $0.run().map { try $0.json() }.sorted() }
    expect(rows[0].count, equals: 500)
    expect(rows[0], equals: rows[1])
  }

  @Test("rows of an index that only get numbers are the same as kept ones", arguments: someEngines)
  func numbers(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    // Numbers with a fraction and long texts are entries of other forms.
    try database.saveBatch(0..<300) { number in
      let value: JSONValue =
        switch number % 5 {
        case 0: .double(Double(number) + 0.1)
        case 1: .int((1 << 53) + Int64(number))
        case 2: .string(String(repeating: "y", count: number * 3) + "\(number)")
        case 3: .array([.int(Int64(number))])
        default: .int(Int64(number))
        }
      return ("d\(1000 + number)", ["g": .int(Int64(number % 3)), "v": value])
    }
    try database.createIndex("gv", on: ["g", "v"])
    for text in [
      "SELECT v, ROW_NUMBER() OVER (ORDER BY g, v) AS r FROM _ WHERE g = 1 ORDER BY g, v",
      "SELECT ROW_NUMBER() OVER (ORDER BY g, v) AS r, g, v FROM _ WHERE g >= 1 ORDER BY g, v",
      "SELECT ROW_NUMBER() OVER (ORDER BY g DESC, v DESC) AS r, v FROM _ WHERE g >= 0 ORDER BY g DESC, v DESC",
      "SELECT g, ROW_NUMBER() OVER (PARTITION BY g ORDER BY v) AS r, v FROM _ WHERE g >= 0 ORDER BY g, v",
      "SELECT g, ROW_NUMBER() OVER (ORDER BY g, v) AS r FROM _ WHERE g IN [0, 2] ORDER BY g, v LIMIT 7 OFFSET 95",
    ] {
      let indexed = try database.query(text)
      let plain = try database.query(text, options: .init(usesIndexes: false))
      let rows = try [indexed, plain].map { try $0.run().map { try $0.json() } }
      expect(rows[0].isEmpty, equals: false)
      expect(rows[0], equals: rows[1], "\(text)")
      // The same query again, whose first number is 1 again.
      try expect(indexed.run().map { try $0.json() }, equals: rows[1], "\(text)")
    }
    let plan = try database.query(
      "SELECT v, ROW_NUMBER() OVER (ORDER BY g, v) AS r FROM _ WHERE g = 1 ORDER BY g, v"
    ).explain().description
    expect(plan.contains(", as rows come"), "\(plan)")
  }

  @Test(
    "a window has the order of ORDER BY, and partitions are those of GROUP BY",
    arguments: ["v", "v DESC", "v COLLATE NOCASE", "v COLLATE UNICODE DESC", "p, v DESC", "p DESC, v"])
  func orders(_ order: String) throws {
    let database = try databases.open(someEngines[0])
    let values = [
      "null", "false", "true", "0", "-0.0", "-1", "-1.5", "1.0", "1", "9007199254740992", "9007199254740993",
      "9007199254740994.0", "-9007199254740993", "9223372036854775807", "9223372036854775808",
      "18446744073709551615", "1e300", "-1e300", "5e-324", "-5e-324", #""""#, #""a""#, #""A""#, #""b""#,
      #""same beg""#, #""same begi""#, #""same beginning""#, #""same beginninG""#, #""same""#,
      #""same\u0000""#, #""äpple""#, #""Zebra""#, "[]", "[1]", #"["a"]"#, "{}", #"{"a":1}"#,
    ]
    var documents = values.enumerated().map { number, value in
      let partition = number % 4 == 0 ? "1.0" : "\(number % 4)"
      return ("d\(100 + number * 7 % 100)-\(number)", #"{"v":\#(value),"p":\#(partition)}"#)
    }
    documents.append(("none", "{}"))
    try database.fill(documents)
    let sorted = try database.query("SELECT RAW META().id FROM _ ORDER BY \(order), META().id").run()
      .map { $0[0].string ?? "-" }
    let numbers = try database.query(
      "SELECT META().id AS id, ROW_NUMBER() OVER (ORDER BY \(order), META().id) AS r FROM _"
    ).run()
    let numbered = numbers.sorted { $0["r"].int ?? 0 < $1["r"].int ?? 0 }.map { $0["id"].string ?? "-" }
    expect(numbered, equals: sorted)
    // The first row of each partition, and how many it has.
    let partitions = try database.query(
      """
      SELECT t.id, t.n FROM (SELECT META().id AS id, COUNT(*) OVER (PARTITION BY p) AS n,
      ROW_NUMBER() OVER (PARTITION BY p ORDER BY \(order), META().id) AS r FROM _) AS t WHERE t.r = 1
      """
    ).run().map { "\($0["id"].string ?? "-") \($0["n"].int ?? 0)" }
    let groups = try database.query("SELECT p, COUNT(*) AS n FROM _ GROUP BY p").run()
    let firsts = try groups.map { group in
      let isNone = !group["p"].exists
      let first = try database.query(
        "SELECT RAW META().id FROM _ WHERE \(isNone ? "p IS MISSING" : "p = $p") ORDER BY \(order), META().id LIMIT 1"
      ).run(isNone ? [:] : ["p": .int(group["p"].int ?? Int64(group["p"].double ?? -1))])
      return "\(first[0][0].string ?? "-") \(group["n"].int ?? 0)"
    }
    expect(partitions.sorted(), equals: firsts.sorted())
  }

  @Test("kept rows count as memory, and a window can be cancelled")
  func limits() throws {
    let database = try databases.open(someEngines[0])
    try database.saveBatch(0..<3_000) { number in
      ("d\(number)", ["n": .int(Int64(number)), "s": .string(String(repeating: "x", count: 1_000))])
    }
    let query = try database.query(
      "SELECT s, SUM(n) OVER (ORDER BY n) AS r FROM _",
      options: .init(memoryLimit: 1 << 20, temporaryFileLimit: 0))
    let error = #expect(throws: QueryError.self) { try query.run() }
    expect(error?.code, equals: .memoryLimit)
    expect(error?.message.hasPrefix("OVER"), equals: true, "\(error?.message ?? "")")
    let slow = try database.query(
      "SELECT MEDIAN(n) OVER (ORDER BY n ROWS BETWEEN 2000 PRECEDING AND 2000 FOLLOWING) AS r FROM _")
    try expect(
      queryCode { _ = try slow.run(cancellation: QueryCancellation(timeLimit: .milliseconds(50))) },
      equals: .timedOut)
  }
}
