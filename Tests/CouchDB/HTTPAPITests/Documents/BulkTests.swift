import Bytes
import Fleece
import HTTPAPI
import TestSupport
import Testing
import Touchstone

@Suite struct BulkTests {
  @Test("each document of a bulk request has its own result", arguments: someEngines)
  func edits(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let made = try client.send(
      "POST", "/db/_bulk_docs", #"{"docs":[{"_id":"a","n":1},{"n":3,"_id":"b"},{"n":3}],"x":[]}"#)
    expect(made.status, equals: 201)
    let rows = try made.json()
    expect(rows.array?.map { $0["ok"] }, equals: [true, true, true])
    expect(rows.array?[2]["id"].string?.utf8.count, equals: 32)
    let b = rows.array?[1]["rev"].string ?? ""
    let mixed = try client.send(
      "POST", "/db/_bulk_docs",
      #" { "docs" : [ {"_id":"a","n":9} , {"_id":"b","_rev":"\#(b)","n":9}, {"_id":"c"},{"_id":"c"}]} "#)
    try expect(
      mixed.json().array?.map { $0["error"].string ?? "ok" }, equals: ["conflict", "ok", "ok", "conflict"])
    expect(
      mixed.text.hasPrefix(
        #"[{"id":"a","error":"conflict","reason":"Document update conflict."},{"ok":true,"id":"b","rev":"2-"#)
    )
    let deleted = try client.send(
      "POST", "/db/_bulk_docs",
      #"{"docs":[{"_id":"none","_rev":"1-ab","_deleted":true},{"_id":"never","_deleted":true}]}"#)
    try expect(deleted.json().array?.map { $0["rev"].string?.prefix(2) }, equals: ["2-", "1-"])
    try expect(client.send("POST", "/db/_bulk_docs", #"{"docs":[]}"#).text, equals: "[]\n")
  }

  @Test("a request that is wrong in one document saves none", arguments: someEngines)
  func refused(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let cases: [(String, Int, [String])] = [
      ("{}", 400, ["bad_request", "POST body must include `docs` parameter."]),
      ("[]", 400, ["bad_request", "Request body must be a JSON object"]),
      (#"{"docs":"x"}"#, 400, ["bad_request", "`docs` parameter must be an array."]),
      (#"{"docs":[1]}"#, 400, ["bad_request", "Document must be a JSON object"]),
      (#"{"docs":["#, 400, ["bad_request", "invalid UTF-8 JSON"]),
      ("", 400, ["bad_request", "invalid UTF-8 JSON"]),
      (
        #"{"docs":[{"_id":"ok"},{"_id":"_bad"}]}"#, 400,
        ["illegal_docid", "Only reserved document ids may start with underscore."]
      ),
      (
        #"{"docs":[{"_id":"ok"},{"_id":"u","_foo":1}]}"#, 400,
        ["doc_validation", "Bad special document member: _foo"]
      ),
      (#"{"docs":[{"_id":"ok"},{"_id":"r","_rev":"x"}]}"#, 400, ["bad_request", "Invalid rev format"]),
      (#"{"docs":[{"_id":"ok"},{"_id":7}]}"#, 400, ["illegal_docid", "Document id must be a string"]),
      (#"{"docs":[{"_id":"ok"},{"_id":"j","a":tru}]}"#, 400, ["bad_request", "invalid UTF-8 JSON"]),
      (
        #"{"docs":[{"_id":"ok","_rev":"1-a"},{"_id":"j","_rev":"1-a","a":tru}],"new_edits":false}"#, 400,
        ["bad_request", "invalid UTF-8 JSON"]
      ),
      (
        #"{"docs":[{"_id":"ok"},{"_id":"s","_attachments":{"x":{"stub":true}}}]}"#, 412,
        ["missing_stub", "Invalid attachment stub in s for x"]
      ),
      (
        #"{"new_edits":false,"docs":[{"_id":"ok","_rev":"1-a"},{"_id":"n"}]}"#, 400,
        ["bad_request", "When `new_edits: false`, the document needs `_rev` or `_revisions` specified"]
      ),
    ]
    for (body, status, error) in cases {
      let response = try client.send("POST", "/db/_bulk_docs", body)
      expect(response.status, equals: status, "\(body)")
      try expect(response.error, equals: error, "\(body)")
    }
    try expect(client.get("/db/ok").status, equals: 404)
    let many = Array(repeating: "{}", count: 10_001).joined(separator: ",")
    try expect(
      client.send("POST", "/db/_bulk_docs", "{\"docs\":[\(many)]}").error,
      equals: [
        "max_bulk_docs_count_exceeded", "10000",
      ])
    try expect(
      client.send("POST", "/db/_bulk_docs", #"{"docs":[{"_id":"e"}],"all_or_nothing":true}"#).status,
      equals: 417)
    try expect(client.send("PUT", "/db/_bulk_docs", "{}").header("Allow"), equals: "POST")
    try expect(client.ask("POST", "/db/_bulk_docs", body: Array("{}".utf8)).status, equals: 415)
  }

  @Test("revisions that were made elsewhere are stored with their histories", arguments: someEngines)
  func foreign(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let docs =
      #"[{"_id":"n","_rev":"3-cc","_revisions":{"start":3,"ids":["cc","bb","aa"]},"v":1},{"_id":"n","_rev":"2-aa","_revisions":{"start":2,"ids":["aa","bb"]},"v":2},{"_id":"b","_rev":"1-cc"}]"#
    for _ in 0..<2 {
      let response = try client.send("POST", "/db/_bulk_docs", #"{"new_edits":false,"docs":\#(docs)}"#)
      expect(response.status, equals: 201)
      expect(response.text, equals: "[]\n")
    }
    let n = try client.get("/db/n?conflicts=true&revs=true").json()
    expect(n["_rev"], equals: "3-cc")
    expect(n["_conflicts"], equals: ["2-aa"])
    let difference = try client.send(
      "POST", "/db/_revs_diff", #"{"n":["3-cc","2-aa","9-bb"],"none":["1-aa"],"b":["1-cc"],"e":[]}"#)
    try expect(
      difference.json(),
      equals: [
        "n": ["missing": ["9-bb"], "possible_ancestors": ["3-cc", "2-aa"]], "none": ["missing": ["1-aa"]],
      ])
    try expect(
      client.send("POST", "/db/_missing_revs", #"{"n":["3-cc","9-bb"],"none":["1-aa"]}"#).json(),
      equals: [
        "missing_revs": ["n": ["9-bb"], "none": ["1-aa"]]
      ])
    try expect(
      client.send("POST", "/db/_revs_diff", #"{"n":["bad"]}"#).error,
      equals: [
        "bad_request", "Invalid rev format",
      ])
    try expect(
      client.send("POST", "/db/_revs_diff", "[1]").error,
      equals: [
        "bad_request", "Request body must be a JSON object",
      ])
    try expect(client.send("POST", "/db/_revs_diff", #"{"n":"3-x"}"#).status, equals: 400)
    let purge = try client.send("POST", "/db/_purge", #"{"b":["1-cc"],"n":["2-bb"],"none":["1-a"]}"#)
    expect(purge.status, equals: 201)
    try expect(purge.json(), equals: ["purge_seq": .null, "purged": ["b": ["1-cc"], "n": [], "none": []]])
    try expect(client.get("/db/b").error, equals: ["not_found", "missing"])
  }

  @Test("a longer history is joined to a document that began later", arguments: someEngines)
  func joined(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    func put(_ start: Int, _ ids: String) throws {
      let document = #"{"_id":"d","_revisions":{"start":\#(start),"ids":[\#(ids)]}}"#
      let answer = try client.send("POST", "/db/_bulk_docs", #"{"new_edits":false,"docs":[\#(document)]}"#)
      expect(answer.text, equals: "[]\n")
    }
    try put(5, #""ee""#)
    try put(3, #""cc""#)
    try expect(client.get("/db/d?conflicts=true").json()["_conflicts"], equals: ["3-cc"])
    try put(6, #""ff","ee","dd","cc","bb""#)
    let document = try client.get("/db/d?conflicts=true&revs=true").json()
    expect(document["_conflicts"].isNull)
    expect(document["_revisions"], equals: ["start": 6, "ids": ["ff", "ee", "dd", "cc", "bb"]])
    try expect(client.send("POST", "/db/_revs_diff", #"{"d":["4-dd","2-bb"]}"#).json(), equals: [:])
  }

  @Test("several documents are read at once", arguments: someEngines)
  func bulkGet(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let docs =
      #"[{"_id":"n","_rev":"3-cc","_revisions":{"start":3,"ids":["cc","bb","aa"]},"v":1},{"_id":"n","_rev":"2-aa","_revisions":{"start":2,"ids":["aa","bb"]},"v":2}]"#
    _ = try client.send("POST", "/db/_bulk_docs", #"{"new_edits":false,"docs":\#(docs)}"#)
    let body =
      #"{"docs":[{"id":"n"},{"id":"n","rev":"2-aa"},{"id":"n","rev":"9-aa"},{"id":"none"},{"id":"n","rev":"bad"},{}]}"#
    let json =
      try client.send("POST", "/db/_bulk_get", body, headers: [("Accept", "application/json")]).json()[
        "results"
      ].array ?? []
    expect(json.count, equals: 6)
    expect(
      json.first?["docs"],
      equals: [
        ["ok": ["_id": "n", "_rev": "2-aa", "v": 2]], ["ok": ["_id": "n", "_rev": "3-cc", "v": 1]],
      ])
    expect(
      json.dropFirst(2).first?["docs"],
      equals: [
        ["error": ["id": "n", "rev": "9-aa", "error": "not_found", "reason": "missing"]]
      ])
    expect(
      json.dropFirst(3).first?["docs"],
      equals: [
        ["error": ["id": "none", "rev": "undefined", "error": "not_found", "reason": "missing"]]
      ])
    expect(
      json.dropFirst(4).first?["docs"],
      equals: [
        ["error": ["id": "n", "rev": "bad", "error": "bad_request", "reason": "Invalid rev format"]]
      ])
    expect(json.last?["id"], equals: .null)
    let latest = try client.send(
      "POST", "/db/_bulk_get?latest=true&revs=true", #"{"docs":[{"id":"n","rev":"1-aa"}]}"#
    ).json()
    expect(
      latest["results"].array?.first?["docs"].array?.first?["ok"]["_revisions"],
      equals: [
        "start": 3, "ids": ["cc", "bb", "aa"],
      ])
    let multipart = try client.send(
      "POST", "/db/_bulk_get", body,
      headers: [("Accept", "multipart/mixed"), ("Content-Type", "application/json")])
    expect(multipart.parts.count, equals: 7)
    try expect(
      client.send("POST", "/db/_bulk_get", "{}").error,
      equals: ["bad_request", "Missing JSON list of 'docs'."])
  }

  @Test("entries of _bulk_get for one document are answered as each of them alone", arguments: someEngines)
  func bulkGetOfManyRevisions(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    // More entries and more text than are read from one snapshot.
    let ids = (0..<300).map { "2-\(String($0 + 0x1000, radix: 16))" }
    let text = String(repeating: "x", count: 2_000)
    let documents = ids.map {
      #"{"_id":"wide","_rev":"\#($0)","_revisions":{"start":2,"ids":["\#($0.dropFirst(2))","aa"]},"v":"\#(text)"}"#
    }
    _ = try client.send(
      "POST", "/db/_bulk_docs", #"{"new_edits":false,"docs":[\#(documents.joined(separator: ","))]}"#)
    try client.save("/db/other", "{}")
    var entries = ids.map { #"{"id":"wide","rev":"\#($0)"}"# }
    entries.insert(#"{"id":"wide","rev":"7-ff"}"#, at: 290)
    entries.insert(#"{"id":"other"}"#, at: 200)
    entries.insert(#"{"id":"wide","rev":"1-aa"}"#, at: 100)
    entries.insert(#"{"id":"wide","rev":"bad"}"#, at: 50)
    entries.insert(entries[0], at: 1)
    for options in ["", "?latest=true&revs=true"] {
      func results(_ entries: [String]) throws -> [JSONValue] {
        let body = "{\"docs\":[\(entries.joined(separator: ","))]}"
        return try client.send("POST", "/db/_bulk_get\(options)", body).json()["results"].array ?? []
      }
      let together = try results(entries)
      expect(together.count, equals: entries.count)
      for (entry, found) in zip(entries, together) {
        try expect([found], equals: results([entry]), "\(entry)")
      }
    }
  }

  @Test("a replicated document that can't be stored doesn't keep out the others", arguments: someEngines)
  func unstorable(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let deep = String(repeating: "[", count: 400) + String(repeating: "]", count: 400)
    let long = String(repeating: "x", count: 500)
    let answer = try client.send(
      "POST", "/db/_bulk_docs",
      """
      {"new_edits":false,"docs":[{"_id":"a","_rev":"1-a"},{"_id":"deep","_rev":"1-b","d":\(deep)},\
      {"_id":"\(long)","_rev":"1-c"},{"_id":"line\\n","_rev":"1-d"},{"_id":"z","_rev":"1-e"}]}
      """)
    expect(answer.status, equals: 201)
    let failed = try answer.json().array ?? []
    expect(failed.map { $0["rev"] }, equals: ["1-b", "1-d", "1-c"])
    // PouchDB goes on behind that error only.
    expect(failed.map { $0["error"] }, equals: ["forbidden", "forbidden", "forbidden"])
    try expect(client.get("/db/a").status, equals: 200)
    try expect(client.get("/db/z").status, equals: 200)
    // What isn't JSON refuses all.
    let text = #"{"new_edits":false,"docs":[{"_id":"b","_rev":"1-a"},{"_id":"c","_rev":"1-a","d":[1,]}]}"#
    let refused = try client.send("POST", "/db/_bulk_docs", text)
    expect(refused.status, equals: 400)
    try expect(refused.error, equals: ["bad_request", "invalid UTF-8 JSON"])
    try expect(client.get("/db/b").status, equals: 404)
  }

  @Test("a revision that only CouchDB could store refuses its document alone", arguments: someEngines)
  func unstorableRevisions(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let long = String(repeating: "a", count: 251)
    let odd = [
      #""_rev":"1-\#(long)""#, #""_rev":"1-ü""#, #""_rev":"99999999999999999999-a""#,
      #""_revisions":{"start":1,"ids":["a","b"]}"#, #""_revisions":{"start":2,"ids":["a","b","c"]}"#,
      #""_revisions":{"start":2,"ids":["\#(long)","b"]}"#,
      #""v":{"@type":"blob","digest":"sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=","length":3}"#,
    ]
    var documents = odd.enumerated().map { index, members in
      let revision = members.contains("_rev") ? "" : #""_rev":"1-a","#
      return "{\"_id\":\"m\(index)\",\(revision)\(members)}"
    }
    documents.insert(#"{"_id":"a","_rev":"1-a"}"#, at: 0)
    documents.append(#"{"_id":"z","_rev":"1-z"}"#)
    let text = "{\"new_edits\":false,\"docs\":[\(documents.joined(separator: ","))]}"
    let answer = try client.send("POST", "/db/_bulk_docs", text)
    expect(answer.status, equals: 201, "\(answer.text)")
    let failed = try answer.json().array ?? []
    expect(failed.map { $0["id"].string }, equals: odd.indices.map { "m\($0)" })
    expect(failed.allSatisfy { $0["error"] == "forbidden" && $0["reason"].string?.isEmpty == false })
    expect(failed.first?["rev"].string, equals: "1-\(long)")
    try expect(client.get("/db/a").status == 200 && client.get("/db/z").status == 200)
    try expect(client.get("/db").json()["doc_count"], equals: 2)
    // One by one as well; and they are missing.
    try expect(
      client.send("PUT", "/db/x?new_edits=false", #"{"_rev":"1-ü"}"#).error[0], equals: "forbidden")
    try expect(
      client.send("POST", "/db/_revs_diff", #"{"a":["1-ü"]}"#).json()["a"]["missing"], equals: ["1-ü"])
    // An edit of a revision that can't be here is a conflict.
    let edits = try client.send(
      "POST", "/db/_bulk_docs", #"{"docs":[{"_id":"a","_rev":"1-\#(long)"},{"_id":"b"}]}"#)
    try expect(edits.json().array?.map { $0["error"].string ?? "ok" }, equals: ["conflict", "ok"])
  }

  @Test("a local document with a wrong revision is refused alone", arguments: someEngines)
  func localRevisions(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let answer = try client.send(
      "POST", "/db/_bulk_docs", #"{"docs":[{"_id":"_local/x","_rev":"3-a"},{"_id":"b"},{"_id":"_local/y"}]}"#)
    expect(answer.status, equals: 201)
    try expect(answer.json().array?.map { $0["error"].string ?? "ok" }, equals: ["bad_request", "ok", "ok"])
    try expect(client.get("/db/b").status == 200 && client.get("/db/_local/y").status == 200)
  }

  @Test("the winner of a conflict is CouchDB's, whoever has made the revisions", arguments: someEngines)
  func winners(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    var generator = SystemRandomNumberGenerator()
    for number in 0..<40 {
      let own = try client.save("/db/\(number)", "{\"n\":\(number)}")
      let suffix = Array(own.utf8.dropFirst(2))
      expect(own.hasPrefix("1-") && Hex.bytes(suffix)?.count == 16, "\(own)")
      let other = (0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) }
      let foreign = "1-" + Hex.text(other)
      _ = try client.send(
        "POST", "/db/_bulk_docs", #"{"new_edits":false,"docs":[{"_id":"\#(number)","_rev":"\#(foreign)"}]}"#)
      // It compares the bytes.
      let winner = (Hex.bytes(suffix) ?? []).lexicographicallyPrecedes(other) ? foreign : own
      try expect(client.get("/db/\(number)").json()["_rev"].string, equals: winner)
    }
    // The same change has the same ID, and later ones have as many digits.
    let first = try client.save("/db/x", #"{"a":1}"#)
    try expect(client.save("/db/y", #"{"a":1}"#), equals: first)
    let deleted = try client.send("DELETE", "/db/x?rev=\(first)").json()["rev"].string ?? ""
    expect(deleted.hasPrefix("2-") && deleted.utf8.count == 34)
  }

  @Test("the leaves that lost are in CouchDB's order, however their branches ended", arguments: someEngines)
  func orderOfLeaves(_ engine: EngineName) throws {
    let client = try ReadingClient(engine)
    for leaf in ["2-b", "2-a"] { try client.apply("d", leaf, "1-a") }
    try client.apply("d", "3-c", "2-c", "1-a")
    // The losers end with tombstones that are marked, and 2-d is one of elsewhere.
    try client.database.resolveConflict(of: "d", keeping: #require(RevisionID("2-b")))
    try client.apply("d", "2-d", "1-a", isDeleted: true)
    let others = try client.database.leaves(of: "d", includeDeleted: true).filter(\.isDeleted).map(\.id)
    let inOrder = others.sorted { $0 > $1 }.map { JSONValue.string("\($0)") }
    expect(inOrder.count == 3 && others.first?.description == "2-d" && inOrder[2] == "2-d")
    try expect(client.get("d?deleted_conflicts=true").json()["_deleted_conflicts"], equals: .array(inOrder))
    let row = try client.get("_changes?style=all_docs").json()["results"][0]
    expect(row["changes"].array?.map { $0["rev"] }, equals: ["2-b"] + inOrder)
    // As docs/http-documents.md says: of tombstones alone, the one that isn't marked is current.
    let deleted = try client.client.send("DELETE", "/db/d?rev=2-b").json()["rev"]
    try expect(client.get("_changes").json()["results"][0]["changes"], equals: [["rev": deleted]])
    let rows = try client.post("_all_docs", #"{"keys":["d"]}"#).json()["rows"]
    expect(rows[0]["value"], equals: ["rev": deleted, "deleted": true])
  }

  @Test("what is wrong in an entry of _bulk_get is told there") func bulkGetErrors() throws {
    let client = try APIClient.withDatabase()
    try client.save("/db/a", "{}")
    let cases: [(String, JSONValue, JSONValue, String, String)] = [
      (#"{"id":"a","rev":42}"#, "a", 42, "bad_request", "Invalid rev format"),
      (#"{"id":"a","rev":null}"#, "a", .null, "bad_request", "Invalid rev format"),
      (#"{"id":"a","rev":"x"}"#, "a", "x", "bad_request", "Invalid rev format"),
      (#"{"id":""}"#, "", .null, "illegal_docid", "Document id must not be empty"),
      (#"{"id":5}"#, 5, .null, "illegal_docid", "Document id must be a string"),
      (
        #"{"id":"_x"}"#, "_x", .null, "illegal_docid",
        "Only reserved document ids may start with underscore."
      ), (#"{"rev":"1-foo"}"#, .null, .null, "bad_request", "document id missed"),
      ("{}", .null, .null, "bad_request", "document must be a JSON object"),
      ("7", .null, .null, "bad_request", "document must be a JSON object"),
      (
        #"{"id":"a","atts_since":"bad"}"#, "a", "bad", "bad_request", "att_since value must be array of revs."
      ),
      (#"{"id":"a","atts_since":["1-a","bad"]}"#, "a", "bad", "bad_request", "Invalid rev format"),
    ]
    for (entry, id, revision, error, reason) in cases {
      let answer = try client.send("POST", "/db/_bulk_get", "{\"docs\":[\(entry)]}").json()["results"][0]
      expect(answer["id"], equals: id, "\(entry)")
      let expected: JSONValue = [
        "id": id, "rev": revision, "error": .string(error), "reason": .string(reason),
      ]
      expect(answer["docs"], equals: [["error": expected]], "\(entry)")
    }
    for name in ["rev", "open_revs", "new_edits", "w", "atts_since"] {
      let answer = try client.send("POST", "/db/_bulk_get?\(name)=1-a", #"{"docs":[]}"#)
      expect(answer.status, equals: 400)
      try expect(answer.error, equals: ["bad_request", "\"\(name)\" query parameter is not acceptable"])
    }
  }
}
