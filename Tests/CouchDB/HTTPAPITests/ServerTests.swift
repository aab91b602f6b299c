import Fleece
import HTTP
import HTTPAPI
import Storage
import TestSupport
import Testing

@Suite struct ServerRequestTests {
  @Test func rootWelcomes() throws {
    let client = try APIClient()
    let response = try client.ask("GET", "/")
    expect(response.status, equals: 200)
    try expect(response.json().object?["couchdb"]?.string, equals: "Welcome")
    try expect(response.json()["features"], equals: ["partitioned", "scheduler"])
    expect(response.header("Content-Type"), equals: "application/json")
  }

  @Test func databasesAreMadeAndDeleted() throws {
    let client = try APIClient()
    let made = try client.ask("PUT", "/a%2Fb", headers: [("Host", "h:1")])
    expect(made.status, equals: 201)
    expect(made.header("Location"), equals: "http://h:1/a%2Fb")
    try expect(client.ask("PUT", "/a%2Fb").status, equals: 412)
    try expect(client.ask("GET", "/a%2Fb").json().object?["db_name"]?.string, equals: "a/b")
    try expect(client.ask("GET", "/a/b").status, equals: 404)
    try expect(client.ask("DELETE", "/a%2Fb?rev=1-x").status, equals: 400)
    try expect(client.ask("DELETE", "/a%2Fb").status, equals: 200)
    try expect(client.ask("GET", "/a%2Fb").status, equals: 404)
    try expect(client.ask("DELETE", "/a%2Fb").status, equals: 404)
  }

  @Test("databases that clients make keep as many revisions as CouchDB's", arguments: someEngines)
  func revisionsLimit(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    try expect(client.get("/db/_revs_limit").json(), equals: 1_000)
    var revisions = [try client.save("/db/a", "{}")]
    for number in 0..<40 {
      revisions.append(try client.save("/db/a", "{\"_rev\":\"\(revisions[number])\",\"n\":\(number)}"))
    }
    let names = revisions.map { "\"\($0)\"" }.joined(separator: ",")
    try expect(client.send("POST", "/db/_revs_diff", "{\"a\":[\(names)]}").json(), equals: [:])
  }

