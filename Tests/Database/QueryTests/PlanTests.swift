import Query
import TestSupport

/// What plans say, and that each gives the rows of the plain scan.
@Suite struct PlanTests {
  private let databases = TestDatabases()

  /// Documents with all kinds of values, some of them missing.
  static func documents(_ count: Int, _ generator: inout SeededGenerator) -> [(String, String)] {
    let names = [
      "Alpha", "alpha", "ALPINE", "beta", "Straße", "STRASSE", "kilo", "\u{212A}ilo", "", "zz top",
    ]
    let types = ["hotel", "airport", "route"]
    return (0..<count).map { number in
      var members = [#""type":"\#(types.randomElement(using: &generator) ?? "")""#]
      if Bool.random(using: &generator) {
        members.append(#""name":"\#(names.randomElement(using: &generator) ?? "")""#)
      }
      switch Int.random(in: 0..<7, using: &generator) {
      case 0: members.append(#""n":null"#)
      case 1: members.append(#""n":true"#)
      case 2: members.append(#""n":"text""#)
      case 3: members.append(#""n":[1,2]"#)
      case 4: break
      default: members.append(#""n":\#(Int.random(in: -5...30, using: &generator))"#)
      }
      if Bool.random(using: &generator) {
        members.append(#""x":\#(Double(Int.random(in: 0...8, using: &generator)) / 2)"#)
      }
      if Int.random(in: 0..<3, using: &generator) == 0 {
        let tags = (0..<Int.random(in: 0...3, using: &generator)).map { _ in
          #"{"k":\#(Int.random(in: 0...4, using: &generator)),"v":"\#(names.randomElement(using: &generator) ?? "")"}"#
        }
        members.append(#""tags":[\#(tags.joined(separator: ","))]"#)
      }
      members.append(#""ref":"d\#(Int.random(in: 0..<count * 2, using: &generator))""#)
      return ("d\(number)", "{\(members.joined(separator: ","))}")
    }
  }

  /// Queries, whether ORDER BY decides their rows' order, and what the plan has to say with indexes.
  static let cases: [(text: String, isOrdered: Bool, plan: String)] = [
    ("SELECT META().id, name FROM _ WHERE type = 'hotel' AND n = 3", false, "Index typeN"),
    ("SELECT META().id FROM _ WHERE type = 'hotel' AND n = 3", false, "covering"),
    ("SELECT META().id, n FROM _ WHERE type = 'hotel' AND n > 3 AND n <= 20", false, "n > 3 AND _.n <= 20"),
    ("SELECT META().id, n FROM _ WHERE type = 'hotel' AND n < 3", false, "covering"),
    ("SELECT META().id, n FROM _ WHERE type = 'hotel' AND n > 'a'", false, "covering"),
    ("SELECT META().id, n FROM _ WHERE type = 'hotel' AND n IN [1, 'text', 2, 1, null, 3]", false, "IN"),
    ("SELECT META().id, n FROM _ WHERE type = 'hotel' AND n BETWEEN 5 AND 9", false, "Index typeN"),
    ("SELECT META().id, n FROM _ WHERE type = 'hotel' AND n IS NULL", false, "Index typeN"),
    ("SELECT META().id, n FROM _ WHERE type = 'hotel' AND n IS MISSING", false, "Index typeN"),
    ("SELECT META().id, n FROM _ WHERE type = 'hotel' AND n IS VALUED", false, "Index typeN"),
    ("SELECT META().id, n FROM _ WHERE type = 'hotel' AND n = null", false, "Index typeN"),
    ("SELECT META().id, name FROM _ WHERE name LIKE 'al%'", false, "by its beginning"),
    ("SELECT META().id, name FROM _ WHERE name LIKE 'k%o'", false, "by its beginning"),
    ("SELECT META().id, name FROM _ WHERE name LIKE 'stra_e'", false, "Index byName"),
    ("SELECT META().id, name, x FROM _ WHERE name LIKE 'al%' AND x > 1", false, "Index byName"),
    ("SELECT META().id, name FROM _ WHERE name = 'beta' OR name = 'alpha' OR name = 'beta'", false, "OR"),
    (
      "SELECT META().id, name FROM _ WHERE (type = 'hotel' AND n = 3) OR META().id = 'd7'", false,
      "Union by ID"
    ),
    ("SELECT META().id, x FROM _ WHERE x >= 1 AND x < 2 ORDER BY x, META().id", true, "covering"),
    ("SELECT x FROM _ WHERE x = 2", false, "covering"),
    ("SELECT name FROM _ WHERE name IS VALUED ORDER BY name", true, "Index byName"),
    ("SELECT META().id, name FROM _ ORDER BY name DESC, META().id DESC LIMIT 7", true, "descending"),
    ("SELECT type, n FROM _ WHERE type = 'route' ORDER BY n LIMIT 5 OFFSET 2", true, "Index typeN"),
    ("SELECT type, COUNT(*) AS c FROM _ GROUP BY type", false, "rows of a group in a row"),
    ("SELECT n, COUNT(n) AS c, MAX(type) AS m FROM _ WHERE type = 'hotel' GROUP BY n", false, "Index typeN"),
    ("SELECT DISTINCT name FROM _ WHERE name > 'a'", false, "covering"),
    ("SELECT META().id FROM _ WHERE ANY t IN tags SATISFIES t.k = 2 END", false, "Index byTag"),
    (
      "SELECT META().id FROM _ WHERE ANY t IN tags SATISFIES t.k > 2 AND t.v LIKE 'a%' END", false,
      "Index byTag"
    ),
    ("SELECT META(d).id AS id, t.v FROM _ AS d UNNEST d.tags AS t WHERE t.k = 1", false, "Index byTag"),
    (
      "SELECT META(a).id AS a, META(b).id AS b FROM _ AS a JOIN _ AS b ON META(b).id = a.ref WHERE a.type = 'hotel'",
      false, "Document by ID as b"
    ),
    (
      "SELECT META(a).id AS a, META(b).id AS b FROM _ AS a JOIN _ AS b ON b.x = a.n WHERE a.n = 2 AND a.type = 'hotel'",
      false, "Join"
    ),
    (
      "SELECT META(a).id AS a, META(b).id AS b FROM _ AS a JOIN _ AS b ON b.ref = a.ref WHERE META(a).id != META(b).id",
      false, "by hash"
    ),
    (
      "SELECT META(a).id AS a, META(b).id AS b FROM _ AS a LEFT OUTER JOIN _ AS b ON META(b).id = a.ref AND b.type = 'hotel'",
      false, "Left outer join"
    ),
    (
      "SELECT META(a).id AS a, b.name FROM _ AS a LEFT JOIN _ AS b ON META(b).id = a.ref WHERE b.name IS MISSING",
      false, "Left outer join"
    ),
    ("SELECT COUNT(*) AS c FROM _ WHERE META().id LIKE 'd1%'", false, "IDs only"),
    ("SELECT META().id FROM _ WHERE META().id >= 'd3' AND META().id < 'd50' AND type = 'hotel'", false, "ID"),
    ("SELECT META().id, LOWER(name) AS l FROM _ WHERE LOWER(name) = 'alpha'", false, "Index byLower"),
    ("SELECT META().id, x FROM _ WHERE type = 'airport' AND x = 1.5", false, "Index"),
  ]

  @Test(arguments: someEngines) func everyPlanGivesTheRowsOfThePlainScan(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var generator = SeededGenerator(seed: 11)
    try database.fill(PlanTests.documents(400, &generator))
    try database.createIndex("typeN", on: ["type", "n"])
    try database.createIndex("byName", on: ["name"])
    try database.createIndex("byX", on: ["x"])
    try database.createIndex("byTag", unnest: "tags AS t", on: ["t.k"])
    try database.createIndex("byLower", on: ["LOWER(name)"])
    try database.createIndex("airports", on: ["x"], where: "type = 'airport'")
    for (text, isOrdered, expected) in PlanTests.cases {
      var plain = try database.rows(text, usesIndexes: false)
      var indexed = try database.rows(text)
      if !isOrdered {
        plain.sort()
        indexed.sort()
      }
      let plan = try database.query(text).explain().description
      expect(indexed, equals: plain, "\(text)\n\(plan)")
      expect(plan.contains(expected), "\(text)\n\(plan)")
    }
  }

  @Test func thePlanDoesNotDependOnTheOrderInWhichIndexesWereMade() throws {
    let indexes: [(String, [String])] = [
      ("a", ["type"]), ("b", ["type", "n"]), ("c", ["n"]), ("d", ["n", "type"]), ("e", ["name"]),
      ("f", ["type", "name"]),
    ]
    var plans: [[String]] = []
    for order in [indexes, indexes.reversed()] {
      try withDatabase(.lmdb) { database in
        var generator = SeededGenerator(seed: 3)
        try database.fill(PlanTests.documents(300, &generator))
        for (name, expressions) in order { try database.createIndex(name, on: expressions) }
        plans.append(try PlanTests.cases.map { try database.query($0.text).explain().description })
      }
    }
    expect(plans[0], equals: plans[1])
  }

  /// What isn't looked at isn't read: on engines that read files, told by the bytes that they read.
  @Test(arguments: someEngines)
  func largeDocumentsAreNotReadWithoutNeed(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let options = try options(engine)
    var database = try Database.open("test", in: directory.path, options: options)
    let text = String(repeating: "0123456789abcdef", count: 200_000)
    try database.fill((0..<4).map { ("large\($0)", #"{"type":"large","n":7,"text":"\#(text)"}"#) })
    try database.fill((0..<200).map { ("small\($0)", #"{"type":"small","n":\#($0 % 20)}"#) })
    try database.createIndex("byN", on: ["type", "n"])
    for (query, expected, plan) in [
      ("SELECT META().id, n FROM _ WHERE type = 'small' AND n = 7", 10, "covering"),
      ("SELECT * FROM _ WHERE type = 'small' AND n = 7", 10, "Index byN"),
      ("SELECT COUNT(*) AS c FROM _ WHERE META().id LIKE 'large%'", 1, "IDs only"),
      ("SELECT COUNT(*) AS c FROM _ WHERE META().id >= 'l'", 1, "IDs only"),
      ("SELECT COUNT(*) AS c FROM _", 1, "which is known"),
    ] {
      try database.close()
      database = try Database.open("test", in: directory.path, options: options)
      let before = bytesReadByThread()
      let prepared = try database.query(query)
      try expect(prepared.run().count, equals: expected, "\(query)")
      let after = bytesReadByThread()
      try expect(prepared.explain().description.contains(plan), "\(query)")
      if let before, let after, plan != "IDs only" || !readsValuesWithKeys(engine) {
        expect(after - before < 1_000_000, "\(query) read \(after - before) bytes")
      }
    }
    try database.close()
  }

  @Test func aPreparedQueryIsPlannedAnewWhenIndexesChange() throws {
    let database = try databases.open(.lmdb)
    var generator = SeededGenerator(seed: 5)
    try database.fill(PlanTests.documents(300, &generator))
    let query = try database.query("SELECT META().id FROM _ WHERE name = $name")
    let before = try query.run(["name": "beta"]).map { try $0.json() }.sorted()
    let scan = try query.explain().description
    try database.createIndex("byName", on: ["name"])
    let index = try query.explain().description
    let after = try query.run(["name": "beta"]).map { try $0.json() }.sorted()
    try database.deleteIndex("byName")
    let again = try query.run(["name": "beta"]).map { try $0.json() }.sorted()
    expect(scan.contains("Scan of all documents"))
    expect(index.contains("Index byName"))
    expect(before, equals: after)
    expect(before, equals: again)
    expect(!before.isEmpty)
  }

  @Test func analyzeTellsRowsAndTime() throws {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    let lines = try database.rows("EXPLAIN ANALYZE SELECT name FROM _ WHERE type = 'hotel' ORDER BY name")
    let text = lines.joined(separator: "\n")
    expect(text.contains("looked at 10, rows 3"), "\(text)")
    expect(text.contains("Sort by"), "\(text)")
    let plan = try database.rows("EXPLAIN SELECT COUNT(*) FROM _").joined(separator: "\n")
    expect(plan.contains("which is known"), "\(plan)")
  }

  @Test(arguments: someEngines) func eachResultIsOfOneSnapshot(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    // All documents of a generation are saved in one batch: a result that mixes two saw no snapshot.
    let save: @Sendable (Int) throws -> Void = { generation in
      try database.saveBatch(0..<50) { number in
        ("d\(number)", ["generation": JSONValue(generation), "n": JSONValue(number)])
      }
    }
    try save(0)
    try database.createIndex("byGeneration", on: ["generation"])
    let queries = [
      "SELECT generation, COUNT(*) AS c FROM _ GROUP BY generation",
      "SELECT generation, COUNT(*) AS c FROM _ WHERE n >= 0 GROUP BY generation",
      "SELECT a.generation, COUNT(*) AS c FROM _ AS a JOIN _ AS b ON META(b).id = META(a).id "
        + "WHERE a.generation = b.generation GROUP BY a.generation",
    ]
    let writer = Thread { for generation in 1...40 { try? save(generation) } }
    writer.start()
    let prepared = try queries.map { try database.query($0) }
    for round in 0..<60 {
      let rows = try prepared[round % prepared.count].run()
      expect(rows.count, equals: 1)
      expect(rows.first?["c"].int, equals: 50)
    }
    while !writer.isFinished { usleep(1_000) }
  }
}
