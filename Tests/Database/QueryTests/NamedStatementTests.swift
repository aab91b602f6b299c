import TestSupport

@testable import Query
@testable import Touchstone

/// INFER, PREPARE, EXECUTE and the sources about the database.
@Suite struct NamedStatementTests {
  private let databases = TestDatabases()

  @Test("PREPARE names a statement, and EXECUTE runs it with values", arguments: someEngines)
  func prepared(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill((1...4).map { ("d\($0)", #"{"n":\#($0)}"#) })
    let prepare = try database.query("PREPARE more AS SELECT n FROM _ WHERE n > $least ORDER BY n")
    expect(prepare.columnNames, equals: ["name"])
    // Nothing has a name before the statement has run.
    #expect(throws: QueryError.self) { try database.query("EXECUTE more") }
    try expect(prepare.run().map { try $0.json() }, equals: [#"{"name":"more"}"#])
    try expect(database.rows("EXECUTE more", ["least": 3]), equals: [#"{"n":4}"#])
    try expect(database.rows(#"EXECUTE more USING {"$least": 2}"#), equals: [#"{"n":3}"#, #"{"n":4}"#])
    let fixed = try database.query(#"EXECUTE "more" USING {"least": 3}"#)
    expect(fixed.parameterNames, equals: [])
    try expect(fixed.run(["least": 0]).count, equals: 1)
    try expect(database.query("EXECUTE more").parameterNames, equals: ["least"])

    // The same again is no other statement. Another one needs FORCE.
    _ = try prepare.run()
    let other = "AS SELECT RAW n FROM _ WHERE n = ?"
    #expect(throws: QueryError.self) { try database.query("PREPARE more \(other)").run() }
    _ = try database.query("PREPARE FORCE more \(other)").run()
    try expect(database.rows("EXECUTE more USING [4]"), equals: ["4"])
    let made = try database.query("PREPARE SELECT 1 AS one").run()[0]["name"].string ?? ""
    try expect(database.rows("EXECUTE \(made)"), equals: [#"{"one":1}"#])
    try expect(
      database.rows("SELECT RAW p.statement FROM system:prepareds AS p WHERE p.name = 'more'"),
      equals: [#""SELECT RAW n FROM _ WHERE n = $1""#])
  }

  @Test("a prepared change is run by execute", arguments: someEngines)
  func preparedChanges(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill([("a", #"{"n":1}"#)])
    _ = try database.query("PREPARE up FROM UPDATE _ SET n = n + $by RETURNING n").run()
    try expect(database.changes("EXECUTE up") && !database.changes("PREPARE x AS DELETE FROM _"))
    #expect(throws: QueryError.self) { try database.query("EXECUTE up") }
    let changed = try database.execute("EXECUTE up USING {'by': 5}")
    try expect(changed.rows.map { try $0.json() }, equals: [#"{"n":6}"#])
    try expect(database.execute("EXECUTE up", ["by": 1], isDryRun: true).documents.count, equals: 1)
    try expect(database.document("a")?.value()["n"], equals: 6)
    _ = try database.query("PREPARE i AS CREATE INDEX byN ON _ (n)").run()
    try expect(database.execute("EXECUTE i").indexes.count, equals: 1)
  }

  @Test("mistakes in PREPARE and EXECUTE are told with their places")
  func mistakes() throws {
    let database = try databases.open(.lmdb)
    func message(_ text: String) -> String {
      do { _ = try database.query(text).run() } catch { return "\(error)" }
      return "none"
    }
    expect(message("PREPARE p AS SELECT x.a FROM _ AS y").contains("there is no source \"x\""))
    expect(message("PREPARE p AS UPDATE nope SET a = 1").contains("nope"))
    expect(message("PREPARE p AS DROP INDEX i ON nope").contains("nope"))
    expect(message("PREPARE p AS SELEC 1").contains("line 1, column 14"))
    _ = try database.query("PREPARE people AS SELECT 1").run()
    expect(message("EXECUTE peple").contains("(did you mean people?)"))
    expect(message("EXECUTE people USING [a]").contains("constants"))
    for number in 0..<PreparedStatements.most - 1 {
      _ = try database.query("PREPARE p\(number) AS SELECT 1").run()
    }
    expect(message("PREPARE last AS SELECT 1").contains("the most possible"))
    expect(message("PREPARE FORCE p0 AS SELECT '\(String(repeating: "a", count: 70_000))'").contains("KiB"))
  }

  @Test("prepared statements belong to whom they are of, and end with the database")
  func owners() throws {
    let database = try databases.open(.lmdb)
    var options = Query.Options()
    options.statementOwner = "anna"
    _ = try database.query("PREPARE p AS SELECT 1", options: options).run()
    #expect(throws: QueryError.self) { try database.query("EXECUTE p") }
    options.statementOwner = "bert"
    #expect(throws: QueryError.self) { try database.query("EXECUTE p", options: options) }
    options.statementOwner = "anna"
    try expect(database.query("EXECUTE p", options: options).run().count, equals: 1)
    try expect(database.rows("SELECT * FROM system:prepareds"), equals: [])
  }

  @Test("system:indexes and others tell about the database", arguments: someEngines)
  func system(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill([("a", #"{"n":1,"t":"x"}"#)])
    let query = try database.query(
      "SELECT i.name, i.index_key, i.`using`, i.condition FROM system:indexes AS i")
    try expect(query.run().count, equals: 0)
    try database.createIndex("byN", on: ["n", "LOWER(t)"], where: "t = 'x'")
    // A query that is prepared already sees what there is when it runs.
    try expect(
      query.run().map { try $0.json() },
      equals: [#"{"name":"byN","index_key":["n","LOWER(t)"],"using":"gsi","condition":"t = 'x'"}"#])
    try expect(database.rows("SELECT RAW k.count FROM system:keyspaces AS k"), equals: ["1"])
    try expect(database.rows("SELECT 1 AS one FROM system:dual"), equals: [#"{"one":1}"#])
    try expect(
      database.rows("SELECT d.n, indexes.name FROM _ AS d JOIN SYSTEM:INDEXES ON indexes.name = 'byN'"),
      equals: [#"{"n":1,"name":"byN"}"#])
    try expect(
      database.rows("SELECT RAW (SELECT RAW i.name FROM system:indexes AS i) FROM _ AS d"),
      equals: [#"["byN"]"#])
    for wrong in [
      "SELECT 1 FROM system:index", "SELECT 1 FROM system:indexes USE KEYS 'a'", "DELETE FROM system:indexes",
    ] {
      #expect(throws: QueryError.self, "\(wrong)") {
        if database.isChange(wrong) { try database.execute(wrong) } else { _ = try database.query(wrong) }
      }
    }
    for text in ["SELECT * FROM system:indexes", "SELECT * FROM `system:indexes`"] {
      let statement = try SelectStatement(parsing: text)
      try expect(SelectStatement(parsing: statement.description), equals: statement)
    }
  }

  @Test("INFER tells of a sample which properties there are", arguments: someEngines)
  func infer(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill([
      ("a", #"{"n":1,"t":"x","o":{"k":[1,2]}}"#), ("b", #"{"n":"2","o":{"k":[]}}"#), ("c", #"{"n":1}"#),
      ("d", #"{"n":2}"#),
    ])
    let schema = try database.query("INFER _").run()[0].jsonValue()
    expect(schema["#docs"], equals: 4)
    expect(schema["type"], equals: "object")
    let properties = schema["properties"]
    expect(properties["n"]["type"], equals: ["number", "string"])
    expect(properties["n"]["#docs"], equals: [3, 1])
    expect(properties["n"]["%docs"].double, equals: 100)
    expect(properties["t"]["%docs"].double, equals: 25)
    expect(properties["t"]["samples"], equals: ["x"])
    let items = properties["o"]["properties"]["k"]["items"]
    expect(items["type"], equals: "number")
    expect(items["#docs"], equals: 2)
    let few = try database.query(#"INFER _ WITH {"sample_size": 2, "num_sample_values": 1}"#).run()[0]
      .jsonValue()
    expect(few["#docs"], equals: 2)
    try expect(database.query("INFER KEYSPACE _default").run().count, equals: 1)
    try expect(database.rows("SELECT RAW s.`#docs` FROM system:schema AS s"), equals: ["4"])
    #expect(throws: QueryError.self) { try database.query("INFER other") }
    let cancelled = QueryCancellation()
    cancelled.cancel()
    #expect(throws: QueryError.self) { try database.query("INFER _").run(cancellation: cancelled) }
  }

  @Test(
    "statements are printed as they are parsed",
    arguments: [
      "INFER _", #"INFER travel WITH {"sample_size": 10}"#, "PREPARE p AS SELECT 1",
      "PREPARE FORCE `a-b` AS DELETE FROM _",
      "PREPARE INFER _", "EXECUTE p", "EXECUTE p USING [1, 'a', -2, NULL]", #"EXECUTE p USING {"a": 1.5}"#,
      "PREPARE p AS EXPLAIN SELECT a FROM _",
    ])
  func roundTrips(_ text: String) throws {
    let statement = try QueryStatement(parsing: text)
    expect(statement.description, equals: text)
    try expect(QueryStatement(parsing: text + ";") == statement)
  }

  @Test(
    "forms of other dialects are calls and clauses of this one",
    arguments: [
      ("SELECT a FROM _ FETCH FIRST 3 ROWS ONLY", "SELECT a FROM _ LIMIT 3"),
      (
        "SELECT a FROM _ ORDER BY a OFFSET 2 ROWS FETCH NEXT ROW ONLY",
        "SELECT a FROM _ ORDER BY a LIMIT 1 OFFSET 2"
      ),
      ("SELECT a FROM _ FETCH NEXT $n ROWS ONLY", "SELECT a FROM _ LIMIT $n"),
      (
        "SELECT CAST(a AS string), b::number, (a + 1)::text",
        "SELECT TOSTRING(a), TONUMBER(b), TOSTRING(a + 1)"
      ),
      ("SELECT a.b[0]::int", "SELECT IDIV(TONUMBER(a.b[0]), 1)"),
      ("SELECT a[1:2]::array", "SELECT TOARRAY(a[1:2])"),
      ("SELECT a ILIKE 'A%', a NOT ILIKE b", "SELECT a LIKE 'A%', a NOT LIKE b"),
      ("SELECT a REGEXP 'b' AND c", "SELECT REGEXP_LIKE(a, 'b') AND c"),
      ("SELECT a NOT REGEXP 'b'", "SELECT NOT REGEXP_LIKE(a, 'b')"),
      (
        "SELECT STRING_AGG(a, '-')",
        "SELECT CONCAT2('-', ARRAY_AGG(TOSTRING(a)) FILTER (WHERE TOSTRING(a) IS VALUED))"
      ),
      (
        "SELECT GROUP_CONCAT(DISTINCT a) FILTER (WHERE b)",
        "SELECT CONCAT2(',', ARRAY_AGG(DISTINCT TOSTRING(a)) FILTER (WHERE b AND TOSTRING(a) IS VALUED))"
      ),
    ])
  func forms(_ text: String, _ plain: String) throws {
    try expect(SelectStatement(parsing: text), equals: SelectStatement(parsing: plain))
    expect(try? SelectStatement(parsing: text).description, equals: plain)
  }

  @Test("texts of a group are joined")
  func joined() throws {
    let database = try databases.open(.lmdb)
    try database.fill([("a", #"{"k":1,"s":"x"}"#), ("b", #"{"k":1,"s":null}"#), ("c", #"{"k":2,"s":5}"#)])
    try expect(
      database.rows("SELECT RAW STRING_AGG(s, '-') FROM _ GROUP BY k ORDER BY k"), equals: [#""x""#, #""5""#])
    try expect(database.rows("SELECT RAW HASHBYTES('a')::string"), equals: ["null"])
    try expect(
      database.rows("SELECT RAW BASE64_ENCODE(HASHBYTES('a', {'algorithm': 'md5'}))"),
      equals: [#""YGeSSuGxgyq849Ev6DdVqQ==""#])
    try expect(database.rows("SELECT RAW HASHBYTES('a', 'md6')"), equals: ["null"])
  }
}

extension Database {
  fileprivate func isChange(_ text: String) -> Bool { GivenStatement(text).changes }
}