  @Test("without users there is no session to begin") func noUsers() throws {
    let client = try APIClient()
    let answer = try client.send("POST", "/_session", #"{"name":"a","password":"b"}"#)
    expect(answer.status, equals: 404)
    try expect(client.get("/_session").json()["ok"], equals: true)
  }

  @Test(arguments: ["Upper", "1abc", "_under", "a.b", "a%20b", "%C3%A4", "p+", "..%2Fetc", "a%00b"])
  func illegalNamesAreRefused(_ name: String) throws {
    let client = try APIClient()
    let response = try client.ask("PUT", "/" + name)
    expect(response.status, equals: 400)
    try expect(response.json().object?["error"]?.string, equals: "illegal_database_name")
    try expect(client.ask("GET", "/_all_dbs").json(), equals: [])
  }

  @Test func listsOfDatabasesHaveRanges() throws {
    let client = try APIClient()
    for name in ["b", "a", "d", "c"] { try expect(client.ask("PUT", "/" + name).status, equals: 201) }
    func names(_ query: String) throws -> JSONValue { try client.ask("GET", "/_all_dbs?" + query).json() }
    try expect(names(""), equals: ["a", "b", "c", "d"])
    try expect(names("limit=1&descending=true"), equals: ["d"])
    try expect(names("start_key=%22b%22&end_key=%22c%22"), equals: ["b", "c"])
    try expect(names("startkey=%22c%22&endkey=%22b%22&descending=true&inclusive_end=false"), equals: ["c"])
    try expect(names("skip=3"), equals: ["d"])
    try expect(client.ask("GET", "/_all_dbs?limit=x").status, equals: 400)
  }

  @Test func uuidsAreDistinctAndLimited() throws {
    let client = try APIClient()
    let uuids = try client.ask("GET", "/_uuids?count=1000").json().object?["uuids"]?.array ?? []
    expect(Set(uuids.compactMap(\.string)).count, equals: 1_000)
    expect(uuids.allSatisfy { $0.string?.utf8.count == 32 })
    try expect(client.ask("GET", "/_uuids?count=1001").status, equals: 400)
    try expect(client.ask("GET", "/_uuids?count=-1").status, equals: 400)
    try expect(client.ask("POST", "/_uuids").header("Allow"), equals: "GET")
  }

  @Test func aPostMayNameAnotherMethod() throws {
    let client = try APIClient.withDatabase()
    func post(_ target: String, _ method: String, _ body: String = "") throws -> Response {
      try client.send(
        "POST", target, body,
        headers: [
          ("X-HTTP-Method-Override", method), ("Content-Type", "application/json"), ("Destination", "copy"),
        ])
    }
    let made = try post("/db/a", "PUT", #"{"bob":"connie"}"#)
    expect(made.status, equals: 201)
    try expect(post("/db/a", "GET").json()["bob"], equals: "connie")
    try expect(post("/db/a", "HEAD").json()["bob"], equals: "connie")
    try expect(post("/db/a", "COPY").status, equals: 201)
    try expect(client.get("/db/copy").status, equals: 200)
    let revision = try made.json()["rev"].string ?? ""
    try expect(post("/db/a?rev=\(revision)", "DELETE").status, equals: 200)
    // Others aren't followed, and only a POST names one.
    try expect(post("/db/b", "PATCH", "{}").status, equals: 400)
    try expect(
      client.ask("GET", "/db/copy", headers: [("X-HTTP-Method-Override", "DELETE")]).status, equals: 200)
    try expect(client.get("/db/copy").status, equals: 200)
  }

  @Test func urlsInAnswersAreThoseOfAProxy() throws {
    let client = try APIClient.withDatabase()
    var number = 0
    func location(_ headers: (String, String)...) throws -> String? {
      number += 1
      return try client.send("PUT", "/db/\(number)", "{}", headers: [("Host", "inner:5984")] + headers)
        .header("Location")
    }
    try expect(location(), equals: "http://inner:5984/db/1")
    try expect(location(("X-Forwarded-Host", "mysite.com")), equals: "http://mysite.com/db/2")
    try expect(
      location(("X-Forwarded-Host", "a.example:8443, b"), ("X-Forwarded-Proto", "https")),
      equals: "https://a.example:8443/db/3")
    try expect(location(("X-Forwarded-Ssl", "on")), equals: "https://inner:5984/db/4")
    try expect(
      location(("X-Forwarded-Host", "a/b?c"), ("X-Forwarded-Proto", "ftp")), equals: "http://inner:5984/db/5")
  }

  @Test func optionsOfANewDatabaseAreChecked() throws {
    let client = try APIClient()
    for (query, reason) in [
      ("q=0", "The `q` value should be a positive integer."),
      ("n=x", "The `n` value should be a positive integer."),
      ("placement=moon", "The `placement` value should be in a format `zone:n`."),
      ("placement=", "The `placement` value should be in a format `zone:n`."),
      ("engine=cowabunga", "invalid_engine_extension"),
      ("partitioned=maybe", "Invalid `partitioned` parameter"),
    ] {
      let answer = try client.ask("PUT", "/db?" + query)
      expect(answer.status, equals: 400, "\(query)")
      try expect(answer.error, equals: ["bad_request", reason], "\(query)")
    }
    try expect(client.ask("GET", "/db").status, equals: 404)
    let query = "q=8&n=3&placement=a:1,b:2&engine=couch&partitioned=false"
    try expect(client.ask("PUT", "/db?" + query).status, equals: 201)
  }

  @Test func headIsAllowedWhereGetIs() throws {
    let client = try APIClient.withDatabase()
    _ = try client.send("PUT", "/db/_design/d", #"{"views":{}}"#)
    for target in [
      "/_uuids", "/_dbs_info", "/_membership", "/_node/_local", "/db/_security", "/db/_revs_limit",
      "/db/_purged_infos",
      "/db/_purged_infos_limit", "/db/_design/d/_info", "/_scheduler/jobs",
    ] {
      let answer = try client.ask("HEAD", target)
      expect(answer.status, equals: 200, "\(target)")
      expect(answer.body().isEmpty)
      try expect(client.ask("DELETE", target).status != 200, "\(target)")
    }
    try expect(client.ask("HEAD", "/db/_bulk_get").status, equals: 405)
  }

  @Test func emptySegmentsOfAPathAreLeftOut() throws {
    let client = try APIClient.withDatabase()
    let revision = try client.save("/db//doc", "{}")
    try expect(client.ask("PUT", "/db/doc//dir//a?rev=\(revision)", body: [1]).status, equals: 201)
    for target in ["//db", "/db//", "/db//_all_docs", "//db//doc/", "/db/doc//dir/a", "//_all_dbs"] {
      try expect(client.ask("GET", target).status, equals: 200, "\(target)")
    }
  }

  @Test func pagesOfOtherOriginsAskOnlyWhereTheyMay() throws {
    var configuration = DatabaseServiceConfiguration()
    let question = [
      ("Origin", "https://app.example"), ("Access-Control-Request-Method", "PUT"),
      ("Access-Control-Request-Headers", "content-type,authorization"),
    ]
    var client = try APIClient(.lmdb, configuration)
    try expect(client.ask("OPTIONS", "/db", headers: question).status, equals: 405)
    try expect(client.ask("GET", "/", headers: question).header("Access-Control-Allow-Origin") == nil)
    configuration.crossOrigin = .origins(["https://app.example"])
    client = try APIClient(.lmdb, configuration)
    let preflight = try client.ask("OPTIONS", "/db/x", headers: question)
    expect(preflight.status, equals: 204)
    expect(preflight.header("Access-Control-Allow-Origin"), equals: "https://app.example")
    expect(preflight.header("Access-Control-Allow-Headers"), equals: "content-type,authorization")
    try expect(client.ask("GET", "/", headers: question).header("Access-Control-Allow-Origin") != nil)
    let other = [("Origin", "https://app.example.evil")] + question.dropFirst()
    try expect(client.ask("OPTIONS", "/db/x", headers: other).header("Access-Control-Allow-Origin") == nil)
    try expect(client.ask("GET", "/", headers: other).header("Access-Control-Allow-Origin") == nil)
    let strange = question.dropLast() + [("Access-Control-Request-Headers", "x-strange")]
    try expect(client.ask("OPTIONS", "/db/x", headers: Array(strange)).status != 204)
    // Certain origins may log in. All of them may not.
    let credentials = "Access-Control-Allow-Credentials"
    try expect(client.ask("GET", "/", headers: question).header(credentials), equals: "true")
    configuration.crossOrigin = .all
    client = try APIClient(.lmdb, configuration)
    for method in ["OPTIONS", "GET"] {
      let answer = try client.ask(method, "/", headers: question)
      expect(answer.header("Access-Control-Allow-Origin"), equals: "*", "\(method)")
      expect(answer.header(credentials) == nil, "\(method)")
    }
  }

  @Test func everyAnswerHasAnIdentityAndTheTimeOfItsBody() throws {
    let client = try APIClient()
    var seen: Set<String> = []
    for (method, target) in [
      ("GET", "/"), ("HEAD", "/"), ("PUT", "/db"), ("PUT", "/db/a"), ("GET", "/db/a"), ("GET", "/db/b"),
      ("GET", "/db/_all_docs"), ("GET", "/db/_changes"), ("PATCH", "/db"), ("OPTIONS", "/"),
      ("GET", "/%zz?%"),
    ] {
      let answer = try client.ask(method, target, body: method == "PUT" ? Array("{}".utf8) : [])
      let id = answer.header("X-Couch-Request-ID") ?? ""
      expect(id.utf8.count == 10 && UInt64(id, radix: 16) != nil, "\(method) \(target)")
      expect(Int(answer.header("X-CouchDB-Body-Time") ?? "") != nil, "\(method) \(target)")
      expect(answer.headers.count { $0.name == "X-Couch-Request-ID" }, equals: 1)
      seen.insert(id)
    }
    expect(seen.count, equals: 11)
  }

  @Test("a system database that isn't there can't be deleted") func systemDatabases() throws {
    let client = try APIClient()
    for name in ["_users", "_replicator"] {
      try expect(client.ask("DELETE", "/" + name).error, equals: ["not_found", "Database does not exist."])
      try expect(client.ask("PUT", "/" + name).status, equals: 201)
      try expect(client.ask("DELETE", "/" + name).status, equals: 200)
    }
    try expect(client.ask("DELETE", "/_other").status, equals: 400)
  }

  @Test("a client may give its request a name") func requestNames() throws {
    let client = try APIClient()
    func name(_ name: String) throws -> String? {
      try client.ask("GET", "/_up", headers: [("X-Couch-Request-ID", name)]).header("X-Couch-Request-ID")
    }
    for good in ["a", "E7498DE1-B661_42fa-943D-17F890143068"] { try expect(name(good), equals: good) }
    for bad in ["", "a b", "ä", "a;b", String(repeating: "a", count: 37)] {
      let found = try name(bad) ?? ""
      expect(found != bad && found.utf8.count == 10, "\(bad)")
    }
  }

  @Test("a plus in a path is a blank, and an escaped one a plus") func plus() throws {
    let client = try APIClient.withDatabase()
    try client.save("/db/a+b", "{}")
    try client.save("/db/a%2Bb", "{}")
    try expect(
      client.get("/db/_all_docs").json()["rows"].array?.map { $0["id"] }, equals: ["a b", "a+b"])
    let revision = try client.get("/db/a%20b").json()["_rev"].string ?? ""
    try expect(client.ask("PUT", "/db/a+b/x+y?rev=\(revision)", body: [1]).status, equals: 201)
    try expect(client.ask("GET", "/db/a%20b/x%20y").status, equals: 200)
    try expect(
      client.ask("COPY", "/db/a%2Bb", headers: [("Destination", "c+d")]).json()["id"], equals: "c d")
  }

  @Test func answersAreCompressedForThoseWhoTakeIt() throws {
    let client = try APIClient()
    let path = "/_uuids?count=1000"
    let plain = try client.ask("GET", path)
    expect(plain.header("Content-Encoding") == nil)
    let packed = try client.ask("GET", path, headers: [("Accept-Encoding", "br;q=0.5, gzip")])
    expect(packed.header("Content-Encoding"), equals: "gzip")
    expect(packed.body().prefix(2), equals: [0x1F, 0x8B])
    expect(packed.body().count < plain.body().count)
    try expect(
      client.ask("GET", path, headers: [("Accept-Encoding", "gzip;q=0")]).header("Content-Encoding")
        == nil)
    try expect(
      client.ask("GET", "/", headers: [("Accept-Encoding", "gzip")]).header("Content-Encoding") == nil)
  }

  @Test func whatIsNotHereSaysSo() throws {
    let client = try APIClient()
    try expect(client.ask("PUT", "/db").status, equals: 201)
    // The answer that docs/http.md has for them.
    for (method, path) in [
      ("GET", "/_node/_local/_versions"), ("POST", "/_node/_local/_restart"), ("GET", "/_reshard"),
      ("GET", "/_reshard/jobs"),
      ("POST", "/_cluster_setup"), ("POST", "/_search_analyze"),
      ("POST", "/_nouveau_analyze"),
      ("GET", "/db/_auto_purge"), ("POST", "/db/_search_cleanup"), ("POST", "/db/_nouveau_cleanup"),
    ] {
      let answer = try client.send(method, path, "{}")
      expect(answer.status, equals: 501, "\(path)")
      try expect(answer.error[0], equals: "not_implemented", "\(path)")
    }
    try expect(client.get("/_cluster_setup").json(), equals: ["state": "single_node_enabled"])
    try expect(client.get("/db/_security").json()["members"]["roles"], equals: ["_admin"])
    try expect(client.get("/db/_purged_infos_limit").json(), equals: 1_000)
    try expect(client.ask("GET", "/_nosuch").status, equals: 404)
    try expect(client.ask("GET", "/nosuch").status, equals: 404)
    try expect(client.ask("PATCH", "/db").header("Allow"), equals: "DELETE,GET,HEAD,POST")
  }

  @Test func metricsCountRequests() throws {
    let client = try APIClient()
    _ = try client.ask("GET", "/")
    _ = try client.ask("BREW", "/")
    let text = try client.ask("GET", "/_metrics").text
    expect(text.contains("touchstone_http_requests_total{method=\"GET\",status=\"200\"} 1\n"))
    expect(text.contains("touchstone_http_requests_total{method=\"other\",status=\"405\"} 1\n"))
    expect(text.contains("touchstone_http_request_seconds_count 2\n"))
  }

  @Test func readersWriteNothing() throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.isReadOnly = true
    let client = try APIClient(.lmdb, configuration)
    try expect(client.ask("PUT", "/db").status, equals: 403)
    try expect(client.ask("GET", "/_all_dbs").json(), equals: [])
  }
}
