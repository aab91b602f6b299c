import Query
import TestSupport

/// A few documents of an airline's world.
let smallWorld: [(String, String)] = [
  ("airline_1", #"{"type":"airline","name":"Alpha","country":"France","fleet":12}"#),
  ("airline_2", #"{"type":"airline","name":"beta","country":"Spain","fleet":3.5}"#),
  ("airline_3", #"{"type":"airline","name":"Gamma","country":null}"#),
  ("hotel_1", #"{"type":"hotel","name":"Ritz","stars":5,"likes":["Ann","Bob"],"geo":{"lat":1.5,"lon":2}}"#),
  ("hotel_2", #"{"type":"hotel","name":"Inn","stars":2,"likes":[],"geo":{"lat":-3,"lon":2}}"#),
  ("hotel_3", #"{"type":"hotel","name":"Inn","stars":3,"likes":["Cid","Ann","Ann"]}"#),
  ("route_1", #"{"type":"route","airline":"airline_1","origin":"SFO","stops":[{"d":1},{"d":3}]}"#),
  ("route_2", #"{"type":"route","airline":"airline_1","origin":"CDG","stops":[{"d":2}]}"#),
  ("route_3", #"{"type":"route","airline":"airline_9","origin":"SFO"}"#),
  ("route_4", #"{"type":"route","airline":"airline_2","origin":"SFO","stops":[]}"#),
]

@Suite struct ExecutionTests {
  private let databases = TestDatabases()

  /// Queries whose rows are decided, in their order or else sorted.
  static let cases: [(String, [String])] = [
    (
      "SELECT name FROM _ WHERE type = 'airline' ORDER BY name",
      [#"{"name":"Alpha"}"#, #"{"name":"Gamma"}"#, #"{"name":"beta"}"#]
    ),
    (
      "SELECT META().id FROM _ WHERE stars >= 3 ORDER BY stars DESC",
      [#"{"id":"hotel_1"}"#, #"{"id":"hotel_3"}"#]
    ),
    ("SELECT META().id FROM _ ORDER BY META().id LIMIT 2", [#"{"id":"airline_1"}"#, #"{"id":"airline_2"}"#]),
    ("SELECT META().id FROM _ ORDER BY META().id DESC LIMIT 1 OFFSET 1", [#"{"id":"route_3"}"#]),
    ("SELECT META().id FROM _ WHERE META().id = 'hotel_2'", [#"{"id":"hotel_2"}"#]),
    (
      "SELECT META().id FROM _ WHERE META().id IN ['hotel_2', 'none', 'airline_1', 'hotel_2'] ORDER BY META().id",
      [#"{"id":"airline_1"}"#, #"{"id":"hotel_2"}"#]
    ),
    (
      "SELECT META().id FROM _ WHERE META().id BETWEEN 'hotel_2' AND 'route_1' ORDER BY META().id",
      [#"{"id":"hotel_2"}"#, #"{"id":"hotel_3"}"#, #"{"id":"route_1"}"#]
    ),
    (
      "SELECT META().id FROM _ WHERE META().id > 'route_2' ORDER BY META().id",
      [#"{"id":"route_3"}"#, #"{"id":"route_4"}"#]
    ),
    ("SELECT META().id FROM _ WHERE META().id < 'airline_2'", [#"{"id":"airline_1"}"#]),
    ("SELECT COUNT(*) AS n FROM _", [#"{"n":10}"#]),
    ("SELECT COUNT(*) AS n FROM _ WHERE META().id LIKE 'HOTEL%'", [#"{"n":3}"#]),
    (
      "SELECT COUNT(*) AS n, SUM(stars) AS s, AVG(stars) AS a, MIN(name), MAX(name) FROM _ WHERE type = 'hotel'",
      [#"{"n":3,"s":10,"a":3.3333333333333335,"$1":"Inn","$2":"Ritz"}"#]
    ),
    ("SELECT COUNT(*) AS n, SUM(x) AS s FROM _ WHERE type = 'nothing'", [#"{"n":0}"#]),
    ("SELECT SUM(x) AS s, AVG(x) AS a FROM [1e308, 1e308] AS x", [#"{"s":null,"a":null}"#]),
    (
      "SELECT type, COUNT(*) AS n FROM _ GROUP BY type HAVING COUNT(*) > 3 ORDER BY type",
      [#"{"type":"route","n":4}"#]
    ),
    (
      "SELECT type, COUNT(*) AS n FROM _ GROUP BY type ORDER BY COUNT(*) DESC, type LIMIT 2",
      [#"{"type":"route","n":4}"#, #"{"type":"airline","n":3}"#]
    ),
    (
      "SELECT DISTINCT name FROM _ WHERE type = 'hotel' ORDER BY name",
      [#"{"name":"Inn"}"#, #"{"name":"Ritz"}"#]
    ),
    (
      "SELECT META(r).id AS id, a.name FROM _ AS r JOIN _ AS a ON META(a).id = r.airline WHERE r.origin = 'SFO' ORDER BY id",
      [#"{"id":"route_1","name":"Alpha"}"#, #"{"id":"route_4","name":"beta"}"#]
    ),
    (
      "SELECT META(r).id AS id, a.name FROM _ AS r LEFT OUTER JOIN _ AS a ON META(a).id = r.airline WHERE r.origin = 'SFO' ORDER BY id",
      [#"{"id":"route_1","name":"Alpha"}"#, #"{"id":"route_3"}"#, #"{"id":"route_4","name":"beta"}"#]
    ),
    (
      "SELECT META(x).id AS x, META(y).id AS y FROM _ AS x JOIN _ AS y ON x.name = y.name WHERE META(x).id < META(y).id",
      [#"{"x":"hotel_2","y":"hotel_3"}"#]
    ),
    ("SELECT COUNT(*) AS n FROM _ AS x CROSS JOIN _ AS y", [#"{"n":100}"#]),
    (
      "SELECT META(r).id AS id, s.d FROM _ AS r UNNEST r.stops AS s ORDER BY s.d",
      [#"{"id":"route_1","d":1}"#, #"{"id":"route_2","d":2}"#, #"{"id":"route_1","d":3}"#]
    ),
    (
      "SELECT META().id FROM _ WHERE ANY l IN likes SATISFIES l = 'Ann' END ORDER BY META().id",
      [#"{"id":"hotel_1"}"#, #"{"id":"hotel_3"}"#]
    ),
    ("SELECT name AS n FROM _ WHERE n = 'Ritz'", [#"{"n":"Ritz"}"#]),
    ("SELECT geo.lat FROM _ WHERE geo.lat IS VALUED ORDER BY geo.lat", [#"{"lat":-3}"#, #"{"lat":1.5}"#]),
    (
      "SELECT META().id FROM _ WHERE type = 'route' AND (origin = 'CDG' OR META().id = 'route_3') ORDER BY META().id",
      [#"{"id":"route_2"}"#, #"{"id":"route_3"}"#]
    ),
    (
      "SELECT META().id FROM _ WHERE META().id = 'hotel_1' OR META().id = 'route_3' OR META().id = 'hotel_1' ORDER BY META().id",
      [#"{"id":"hotel_1"}"#, #"{"id":"route_3"}"#]
    ),
    ("SELECT country FROM _ WHERE META().id = 'airline_3'", [#"{"country":null}"#]),
    ("SELECT 1 + 1 AS two", [#"{"two":2}"#]),
    ("SELECT META().id FROM _ WHERE EXISTS (SELECT 1 FROM _ WHERE stars = 5) AND type = 'hotel' LIMIT 0", []),
    ("SELECT COUNT(*) AS n FROM _ WHERE NOT EXISTS (SELECT 1 FROM _ WHERE stars = 9)", [#"{"n":10}"#]),
    ("SELECT MAX(stars) AS m, name FROM _ WHERE type = 'hotel'", [#"{"m":5,"name":"Ritz"}"#]),
    ("SELECT META().sequence AS s FROM _ WHERE META().id = 'hotel_1'", [#"{"s":4}"#]),
    ("SELECT ARRAY_AGG(stars) AS a FROM _ WHERE type = 'hotel' AND name = 'Ritz'", [#"{"a":[5]}"#]),
    ("SELECT name FROM _ WHERE 1 = 2", []),
  ]

  @Test(arguments: someEngines) func queriesGiveTheRowsTheyShould(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill(smallWorld)
    for (text, expected) in ExecutionTests.cases {
      for usesIndexes in [true, false] {
        let rows = try database.rows(text, usesIndexes: usesIndexes)
        expect(rows, equals: expected, "\(text), indexes \(usesIndexes)")
      }
    }
  }

  @Test(arguments: someEngines) func aBatchSeesItsOwnWrites(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.fill(smallWorld)
    let query = try database.query("SELECT COUNT(*) AS n FROM _ WHERE fresh = true")
    try database.inBatch {
      try database.save("new", ["fresh": true])
      try expect(query.run()[0]["n"].int, equals: 1)
    }
    try expect(query.run()[0]["n"].int, equals: 1)
  }

  @Test func tombstonesAreRowsOfWhoAsksForThem() throws {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    try database.delete("hotel_2")
    let live = try database.rows("SELECT META().id FROM _ WHERE META().id = 'hotel_2'")
    let dead = try database.rows("SELECT META().id FROM _ WHERE META().deleted")
    let named = try database.rows("SELECT META().id FROM _ WHERE META().id = 'hotel_2' AND META().deleted")
    expect(live.isEmpty)
    expect(dead, equals: [#"{"id":"hotel_2"}"#])
    expect(named, equals: dead)
  }

  @Test func parametersAreAskedForByName() throws {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    let query = try database.query("SELECT name FROM _ WHERE type = $type AND stars > $stars LIMIT $n")
    try expect(query.run(["type": "hotel", "stars": 4, "n": 3]).map { $0["name"].string }, equals: ["Ritz"])
    try expect(query.run(["type": "hotel", "stars": 1, "n": 1]).count, equals: 1)
    let error = #expect(throws: QueryError.self) { try query.run(["type": "hotel", "n": 3]) }
    expect(error?.code, equals: .unsetParameter)
    expect(error?.message.contains("stars"), equals: true)
  }

  @Test func rowsStreamAndCanBeKept() throws {
    let database = try databases.open(.sqlite)
    try database.saveBatch(0..<2_000) { number in
      ("d\(number)", ["n": JSONValue(number), "s": "text \(number)"])
    }
    var kept: [QueryRow] = []
    var seen = 0
    try database.query("SELECT n, s FROM _").forEach { row in
      seen += 1
      if let n = row["n"].int, n % 500 == 0 { kept.append(row) }
      return true
    }
    expect(seen, equals: 2_000)
    expect(Set(kept.compactMap { $0["s"].string }), equals: ["text 0", "text 500", "text 1000", "text 1500"])
    var few = 0
    try database.query("SELECT n FROM _").forEach { _ in
      few += 1
      return few < 3
    }
    expect(few, equals: 3)
  }

  @Test func aQueryCanBeCancelled() throws {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    let cancellation = QueryCancellation()
    var rows = 0
    let code = try queryCode {
      try database.query("SELECT * FROM _").forEach(cancellation: cancellation) { _ in
        rows += 1
        cancellation.cancel()
        return true
      }
    }
    expect(code, equals: .cancelled)
    expect(rows, equals: 1)
  }

  struct Hotel: Codable, Equatable {
    var name: String
    var stars: Int
    var likes: [String]
  }

  @Test func rowsDecodeToTypes() throws {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    let rows = try database.query("SELECT name, stars, likes FROM _ WHERE stars = 5").run()
    let hotels = try rows.map { try $0.decode(Hotel.self) }
    expect(hotels, equals: [Hotel(name: "Ritz", stars: 5, likes: ["Ann", "Bob"])])
  }

  @Test func mistakesAreToldWithTheirPlace() throws {
    let database = try databases.open(.lmdb)
    func code(_ text: String) throws -> QueryError.Code? { try queryCode { _ = try database.query(text) } }
    try expect(code("SELECT name FROM elsewhere"), equals: .unknownName)
    try expect(code("SELECT name FROM _ AS a JOIN _ AS b ON a.x = b.x"), equals: .unknownName)
    try expect(code("SELECT a.name FROM _ AS a JOIN _ AS a ON a.x = a.y"), equals: .duplicateName)
    try expect(code("SELECT name FROM _ WHERE COUNT(*) > 1"), equals: .invalidUse)
    try expect(code("SELECT COUNT(*) AS n FROM _ WHERE n > 1"), equals: .invalidUse)
    try expect(code("SELECT SUM(COUNT(*)) FROM _"), equals: .invalidUse)
    try expect(code("SELECT name AS a, type AS a FROM _"), equals: .duplicateName)
    try expect(code("SELECT name FROM _ LIMIT stars"), equals: .invalidUse)
    try expect(code("SELECT name FROM _ WHERE MATCH(text, 'a')"), equals: .index)
    try expect(code("SELECT name FROM test") == nil)
    // An alias that nothing uses, and a name that is none.
    try expect(code("SELECT x.name FROM _ AS y"), equals: .unknownName)
    try expect(code("SELECT name FROM _ AS y WHERE x.stars = 1"), equals: .unknownName)
    for text in [
      "SELECT x.name, y.name FROM _ AS y", "SELECT x.name, META(y).id FROM _ AS y", "SELECT x.name FROM _",
      "SELECT x.name, y.* FROM _ AS y", "SELECT x[0] FROM _ AS y", "SELECT name FROM _ AS y",
      "SELECT address AS x FROM _ AS y WHERE x.city = 1",
    ] {
      try expect(code(text) == nil, "\(text)")
    }
  }
}
