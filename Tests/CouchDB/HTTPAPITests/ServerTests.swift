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
    #expect(response.status == 200)
    #expect(try response.json().object?["couchdb"]?.string == "Welcome")
    #expect(response.header("Content-Type") == "application/json")
  }

  @Test func databasesAreMadeAndDeleted() throws {
    let client = try APIClient()
    let made = try client.ask("PUT", "/a%2Fb", headers: [("Host", "h:1")])
    #expect(made.status == 201)
    #expect(made.header("Location") == "http://h:1/a%2Fb")
    #expect(try client.ask("PUT", "/a%2Fb").status == 412)
    #expect(try client.ask("GET", "/a%2Fb").json().object?["db_name"]?.string == "a/b")
    #expect(try client.ask("GET", "/a/b").status == 404)
    #expect(try client.ask("DELETE", "/a%2Fb?rev=1-x").status == 400)
    #expect(try client.ask("DELETE", "/a%2Fb").status == 200)
    #expect(try client.ask("GET", "/a%2Fb").status == 404)
    #expect(try client.ask("DELETE", "/a%2Fb").status == 404)
  }

  @Test("databases that clients make keep as many revisions as CouchDB's", arguments: someEngines)
  func revisionsLimit(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    #expect(try client.get("/db/_revs_limit").json() == 1_000)
    var revisions = [try client.save("/db/a", "{}")]
    for number in 0..<40 {
      revisions.append(try client.save("/db/a", "{\"_rev\":\"\(revisions[number])\",\"n\":\(number)}"))
    }
    let names = revisions.map { "\"\($0)\"" }.joined(separator: ",")
    #expect(try client.send("POST", "/db/_revs_diff", "{\"a\":[\(names)]}").json() == [:])
  }

  @Test("in _users no passwords are stored") func users() throws {
    let client = try APIClient()
    #expect(try client.ask("PUT", "/_users").status == 201)
    let user = #"{"_id":"org.couchdb.user:bob","name":"bob","roles":[],"type":"user","password":"secret"}"#
    let refused = try client.send("PUT", "/_users/org.couchdb.user:bob", user)
    #expect(refused.status == 403)
    #expect(try refused.error[0] == "forbidden")
    let bulk = try client.send("POST", "/_users/_bulk_docs", "{\"docs\":[\(user)]}").json()
    #expect(bulk.array?.first?["error"]?.string == "forbidden")
    #expect(try client.get("/_users/_all_docs").json()["total_rows"] == 0)
    #expect(try client.send("PUT", "/_users/org.couchdb.user:bob", #"{"name":"bob"}"#).status == 201)
  }

  @Test("without users there is no session to begin") func noUsers() throws {
    let client = try APIClient()
    let answer = try client.send("POST", "/_session", #"{"name":"a","password":"b"}"#)
    #expect(answer.status == 404)
    #expect(try client.get("/_session").json()["ok"] == true)
  }

  @Test(arguments: ["Upper", "1abc", "_under", "a.b", "a%20b", "%C3%A4", "p+", "..%2Fetc", "a%00b"])
  func illegalNamesAreRefused(_ name: String) throws {
    let client = try APIClient()
    let response = try client.ask("PUT", "/" + name)
    #expect(response.status == 400)
    #expect(try response.json().object?["error"]?.string == "illegal_database_name")
    #expect(try client.ask("GET", "/_all_dbs").json() == [])
  }

  @Test func listsOfDatabasesHaveRanges() throws {
    let client = try APIClient()
    for name in ["b", "a", "d", "c"] { #expect(try client.ask("PUT", "/" + name).status == 201) }
    func names(_ query: String) throws -> JSONValue { try client.ask("GET", "/_all_dbs?" + query).json() }
    #expect(try names("") == ["a", "b", "c", "d"])
    #expect(try names("limit=1&descending=true") == ["d"])
    #expect(try names("start_key=%22b%22&end_key=%22c%22") == ["b", "c"])
    #expect(try names("startkey=%22c%22&endkey=%22b%22&descending=true&inclusive_end=false") == ["c"])
    #expect(try names("skip=3") == ["d"])
    #expect(try client.ask("GET", "/_all_dbs?limit=x").status == 400)
  }

  @Test func uuidsAreDistinctAndLimited() throws {
    let client = try APIClient()
    let uuids = try client.ask("GET", "/_uuids?count=1000").json().object?["uuids"]?.array ?? []
    #expect(Set(uuids.compactMap(\.string)).count == 1_000)
    #expect(uuids.allSatisfy { $0.string?.utf8.count == 32 })
    #expect(try client.ask("GET", "/_uuids?count=1001").status == 400)
    #expect(try client.ask("GET", "/_uuids?count=-1").status == 400)
    #expect(try client.ask("POST", "/_uuids").header("Allow") == "GET")
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
    #expect(made.status == 201)
    #expect(try post("/db/a", "GET").json()["bob"] == "connie")
    #expect(try post("/db/a", "HEAD").json()["bob"] == "connie")
    #expect(try post("/db/a", "COPY").status == 201)
    #expect(try client.get("/db/copy").status == 200)
    let revision = try made.json()["rev"].string ?? ""
    #expect(try post("/db/a?rev=\(revision)", "DELETE").status == 200)
    // Others aren't followed, and only a POST names one.
    #expect(try post("/db/b", "PATCH", "{}").status == 400)
    #expect(
      try client.ask("GET", "/db/copy", headers: [("X-HTTP-Method-Override", "DELETE")]).status == 200)
    #expect(try client.get("/db/copy").status == 200)
  }

  @Test func urlsInAnswersAreThoseOfAProxy() throws {
    let client = try APIClient.withDatabase()
    var number = 0
    func location(_ headers: (String, String)...) throws -> String? {
      number += 1
      return try client.send("PUT", "/db/\(number)", "{}", headers: [("Host", "inner:5984")] + headers)
        .header("Location")
    }
    #expect(try location() == "http://inner:5984/db/1")
    #expect(try location(("X-Forwarded-Host", "mysite.com")) == "http://mysite.com/db/2")
    #expect(
      try location(("X-Forwarded-Host", "a.example:8443, b"), ("X-Forwarded-Proto", "https"))
        == "https://a.example:8443/db/3")
    #expect(try location(("X-Forwarded-Ssl", "on")) == "https://inner:5984/db/4")
    #expect(
      try location(("X-Forwarded-Host", "a/b?c"), ("X-Forwarded-Proto", "ftp")) == "http://inner:5984/db/5")
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
      #expect(answer.status == 400, "\(query)")
      #expect(try answer.error == ["bad_request", reason], "\(query)")
    }
    #expect(try client.ask("PUT", "/db?partitioned=true").status == 501)
    #expect(try client.ask("GET", "/db").status == 404)
    let query = "q=8&n=3&placement=a:1,b:2&engine=couch&partitioned=false"
    #expect(try client.ask("PUT", "/db?" + query).status == 201)
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
      #expect(answer.status == 200, "\(target)")
      #expect(answer.body().isEmpty)
      #expect(try client.ask("DELETE", target).status != 200, "\(target)")
    }
    #expect(try client.ask("HEAD", "/db/_bulk_get").status == 405)
  }

  @Test func emptySegmentsOfAPathAreLeftOut() throws {
    let client = try APIClient.withDatabase()
    let revision = try client.save("/db//doc", "{}")
    #expect(try client.ask("PUT", "/db/doc//dir//a?rev=\(revision)", body: [1]).status == 201)
    for target in ["//db", "/db//", "/db//_all_docs", "//db//doc/", "/db/doc//dir/a", "//_all_dbs"] {
      #expect(try client.ask("GET", target).status == 200, "\(target)")
    }
  }

  @Test func pagesOfOtherOriginsAskOnlyWhereTheyMay() throws {
    var configuration = DatabaseServiceConfiguration()
    let question = [
      ("Origin", "https://app.example"), ("Access-Control-Request-Method", "PUT"),
      ("Access-Control-Request-Headers", "content-type,authorization"),
    ]
    var client = try APIClient(.lmdb, configuration)
    #expect(try client.ask("OPTIONS", "/db", headers: question).status == 405)
    #expect(try client.ask("GET", "/", headers: question).header("Access-Control-Allow-Origin") == nil)
    configuration.crossOrigin = .origins(["https://app.example"])
    client = try APIClient(.lmdb, configuration)
    let preflight = try client.ask("OPTIONS", "/db/x", headers: question)
    #expect(preflight.status == 204)
    #expect(preflight.header("Access-Control-Allow-Origin") == "https://app.example")
    #expect(preflight.header("Access-Control-Allow-Headers") == "content-type,authorization")
    #expect(try client.ask("GET", "/", headers: question).header("Access-Control-Allow-Origin") != nil)
    let other = [("Origin", "https://app.example.evil")] + question.dropFirst()
    #expect(try client.ask("OPTIONS", "/db/x", headers: other).header("Access-Control-Allow-Origin") == nil)
    #expect(try client.ask("GET", "/", headers: other).header("Access-Control-Allow-Origin") == nil)
    let strange = question.dropLast() + [("Access-Control-Request-Headers", "x-strange")]
    #expect(try client.ask("OPTIONS", "/db/x", headers: Array(strange)).status != 204)
    // Certain origins may log in. All of them may not.
    let credentials = "Access-Control-Allow-Credentials"
    #expect(try client.ask("GET", "/", headers: question).header(credentials) == "true")
    configuration.crossOrigin = .all
    client = try APIClient(.lmdb, configuration)
    for method in ["OPTIONS", "GET"] {
      let answer = try client.ask(method, "/", headers: question)
      #expect(answer.header("Access-Control-Allow-Origin") == "*", "\(method)")
      #expect(answer.header(credentials) == nil, "\(method)")
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
      #expect(id.utf8.count == 10 && UInt64(id, radix: 16) != nil, "\(method) \(target)")
      #expect(Int(answer.header("X-CouchDB-Body-Time") ?? "") != nil, "\(method) \(target)")
      #expect(answer.headers.count { $0.name == "X-Couch-Request-ID" } == 1)
      seen.insert(id)
    }
    #expect(seen.count == 11)
  }

  @Test func answersAreCompressedForThoseWhoTakeIt() throws {
    let client = try APIClient()
    let path = "/_uuids?count=1000"
    let plain = try client.ask("GET", path)
    #expect(plain.header("Content-Encoding") == nil)
    let packed = try client.ask("GET", path, headers: [("Accept-Encoding", "br;q=0.5, gzip")])
    #expect(packed.header("Content-Encoding") == "gzip")
    #expect(packed.body().prefix(2) == [0x1F, 0x8B])
    #expect(packed.body().count < plain.body().count)
    #expect(
      try client.ask("GET", path, headers: [("Accept-Encoding", "gzip;q=0")]).header("Content-Encoding")
        == nil)
    #expect(
      try client.ask("GET", "/", headers: [("Accept-Encoding", "gzip")]).header("Content-Encoding") == nil)
  }

  @Test func whatIsNotHereSaysSo() throws {
    let client = try APIClient()
    #expect(try client.ask("PUT", "/db").status == 201)
    // The answer that docs/http.md has for them.
    for (method, path) in [
      ("GET", "/_node/_local/_config"), ("GET", "/_node/x/_stats"), ("GET", "/_reshard"),
      ("GET", "/_reshard/jobs"),
      ("POST", "/_cluster_setup"), ("GET", "/_db_updates"), ("POST", "/_search_analyze"),
      ("POST", "/_nouveau_analyze"), ("GET", "/_utils/"), ("GET", "/db/_shards"), ("GET", "/db/_shards/doc"),
      ("POST", "/db/_sync_shards"), ("GET", "/db/_partition/x"), ("GET", "/db/_partition/x/_all_docs"),
      ("GET", "/db/_auto_purge"), ("POST", "/db/_search_cleanup"), ("POST", "/db/_nouveau_cleanup"),
      ("PUT", "/db/_security"), ("PUT", "/db/_purged_infos_limit"),
    ] {
      let answer = try client.send(method, path, "{}")
      #expect(answer.status == 501, "\(path)")
      #expect(try answer.error[0] == "not_implemented", "\(path)")
    }
    #expect(try client.get("/db/_security").json()["members"]["roles"] == ["_admin"])
    #expect(try client.get("/db/_purged_infos_limit").json() == 1_000)
    #expect(try client.ask("GET", "/_nosuch").status == 404)
    #expect(try client.ask("GET", "/nosuch").status == 404)
    #expect(try client.ask("PATCH", "/db").header("Allow") == "DELETE,GET,HEAD,POST")
  }

  @Test func metricsCountRequests() throws {
    let client = try APIClient()
    _ = try client.ask("GET", "/")
    _ = try client.ask("BREW", "/")
    let text = try client.ask("GET", "/_metrics").text
    #expect(text.contains("touchstone_http_requests_total{method=\"GET\",status=\"200\"} 1\n"))
    #expect(text.contains("touchstone_http_requests_total{method=\"other\",status=\"405\"} 1\n"))
    #expect(text.contains("touchstone_http_request_seconds_count 2\n"))
  }

  @Test func readersWriteNothing() throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.isReadOnly = true
    let client = try APIClient(.lmdb, configuration)
    #expect(try client.ask("PUT", "/db").status == 403)
    #expect(try client.ask("GET", "/_all_dbs").json() == [])
  }
}
