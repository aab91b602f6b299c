import Fleece
import HTTPAPI
import TestSupport
import Testing
import Touchstone

@Suite struct SingleDocumentTests {
  @Test("a deleted document isn't deleted again without its revision", arguments: someEngines)
  func deletedTwice(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let first = try client.save("/db/a", #"{"x":1}"#)
    try expect(client.send("DELETE", "/db/a?rev=\(first)").status, equals: 200)
    let conflict = ["conflict", "Document update conflict."]
    try expect(client.send("PUT", "/db/a", #"{"_deleted":true}"#).error, equals: conflict)
    let bulk = try client.send("POST", "/db/_bulk_docs", #"{"docs":[{"_id":"a","_deleted":true}]}"#)
    try expect(bulk.json()[0]["error"], equals: "conflict")
    // One that was never there gets a tombstone, and another revision goes on top of one.
    try expect(client.send("PUT", "/db/b", #"{"_deleted":true}"#).status, equals: 200)
    try expect(client.save("/db/a", #"{"x":2}"#).hasPrefix("3-"))
  }

  @Test(
    "what can't be a member or a name is refused before the document is looked for", arguments: someEngines)
  func refusedNames(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    try expect(
      client.send("PUT", "/db/a", #"{"_revisions":"x"}"#).error,
      equals: ["doc_validation", "Bad special document member: _revisions"])
    try expect(
      client.send("DELETE", "/db/a/_x?rev=1-ab").error,
      equals: ["bad_request", "Attachment name '_x' starts with prohibited character '_'"])
  }

  @Test("a document is made, read, changed and deleted", arguments: someEngines)
  func life(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let made = try client.send("PUT", "/db/a", #"{"x":1}"#, headers: [("Host", "h:1")])
    expect(made.status, equals: 201)
    let first = try made.json()["rev"].string ?? ""
    expect(first.hasPrefix("1-"))
    expect(made.header("ETag"), equals: "\"\(first)\"")
    expect(made.header("Location"), equals: "http://h:1/db/a")
    expect(made.text, equals: "{\"ok\":true,\"id\":\"a\",\"rev\":\"\(first)\"}\n")
    try expect(
      client.send("PUT", "/db/a", #"{"x":1}"#).error, equals: ["conflict", "Document update conflict."])
    let read = try client.get("/db/a")
    expect(read.text, equals: "{\"_id\":\"a\",\"_rev\":\"\(first)\",\"x\":1}\n")
    expect(read.header("ETag"), equals: "\"\(first)\"")
    try expect(client.get("/db/a", headers: [("If-None-Match", "\"\(first)\"")]).status, equals: 304)
    try expect(client.get("/db/a", headers: [("If-None-Match", "\"1-0\"")]).status, equals: 200)
    let second = try client.save("/db/a?rev=\(first)", #"{"x":2}"#)
    let third = try client.save("/db/a", #"{"_rev":"\#(second)","x":3}"#)
    let fourth = try client.save("/db/a", #"{"x":4}"#, headers: [("If-Match", "\"\(third)\"")])
    let fifth = try client.save("/db/a", #"{"x":5}"#, headers: [("If-Match", fourth)])
    expect(fifth.hasPrefix("5-"))
    try expect(
      client.send("PUT", "/db/a?rev=\(fourth)", #"{"_rev":"\#(fifth)"}"#).error[1].hasPrefix(
        "Document rev from request body"))
    try expect(client.send("PUT", "/db/a", #"{"_rev":"\#(first)"}"#).status, equals: 409)
    try expect(client.send("PUT", "/db/a", #"{"_rev":"7-0123"}"#).status, equals: 409)
    try expect(
      client.send("PUT", "/db/a", #"{"_rev":"garbage"}"#).error,
      equals: ["bad_request", "Invalid rev format"])
    try expect(
      client.send("PUT", "/db/a?rev=1-a", #"{"_rev":"1-b"}"#).error,
      equals: [
        "bad_request", "Document rev from request body and query string have different values",
      ])
    try expect(
      client.send("PUT", "/db/a", #"{"_rev":"1-b"}"#, headers: [("If-Match", "1-a")]).error,
      equals: [
        "bad_request", "Document rev and etag have different values",
      ])
    for option in ["open_revs=%7B%7D", "atts_since=5"] {
      try expect(client.get("/db/a?" + option).error, equals: ["bad_request", "Invalid list of revisions"])
    }
    try expect(client.get("/db/a?rev=\(first)").json()["x"], equals: 1)
    try expect(client.get("/db/a?rev=1-ffff").error, equals: ["not_found", "missing"])
    let revisions = try client.get("/db/a?revs=true").json()["_revisions"]
    expect(revisions["start"], equals: 5)
    expect(revisions["ids"].array?.count, equals: 5)
    try expect(client.get("/db/a?rev=\(second)&latest=true").json()["x"], equals: 5)
    try expect(client.send("DELETE", "/db/a").status, equals: 409)
    try expect(client.send("DELETE", "/db/a?rev=\(first)").status, equals: 409)
    let deleted = try client.send("DELETE", "/db/a?rev=\(fifth)")
    expect(deleted.status, equals: 200)
    let tombstone = try deleted.json()["rev"].string ?? ""
    expect(deleted.header("ETag"), equals: "\"\(tombstone)\"")
    try expect(client.get("/db/a").error, equals: ["not_found", "deleted"])
    try expect(client.get("/db/a?rev=\(tombstone)").json()["_deleted"], equals: true)
    try expect(client.send("DELETE", "/db/a?rev=\(tombstone)").error, equals: ["not_found", "deleted"])
    let again = try client.save("/db/a", #"{"x":"again"}"#)
    expect(again.hasPrefix("7-"))
    let info = try client.get("/db/a?revs_info=true")
    expect(info.header("ETag") == nil)
    try expect(
      info.json()["_revs_info"].array?.map { $0["status"].string },
      equals: ["available", "deleted"]
        + Array(repeating: "available", count: 5))
  }

  @Test("what isn't there is made as CouchDB does", arguments: someEngines)
  func unknownBase(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    try expect(client.save("/db/new", #"{"_rev":"1-0123456789abcdef0123456789abcdef"}"#).hasPrefix("2-"))
    try expect(
      client.get("/db/new?revs=true").json()["_revisions"]["ids"].array?.last,
      equals: "0123456789abcdef0123456789abcdef")
    let born = try client.send("PUT", "/db/tomb", #"{"_deleted":true,"why":"born dead"}"#)
    expect(born.status, equals: 200)
    let revision = try born.json()["rev"].string ?? ""
    try expect(client.get("/db/tomb").error, equals: ["not_found", "deleted"])
    try expect(client.get("/db/tomb?rev=\(revision)").json()["why"], equals: "born dead")
    try expect(client.send("DELETE", "/db/none?rev=1-ff").error, equals: ["not_found", "missing"])
    try expect(client.get("/db/none").error, equals: ["not_found", "missing"])
    let first = try client.save("/db/b?batch=ok", "{}")
    expect(first, equals: "")
    try expect(client.get("/db/b").status, equals: 200)
  }

  @Test("revisions that were made elsewhere branch", arguments: someEngines)
  func branches(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let (a, b, c, d, e) = ("aa", "bb", "cc", "dd", "ee")
    func put(_ json: String) throws -> Int { try client.send("PUT", "/db/c?new_edits=false", json).status }
    try expect(
      put(#"{"_rev":"2-\#(b)","_revisions":{"start":2,"ids":["\#(b)","\#(a)"]},"v":"b"}"#), equals: 201)
    try expect(
      put(#"{"_rev":"2-\#(c)","_revisions":{"start":2,"ids":["\#(c)","\#(a)"]},"v":"c"}"#), equals: 201)
    try expect(
      put(#"{"_rev":"3-\#(d)","_deleted":true,"_revisions":{"start":3,"ids":["\#(d)","\#(e)","\#(a)"]}}"#),
      equals: 200)
    try expect(
      put(#"{"_rev":"2-\#(c)","_revisions":{"start":2,"ids":["\#(c)","\#(a)"]},"v":"c"}"#), equals: 201)
    try expect(
      client.send("PUT", "/db/x?new_edits=false", "{}").error[1].hasPrefix("When `new_edits: false`"))
    try expect(
      client.send(
        "PUT", "/db/x?new_edits=false", #"{"_rev":"2-b","_revisions":{"start":3,"ids":["b","a"]}}"#
      ).json()["rev"], equals: "3-b")
    try expect(
      client.send("PUT", "/db/y?new_edits=false", #"{"_rev":"2-xyz"}"#).json()["rev"], equals: "2-xyz")
    let whole = try client.get("/db/c?conflicts=true&deleted_conflicts=true&revs=true").json()
    expect(whole["_rev"], equals: "2-cc")
    expect(whole["_conflicts"], equals: ["2-bb"])
    expect(whole["_deleted_conflicts"], equals: ["3-dd"])
    expect(whole["_revisions"], equals: ["start": 2, "ids": ["cc", "aa"]])
    try expect(
      client.get("/db/c?open_revs=all").text,
      equals:
        "[{\"ok\":{\"_id\":\"c\",\"_rev\":\"2-bb\",\"v\":\"b\"}},{\"ok\":{\"_id\":\"c\",\"_rev\":\"2-cc\",\"v\":\"c\"}},{\"ok\":{\"_id\":\"c\",\"_rev\":\"3-dd\",\"_deleted\":true}}]\n"
    )
    let list = "%5B%222-bb%22,%229-ee%22,%221-aa%22%5D"
    try expect(
      client.get("/db/c?open_revs=\(list)").json().array?.map {
        $0["ok"]["_rev"].string ?? $0["missing"].string
      }, equals: ["2-bb", "9-ee", "1-aa"])
    try expect(client.get("/db/c?open_revs=%5B%221-aa%22%5D&latest=true").json().count, equals: 3)
    try expect(client.get("/db/c?open_revs=%5B%5D").json()["_rev"], equals: "2-cc")
    try expect(client.get("/db/c?open_revs=junk").error, equals: ["bad_request", "invalid UTF-8 JSON"])
    try expect(client.get("/db/none?open_revs=all").status, equals: 404)
    let multipart = try client.ask(
      "GET", "/db/c?open_revs=%5B%222-bb%22,%229-ee%22%5D", headers: [("Accept", "multipart/mixed")])
    let boundary = multipart.header("Content-Type")?.split(separator: "\"").last.map(String.init) ?? ""
    expect(
      multipart.text,
      equals:
        "--\(boundary)\r\nContent-Type: application/json\r\n\r\n{\"_id\":\"c\",\"_rev\":\"2-bb\",\"v\":\"b\"}\r\n--\(boundary)\r\nContent-Type: application/json; error=\"true\"\r\n\r\n{\"missing\":\"9-ee\"}\r\n--\(boundary)--"
    )
    try expect(client.send("PUT", "/db/c", #"{"_rev":"2-bb","v":"on"}"#).status, equals: 201)
    try expect(client.get("/db/c?conflicts=true").json()["_conflicts"], equals: ["2-cc"])
  }

  @Test("a body that can't be a document is refused as in CouchDB")
  func badBodies() throws {
    let client = try APIClient.withDatabase()
    let cases: [(String, [String])] = [
      (#"{"_foo":1}"#, ["doc_validation", "Bad special document member: _foo"]),
      (#"{"\u005ffoo":1}"#, ["doc_validation", "Bad special document member: _foo"]),
      (#"{"_deleted":"yes"}"#, ["doc_validation", "Bad special document member: _deleted"]),
      (#"{"_attachments":[]}"#, ["doc_validation", "Bad special document member: _attachments"]),
      (
        #"{"_attachments":{"_x":{"data":""}}}"#,
        ["bad_request", "Attachment name '_x' starts with prohibited character '_'"]
      ),
      ("[1]", ["bad_request", "Document must be a JSON object"]),
      ("\"s\"", ["bad_request", "Document must be a JSON object"]),
      ("1", ["bad_request", "Document must be a JSON object"]),
      ("null", ["bad_request", "Document must be a JSON object"]),
      ("", ["bad_request", "invalid UTF-8 JSON"]), (#"{"a":"#, ["bad_request", "invalid UTF-8 JSON"]),
      ("{} x", ["bad_request", "invalid UTF-8 JSON"]), ("{'a':1}", ["bad_request", "invalid UTF-8 JSON"]),
      (#"{"a":"\ud800"}"#, ["bad_request", "invalid UTF-8 JSON"]),
      (#"{"a":1e999}"#, ["bad_request", "invalid UTF-8 JSON"]),
      (#"{"a":[}]}"#, ["bad_request", "invalid UTF-8 JSON"]),
      (#"{"a":1,}"#, ["bad_request", "invalid UTF-8 JSON"]),
      (#"{"a" 1}"#, ["bad_request", "invalid UTF-8 JSON"]),
      (#"{"a":tru}"#, ["bad_request", "invalid UTF-8 JSON"]),
      ("\u{FEFF}{}", ["bad_request", "invalid UTF-8 JSON"]),
    ]
    for (body, error) in cases {
      let response = try client.send("PUT", "/db/x", body)
      expect(response.status, equals: 400, "\(body)")
      try expect(response.error, equals: error, "\(body)")
      try expect(client.get("/db/x").status, equals: 404, "\(body)")
    }
    try expect(
      client.ask("PUT", "/db/x", body: Array("{\"a\":\"".utf8) + [0xFF] + Array("\"}".utf8)).status,
      equals: 400)
    try expect(client.send("PUT", "/db/d", #"{"a":1,"a":2}"#).status, equals: 201)
    try expect(client.get("/db/d").json()["a"], equals: 2)
    let deep = String(repeating: "[", count: 2_000) + String(repeating: "]", count: 2_000)
    try expect(client.send("PUT", "/db/deep", "{\"a\":\(deep)}").status, equals: 400)
    for (id, reason) in [
      ("", "Document id must not be empty"), ("_x", "Only reserved document ids may start with underscore."),
    ] {
      try expect(client.send("POST", "/db", #"{"_id":"\#(id)"}"#).error, equals: ["illegal_docid", reason])
    }
    try expect(
      client.send("POST", "/db", #"{"_id":5}"#).error,
      equals: [
        "illegal_docid", "Document id must be a string",
      ])
    try expect(client.ask("POST", "/db", body: Array("{}".utf8)).error[0], equals: "bad_content_type")
    try expect(client.send("PUT", "/db/_x", "{}").error[0], equals: "illegal_docid")
    try expect(client.send("PUT", "/db/_design/", "{}").status, equals: 400)
  }

  @Test("gaps in a history are filled, and what is far behind isn't told", arguments: someEngines)
  func gaps(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.apply("near", "5-e", "2-b", "1-a")
    let near = try reading.get("near?revs=true").json()["_revisions"]
    let ids = near["ids"].array?.compactMap(\.string) ?? []
    expect(near["start"] == 5 && ids.count == 5 && Set(ids).count == 5)
    expect(ids.indices.filter { !ids[$0].hasPrefix("faded000") }.map { ids[$0] }, equals: ["e", "b", "a"])
    expect(ids.filter { $0.hasPrefix("faded000") }.allSatisfy { $0.utf8.count == 24 })
    // They aren't revisions, and are the same again.
    try expect(reading.get("near?rev=4-\(ids[1])").status, equals: 404)
    try expect(reading.get("near?revs=true").json()["_revisions"], equals: near)
    try reading.database.setMaximumTreeDepth(2_000)
    try reading.apply("last", "1001-e", "2-b")
    try expect(reading.get("last?revs=true").json()["_revisions"]["ids"].count, equals: 1_000)
    try reading.apply("far", "1002-e", "2-b")
    try expect(reading.get("far?revs=true").json()["_revisions"], equals: ["start": 1002, "ids": ["e"]])
  }

  @Test("limits of sizes hold")
  func sizes() throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.maximumDocumentBytes = 100
    configuration.maximumRequestBytes = 1_000
    configuration.maximumAttachmentBytes = 50
    let client = try APIClient(.lmdb, configuration)
    _ = try client.ask("PUT", "/db")
    let text = String(repeating: "y", count: 200)
    try expect(client.send("PUT", "/db/big", #"{"x":"\#(text)"}"#).error, equals: ["document_too_large", ""])
    let bulk = try client.send(
      "POST", "/db/_bulk_docs", #"{"docs":[{"_id":"sm"},{"_id":"big","x":"\#(text)"}]}"#)
    expect(bulk.status, equals: 413)
    try expect(bulk.error, equals: ["document_too_large", "big"])
    try expect(client.get("/db/sm").status, equals: 404)
    let long = String(repeating: text, count: 6)
    try expect(
      client.send("PUT", "/db/huge", #"{"x":"\#(long)"}"#).error,
      equals: [
        "too_large", "the request entity is too large",
      ])
    let attachment = try client.ask("PUT", "/db/d/a", body: Array(text.utf8))
    expect(attachment.status, equals: 413)
    try expect(attachment.error, equals: ["attachment_too_large", "a"])
    try expect(
      client.send(
        "PUT", "/db/d", #"{"_attachments":{"a":{"data":"\#(String(repeating: "eHh4", count: 20))"}}}"#
      ).status, equals: 413)
    // Attachments and histories don't count as the document.
    let inline =
      #""_attachments":{"a":{"content_type":"a/b","data":"\#(String(repeating: "eHh4", count: 16))"}}"#
    expect(inline.utf8.count > 100)
    try expect(client.send("PUT", "/db/with", "{\(inline),\"n\":1}").status, equals: 201)
    let suffixes = (0..<20).map { "\"aa\($0)\"" }.joined(separator: ",")
    let history = #""_revisions":{"start":20,"ids":[\#(suffixes)]}"#
    let old = try client.send(
      "POST", "/db/_bulk_docs", #"{"new_edits":false,"docs":[{"_id":"old",\#(history),\#(inline)}]}"#)
    expect(old.status, equals: 201)
    expect(old.text, equals: "[]\n")
    try expect(client.get("/db/old").json()["_attachments"]["a"]["length"], equals: 48)
  }

  @Test("IDs are escaped, and taken as they are")
  func identifiers() throws {
    let client = try APIClient.withDatabase()
    let ids = [
      "with%20space": "with space", "sl%2Fash": "sl/ash", "plus%2Bsign": "plus+sign",
      "percent%2541": "percent%41",
      "quote%22s": "quote\"s", "%C3%BCn%C3%AF": "ünï", "trailing%2F": "trailing/",
      "%3Fquestion%26amp": "?question&amp",
      "%28paren%29": "(paren)", "0": "0", "-": "-",
    ]
    for (escaped, id) in ids {
      let made = try client.send("PUT", "/db/\(escaped)", "{}")
      expect(made.status, equals: 201, "\(id)")
      try expect(made.json()["id"], equals: .string(id))
      expect(made.header("Location"), equals: "http://localhost/db/\(escaped)", "\(id)")
      try expect(client.get("/db/\(escaped)").json()["_id"], equals: .string(id))
    }
    try expect(
      client.send("PUT", "/db/_design/d1", #"{"language":"x"}"#).header("Location"),
      equals: "http://localhost/db/_design%2Fd1")
    let redirect = try client.get("/db/_design%2Fd1?rev=1")
    expect(redirect.status, equals: 301)
    expect(redirect.header("Location"), equals: "http://localhost/db/_design/d1?rev=1")
    try expect(client.get("/db/_design/d1").json()["_id"], equals: "_design/d1")
    try expect(client.ask("PUT", "/db/%FF", body: Array("{}".utf8)).status, equals: 400)
    try expect(client.send("PUT", "/db/\(String(repeating: "a", count: 300))", "{}").status, equals: 201)
    try expect(client.send("PUT", "/db/\(String(repeating: "a", count: 481))", "{}").status, equals: 400)
    try expect(client.send("PATCH", "/db/a", "{}").header("Allow"), equals: "DELETE,GET,HEAD,POST,PUT,COPY")
    try expect(client.send("POST", "/db/a", "{}").error, equals: ["bad_request", "Referer header required."])
  }

  @Test("documents are copied with their attachments", arguments: someEngines)
  func copies(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    try client.save("/db/src", #"{"s":1,"_attachments":{"a.bin":{"data":"eHg="}}}"#)
    let copied = try client.send("COPY", "/db/src", headers: [("Destination", "d%20st")])
    expect(copied.status, equals: 201)
    expect(copied.header("Location"), equals: "http://localhost/db/d%20st")
    let revision = try copied.json()["rev"].string ?? ""
    expect(copied.header("ETag"), equals: "\"\(revision)\"")
    try expect(client.ask("GET", "/db/d%20st/a.bin").text, equals: "xx")
    try expect(client.send("COPY", "/db/src", headers: [("Destination", "d%20st")]).status, equals: 409)
    try expect(
      client.send("COPY", "/db/src", headers: [("Destination", "d%20st?rev=\(revision)")]).json()["rev"]
        .string?.hasPrefix("2-"), equals: true)
    try expect(
      client.send("COPY", "/db/src").error,
      equals: [
        "bad_request", "Destination header is mandatory for COPY.",
      ])
    try expect(client.send("COPY", "/db/none", headers: [("Destination", "x")]).status, equals: 404)
    try expect(
      client.send("COPY", "/db/src", headers: [("Destination", "http://h/db/x")]).status, equals: 400)
  }

  @Test("a lowered _revs_limit shortens histories at once", arguments: someEngines)
  func revisionsLimit(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    var revisions: [String] = []
    for number in 1...8 {
      let before = revisions.last.map { "?rev=\($0)" } ?? ""
      revisions.append(try client.save("/db/bar\(before)", "{\"n\":\(number)}"))
    }
    func history() throws -> [Int?] {
      let document = try client.get("/db/bar?revs=true&revs_info=true").json()
      let answers = try client.send("POST", "/db/_bulk_get?revs=true", #"{"docs":[{"id":"bar"}]}"#).json()
      return [
        document["_revisions"]["start"].int.map { Int($0) }, document["_revisions"]["ids"].array?.count,
        document["_revs_info"].array?.count,
        answers["results"][0]["docs"][0]["ok"]["_revisions"]["ids"].array?.count,
      ]
    }
    try expect(history(), equals: [8, 8, 8, 8])
    try expect(client.send("PUT", "/db/_revs_limit", "3").status, equals: 200)
    try expect(history(), equals: [8, 3, 3, 3])
    _ = try client.send("POST", "/db/_compact")
    try expect(history(), equals: [8, 3, 3, 3])
    // The next save removes what is beyond it.
    try client.save("/db/bar?rev=\(revisions[7])", #"{"n":9}"#)
    _ = try client.send("PUT", "/db/_revs_limit", "1000")
    try expect(history(), equals: [9, 3, 3, 3])
    for limit in [2, 1] {
      _ = try client.send("PUT", "/db/_revs_limit", "\(limit)")
      try expect(history(), equals: [9, limit, limit, limit])
    }
  }

  @Test("local documents have the revisions that clients give them", arguments: someEngines)
  func local(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    try expect(client.save("/db/_local/cp", #"{"last":1}"#), equals: "0-1")
    try expect(client.save("/db/_local/cp", #"{"_rev":"0-1","last":2}"#), equals: "0-2")
    try expect(client.save("/db/_local/cp", #"{"last":3}"#), equals: "0-1")
    try expect(client.save("/db/_local/cp", #"{"_rev":"0-7","last":3}"#), equals: "0-8")
    try expect(
      client.get("/db/_local/cp?revs=true").json(),
      equals: [
        "_id": "_local/cp", "_rev": "0-8", "last": 3, "_revisions": ["start": 0, "ids": ["8"]],
      ])
    // As CouchDB's replicator sends it.
    try expect(
      client.save("/db/_local/r", #"{"_rev":"0-1","_revisions":{"start":0,"ids":["1"]}}"#), equals: "0-2")
    try expect(client.save("/db/_local%2Fcp2", "{}"), equals: "0-1")
    try expect(client.save("/db/_local/sl%2Fash", "{}"), equals: "0-1")
    try expect(client.get("/db/_local/sl%2Fash").json()["_id"], equals: "_local/sl/ash")
    try expect(client.get("/db/_local/none").error, equals: ["not_found", "missing"])
    try expect(
      client.ask("PUT", "/db/_local/cp/att", body: [1]).error[1],
      equals: "_local documents do not accept attachments.")
    try expect(client.send("DELETE", "/db/_local/cp").json()["rev"], equals: "0-0")
    try expect(client.send("DELETE", "/db/_local/cp").status, equals: 404)
    try expect(
      client.send("COPY", "/db/_local/sl%2Fash", headers: [("Destination", "_local/copied")]).json()[
        "rev"], equals: "0-1")
    try expect(
      client.send("POST", "/db", #"{"_id":"_local/posted"}"#).header("Location"),
      equals: "http://localhost/db/_local%2Fposted")
    try expect(
      client.send("POST", "/db/_bulk_docs", #"{"docs":[{"_id":"_local/x"}]}"#).json(),
      equals: [
        ["ok": true, "id": "_local/x", "rev": "0-1"]
      ])
    try expect(client.send("PUT", "/db/_local/bad", #"{"_rev":"0-x"}"#).status, equals: 400)
    // One in 64 of PouchDB's checkpoints begins so.
    try expect(client.save("/db/_local/_abc%3D%3D", #"{"last_seq":1}"#), equals: "0-1")
    try expect(client.save("/db/_local/_abc==", #"{"_rev":"0-1","last_seq":2}"#), equals: "0-2")
    try expect(client.get("/db/_local/_abc==").json()["last_seq"], equals: 2)
    try expect(
      client.send("POST", "/db/_bulk_docs", #"{"docs":[{"_id":"_local/_b"}]}"#).json(),
      equals: [
        ["ok": true, "id": "_local/_b", "rev": "0-1"]
      ])
    try expect(
      client.get("/db/_local_docs?keys=%5B%22_local/_b%22%5D").json()["rows"][0]["id"], equals: "_local/_b")
    try expect(client.send("DELETE", "/db/_local/_abc==").status, equals: 200)
    let longest = String(repeating: "n", count: 240)
    try expect(client.save("/db/_local/\(longest)", "{}"), equals: "0-1")
    try expect(client.send("PUT", "/db/_local/\(longest)n", "{}").status, equals: 400)
  }
}
