import Query
import TestSupport

/// UPDATE, DELETE, INSERT, UPSERT and MERGE.
@Suite struct ChangeStatementTests {
  private let databases = TestDatabases()

  private func world() throws -> Database {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    try database.save(
      "lists", ["item": [1, 2, 3, 4], "nest": ["c": [["d": 1, "e": 2], 5]]])
    return database
  }

  /// Statements, how many documents they change, and a query with its rows afterwards.
  static let cases: [(String, Int, String, [String])] = [
    (
      "UPDATE _ SET stars = stars + 1 WHERE type = 'hotel'", 3,
      "SELECT RAW stars FROM _ WHERE type = 'hotel' ORDER BY META().id", ["6", "3", "4"]
    ),
    (
      "UPDATE _ AS h SET h.geo.lat = 0, h.new = {\"a\": h.stars} WHERE h.stars = 5", 1,
      "SELECT geo, new FROM _ WHERE stars = 5", [#"{"geo":{"lat":0,"lon":2},"new":{"a":5}}"#]
    ),
    (
      "UPDATE _ SET stars = 1, was = stars WHERE stars = 5", 1, "SELECT stars, was FROM _ WHERE was = 5",
      [#"{"stars":1,"was":5}"#]
    ),
    (
      "UPDATE _ UNSET stars, geo.lat WHERE type = 'hotel'", 3,
      "SELECT RAW geo FROM _ WHERE type = 'hotel' AND geo IS VALUED ORDER BY META().id",
      [#"{"lon":2}"#, #"{"lon":2}"#]
    ),
    (
      "UPDATE _ SET gone.x = 1, likes[0] = 'Zoe' WHERE stars = 5", 1,
      "SELECT likes, gone FROM _ WHERE stars = 5", [#"{"likes":["Zoe","Bob"]}"#]
    ),
    (
      "UPDATE _ SET s.d = s.d * 10 FOR s IN stops WHEN s.d > 1 END WHERE type = 'route'", 4,
      "SELECT RAW stops FROM _ WHERE META().id = 'route_1'", [#"[{"d":1},{"d":30}]"#]
    ),
    (
      "UPDATE _ SET s.x = type FOR s IN stops WHEN type = 'route' AND s.d > 1 END, s.y = [s.d, stops[0].d, type] FOR s IN stops WHEN s.d > 1 END WHERE META().id = 'route_1'",
      1, "SELECT RAW stops FROM _ WHERE META().id = 'route_1'",
      [#"[{"d":1},{"d":3,"x":"route","y":[3,1,"route"]}]"#]
    ),
    (
      "UPDATE _ AS r UNSET s.d FOR s IN r.stops END WHERE META(r).id = 'route_1'", 1,
      "SELECT RAW stops FROM _ WHERE META().id = 'route_1'", ["[{},{}]"]
    ),
    (
      "UPDATE _ SET item[1] = MISSING, item[2] = 9 UNSET item[-1], item[0], nest.c[1], nest.c[0].d, nest.c[1] WHERE META().id = 'lists'",
      1, "SELECT item, nest FROM _ WHERE META().id = 'lists'", [#"{"item":[9],"nest":{"c":[{"e":2}]}}"#]
    ),
    (
      "UPDATE _ SET _deleted = TRUE WHERE META().id = 'hotel_1'", 1,
      "SELECT RAW COUNT(*) FROM _ WHERE type = 'hotel'", ["2"]
    ),
    (
      "UPDATE _ USE KEYS ['hotel_1', 'none'] SET x = 1", 1, "SELECT RAW META().id FROM _ WHERE x = 1",
      [#""hotel_1""#]
    ),
    ("UPDATE _ SET x = 1 WHERE type = 'route' LIMIT 2", 2, "SELECT RAW COUNT(*) FROM _ WHERE x = 1", ["2"]),
    (
      "DELETE FROM _ WHERE type = 'hotel' AND stars < 5", 2,
      "SELECT RAW COUNT(*) FROM _ WHERE type = 'hotel'", ["1"]
    ),
    ("DELETE FROM _ AS d USE KEYS 'hotel_1'", 1, "SELECT RAW COUNT(*) FROM _ WHERE type = 'hotel'", ["2"]),
    (
      "DELETE FROM _ AS d WHERE d.type = 'airline' AND NOT EXISTS (SELECT 1 FROM _ AS r WHERE r.airline = META(d).id)",
      1, "SELECT RAW META().id FROM _ WHERE type = 'airline' ORDER BY META().id",
      [#""airline_1""#, #""airline_2""#]
    ),
    (
      "INSERT INTO _ (KEY, VALUE) VALUES ('n1', {\"a\": 1}), ('n2', {\"a\": 1 + 1})", 2,
      "SELECT META().id, a FROM _ WHERE a IS VALUED ORDER BY a",
      [#"{"id":"n1","a":1}"#, #"{"id":"n2","a":2}"#]
    ),
    (
      "INSERT INTO _ VALUES ('n1', {\"a\": 1}), VALUES ('n2', {\"a\": 2})", 2,
      "SELECT RAW a FROM _ WHERE a > 1", ["2"]
    ),
    (
      "INSERT INTO _ (KEY 'copy_' || k, VALUE {\"name\": name, \"copy\": TRUE}) SELECT META().id AS k, name FROM _ WHERE type = 'airline'",
      3, "SELECT RAW name FROM _ WHERE copy ORDER BY name", [#""Alpha""#, #""Gamma""#, #""beta""#]
    ),
    (
      "INSERT INTO _ (KEY k) SELECT 'z' AS k, 7 AS seven", 1, "SELECT RAW seven FROM _ WHERE META().id = 'z'",
      ["7"]
    ),
    (
      "UPSERT INTO _ (KEY, VALUE) VALUES ('hotel_1', {\"a\": 1}), ('new', {\"a\": 2})", 2,
      "SELECT META().id, a, stars FROM _ WHERE a > 0 ORDER BY a",
      [#"{"id":"hotel_1","a":1}"#, #"{"id":"new","a":2}"#]
    ),
    (
      "MERGE INTO _ AS t USING [{\"id\": \"hotel_1\", \"s\": 9}, {\"id\": \"hotel_2\", \"s\": 0}, {\"id\": \"fresh\", \"s\": 4}] AS s ON META(t).id = s.id WHEN MATCHED THEN UPDATE SET t.stars = s.s WHERE s.s > 0 WHEN MATCHED THEN DELETE WHERE s.s = 0 WHEN NOT MATCHED THEN INSERT (KEY s.id, VALUE {\"stars\": s.s})",
      3, "SELECT META().id, stars FROM _ WHERE stars IS VALUED ORDER BY META().id",
      [#"{"id":"fresh","stars":4}"#, #"{"id":"hotel_1","stars":9}"#, #"{"id":"hotel_3","stars":3}"#]
    ),
    (
      "MERGE INTO _ AS t USING (SELECT META(a).id AS id, 1 AS n FROM _ AS a WHERE a.type = 'airline') AS s ON KEY s.id WHEN MATCHED THEN UPDATE SET n = s.n",
      3, "SELECT RAW COUNT(*) FROM _ WHERE n = 1", ["3"]
    ),
    // Numbers and texts are conditions as in WHERE.
    (
      "UPDATE _ SET s.d = 7 FOR s IN stops WHEN s.d - 1 END WHERE META().id = 'route_1'", 1,
      "SELECT RAW stops FROM _ WHERE META().id = 'route_1'", [#"[{"d":1},{"d":7}]"#]
    ),
    (
      "MERGE INTO _ AS t USING [{\"id\": \"hotel_1\", \"s\": \"2 stars\"}, {\"id\": \"hotel_2\", \"s\": 0.5}, {\"id\": \"hotel_3\", \"s\": \"none\"}, {\"id\": \"f\", \"s\": 3}, {\"id\": \"g\", \"s\": []}] AS s ON KEY s.id WHEN MATCHED THEN UPDATE SET t.stars = s.s WHERE s.s WHEN MATCHED THEN DELETE WHERE s.s = 'none' AND t.stars WHEN NOT MATCHED THEN INSERT {\"stars\": s.s} WHERE s.s",
      4, "SELECT META().id, stars FROM _ WHERE stars IS VALUED ORDER BY META().id",
      [#"{"id":"f","stars":3}"#, #"{"id":"hotel_1","stars":"2 stars"}"#, #"{"id":"hotel_2","stars":0.5}"#]
    ),
  ]

  @Test(arguments: cases) func statementChanges(
    _ text: String, _ count: Int, _ query: String, _ rows: [String]
  ) throws {
    let statement = try QueryStatement(parsing: text)
    try expect(QueryStatement(parsing: statement.description), equals: statement, "\(statement)")
    for indexes in [[], ["type", "stars"]] {
      let database = try world()
      for name in indexes { try database.createIndex(name, on: [name]) }
      let before = try database.lastSequence
      let dry = try database.execute(text, isDryRun: true)
      expect(dry.documents.count, equals: count, "\(text)")
      try expect(database.lastSequence, equals: before)
      let results = try database.execute(statement.description)
      expect(results.documents, equals: dry.documents)
      try expect(database.rows(query), equals: rows, "\(text)")
      try expect(database.rows(query, usesIndexes: false), equals: rows, "\(text)")
    }
  }

  @Test(arguments: [
    ("UPDATE _ SET stars = 9 WHERE stars = 5 RETURNING META().id, stars", [#"{"id":"hotel_1","stars":9}"#]),
    ("DELETE FROM _ AS h WHERE h.stars = 5 RETURNING h.name", [#"{"name":"Ritz"}"#]),
    ("INSERT INTO _ VALUES ('n', {\"a\": 1}) RETURNING RAW META().id", [#""n""#]),
    (
      "UPSERT INTO _ AS u VALUES ('n', {\"a\": 1}), ('m', {\"a\": 2}) RETURNING u.a",
      [#"{"a":1}"#, #"{"a":2}"#]
    ),
  ])
  func returningGivesRows(_ text: String, _ rows: [String]) throws {
    try expect(world().execute(text).rows.map { try $0.json() }, equals: rows)
  }

  /// Rows are found before the first document is changed, so no document is changed twice.
  @Test func changedDocumentsAreNotFoundAgain() throws {
    let database = try databases.open(.lmdb)
    try database.createIndex("n", on: ["n"])
    try database.inBatch {
      for number in 0..<100 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    }
    try expect(database.execute("UPDATE _ SET n = n + 1000 WHERE n >= 0").documents.count, equals: 100)
    try expect(database.rows("SELECT RAW MAX(n) FROM _"), equals: ["1099"])
    let copied = try database.execute(
      "INSERT INTO _ (KEY k || '_copy', VALUE v) SELECT META(d).id AS k, d AS v FROM _ AS d")
    expect(copied.documents.count, equals: 100)
    try expect(database.execute("DELETE FROM _ WHERE n > 0").documents.count, equals: 200)
  }

  /// Whichever plan finds them, documents are changed in the order of their IDs, and so get the same sequences.
  @Test(arguments: [
    ("UPDATE _ SET x = 1 WHERE n > 0", ["a", "b", "c"]),
    ("DELETE FROM _ WHERE n > 0", ["a", "b", "c"]),
    ("UPDATE _ USE KEYS ['c', 'a'] SET x = 1", ["a", "c"]),
    (
      "INSERT INTO _ (KEY 'new_' || k) SELECT META().id AS k, n FROM _ WHERE n > 0",
      ["new_a", "new_b", "new_c"]
    ),
    (
      "INSERT INTO _ (KEY 'new_' || k) SELECT META().id AS k, n FROM _ WHERE n > 0 ORDER BY n",
      ["new_c", "new_b", "new_a"]
    ),
    ("UPSERT INTO _ VALUES ('z', {}), ('b', {}), ('a', {})", ["z", "b", "a"]),
    (
      "MERGE INTO _ AS t USING (SELECT s AS k FROM ['c', 'y', 'a', 'b', 'x'] AS s) AS s ON KEY s.k WHEN MATCHED THEN UPDATE SET x = 1 WHEN NOT MATCHED THEN INSERT {}",
      ["a", "b", "c", "x", "y"]
    ),
  ])
  func documentsAreChangedInTheOrderOfIDs(_ text: String, _ ids: [String]) throws {
    for isIndexed in [false, true] {
      let database = try databases.open(.lmdb)
      for (id, n) in [("a", 3), ("b", 2), ("c", 1)] { try database.save(id, ["n": .int(Int64(n))]) }
      if isIndexed { try database.createIndex("n", on: ["n"]) }
      let before = try database.lastSequence
      try expect(database.execute(text).documents.map(\.id), equals: ids)
      let sequences = try ids.map { try database.document($0, includeDeleted: true)?.sequence }
      expect(sequences, equals: ids.indices.map { before + 1 + UInt64($0) })
    }
  }

  @Test func changesAreRevisionsOfOneTransaction() throws {
    let database = try world()
    let first = try #require(try database.document("hotel_1"))
    try database.execute("UPDATE _ SET x = 1 WHERE META().id = 'hotel_1'")
    let second = try #require(try database.document("hotel_1"))
    expect(second.revisionID.generation, equals: first.revisionID.generation + 1)
    // One failing document undoes the others.
    let sequence = try database.lastSequence
    do {
      try database.execute("INSERT INTO _ VALUES ('fresh', {}), ('hotel_1', {})")
      Issue.record("no error")
    } catch let error as DocumentError { expect(error.code, equals: .conflict) }
    try expect(database.lastSequence, equals: sequence)
    try expect(database.document("fresh") == nil)
    try database.execute("DELETE FROM _ USE KEYS 'hotel_1'")
    let tombstone = try #require(try database.document("hotel_1", includeDeleted: true))
    expect(tombstone.isDeleted)
    try database.execute("INSERT INTO _ VALUES ('hotel_1', {\"again\": TRUE})")
    let again = try #require(try database.document("hotel_1"))
    expect(again.revisionID.generation > tombstone.revisionID.generation)
    // A tombstone isn't changed.
    try database.delete("hotel_2")
    try expect(database.execute("UPDATE _ SET x = 2 WHERE META().deleted").documents.isEmpty)
  }

  /// UPSERT and MERGE refuse a second row for a document, and keys that come twice are one document.
  @Test func eachDocumentIsChangedOnce() throws {
    let database = try world()
    let sequence = try database.lastSequence
    for text in [
      "UPSERT INTO _ VALUES ('n', {\"a\": 1}), ('m', {}), ('n', {\"a\": 2}) RETURNING *",
      "UPSERT INTO _ (KEY 'n', VALUE r) SELECT name FROM _ AS r",
      "MERGE INTO _ AS t USING [1, 2] AS s ON KEY 'hotel_1' WHEN MATCHED THEN UPDATE SET t.stars = s",
    ] {
      do {
        try database.execute(text)
        Issue.record("no error: \(text)")
      } catch let error as QueryError { expect(error.code, equals: .evaluation, "\(text)") }
      try expect(database.lastSequence, equals: sequence)
    }
    let twice = try database.execute(
      "UPDATE _ USE KEYS ['hotel_1', 'hotel_2', 'hotel_1'] SET x = 1 RETURNING META().id")
    expect(twice.documents.map(\.id), equals: ["hotel_1", "hotel_2"])
    expect(twice.rows.count, equals: 2)
    try expect(database.lastSequence, equals: sequence + 2)
  }

  /// The time limit counts for changing documents too, and nothing has changed then.
  @Test func timeLimitIsThatOfTheStatement() throws {
    let database = try databases.open(.lmdb)
    try database.inBatch { for number in 0..<2_000 { try database.save("d\(number)", ["n": 1]) } }
    let sequence = try database.lastSequence
    do {
      _ = try database.execute(
        "UPDATE _ SET n = 2", [:], isDryRun: false, options: .init(timeLimit: .milliseconds(50)),
        cancellation: QueryCancellation(), allowing: { _ in usleep(5_000) })
      Issue.record("no error")
    } catch let error as QueryError { expect(error.code, equals: .timedOut) }
    try expect(database.lastSequence, equals: sequence)
  }

  @Test func transactionSeesItsOwnStatement() throws {
    let database = try world()
    try database.write { transaction in
      try transaction.execute("UPDATE _ SET stars = $n WHERE stars = 5", ["n": 7])
      let query = try transaction.query("SELECT RAW META().id FROM _ WHERE stars = 7")
      try expect(transaction.run(query).count, equals: 1)
    }
  }

  @Test func blobsAreKept() throws {
    let database = try world()
    let blob = try database.makeBlob(Array("content".utf8), contentType: "text/plain")
    var document = MutableDocument(id: "with", ["n": 1])
    document["file"] = blob.jsonValue
    try database.save(&document)
    try database.execute("UPDATE _ SET n = 2 WHERE META().id = 'with'")
    try expect(database.rows("SELECT RAW n FROM _ WHERE file IS VALUED"), equals: ["2"])
  }

  /// Values of properties are put into a stored body as it is. The revisions are those of a body that was read and changed.
  @Test(arguments: [
    "SET n = n + 1", "SET n = 1, o.x = n UNSET o.y, a", "SET new = [1, {\"b\": 2.5}], o = {\"y\": 1}",
    "SET `é` = 'e\u{301}', o.`é` = NULL",
    "SET o.gone.x = 1, n = MISSING", "UNSET _id", "SET o.x = 1, o = {}", "SET _deleted = TRUE",
    "SET n = {\"_id\": 1}", "SET a[0] = 1",
    "SET n = BASE64_ENCODE('x'), file = NULL", "SET o.x = 9223372036854775807, o.y = -0.0, n = 1e300",
  ])
  func propertiesAreSetAsBySaving(_ terms: String) throws {
    let bodies: [JSONValue] = [
      ["n": 1, "o": ["x": 1, "y": ["z": 2]], "a": [3, 4], "é": 1], ["o": 5, "n": "text"], [:],
      ["e\u{301}": 2, "o": ["é": 1, "x": [:], "gone": ["x": 0, "y": 1]], "n": .double(2)],
      ["n": 2, "long": .string(String(repeating: "x", count: 40_000)), "o": ["x": .data([1, 2, 3])]],
    ]
    func changed(_ allowing: ((StatementChange) throws -> Void)?) throws -> [String] {
      let database = try databases.open(.lmdb)
      for (number, body) in bodies.enumerated() { try database.save("d\(number)", .value(body)) }
      let blob = try database.makeBlob(Array("content".utf8), contentType: "text/plain")
      try database.save("file", .value(["n": 1, "file": blob.jsonValue]))
      try database.save("gone", ["n": 1])
      try database.delete("gone")
      try database.createIndex("n", on: ["n"])
      let results = try database.execute(
        "UPDATE _ \(terms) RETURNING META().id, META().revisionID, *", [:], isDryRun: false, options: nil,
        cancellation: QueryCancellation(), allowing: allowing)
      try expect(database.check().isEmpty)
      return try results.documents.map { "\($0)" } + results.rows.map { try $0.json() }
        + database.rows("SELECT META().id, META().revisionID, META().sequence, * FROM _ ORDER BY META().id")
        + database.rows("SELECT RAW n FROM _ WHERE n IS NOT MISSING ORDER BY n")
    }
    // Whoever may refuse a change is given the whole body.
    let whole = try changed { _ in }
    try expect(changed(nil), equals: whole)
    expect(whole.count > bodies.count)
  }

  @Test(arguments: [
    ("SELECT 1", QueryError.Code.invalidUse), ("UPDATE _ WHERE a = 1", .syntax),
    ("UPDATE _ SET a = 1 RETURNING META().id, 1 + COUNT(*)", .invalidUse),
    ("DELETE FROM _ RETURNING SUM(stars) OVER ()", .invalidUse),
    ("UPDATE nowhere SET a = 1", .unknownName),
    ("UPDATE _ AS t SET t = 1", .invalidUse), ("UPDATE _ SET a.x = 1 FOR v IN a END", .invalidUse),
    ("INSERT INTO _ VALUES (1, {})", .evaluation), ("INSERT INTO _ VALUES ('a', 1)", .evaluation),
    ("INSERT INTO _ VALUES ('a')", .syntax), ("DELETE _", .unsupported),
    ("MERGE INTO _ AS t USING [1, 1] AS s ON META(t).id = 'hotel_1' WHEN MATCHED THEN DELETE", .evaluation),
  ])
  func mistakeIsNamed(_ text: String, _ code: QueryError.Code) throws {
    do {
      try world().execute(text)
      Issue.record("no error: \(text)")
    } catch let error as QueryError { expect(error.code, equals: code, "\(text): \(error)") }
  }

  @Test func queryRefusesAStatementThatChanges() throws {
    do {
      _ = try world().query("UPDATE _ SET a = 1")
      Issue.record("no error")
    } catch let error as QueryError {
      expect(error.code, equals: .invalidUse)
      expect(error.message.contains("execute"), "\(error)")
    }
  }
}
