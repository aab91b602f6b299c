import Fleece
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite("Views over HTTP", .serialized) struct ViewRequestTests {
  private func client(
    _ engine: EngineName, _ configuration: DatabaseServiceConfiguration = .init()
  ) throws -> ReadingClient {
    let reading = try ReadingClient(engine, configuration)
    try reading.database.save(
      "_design/d",
      [
        "views": [
          "n": ["map": "function (doc) { if ('n' in doc) emit(doc.n, doc.v); }", "reduce": "_sum"],
          "m": ["map": "function (doc) { emit(doc.n, null); }"],
        ]
      ])
    try reading.apply("a", "1-a", body: ["n": 1, "v": 10])
    try reading.apply("b", "1-b", body: ["n": 2, "v": 20])
    try reading.apply("c", "1-c", body: ["n": 1, "v": -5])
    return reading
  }

  private let row = "{\"id\":\"a\",\"key\":1,\"value\":10}"

  @Test("rows and groups", arguments: someEngines)
  func rows(_ engine: EngineName) throws {
    let reading = try client(engine)
    let view = "_design/d/_view/n"
    try expect(reading.get(view).text, equals: "{\"rows\":[\r\n{\"key\":null,\"value\":25}\r\n]}\n")
    try expect(
      reading.get(view + "?group=true").text,
      equals: "{\"rows\":[\r\n{\"key\":1,\"value\":5},\r\n{\"key\":2,\"value\":20}\r\n]}\n")
    try expect(
      reading.get(view + "?reduce=false&limit=1").text,
      equals: "{\"total_rows\":3,\"offset\":0,\"rows\":[\r\n\(row)\r\n]}\n")
    try expect(reading.get("_design%2Fd/_view/n?reduce=false&limit=1").text.contains(row))
    try expect(
      reading.post(view, "{\"reduce\":false,\"keys\":[2,1]}").text,
      equals:
        "{\"total_rows\":3,\"offset\":2,\"rows\":[\r\n{\"id\":\"b\",\"key\":2,\"value\":20},\r\n\(row),\r\n"
        + "{\"id\":\"c\",\"key\":1,\"value\":-5}\r\n]}\n")
    try expect(
      reading.get(view + "?reduce=false&include_docs=true&key=2").text
        == "{\"total_rows\":3,\"offset\":2,\"rows\":[\r\n{\"id\":\"b\",\"key\":2,\"value\":20,"
        + "\"doc\":{\"_id\":\"b\",\"_rev\":\"1-b\",\"n\":2,\"v\":20}}\r\n]}\n"
        || reading.get(view + "?reduce=false&include_docs=true&key=2").json()["rows"]?.array?[0]["doc"]?["v"]
          == 20
    )
    try expect(
      reading.post(view + "/queries", "{\"queries\":[{},{\"reduce\":false,\"limit\":1}]}").text,
      equals: "{\"results\":[\r\n{\"rows\":[\r\n{\"key\":null,\"value\":25}\r\n]},\r\n"
        + "{\"total_rows\":3,\"offset\":0,\"rows\":[\r\n\(row)\r\n]}\r\n]}\n")
    try expect(reading.client.ask("HEAD", "/db/" + view).status, equals: 200)
  }

  @Test("a view that isn't indexed can't be read where nothing is written", arguments: someEngines)
  func readOnly(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    let written = try Database.open("db", in: directory.path, options: options)
    try written.save("_design/d", ["views": ["n": ["map": "function (doc) { emit(doc.n); }"]]])
    try written.save("a", ["n": 1])
    try written.close()
    options.isReadOnly = true
    let database = try Database.open("db", in: directory.path, options: options)
    defer { try? database.close() }
    let answer = try APIClient(["db": database]).ask("GET", "/db/_design/d/_view/n")
    expect(answer.status == 403 && !answer.text.contains(directory.path))
  }

  @Test("answers of many slices are whole, in both directions", arguments: [EngineName.sqlite, .lmdb])
  func long(_ engine: EngineName) throws {
    let reading = try client(engine)
    let filling = String(repeating: "x", count: 5_000)
    try reading.database.inBatch {
      for number in 0..<400 {
        try reading.database.save("doc\(number)", ["n": .int(Int64(number / 3)), "text": .string(filling)])
      }
    }
    let all = try reading.get("_design/d/_view/m?include_docs=true").json()["rows"]?.array ?? []
    expect(all.count, equals: 403)
    func names(_ rows: [JSONValue]) -> [String] { rows.compactMap { $0["id"]?.string } }
    expect(Set(names(all)).count, equals: 403)
    let backwards = try reading.get("_design/d/_view/m?include_docs=true&descending=true").json()["rows"]?
      .array
    expect(names(backwards ?? []), equals: names(all).reversed())
    let part = try reading.get("_design/d/_view/m?include_docs=true&skip=7&limit=390").json()["rows"]?.array
    expect(names(part ?? []), equals: Array(names(all)[7..<397]))
  }

  @Test(
    "wrong requests get CouchDB's errors",
    arguments: [
      ("GET", "_design/d/_view/nosuch", 404, "not_found", "missing_named_view"),
      ("GET", "_design/nosuch/_view/x", 404, "not_found", "missing"),
      ("GET", "_design/d/_view", 405, "method_not_allowed", "Only GET,POST,HEAD allowed"),
      ("PUT", "_design/d/_view/n", 405, "method_not_allowed", "Only GET,POST,HEAD allowed"),
      ("GET", "_design/d/_view/n?limit=x", 400, "query_parse_error", "Invalid value for integer: \"x\""),
      (
        "GET", "_design/d/_view/n?reduce=false&startkey=2&endkey=1", 400, "query_parse_error",
        "No rows can match your key range, reverse your start_key and end_key or set descending=true"
      ),
      ("POST", "_temp_view", 410, "gone", "Temporary views are not supported in CouchDB"),
      ("POST", "_design/d/_view/n", 400, "bad_request", "invalid UTF-8 JSON"),
    ])
  func errors(_ method: String, _ target: String, _ status: Int, _ error: String, _ reason: String) throws {
    let reading = try client(.lmdb)
    let answer = try reading.client.ask(
      method, "/db/" + target, headers: [("Content-Type", "application/json")])
    expect(answer.status, equals: status)
    try expect(answer.json(), equals: ["error": .string(error), "reason": .string(reason)])
  }

  @Test("what isn't there yet says so") func missing() throws {
    let reading = try client(.lmdb)
    for target in [
      "_design/d/_show/x", "_design/d/_list/x/y", "_design/d/_update/x", "_design/d/_rewrite/x",
      "_design/d/_search/x",
      "_design/d/_nouveau/x",
    ] {
      try expect(reading.post(target, "{}").status, equals: 501, "\(target)")
    }
  }

  @Test("a design document that isn't of views has information too", arguments: someEngines)
  func otherInformation(_ engine: EngineName) throws {
    let reading = try client(engine)
    // An index of CouchDB's `_find`, as a replicator brings it.
    let index =
      #"{"_id":"_design/i","_rev":"1-a","language":"query","views":{"v":{"map":{"fields":{"n":"asc"}},"reduce":"_count"}}}"#
    try expect(
      reading.client.send("POST", "/db/_bulk_docs", #"{"new_edits":false,"docs":[\#(index)]}"#).text,
      equals: "[]\n")
    let other = try reading.get("_design/i/_info")
    expect(other.status, equals: 200)
    try expect(other.json()["view_index"]["language"], equals: "query")
    try expect(other.json()["view_index"]["signature"].string?.utf8.count, equals: 32)
  }

  @Test("information and cleaning up", arguments: someEngines)
  func information(_ engine: EngineName) throws {
    let reading = try client(engine)
    _ = try reading.get("_design/d/_view/n").json()
    let information = try reading.get("_design/d/_info").json()
    expect(information["name"], equals: "d")
    expect(information["view_index"]?["language"], equals: "javascript")
    expect(information["view_index"]?["update_seq"], equals: 4)
    expect(information["view_index"]?["updates_pending"]?["total"], equals: 0)
    expect(information["view_index"]?["signature"]?.string?.utf8.count, equals: 32)
    try expect(reading.get("_design/nosuch/_info").status, equals: 404)
    try reading.database.delete("_design/d")
    try expect(reading.database.viewNames, equals: ["d/m", "d/n"])
    try expect(reading.post("_view_cleanup", "").status, equals: 202)
    try expect(reading.database.viewNames, equals: [])
  }

  @Test("design documents with a slash in their IDs, and with names that can't be", arguments: someEngines)
  func names(_ engine: EngineName) throws {
    let reading = try client(engine)
    func put(_ path: String, _ body: String) throws -> Response {
      try reading.client.ask(
        "PUT", "/db/" + path, headers: [("Content-Type", "application/json")], body: Array(body.utf8))
    }
    func design(_ view: String, _ key: String) -> String {
      "{\"views\":{\"\(view)\":{\"map\":\"function (doc) { emit('\(key)', 1) }\"}}}"
    }
    try expect(put("_design%2Fx%2Fy", design("v", "xy")).status, equals: 201)
    try expect(reading.get("_design/x%2Fy/_view/v?limit=1").text.contains("\"key\":\"xy\""))
    try expect(put("_design/x", design("y/v", "x")).status, equals: 201)
    try expect(reading.get("_design/x%2Fy/_view/v?limit=1").text.contains("\"key\":\"xy\""))
    try expect(reading.get("_design/x/_view/y%2Fv?limit=1").text.contains("\"key\":\"x\""))
    try expect(reading.get("_design/x%2Fy/_info").json()["name"], equals: "x/y")
    try expect(put("_design/control", design("a\\u0001", "c")).status, equals: 201)
    try expect(reading.get("_design/control/_view/a%01?limit=1").text.contains("\"key\":\"c\""))
    let long = String(repeating: "q", count: 190)
    try expect(put("_design/" + long, design("v23456789012", "l")).status, equals: 400)
    try expect(reading.get("_design/\(long)/_view/v").status, equals: 404)
    // One that came with a replication.
    try reading.apply(
      "_design/" + long, "1-a", body: ["views": ["v23456789012": ["map": "function (doc) {}"]]])
    let answer = try reading.get("_design/\(long)/_view/v23456789012")
    try expect(answer.status == 400 && answer.json()["error"] == "invalid_design_doc")
  }

  @Test("a full database says so, and stores other documents", arguments: [EngineName.sqlite, .lmdb])
  func full(_ engine: EngineName) throws {
    let reading = try client(engine)
    for (name, count) in [("full", 300), ("more", 30)] {
      var views = JSONObject()
      for number in 0..<count { views["v\(number)"] = ["map": "function (doc) { emit(1) }"] }
      try reading.database.save("_design/" + name, ["views": .object(views)])
    }
    try expect(reading.get("_design/full/_view/v1?limit=1").status, equals: 200)
    let answer = try reading.get("_design/more/_view/v1?limit=1")
    try expect(answer.status == 507 && answer.json()["error"] == "insufficient_storage")
    let local = try reading.client.ask(
      "PUT", "/db/_local/x", headers: [("Content-Type", "application/json")], body: Array("{}".utf8))
    expect(local.status, equals: 201)
  }

  @Test("a temporary view, where it is allowed", arguments: someEngines)
  func temporary(_ engine: EngineName) throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.allowsTemporaryViews = true
    let reading = try client(engine, configuration)
    let map = "\"map\":\"function (doc) { emit(doc.n, doc.v); }\""
    try expect(
      reading.post("_temp_view?limit=1", "{\(map)}").text,
      equals: "{\"total_rows\":3,\"offset\":0,\"rows\":[\r\n\(row)\r\n]}\n")
    try expect(
      reading.post("_temp_view", "{\(map),\"reduce\":\"_count\"}").text,
      equals: "{\"rows\":[\r\n{\"key\":null,\"value\":3}\r\n]}\n")
    try expect(reading.post("_temp_view", "{}").status, equals: 400)
    try expect(
      reading.post("_temp_view", "{\"map\":\"function (\"}").json()["error"], equals: "compilation_error")
    try expect(!reading.database.viewNames.contains { $0.hasPrefix("temporary") })
    try expect(reading.database.check(), equals: [])
  }
}
