import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite("N1QL over HTTP") struct QueryRequestTests {
  private func client(_ engine: EngineName) throws -> ReadingClient {
    let reading = try ReadingClient(engine)
    try reading.database.save("a", ["n": 1, "name": "Ä\""])
    try reading.database.save("b", ["n": 2])
    return reading
  }

  @Test("rows with their columns", arguments: someEngines)
  func rows(_ engine: EngineName) throws {
    let reading = try client(engine)
    let answer = try reading.post(
      "_query",
      "{\"query\":\"SELECT name, n AS number FROM _ WHERE n >= $least ORDER BY n\",\"parameters\":{\"least\":1}}"
    )
    expect(answer.status == 200 && answer.header("Content-Type") == "application/json")
    expect(
      answer.text,
      equals:
        "{\"columns\":[\"name\",\"number\"],\"rows\":[\r\n{\"name\":\"Ä\\\"\",\"number\":1},\r\n{\"number\":2}\r\n]}\n"
    )
    let none = try reading.post("_query", "{\"query\":\"SELECT n FROM _ WHERE n > 5\",\"parameters\":{}}")
    expect(none.text, equals: "{\"columns\":[\"n\"],\"rows\":[\r\n\r\n]}\n")
    try expect(
      reading.post("_query", "{\"query\":\"SELECT n FROM _ WHERE n = $n\",\"parameters\":{\"$n\":2}}")
        .json()["rows"], equals: [["n": 2]])
    let plan = try reading.post("_query", "{\"query\":\"SELECT n FROM _\",\"explain\":true}").json()
    expect(plan["plan"]?.string?.isEmpty, equals: false)
  }

  @Test("rows of SELECT RAW are values") func rawRows() throws {
    let reading = try client(.lmdb)
    let answer = try reading.post("_query", "{\"query\":\"SELECT RAW n FROM _ ORDER BY n\"}")
    expect(answer.text, equals: "{\"columns\":[\"n\"],\"rows\":[\r\n1,\r\n2\r\n]}\n")
  }

  @Test("a statement changes documents, for who may write") func changes() throws {
    let reading = try client(.lmdb)
    let text = "UPDATE _ SET n = n + 1 WHERE n > $n RETURNING META().id, n"
    let dry = try reading.post(
      "_query", "{\"query\":\"\(text)\",\"parameters\":{\"n\":1},\"dry_run\":true}")
    try expect(dry.json()["documents"], equals: [["id": "b", "change": "updated"]])
    try expect(reading.database.document("b")?.value()["n"], equals: 2)
    let answer = try reading.post("_query", "{\"query\":\"\(text)\",\"parameters\":{\"n\":1}}")
    try expect(answer.json()["rows"], equals: [["id": "b", "n": 3]])
    try expect(reading.database.document("b")?.value()["n"], equals: 3)
    let design = try reading.post(
      "_query", "{\"query\":\"UPSERT INTO _ VALUES ('_design/x', {})\"}")
    expect(design.status, equals: 403)
    let twice = try reading.post("_query", "{\"query\":\"INSERT INTO _ VALUES ('a', {})\"}")
    expect(twice.status, equals: 409)
    let wrong = try reading.post("_query", "{\"query\":\"UPDATE _ SET\"}")
    expect(wrong.status, equals: 400)
    var configuration = DatabaseServiceConfiguration()
    configuration.isReadOnly = true
    let closed = try ReadingClient(.lmdb, configuration)
    try expect(closed.post("_query", "{\"query\":\"DELETE FROM _\"}").status, equals: 403)
    try expect(closed.post("_query", "{\"query\":\"DROP INDEX i ON _\"}").status, equals: 403)
  }

  @Test("what only shows a statement's work changes nothing, or is refused", arguments: someEngines)
  func refusedOptions(_ engine: EngineName) throws {
    let reading = try client(engine)
    let sequence = try reading.database.lastSequence
    for text in ["DELETE FROM _", "UPDATE _ SET n = 9", "CREATE INDEX i ON _ (n)", "EXECUTE gone"] {
      _ = try reading.post("_query", "{\"query\":\"PREPARE gone AS DELETE FROM _\"}")
      for option in [
        "\"explain\":true", "\"explain\":true,\"dry_run\":true", "\"dry_run\":\"true\"", "\"dry_run\":1",
        "\"dry_run\":\"yes\"", "\"explain\":1", "\"timeout\":\"1\"", "\"row_limit\":true",
      ] {
        let answer = try reading.post("_query", "{\"query\":\"\(text)\",\(option)}")
        expect(answer.status, equals: 400, "\(text) \(option)")
      }
    }
    try expect(reading.database.lastSequence, equals: sequence)
    try expect(reading.database.indexes.isEmpty)
    let none = try reading.post("_query", "{\"query\":\"SELECT n FROM _\",\"explain\":null,\"dry_run\":null}")
    try expect(none.json()["rows"].array?.count, equals: 2)
  }

  @Test("a statement is held to the rules of other requests", arguments: someEngines)
  func rulesOfDocuments(_ engine: EngineName) throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.maximumDocumentBytes = 2_000
    let reading = try ReadingClient(engine, configuration)
    func query(_ text: String) throws -> Response {
      try reading.post(
        "_query", String(decoding: JSONValue(["query": .string(text)]).jsonText(), as: UTF8.self))
    }
    try expect(reading.client.ask("PUT", "/db/a", body: Array(#"{"n":1}"#.utf8)).status, equals: 201)
    let file = try reading.client.ask(
      "PUT", "/db/with/f", headers: [("Content-Type", "x/y")], body: [1, 2, 3])
    expect(file.status, equals: 201)
    let sequence = try reading.database.lastSequence
    // The size of a document.
    try expect(query("UPDATE _ SET long = REPEAT('x', 3000) WHERE n = 1").status, equals: 413)
    try expect(query("INSERT INTO _ VALUES ('b', {'long': REPEAT('x', 3000)})").status, equals: 413)
    // Attachments.
    for text in [
      "UPDATE _ SET _attachments.f.length = 9 WHERE META().id = 'with'",
      "UPDATE _ SET _attachments.`_g` = _attachments.f WHERE META().id = 'with'",
      "UPDATE _ SET _attachments.f.encoding = 'gzip' WHERE META().id = 'with'",
      "INSERT INTO _ VALUES ('b', {'_attachments': {'f': {'data': 'aGk='}}})",
      "INSERT INTO _ (KEY 'b', VALUE d) SELECT d.* FROM _ AS d WHERE META(d).id = 'with'",
    ] { try expect(query(text).status, equals: 400, "\(text)") }
    // Functions that validate.
    let function = "function (doc) { if (doc._deleted) throw {forbidden: 'stays'}; }"
    let design = JSONValue(["validate_doc_update": .string(function)])
    try expect(reading.client.ask("PUT", "/db/_design/v", body: design.jsonText()).status, equals: 201)
    for text in [
      "UPDATE _ SET _deleted = TRUE WHERE n = 1", "UPSERT INTO _ VALUES ('a', {'_deleted': TRUE})",
      "DELETE FROM _ WHERE n = 1",
    ] { try expect(query(text).status, equals: 403, "\(text)") }
    try expect(reading.database.lastSequence, equals: sequence + 1)
    try expect(query("UPDATE _ SET n = 2 WHERE META().id = 'with'").status, equals: 200)
    try expect(query("UPDATE _ UNSET _attachments.f WHERE META().id = 'with'").status, equals: 200)
  }

  @Test("prepared statements of a token aren't those of the user with its name") func statementsOfTokens()
    throws
  {
    let client = try APIClient.secured()
    func post(_ text: String, as user: UserContext) throws -> JSONValue {
      try client.send("POST", "/db/_query", "{\"query\":\"\(text)\"}", as: user).json()
    }
    let token = UserContext(name: "carol", roles: [], bringsRoles: true)
    let list = "SELECT RAW name FROM system:prepareds"
    try expect(post("PREPARE own AS SELECT 1 AS n", as: Person.member)["rows"], equals: [["name": "own"]])
    try expect(post(list, as: Person.member)["rows"], equals: ["own"])
    try expect(post(list, as: token)["rows"], equals: [])
    try expect(post("EXECUTE own", as: token)["code"], equals: "unknownName")
    try expect(post("PREPARE own AS SELECT 2 AS n", as: token)["rows"], equals: [["name": "own"]])
    try expect(post("EXECUTE own", as: Person.member)["rows"], equals: [["n": 1]])
    try expect(post("EXECUTE own", as: token)["rows"], equals: [["n": 2]])
  }

  @Test("a prepared statement is run by its name, with the rights of who runs it", arguments: someEngines)
  func preparedStatements(_ engine: EngineName) throws {
    let reading = try client(engine)
    func post(_ text: String, _ parameters: String = "{}") throws -> Response {
      try reading.post("_query", "{\"query\":\"\(text)\",\"parameters\":\(parameters)}")
    }
    try expect(post("PREPARE p AS SELECT n FROM _ WHERE n = $n").json()["rows"], equals: [["name": "p"]])
    try expect(post("EXECUTE p", "{\"n\":2}").json()["rows"], equals: [["n": 2]])
    try expect(post("EXECUTE p USING {'n': 1}").json()["rows"], equals: [["n": 1]])
    let unknown = try post("EXECUTE q")
    expect(unknown.status, equals: 400)
    try expect(unknown.json()["code"], equals: "unknownName")
    try expect(post("PREPARE up AS UPDATE _ SET n = $1").status, equals: 200)
    try expect(post("EXECUTE up USING [7]").json()["documents"].array?.count, equals: 2)
    try expect(reading.database.document("b")?.value()["n"], equals: 7)
    // Names over HTTP aren't those of the program.
    #expect(throws: QueryError.self) { try reading.database.query("EXECUTE p") }
    var configuration = DatabaseServiceConfiguration()
    configuration.isReadOnly = true
    let closed = try ReadingClient(.lmdb, configuration)
    for text in ["PREPARE p AS DELETE FROM _", "PREPARE p AS DROP INDEX i ON _"] {
      try expect(closed.post("_query", "{\"query\":\"\(text)\"}").status, equals: 403, "\(text)")
    }
    try expect(closed.post("_query", "{\"query\":\"PREPARE p AS SELECT 1\"}").status, equals: 200)
    try expect(reading.post("_query", "{\"query\":\"INFER _\"}").json()["rows"][0]["#docs"], equals: 2)
  }

  @Test("a statement makes an index, and a query can be JSON") func indexesAndJSON() throws {
    let reading = try client(.lmdb)
    let made = try reading.post("_query", "{\"query\":\"CREATE INDEX byN ON _ (n)\"}")
    try expect(made.json()["indexes"], equals: [["name": "byN", "change": "created"]])
    try expect(reading.post("_query", "{\"query\":\"CREATE INDEX byN ON _ (m)\"}").status, equals: 400)
    try expect(reading.database.indexes.map(\.text), equals: ["n"])
    let json = #"["SELECT", {"WHAT": [["._id"]], "WHERE": [">", [".n"], ["$n"]]}]"#
    let answer = try reading.post("_query", "{\"query\":\(json),\"parameters\":{\"n\":1}}")
    try expect(answer.json()["rows"], equals: [["id": "b"]])
    for wrong in ["7", "null", "[1]", "{\"WAT\":[]}"] {
      try expect(reading.post("_query", "{\"query\":\(wrong)}").status, equals: 400, "\(wrong)")
    }
  }

  @Test("a query has the time that the server gives it, with a limit of its own and without")
  func serverLimit() throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.requestSeconds = 0.2
    let reading = try ReadingClient(.lmdb, configuration)
    try reading.database.inBatch {
      for number in 0..<300 { try reading.database.save("d\(number)", ["n": .int(Int64(number))]) }
    }
    let text = "SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON b.n >= 0 JOIN _ AS c ON c.n >= 0"
    for limit in ["", ",\"timeout\":3600000"] {
      let answer = try reading.post("_query", "{\"query\":\"\(text)\"\(limit)}")
      expect(answer.status, equals: 408)
      try expect(answer.json()["code"], equals: "timedOut")
    }
  }

  @Test("queries share their memory, and give it back") func memory() throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.queryMemoryBytes = 8 << 20
    configuration.queryFileBytes = 0
    let reading = try ReadingClient(.lmdb, configuration)
    let name = String(repeating: "x", count: 1_000)
    try reading.database.inBatch {
      for number in 0..<100 {
        try reading.database.save("d\(number)", ["n": .int(Int64(number)), "s": .string(name)])
      }
    }
    let memory = reading.client.service.queryMemory
    let query = "{\"query\":\"SELECT n, s FROM _ ORDER BY s, n DESC\"}"
    try expect(reading.post("_query", query).status, equals: 200)
    expect(memory.used, equals: 0)
    // Others have it.
    expect(memory.take(8 << 20))
    let busy = try reading.post("_query", query)
    expect(busy.status == 503 && busy.header("Retry-After") == "1")
    try expect(busy.json()["code"], equals: "memoryBusy")
    try expect(reading.post("_query", "{\"query\":\"SELECT n FROM _ LIMIT 1\"}").status, equals: 200)
    memory.give(8 << 20)
    // One has half of it.
    let large = try reading.post(
      "_query", "{\"query\":\"SELECT a.s FROM _ AS a CROSS JOIN _ AS b ORDER BY a.s || b.s\"}")
    expect(large.status, equals: 413)
    // The values of one row count too.
    expect(memory.take(7 << 20))
    let row = try reading.post("_query", "{\"query\":\"SELECT REPEAT(s, 4000) AS t FROM _ LIMIT 1\"}")
    expect(row.status, equals: 503)
    memory.give(7 << 20)
    expect(memory.used, equals: 0)
    try expect(reading.post("_query", query).status, equals: 200)
  }

  @Test("what the memory doesn't hold goes to temporary files, which queries share")
  func temporaryFiles() throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.queryMemoryBytes = 2 << 20
    configuration.queryFileBytes = 64 << 20
    let reading = try ReadingClient(.lmdb, configuration)
    let name = String(repeating: "x", count: 1_000)
    try reading.database.saveBatch(0..<3_000) { ("d\($0)", ["n": .int(Int64($0)), "s": .string(name)]) }
    let query = "{\"query\":\"SELECT n, s FROM _ ORDER BY s, n DESC\"}"
    let answer = try reading.post("_query", query)
    expect(answer.status, equals: 200)
    let numbers = try answer.json()["rows"]?.array?.map { $0["n"]?.int }
    expect(numbers == (0..<3_000).reversed().map { Int64($0) })
    let (memory, files) = (reading.client.service.queryMemory, reading.client.service.queryFiles)
    expect(memory.used == 0 && files.used == 0)
    // Others have all files, or this one would have too many.
    expect(files.take(63 << 20))
    let busy = try reading.post("_query", query)
    expect(busy.status == 503 && busy.header("Retry-After") == "1")
    try expect(busy.json()["code"], equals: "memoryBusy")
    files.give(63 << 20)
    let large = try reading.post(
      "_query", "{\"query\":\"SELECT a.n, a.s || b.s AS s FROM _ AS a CROSS JOIN _ AS b ORDER BY a.n, b.n\"}")
    expect(large.status, equals: 413)
    try expect(large.json()["code"], equals: "diskLimit")
    expect(memory.used == 0 && files.used == 0)
  }

  @Test("a statement keeps rows in the memory of queries, and gives it back") func memoryOfStatements() throws
  {
    var configuration = DatabaseServiceConfiguration()
    configuration.queryMemoryBytes = 8 << 20
    let reading = try ReadingClient(.lmdb, configuration)
    try reading.database.saveBatch(0..<100) { ("d\($0)", ["n": .int(Int64($0))]) }
    let memory = reading.client.service.queryMemory
    func post(_ statement: String) throws -> Response {
      try reading.post("_query", "{\"query\":\"\(statement)\"}")
    }
    let large = [
      "UPDATE _ SET t = REPEAT('x', 100000)", "UPDATE _ SET m = 1 RETURNING REPEAT('x', 100000) AS t",
      "UPSERT INTO _ (KEY k, VALUE {'t': REPEAT('x', 100000)}) SELECT 'new' || META().id AS k FROM _",
      "DELETE FROM _ RETURNING REPEAT('x', 100000) AS t",
    ]
    for statement in large {
      let answer = try post(statement)
      expect(answer.status, equals: 413, "\(statement)")
      try expect(answer.json()["code"], equals: "memoryLimit")
      expect(memory.used, equals: 0)
    }
    try expect(
      reading.database.query("SELECT 1 AS n FROM _ WHERE t IS MISSING AND m IS MISSING").run().count,
      equals: 100)
    // Less at once is possible.
    let some = try post("UPDATE _ SET t = REPEAT('x', 100000) LIMIT 10 RETURNING n, t")
    expect(some.status, equals: 200)
    let members = try some.json()
    expect(members["documents"]?.array?.count, equals: 10)
    expect(members["columns"], equals: ["n", "t"])
    expect(members["rows"]?.array?.count, equals: 10)
    expect(members["rows"]?.array?.first?["t"]?.string?.utf8.count, equals: 100_000)
    expect(memory.used, equals: 0)
    // Others have it.
    expect(memory.take(8 << 20))
    try expect(post("UPDATE _ SET u = 1").status, equals: 503)
    memory.give(8 << 20)
    try expect(
      post("UPDATE _ SET u = 1 WHERE n = 3").text,
      equals: "{\"documents\":[{\"id\":\"d3\",\"change\":\"updated\"}],\"columns\":[],\"rows\":[]}\n")
  }

  @Test(
    "what a request takes of the server is known by its method and path",
    arguments: [
      ("GET", "/_up", .reading), ("GET", "/db", .reading), ("GET", "/db/doc", .reading),
      ("GET", "/db/_local/x", .reading), ("GET", "/db/_design/x", .reading), ("GET", "/", .reading),
      ("POST", "/db", .writing), ("PUT", "/db/doc", .writing), ("PUT", "/db/_local/x", .writing),
      ("PUT", "/db/_design/x", .writing), ("PUT", "/db", .long), ("DELETE", "/db", .long),
      ("GET", "/db/doc/file", .long), ("PUT", "/db/_design/x/file", .long),
      ("GET", "/db/d?attachments=true", .long),
      ("POST", "/db/_bulk_docs", .long), ("GET", "/db/_all_docs", .long), ("GET", "/db/_changes", .long),
      ("GET", "/db/_changes?filter=a/b", .computing), ("POST", "/db/_query", .computing),
      ("GET", "/db/_design/x/_view/y", .indexing), ("POST", "//db/_design/x/_view/y/queries", .indexing),
    ] as [(String, String, HTTPWorkload)])
  func workload(method: String, target: String, workload: HTTPWorkload) throws {
    let parsed = try #require(HTTPTarget(Array(target.utf8)))
    expect(DatabaseService.workload(method, parsed), equals: workload)
  }

  @Test("a wrong query tells where") func errors() throws {
    let reading = try client(.lmdb)
    let answer = try reading.post("_query", "{\"query\":\"SELECT n\\nFROM _ WHRE n = 1\"}")
    expect(answer.status, equals: 400)
    let error = try answer.json()
    expect(error["error"] == "query_error" && error["code"] == "syntax")
    expect(error["line"] == 2 && error["column"]?.int ?? 0 > 1 && error["offset"]?.int ?? 0 > 8)
    expect(error["reason"]?.string?.isEmpty, equals: false)
    let unset = try reading.post("_query", "{\"query\":\"SELECT n FROM _ WHERE n = $least\"}")
    expect(unset.status, equals: 400)
    try expect(unset.json()["code"], equals: "unsetParameter")
    let limited = try reading.post("_query", "{\"query\":\"SELECT n FROM _\",\"row_limit\":1}")
    expect(limited.status, equals: 413)
    try expect(limited.json()["code"], equals: "rowLimit")
    try expect(
      limited.json()["reason"],
      equals:
        "the query has more rows than its row limit of 1; a LIMIT returns the first ones, or ask for a higher row_limit"
    )
    // A million pairs take longer than a millisecond.
    try reading.database.inBatch {
      for number in 0..<1_000 { try reading.database.save("d\(number)", ["n": 3]) }
    }
    let slow = try reading.post(
      "_query", #"{"query":"SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON a.n + b.n > 0","timeout":1}"#)
    expect(slow.status, equals: 408)
    try expect(slow.json()["error"] == "query_error" && slow.json()["code"] == "timedOut")
    for body in ["{}", "[]", "{\"query\":5}", "{\"query\":\"SELECT n FROM _\",\"parameters\":5}", "{", ""] {
      try expect(reading.post("_query", body).status, equals: 400, "\(body)")
    }
    try expect(reading.get("_query").status, equals: 405)
  }

  @Test("a slow client is waited for only behind what fits into memory") func slow() throws {
    let reading = try client(.lmdb)
    let filling = String(repeating: "x", count: 20_000)
    try reading.database.inBatch {
      for number in 0..<200 { try reading.database.save("doc\(number)", ["text": .string(filling)]) }
    }
    let response = try reading.client.stall("POST", "/db/_query", body: "{\"query\":\"SELECT text FROM _\"}")
    response.waitUntilStalled()
    // Four megabytes of rows wait; the snapshot is gone.
    eventually { (try? reading.database.close()) != nil }
    response.release()
    expect(response.body().count > 4_000_000)
    expect(!response.hasFailed)
  }
}
