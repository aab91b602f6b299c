import Fleece
import TestSupport
import Touchstone

@testable import Query

/// Queries in the JSON form of LiteCore.
@Suite struct JSONQueryTests {
  private let databases = TestDatabases()

  /// Expressions in JSON, and the same as text.
  static let expressions: [(String, String)] = [
    (#"[".a.b[0]"]"#, "a.b[0]"), (#"[".", "a", "b", [0]]"#, "a.b[0]"), (#"[".a[-1].c"]"#, "a[-1].c"),
    (#"[".a\\.b"]"#, "`a.b`"), (#"["_.", [".o"], ".x"]"#, "o.x"), (#"["_.x.y", ["f()"]]"#, ""),
    (#"["_.", ["[]", 1], ".x"]"#, "[1].x"), (#"["_.x", ["UPPER()", [".a"]]]"#, "UPPER(a).x"),
    (#"["$p"]"#, "$p"), (#"["$", "p"]"#, "$p"),
    (#"["[]", 1, "two", [".c"]]"#, "[1, 'two', c]"), (#"["MISSING"]"#, "MISSING"), ("null", "NULL"),
    (#"{"b": [".x"], "a": 1.5}"#, #"{"a": 1.5, "b": x}"#), ("true", "TRUE"), (#""it's""#, "'it''s'"),
    (#"["LOWER()", [".name"]]"#, "LOWER(name)"), (#"["PI()"]"#, "PI()"),
    (#"["length()", "abc"]"#, "LENGTH('abc')"),
    (
      #"["COLLATE", {"UNICODE": true, "CASE": false, "DIAC": false, "LOCALE": "sv"}, [".name"]]"#,
      "name COLLATE (UNICODE:sv NOCASE NODIAC)"
    ),
    (#"["COLLATE", {"CASE": false}, ["=", [".name"], "x"]]"#, "name = 'x' COLLATE NOCASE"),
    (#"["ANY", "x", [".likes"], ["=", ["?x.y"], 1]]"#, "ANY x IN likes SATISFIES x.y = 1 END"),
    (#"["EVERY", "x", [".likes"], [">", ["?x"], 1]]"#, "EVERY x IN likes SATISFIES x > 1 END"),
    (
      #"["ANY AND EVERY", "x", [".likes"], ["=", ["?", "x", "y"], 1]]"#,
      "ANY AND EVERY x IN likes SATISFIES x.y = 1 END"
    ),
    (
      #"["CASE", [".a"], 1, "one", 2, "two", "other"]"#,
      "CASE a WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'other' END"
    ),
    (#"["CASE", null, ["=", [".a"], 1], "one"]"#, "CASE WHEN a = 1 THEN 'one' END"),
    (#"["MATCH()", "text", "castle"]"#, "MATCH(text, 'castle')"),
    (#"["MATCH", "text", "castle"]"#, "MATCH(text, 'castle')"),
    (#"["RANK()", "text"]"#, "RANK(text)"),
    (#"["._id"]"#, "META().id"), (#"["._sequence"]"#, "META().sequence"),
    (#"["._deleted"]"#, "META().deleted"),
    (#"["._expiration"]"#, "META().expiration"), (#"["._revisionID"]"#, "META().revisionID"),
    (#"["META()"]"#, "META()"), (#"[".\\_id"]"#, "_id"),
    (#"["AND", [".a"], [".b"], [".c"]]"#, "a AND b AND c"), (#"["OR", [".a"], [".b"]]"#, "a OR b"),
    (#"["NOT", [".a"]]"#, "NOT a"), (#"["-", [".a"]]"#, "-a"), (#"["+", 1, 2, [".a"]]"#, "1 + 2 + a"),
    (#"["-", [".a"], 1]"#, "a - 1"), (#"["||", [".a"], "x", [".b"]]"#, "a || 'x' || b"),
    (#"["==", [".a"], 1]"#, "a = 1"), (#"["<>", [".a"], 1]"#, "a != 1"), (#"["<=", [".a"], 1]"#, "a <= 1"),
    (#"["IS", [".a"], null]"#, "a IS NULL"), (#"["IS NOT", [".a"], ["MISSING"]]"#, "a IS NOT MISSING"),
    (#"["IS", [".a"], [".b"]]"#, "a IS b"), (#"["IS VALUED", [".a"]]"#, "a IS VALUED"),
    (#"["IN", [".a"], ["[]", 1, 2]]"#, "a IN (1, 2)"), (#"["NOT IN", [".a"], [".l"]]"#, "a NOT IN l"),
    (#"["IN", [".a"], 1, 2]"#, "a IN (1, 2)"), (#"["LIKE", [".a"], "x%"]"#, "a LIKE 'x%'"),
    (#"["BETWEEN", [".a"], 1, 3]"#, "a BETWEEN 1 AND 3"),
    (#"["EXISTS", ["SELECT", {"WHAT": [1]}]]"#, "EXISTS (SELECT 1 FROM _)"),
    (#"["COUNT()", ["."]]"#, "COUNT(*)"), (#"["COUNT()", ["DISTINCT", [".a"]]]"#, "COUNT(DISTINCT a)"),
  ]

  @Test(arguments: expressions.filter { !$0.1.isEmpty })
  func expressionsAreThoseOfTheText(_ json: String, _ text: String) throws {
    let query = try SelectStatement(jsonText: #"["SELECT", {"WHAT": ["# + json + "]}]")
    try expect(query == SelectStatement(parsing: "SELECT \(text) FROM _"), "\(query)")
    // Written and read again it is the same.
    let written = try query.json()
    try expect(SelectStatement(json: written) == query, "\(written)")
  }

  /// Queries in JSON, and the same as text.
  static let queries: [(String, String)] = [
    (
      #"["=", [".type"], "hotel"]"#,
      "SELECT META().id AS _id, META().sequence AS _sequence FROM _ WHERE type = 'hotel'"
    ),
    (
      #"{"WHAT": [[".name"]], "WHERE": ["=", [".type"], "hotel"]}"#, "SELECT name FROM _ WHERE type = 'hotel'"
    ),
    (
      #" ["SELECT", {"WHAT": [".name", ["AS", [".stars"], "s"]], "DISTINCT": true, "ORDER_BY": [["DESC", [".s"]], ["ASC", ".name"]], "LIMIT": 10, "OFFSET": ["$o"]}]"#,
      "SELECT DISTINCT name, stars AS s FROM _ ORDER BY s DESC, name LIMIT 10 OFFSET $o"
    ),
    (
      #"{"WHAT": [[".type"], ["COUNT()", ["."]]], "GROUP_BY": [[".type"]], "HAVING": [">", ["COUNT()", ["."]], 1]}"#,
      "SELECT type, COUNT(*) FROM _ GROUP BY type HAVING COUNT(*) > 1"
    ),
    (
      #"{"WHAT": [[".a.name"], [".b."], [".a._id"]], "FROM": [{"AS": "a"}, {"AS": "b", "JOIN": "LEFT OUTER", "ON": ["=", ["._id"], [".a.x"]]}]}"#,
      "SELECT a.name, b.*, META(a).id FROM _ AS a LEFT OUTER JOIN _ AS b ON META().id = a.x"
    ),
    (
      #"{"WHAT": [[".u"]], "FROM": [{"AS": "a"}, {"AS": "u", "UNNEST": [".a.likes"]}]}"#,
      "SELECT u FROM _ AS a UNNEST a.likes AS u"
    ),
    (
      #"{"WHAT": [[".a.x"]], "FROM": [{"AS": "a"}, {"AS": "b", "ON": [".b.y"]}, {"AS": "c", "JOIN": "CROSS"}]}"#,
      "SELECT a.x FROM _ AS a JOIN _ AS b ON b.y CROSS JOIN _ AS c"
    ),
    (
      #"{"WHAT": [["RANK()", "b.text"]], "FROM": [{"AS": "b"}], "WHERE": ["MATCH()", "b.text", "x"]}"#,
      "SELECT RANK(b.text) FROM _ AS b WHERE MATCH(b.text, 'x')"
    ),
    (#"["SELECT", {"WHAT": [["."]]}]"#, "SELECT * FROM _"),
  ]

  @Test(arguments: queries) func queriesAreThoseOfTheText(_ json: String, _ text: String) throws {
    expect(SelectStatement.isJSON(json))
    let query = try SelectStatement(jsonText: json)
    try expect(query == SelectStatement(parsing: text), "\(query)")
    try expect(SelectStatement(json: query.json()) == query)
  }

  @Test func runsLikeText() throws {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    let json = try database.query(
      #"{"WHAT": [["._id"]], "WHERE": [">=", [".stars"], ["$least"]], "ORDER_BY": [["._id"]]}"#)
    let text = try database.query("SELECT META().id FROM _ WHERE stars >= $least ORDER BY META().id")
    let rows = try json.run(["least": 3])
    expect(json.columnNames, equals: ["id"])
    try expect(rows.map { try $0.json() }, equals: text.run(["least": 3]).map { try $0.json() })
    expect(!rows.isEmpty)
    try expect(json.explain().description, equals: text.explain().description)
  }

  @Test(arguments: [
    ("{", QueryError.Code.syntax, "isn't"), (#"{"WAT": []}"#, .syntax, "did you mean WHAT"),
    (#"["SELECT"]"#, .syntax, "object of clauses"), (#"{"WHAT": []}"#, .syntax, "WHAT"),
    (#"["FOO()", 1]"#, .unknownFunction, "FOO"), (#"["UPPER()"]"#, .argumentCount, "UPPER"),
    (#"["=", [".a"], ["LYKE", 1, 2]]"#, .unsupported, "WHERE, =, LYKE"),
    (#"["=", 1]"#, .argumentCount, "2 operands"),
    (#"[1, 2]"#, .syntax, "name of an operation"), (#"[".a[x]"]"#, .syntax, "number in its brackets"),
    (#"{"FROM": [{"AS": "a"}, {"JOIN": "INNER"}]}"#, .syntax, "needs AS"),
    (#"["ROW_NUMBER()"]"#, .unsupported, "ROW_NUMBER"), (#"{"DISTINCT": 1}"#, .syntax, "DISTINCT"),
    (#"["COLLATE", {"CASE": 1}, [".a"]]"#, .syntax, "CASE"), ("[]", .syntax, "name of an operation"),
  ])
  func mistakesAreNamed(_ json: String, _ code: QueryError.Code, _ part: String) {
    let error = #expect(throws: QueryError.self) { try SelectStatement(jsonText: json) }
    expect(error?.code, equals: code)
    expect(error?.message.contains(part) == true, "\(String(describing: error))")
  }

  @Test func longChainsAreFlat() throws {
    let json = #"["OR""# + (0..<100_000).map { #", ["=", [".a"], \#($0)]"# }.joined() + "]"
    let database = try databases.open(.lmdb)
    try database.fill([("x", #"{"a":99999}"#)])
    try expect(database.query(json).run().count, equals: 1)
    let sum = #"{"WHAT": [["+""# + String(repeating: ", 1", count: 100_000) + "]]}"
    let error = #expect(throws: QueryError.self) { try SelectStatement(jsonText: sum) }
    expect(error?.code, equals: .tooDeep)
  }

  @Test func depthIsBounded() {
    let deep = (0..<250).reduce(JSONValue.int(1)) { inner, _ in .array(["NOT", inner]) }
    let error = #expect(throws: QueryError.self) { try SelectStatement(json: deep) }
    expect(error?.code, equals: .tooDeep)
  }

  @Test(arguments: [
    "SELECT 1", "SELECT RAW a FROM _", "SELECT a FROM _ UNION SELECT b FROM _",
    "WITH w AS (1) SELECT w FROM _",
    "SELECT ARRAY v FOR v IN a END FROM _", "SELECT a[b] FROM _", "SELECT RANK() OVER (ORDER BY a) FROM _",
    "SELECT a FROM _ ORDER BY a NULLS LAST", "SELECT x FROM _ LET x = a", "SELECT a FROM [1] AS a",
    "SELECT a WITHIN b FROM _", "SELECT {a: b} FROM _",
  ])
  func whatHasNoJSONFormIsNamed(_ text: String) throws {
    let query = try SelectStatement(parsing: text)
    let error = #expect(throws: QueryError.self) { try query.json() }
    expect(error?.code, equals: .unsupported)
    expect(error?.message.hasSuffix("has no JSON form") == true)
  }
}
