import Bytes
import Fleece
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite("Lists of documents are those of CouchDB") struct ListTests {
  @Test("rows, offsets and separators", arguments: someEngines)
  func rows(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.saveKnown()
    let first = try reading.get("_all_docs?limit=2")
    expect(first.status, equals: 200)
    expect(first.header("Content-Type"), equals: "application/json")
    expect(
      first.text,
      equals:
        "{\"total_rows\":4,\"offset\":0,\"rows\":[\r\n{\"id\":\"a\",\"key\":\"a\",\"value\":{\"rev\":\"1-a\"}},\r\n"
        + "{\"id\":\"b\",\"key\":\"b\",\"value\":{\"rev\":\"1-b\"}}\r\n]}\n")
    try expect(
      reading.get("_all_docs?skip=9").text, equals: "{\"total_rows\":4,\"offset\":4,\"rows\":[\r\n\r\n]}\n")
    try expect(
      reading.get("_all_docs?key=5").text, equals: "{\"total_rows\":4,\"offset\":0,\"rows\":[\r\n\r\n]}\n")
    try expect(
      reading.get("_all_docs?key=%22gone%22").text,
      equals: "{\"total_rows\":4,\"offset\":4,\"rows\":[\r\n\r\n]}\n")
    try expect(
      reading.get("_all_docs?update_seq=true&limit=0").unmarkedText,
      equals: "{\"total_rows\":4,\"offset\":0,\"update_seq\":\"6\",\"rows\":[\r\n\r\n]}\n")
    try expect(
      reading.get("_all_docs?include_docs=true&conflicts=true&startkey=%22conf%22").text,
      equals:
        "{\"total_rows\":4,\"offset\":3,\"rows\":[\r\n{\"id\":\"conf\",\"key\":\"conf\",\"value\":{\"rev\":\"2-x\"},"
        + "\"doc\":{\"_id\":\"conf\",\"_rev\":\"2-x\",\"x\":4,\"_conflicts\":[\"2-w\"]}}\r\n]}\n")
    try expect(reading.client.ask("HEAD", "/db/_all_docs").status, equals: 200)
  }

  @Test("a list of keys has a row for each", arguments: someEngines)
  func keys(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.saveKnown()
    let body = "{\"keys\":[\"b\",\"nosuch\",\"gone\",1,null,\"_bad\",\"\",\"b\"]}"
    try expect(
      reading.post("_all_docs?include_docs=true", body).text,
      equals: "{\"total_rows\":4,\"offset\":null,\"rows\":[\r\n"
        + "{\"id\":\"b\",\"key\":\"b\",\"value\":{\"rev\":\"1-b\"},\"doc\":{\"_id\":\"b\",\"_rev\":\"1-b\",\"x\":2}},\r\n"
        + "{\"key\":\"nosuch\",\"error\":\"not_found\"},\r\n"
        + "{\"id\":\"gone\",\"key\":\"gone\",\"value\":{\"rev\":\"2-g\",\"deleted\":true},\"doc\":null},\r\n"
        + "{\"key\":1,\"error\":\"not_found\"},\r\n{\"key\":null,\"error\":\"not_found\"},\r\n"
        + "{\"key\":\"_bad\",\"error\":\"not_found\"},\r\n{\"key\":\"\",\"error\":\"not_found\"},\r\n"
        + "{\"id\":\"b\",\"key\":\"b\",\"value\":{\"rev\":\"1-b\"},\"doc\":{\"_id\":\"b\",\"_rev\":\"1-b\",\"x\":2}}\r\n]}\n"
    )
    let some = try reading.get("_all_docs?keys=%5B%22a%22,%22b%22,%22c%22%5D&descending=true&skip=1&limit=1")
    try expect(some.json()["rows"]?.array?.map { $0["key"]?.string }, equals: ["b"])
    try expect(
      reading.post("_all_docs", "{\"keys\":[]}").text,
      equals: "{\"total_rows\":4,\"offset\":null,\"rows\":[\r\n\r\n]}\n")
  }

  @Test("several queries") func queries() throws {
    let reading = try ReadingClient(.lmdb)
    try reading.saveKnown()
    let answer = try reading.post(
      "_all_docs/queries", "{\"queries\":[{\"limit\":1},{\"keys\":[\"c\",\"d\"]}]}")
    expect(
      answer.text,
      equals: "{\"results\":[\r\n{\"total_rows\":4,\"offset\":0,\"rows\":[\r\n"
        + "{\"id\":\"a\",\"key\":\"a\",\"value\":{\"rev\":\"1-a\"}}\r\n]},\r\n"
        + "{\"total_rows\":4,\"offset\":null,\"rows\":[\r\n{\"id\":\"c\",\"key\":\"c\",\"value\":{\"rev\":\"1-c\"}},\r\n"
        + "{\"key\":\"d\",\"error\":\"not_found\"}\r\n]}\r\n]}\n")
  }

  @Test(
    "wrong requests get CouchDB's errors",
    arguments: [
      ("GET", "_all_docs?keys=%22x%22", "", 400, "bad_request", "`keys` parameter must be an array."),
      (
        "GET", "_all_docs?keys=%5B%22a%22%5D&startkey=%22a%22", "", 400, "query_parse_error",
        "`keys` is incompatible with `key`, `start_key` and `end_key`"
      ),
      (
        "GET", "_all_docs?key=%22a%22&keys=%5B%22a%22,%22b%22%5D", "", 400, "query_parse_error",
        "`keys` is incompatible with `key`, `start_key` and `end_key`"
      ),
      (
        "POST", "_all_docs", "{\"keys\":[\"a\"],\"endkey\":\"b\"}", 400, "query_parse_error",
        "`keys` is incompatible with `key`, `start_key` and `end_key`"
      ),
      ("POST", "_changes", "[\"doc1\"]", 400, "bad_request", "Request body must be a JSON object"),
      (
        "POST", "_changes?filter=_doc_ids", "[\"doc1\"]", 400, "bad_request",
        "Request body must be a JSON object"
      ),
      ("POST", "_changes", "{\"doc_ids\":[\"a\",", 400, "bad_request", "invalid UTF-8 JSON"),
      ("GET", "_all_docs?reduce=true", "", 400, "query_parse_error", "Reduce is invalid for map-only views."),
      ("GET", "_all_docs?group=true", "", 400, "query_parse_error", "Invalid use of grouping on a map view."),
      (
        "GET", "_all_docs?limit=-1", "", 400, "query_parse_error",
        "Invalid value for positive integer: \"-1\""
      ),
      ("GET", "_all_docs?limit=", "", 400, "query_parse_error", "Invalid value for integer: []"),
      (
        "POST", "_all_docs", "{\"limit\":\"x\"}", 400, "query_parse_error",
        "Invalid value for integer: <<\"x\">>"
      ),
      ("GET", "_all_docs?stable=x", "", 400, "query_parse_error", "Invalid value for `stable`."),
      ("POST", "_bulk_get", "[]", 400, "bad_request", "Request body must be a JSON object"),
      ("GET", "_local/x?rev=x", "", 400, "bad_request", "Invalid rev format"),
      ("GET", "_all_docs?skip=x", "", 400, "query_parse_error", "Invalid value for integer: \"x\""),
      ("GET", "_all_docs?descending=x", "", 400, "query_parse_error", "Invalid boolean parameter: \"x\""),
      ("GET", "_all_docs?startkey=junk", "", 400, "bad_request", "invalid UTF-8 JSON"),
      ("POST", "_all_docs", "", 400, "bad_request", "invalid UTF-8 JSON"),
      ("POST", "_all_docs", "[]", 400, "bad_request", "Request body must be a JSON object"),
      ("POST", "_all_docs", "{\"keys\":\"x\"}", 400, "bad_request", "`keys` body member must be an array."),
      ("POST", "_all_docs/queries", "{}", 400, "bad_request", "POST body must include `queries` parameter."),
      ("PUT", "_all_docs", "{}", 405, "method_not_allowed", "Only GET,HEAD,POST allowed"),
      ("GET", "_find", "", 405, "method_not_allowed", "Only POST allowed"),
    ])
  func errors(
    _ method: String, _ target: String, _ body: String, _ status: Int, _ error: String, _ reason: String
  ) throws {
    let reading = try ReadingClient(.lmdb)
    let answer = try reading.client.ask(
      method, "/db/" + target, headers: [("Content-Type", "application/json")], body: Array(body.utf8))
    expect(answer.status, equals: status)
    try expect(answer.json(), equals: ["error": .string(error), "reason": .string(reason)])
  }

  @Test("a body that isn't said to be JSON is refused") func mediaType() throws {
    let reading = try ReadingClient(.lmdb)
    for headers in [[], [("Content-Type", "text/plain")]] {
      let answer = try reading.client.ask("POST", "/db/_all_docs", headers: headers, body: Array("{}".utf8))
      expect(answer.status, equals: 415)
    }
  }

  @Test("random ranges agree with naive ones", arguments: someEngines)
  func random(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    var random = SeededGenerator(seed: testSeed)
    let names = ["a", "aa", "b", "~", "ü", "ß", "_design/a", "_design/b", "10", "9", "A", "a b", "a/b", "é"]
    var ids: [String] = []
    for name in names where !random.once(in: 4) {
      try reading.database.save(name, ["n": 1])
      if random.once(in: 4) { try reading.database.delete(name) } else { ids.append(name) }
    }
    ids = ids.sortedByBytes()
    for _ in 0..<300 {
      let isDesign = random.once(in: 4)
      let all = isDesign ? ids.filter { $0.hasPrefix("_design/") } : ids
      let (isDescending, includesEnd) = (random.once(in: 2), !random.once(in: 3))
      let start = random.once(in: 2) ? random.pick(names) : nil
      let end = random.once(in: 2) ? random.pick(names) : nil
      let (skip, limit) = (random.below(4), random.once(in: 2) ? random.below(5) : 100)
      var target =
        "\(isDesign ? "_design_docs" : "_all_docs")?descending=\(isDescending)&inclusive_end=\(includesEnd)"
      target += "&skip=\(skip)&limit=\(limit)"
      if let start { target += "&startkey=" + escaped(start) }
      if let end { target += "&end_key=" + escaped(end) }
      let ordered = isDescending ? all.reversed() : all
      func precedes(_ left: String, _ right: String) -> Bool {
        isDescending ? right.precedesInBytes(left) : left.precedesInBytes(right)
      }
      let before = start.map { start in ordered.filter { precedes($0, start) }.count } ?? 0
      let found = ordered.dropFirst(before).filter { id in
        end.map { precedes(id, $0) || (includesEnd && id.hasSameBytes(as: $0)) } ?? true
      }
      let answer = try reading.get(target).json()
      expect(answer["total_rows"]?.int, equals: Int64(all.count), "\(target)")
      expect(
        answer["offset"]?.int, equals: Int64(min(before + skip, all.count)), "\(target), seed \(testSeed)")
      expect(
        answer["rows"]?.array?.map { $0["id"]?.string ?? "" },
        equals: Array(found.dropFirst(skip).prefix(limit)),
        "\(target), seed \(testSeed)")
    }
  }

  private func escaped(_ id: String) -> String {
    "%22" + id.utf8.map { "%" + Hex.text([$0]) }.joined() + "%22"
  }

  @Test("a long list is whole, in its order", arguments: someEngines)
  func long(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    let filling = String(repeating: "x", count: 20_000)
    try reading.database.inBatch {
      for number in 100..<250 { try reading.database.save("doc\(number)", ["text": .string(filling)]) }
    }
    for descending in [false, true] {
      let answer = try reading.get("_all_docs?include_docs=true&descending=\(descending)").json()
      let ids = (100..<250).map { "doc\($0)" }
      let rows = answer["rows"]?.array ?? []
      expect(rows.map { $0["id"]?.string }, equals: (descending ? ids.reversed() : ids))
      expect(rows.allSatisfy { $0["doc"]?["text"]?.string == filling })
    }
    let keys = (100..<250).map { "\"doc\($0)\"" }.joined(separator: ",")
    let answer = try reading.post("_all_docs?include_docs=true", "{\"keys\":[\(keys)]}").json()
    expect(answer["rows"]?.array?.count, equals: 150)
  }

  @Test("attachments come as stubs or with their data", arguments: someEngines)
  func attachments(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    var document = MutableDocument(id: "a", ["x": 1])
    document.setAttachment("n", try Blob(Array("one".utf8), contentType: "text/plain"))
    try reading.database.save(&document)
    let plain = try reading.get("_all_docs?include_docs=true").json()["rows"]?.array?[0]["doc"]
    let stub = plain?["_attachments"]?["n"]
    expect(stub?["stub"] == true && stub?["length"] == 3 && stub?["content_type"] == "text/plain")
    expect(plain?["x"], equals: 1)
    let whole = try reading.get("_all_docs?include_docs=true&attachments=true").json()["rows"]?.array?[0][
      "doc"]
    let attachment = whole?["_attachments"]?["n"]
    expect(attachment?["data"] == "b25l" && attachment?.count == 4)
  }

  @Test("local documents are listed apart", arguments: someEngines)
  func local(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.save("a")
    try reading.database.saveLocalDocument("cp", ["last": 3])
    try reading.database.saveLocalDocument("sl/ash", ["x": 1])
    try expect(
      reading.get("_local_docs?include_docs=true&limit=1").text
        == "{\"total_rows\":null,\"offset\":null,\"rows\":[\r\n{\"id\":\"_local/cp\",\"key\":\"_local/cp\","
        + "\"value\":{\"rev\":\"0-1\"},\"doc\":{\"_id\":\"_local/cp\",\"_rev\":\"0-1\",\"last\":3}}\r\n]}\n"
        || reading.get("_local_docs").json()["rows"]?.array?.count == 2)
    try expect(
      reading.post("_local_docs", "{\"keys\":[\"_local/cp\",\"_local/nosuch\",\"a\"]}").text,
      equals:
        "{\"total_rows\":null,\"offset\":null,\"rows\":[\r\n{\"id\":\"_local/cp\",\"key\":\"_local/cp\","
        + "\"value\":{\"rev\":\"0-1\"}},\r\n{\"key\":\"_local/nosuch\",\"error\":\"not_found\"},\r\n"
        + "{\"key\":\"a\",\"error\":\"not_found\"}\r\n]}\n")
    let backwards = try reading.get("_local_docs?descending=true&endkey=%22_local/d%22").json()
    expect(backwards["rows"]?.array?.map { $0["id"]?.string }, equals: ["_local/sl/ash"])
    // What the nodes of a CouchDB keep isn't listed, unless it is asked for.
    for id in ["shard-sync-a-b", "purge-mrview-x"] { try reading.database.saveLocalDocument(id, [:]) }
    try expect(reading.get("_local_docs").json()["rows"]?.array?.count, equals: 2)
    try expect(reading.get("_local_docs?include_system=true").json()["rows"]?.array?.count, equals: 4)
    let named = try reading.post("_local_docs", "{\"keys\":[\"_local/purge-mrview-x\"]}").json()
    expect(named["rows"]?[0]["value"]["rev"], equals: "0-1")
  }

  @Test("a client that takes nothing doesn't keep the database from being closed", arguments: someEngines)
  func slow(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    let filling = String(repeating: "x", count: 20_000)
    try reading.database.inBatch {
      for number in 0..<200 { try reading.database.save("doc\(number)", ["text": .string(filling)]) }
    }
    let response = try reading.client.stall("GET", "/db/_all_docs?include_docs=true")
    response.waitUntilStalled()
    try reading.database.close()
    response.release()
    _ = response.body()
    expect(response.hasFailed)
  }
}
