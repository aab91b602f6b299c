import Query
import TestSupport

/// Queries inside queries, sets, names for values, and rows that are values.
@Suite struct InnerQueryTests {
  private let databases = TestDatabases()

  /// Queries and their rows, in their order.
  static let cases: [(String, [String])] = [
    // RAW
    ("SELECT RAW name FROM _ WHERE type = 'airline' ORDER BY name", [#""Alpha""#, #""Gamma""#, #""beta""#]),
    ("SELECT VALUE stars FROM _ WHERE type = 'hotel' ORDER BY META().id", ["5", "2", "3"]),
    ("SELECT ELEMENT {\"n\": name} FROM _ WHERE stars = 5", [#"{"n":"Ritz"}"#]),
    ("SELECT RAW geo.lat FROM _ WHERE type = 'hotel' ORDER BY META().id", ["1.5", "-3", "null"]),
    ("SELECT DISTINCT RAW name FROM _ WHERE type = 'hotel' ORDER BY name", [#""Inn""#, #""Ritz""#]),
    ("SELECT raw, value, element, let FROM _ WHERE stars = 5", ["{}"]),
    ("SELECT RAW COUNT(*) FROM _", ["10"]),
    ("SELECT RAW (1)", ["1"]), ("SELECT RAW [1, 2]", ["[1,2]"]),
    // FROM first
    ("FROM _ WHERE type = 'hotel' SELECT name, stars ORDER BY stars LIMIT 1", [#"{"name":"Inn","stars":2}"#]),
    ("FROM _ AS h WHERE h.stars > 2 SELECT VALUE h.stars ORDER BY h.stars", ["3", "5"]),
    // LET and LETTING
    (
      "SELECT META().id, double FROM _ LET double = stars * 2, more = double + 1 WHERE more > 7 ORDER BY double",
      [#"{"id":"hotel_1","double":10}"#]
    ),
    (
      "SELECT RAW n FROM _ AS a LET n = (SELECT RAW COUNT(*) FROM _ AS r WHERE r.airline = META(a).id)[0] WHERE a.type = 'airline' ORDER BY META(a).id",
      ["2", "1", "0"]
    ),
    (
      "SELECT k, n FROM _ GROUP BY type AS k LETTING n = COUNT(*) HAVING n > 2 ORDER BY n DESC, k",
      [#"{"k":"route","n":4}"#, #"{"k":"airline","n":3}"#, #"{"k":"hotel","n":3}"#]
    ),
    (
      "SELECT name, ARRAY_LENGTH(g) AS n FROM _ AS h WHERE h.type = 'hotel' GROUP BY h.name GROUP AS g ORDER BY name",
      [#"{"name":"Inn","n":2}"#, #"{"name":"Ritz","n":1}"#]
    ),
    // EXCLUDE
    (
      "SELECT * EXCLUDE type, likes, geo.lat FROM _ AS h WHERE h.stars = 5",
      [#"{"h":{"geo":{"lon":2},"name":"Ritz","stars":5}}"#]
    ),
    ("SELECT name, stars EXCLUDE stars FROM _ WHERE stars = 5", [#"{"name":"Ritz"}"#]),
    // Subqueries
    (
      "SELECT META(a).id FROM _ AS a WHERE EXISTS (SELECT 1 FROM _ AS r WHERE r.airline = META(a).id) ORDER BY META(a).id",
      [#"{"id":"airline_1"}"#, #"{"id":"airline_2"}"#]
    ),
    (
      "SELECT a.name, (SELECT RAW COUNT(*) FROM _ AS r WHERE r.airline = META(a).id)[0] AS n FROM _ AS a WHERE a.type = 'airline' ORDER BY a.name",
      [#"{"name":"Alpha","n":2}"#, #"{"name":"Gamma","n":0}"#, #"{"name":"beta","n":1}"#]
    ),
    (
      "SELECT META().id FROM _ WHERE META().id IN (SELECT RAW airline FROM _ WHERE origin = 'CDG')",
      [#"{"id":"airline_1"}"#]
    ),
    ("SELECT RAW stars FROM _ WHERE stars = (SELECT RAW MAX(stars) FROM _)[0]", ["5"]),
    ("SELECT RAW stars FROM _ WHERE [{\"m\": stars}] = (SELECT MAX(stars) AS m FROM _)", ["5"]),
    ("SELECT RAW ANY n IN (SELECT RAW stars FROM _) SATISFIES n > 4 END", ["true"]),
    (
      "SELECT RAW (SELECT RAW h.name FROM _ AS h WHERE h.stars = s ORDER BY META(h).id) FROM [5, 2] AS s",
      [#"["Ritz"]"#, #"["Inn"]"#]
    ),
    (
      "SELECT RAW ARRAY_LENGTH((SELECT 1 FROM h.likes AS l)) FROM _ AS h WHERE h.type = 'hotel' ORDER BY META(h).id",
      ["2", "0", "3"]
    ),
    ("SELECT RAW (SELECT RAW UPPER(h.name)) FROM _ AS h WHERE h.stars = 5", [#"["RITZ"]"#]),
    (
      "SELECT t.type, t.n FROM (SELECT type, COUNT(*) AS n FROM _ GROUP BY type) AS t WHERE t.n = 3 ORDER BY t.type",
      [#"{"type":"airline","n":3}"#, #"{"type":"hotel","n":3}"#]
    ),
    ("SELECT SUM(n) AS s FROM (SELECT RAW stars FROM _) AS n", [#"{"s":10}"#]),
    (
      "SELECT type, (SELECT RAW COUNT(*) FROM _ AS b WHERE b.type = a.type)[0] AS n FROM _ AS a GROUP BY type ORDER BY type",
      [#"{"type":"airline","n":3}"#, #"{"type":"hotel","n":3}"#, #"{"type":"route","n":4}"#]
    ),
    // Sets
    ("SELECT RAW 1 UNION SELECT RAW 1", ["1"]), ("SELECT RAW 1 UNION ALL SELECT RAW 1", ["1", "1"]),
    ("SELECT RAW x FROM [1, 2, 2, 3] AS x EXCEPT SELECT RAW 3", ["1", "2"]),
    ("SELECT RAW x FROM [1, 2, 2, 3] AS x EXCEPT ALL SELECT RAW 2", ["1", "2", "3"]),
    ("SELECT RAW x FROM [1, 2, 2] AS x INTERSECT ALL SELECT RAW y FROM [2, 2, 2] AS y", ["2", "2"]),
    ("SELECT RAW x FROM [1, 2, 2] AS x INTERSECT SELECT RAW 2", ["2"]),
    ("SELECT 1 AS a UNION SELECT 2 AS b ORDER BY a", [#"{"b":2}"#, #"{"a":1}"#]),
    (
      "(SELECT RAW x FROM [3, 1] AS x ORDER BY x LIMIT 1) UNION ALL (SELECT RAW 9 EXCEPT SELECT RAW 8)",
      ["1", "9"]
    ),
    (
      "SELECT a FROM [{\"a\": 2}, {\"a\": 1}] AS t UNION SELECT 3 AS a ORDER BY a DESC LIMIT 2",
      [#"{"a":3}"#, #"{"a":2}"#]
    ),
    ("SELECT RAW 1 UNION ALL SELECT 2 AS a", ["1", #"{"a":2}"#]),
    ("SELECT RAW COUNT(*) FROM (SELECT RAW 1 UNION ALL SELECT RAW 2) AS t", ["2"]),
    // WITH
    ("WITH x AS (1) SELECT x", [#"{"x":1}"#]),
    (
      "WITH h AS (SELECT name, stars FROM _ WHERE type = 'hotel'), n AS (ARRAY_LENGTH(h)) SELECT h.name, n FROM h WHERE h.stars > 4",
      [#"{"name":"Ritz","n":3}"#]
    ),
    (
      "WITH h AS (SELECT RAW stars FROM _ WHERE type = 'hotel') SELECT RAW a FROM h AS a JOIN h AS b ON a < b ORDER BY a",
      ["2", "2", "3"]
    ),
    ("WITH h AS ([1, 2]) SELECT RAW (SELECT RAW SUM(x) FROM h AS x)[0]", ["3"]),
    (
      "WITH RECURSIVE n AS (SELECT RAW 1 UNION SELECT RAW x + 1 FROM n AS x WHERE x < 4) SELECT RAW n FROM n",
      ["1", "2", "3", "4"]
    ),
    (
      "WITH RECURSIVE n AS (SELECT RAW 1 UNION ALL SELECT RAW x + 1 FROM n AS x) OPTIONS {\"levels\": 2} SELECT RAW n FROM n",
      ["1", "2", "3"]
    ),
    (
      "WITH RECURSIVE n AS (SELECT RAW 1 UNION ALL SELECT RAW x + 1 FROM n AS x) OPTIONS {\"documents\": 2} SELECT RAW n FROM n",
      ["1", "2"]
    ),
    // Joins
    (
      "SELECT a.name, r.origin FROM _ AS a, _ AS r WHERE r.airline = META(a).id AND r.origin = 'CDG'",
      [#"{"name":"Alpha","origin":"CDG"}"#]
    ),
    (
      "SELECT h.name, l FROM _ AS h, h.likes AS l WHERE h.stars = 5 ORDER BY l",
      [#"{"name":"Ritz","l":"Ann"}"#, #"{"name":"Ritz","l":"Bob"}"#]
    ),
    ("SELECT META().id FROM _ USE KEYS ['hotel_2', 'none'] WHERE stars = 2", [#"{"id":"hotel_2"}"#]),
    ("SELECT META().id FROM _ USE KEYS 'hotel_2'", [#"{"id":"hotel_2"}"#]),
    (
      "SELECT r.origin, a.name FROM _ AS r JOIN _ AS a ON KEYS r.airline WHERE r.origin = 'CDG'",
      [#"{"origin":"CDG","name":"Alpha"}"#]
    ),
    (
      "SELECT r.origin, a.name FROM _ AS a JOIN _ AS r ON KEY r.airline FOR a WHERE r.origin = 'CDG'",
      [#"{"origin":"CDG","name":"Alpha"}"#]
    ),
    (
      "SELECT META(r).id, a.name FROM _ AS a RIGHT JOIN _ AS r ON META(a).id = r.airline WHERE r.type = 'route' ORDER BY META(r).id",
      [
        #"{"id":"route_1","name":"Alpha"}"#, #"{"id":"route_2","name":"Alpha"}"#, #"{"id":"route_3"}"#,
        #"{"id":"route_4","name":"beta"}"#,
      ]
    ),
    (
      "SELECT x, y FROM [1, 2] AS x FULL JOIN [2, 3] AS y ON x = y",
      [#"{"x":1}"#, #"{"x":2,"y":2}"#, #"{"y":3}"#]
    ),
    (
      "SELECT a.v FROM [{\"k\": 1, \"v\": 2}] AS a JOIN [{\"k\": 1}, {\"k\": 2}] AS b USING (k)",
      [#"{"v":2}"#]
    ),
    (
      "SELECT a.name, ARRAY_LENGTH(r) AS n FROM _ AS a NEST _ AS r ON r.airline = META(a).id ORDER BY a.name",
      [#"{"name":"Alpha","n":2}"#, #"{"name":"beta","n":1}"#]
    ),
    (
      "SELECT a.name, ARRAY_LENGTH(r) AS n FROM _ AS a LEFT NEST _ AS r ON r.airline = META(a).id WHERE a.type = 'airline' ORDER BY a.name",
      [#"{"name":"Alpha","n":2}"#, #"{"name":"Gamma","n":0}"#, #"{"name":"beta","n":1}"#]
    ),
  ]

  @Test(arguments: cases) func queryGivesTheseRows(_ text: String, _ rows: [String]) throws {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    try database.createIndex("airline", on: ["airline"])
    try expect(database.rows(text), equals: rows, "\(text)")
    try expect(database.rows(text, usesIndexes: false), equals: rows, "without indexes: \(text)")
    let printed = try SelectStatement(parsing: text).description
    try expect(SelectStatement(parsing: printed), equals: SelectStatement(parsing: text), "\(printed)")
    try expect(database.rows(printed), equals: rows, "\(printed)")
    try expect(database.query(SelectStatement(parsing: text)).run().map { try $0.json() }, equals: rows)
  }

  @Test(arguments: [
    (
      "WITH RECURSIVE n AS (SELECT RAW 1 UNION ALL SELECT RAW x + 1 FROM n AS x) SELECT RAW n FROM n",
      QueryError.Code.evaluation
    ),
    ("SELECT a FROM nowhere", .unknownName), ("SELECT 1 FROM _ AS a JOIN _ AS b USING ()", .syntax),
    ("WITH a AS (1), a AS (2) SELECT a", .duplicateName), ("SELECT RAW * FROM _ AS a, _ AS b", .syntax),
    ("SELECT x FROM _ LET x = 1, x = 2", .duplicateName), ("SELECT 1 LETTING n = 1", .invalidUse),
    ("SELECT 1 FROM _ AS a RIGHT JOIN a.b AS c ON TRUE", .invalidUse),
    ("SELECT COUNT(SELECT 1)", .syntax), ("SELECT a FROM one.two", .unsupported),
    ("SELECT a FROM (SELECT 1)", .syntax),
    ("SELECT x.a FROM _ WHERE (SELECT 1 FROM _ AS q WHERE y.a = 1)", .unknownName),
  ])
  func mistakeIsNamed(_ text: String, _ code: QueryError.Code) throws {
    let database = try databases.open(.lmdb)
    do {
      _ = try database.query(text).run()
      Issue.record("no error: \(text)")
    } catch let error as QueryError { expect(error.code, equals: code, "\(text): \(error)") }
  }

  @Test func rowsOfValuesAreDecoded() throws {
    struct Hotel: Decodable, Equatable {
      var name: String
      var stars: Int
    }
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    let hotels = try database.query("SELECT VALUE h FROM _ AS h WHERE h.stars = 5")
    try expect(hotels.run(as: Hotel.self), equals: [Hotel(name: "Ritz", stars: 5)])
    try expect(database.query("SELECT RAW stars FROM _ WHERE stars = 5").run(as: Int.self), equals: [5])
    let rows = try hotels.run()
    expect(rows.isRaw && rows[0].isRaw)
    try expect(rows[0].jsonObject()["name"]?.string, equals: "Ritz")
    try expect(rows[0].jsonValue().object?["stars"]?.int, equals: 5)
  }

  /// An index serves the comparison with a value of the outer row, and a hash table where there is none.
  @Test func innerQueryIsPlannedForTheOuterRow() throws {
    let database = try databases.open(.lmdb)
    try database.inBatch {
      for number in 0..<200 {
        try database.save("a\(number)", ["k": .int(Int64(number)), "t": "a"])
        try database.save("b\(number)", ["k": .int(Int64(number / 2)), "t": "b"])
      }
    }
    let text =
      "SELECT RAW (SELECT RAW COUNT(*) FROM _ AS b WHERE b.k = a.k AND b.t = 'b')[0] FROM _ AS a WHERE a.t = 'a'"
    let query = try database.query(text)
    let hashed = try query.explain().description
    expect(hashed.contains("by hash on b.k"), "\(hashed)")
    let expected = (0..<200).map { $0 < 100 ? "2" : "0" }.sorted()
    try expect(query.run().map { try $0.json() }.sorted(), equals: expected)
    try database.createIndex("k", on: ["k"])
    let indexed = try query.explain().description
    expect(indexed.contains("Index k as b"), "\(indexed)")
    try expect(query.run().map { try $0.json() }.sorted(), equals: expected)
  }

  @Test func memoryAndCancellationHoldInside() throws {
    let database = try databases.open(.lmdb)
    try database.inBatch {
      for number in 0..<2_000 {
        try database.save("d\(number)", ["s": .string(String(repeating: "x", count: 200))])
      }
    }
    for text in [
      "WITH w AS (SELECT s FROM _) SELECT RAW COUNT(*) FROM w",
      "SELECT RAW s FROM _ UNION SELECT RAW META().id || s FROM _",
      "SELECT RAW ARRAY_LENGTH((SELECT s FROM _))",
    ] {
      do {
        _ = try database.query(text, options: .init(memoryLimit: 100_000, temporaryFileLimit: 0)).run()
        Issue.record("no error: \(text)")
      } catch let error as QueryError { expect(error.code, equals: .memoryLimit, "\(text)") }
    }
    let cancellation = QueryCancellation()
    cancellation.cancel()
    do {
      _ = try database.query("SELECT RAW (SELECT 1 FROM _ AS b WHERE b.s = a.s) FROM _ AS a").run(
        cancellation: cancellation)
      Issue.record("no error")
    } catch let error as QueryError { expect(error.code, equals: .cancelled) }
  }

  @Test func liveQueryLooksAtInnerSources() throws {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    let told = ToldResults()
    let live = try database.observe(
      database.query(
        "SELECT RAW COUNT(*) FROM _ AS a WHERE a.type = 'airline' AND EXISTS (SELECT 1 FROM _ AS r WHERE r.type = 'route' AND r.airline = META(a).id)"
      )
    ) { told.append($0) }
    defer { live.cancel() }
    expect(told.next(), equals: ["2"])
    try database.save("route_5", ["type": "route", "airline": "airline_3"])
    expect(told.next(), equals: ["3"])
  }

  @Test func builderMakesTheSameTrees() throws {
    let hotels = Query.selectRaw(.property("stars")).from().where(.property("type") .== "hotel")
    let pairs: [(SelectStatement, String)] = [
      (hotels, "SELECT RAW stars FROM _ WHERE type = 'hotel'"),
      (
        hotels.union(Query.selectRaw(1), all: true),
        "SELECT RAW stars FROM _ WHERE type = 'hotel' UNION ALL SELECT RAW 1"
      ),
      (
        Query.select(.property("a")).from(DataSource(hotels, as: "t")).with(WithBinding("w", hotels))
          .let(LetBinding("x", .property("b"))),
        "WITH w AS (SELECT RAW stars FROM _ WHERE type = 'hotel') SELECT a FROM (SELECT RAW stars FROM _ WHERE type = 'hotel') AS t LET x = b"
      ),
      (
        Query.select(.property("a", from: "x")).from(DataSource("_", as: "x").useKeys("k"))
          .join(
            Join.fullJoin(DataSource("_", as: "y")).on(true), Join.nest(DataSource("_", as: "z"), on: true)
          )
          .excluding("b.c"),
        "SELECT x.a EXCLUDE b.c FROM _ AS x USE KEYS 'k' FULL JOIN _ AS y ON TRUE NEST _ AS z ON TRUE"
      ),
    ]
    for (built, text) in pairs { try expect(built, equals: SelectStatement(parsing: text), "\(built)") }
  }
}
