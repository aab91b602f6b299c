import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// `_find`, `_explain` and `_index` beyond what the recorded exchanges show.
@Suite("Selectors over HTTP") struct FindTests {
  private func client(_ engine: EngineName, _ count: Int = 60) throws -> ReadingClient {
    let reading = try ReadingClient(engine)
    try reading.database.inBatch {
      for number in 0..<count {
        try reading.database.save(
          "d\(1_000 + number)",
          [
            "n": .int(Int64(number % 20)), "kind": number % 3 == 0 ? "x" : "y",
            "at": ["deep": .int(Int64(number))],
          ])
      }
    }
    return reading
  }

  private func makeIndex(_ reading: ReadingClient, _ fields: String, _ name: String, more: String = "") throws
  {
    let answer = try reading.post(
      "_index", #"{"index": {"fields": \#(fields)\#(more)}, "ddoc": "i", "name": "\#(name)"}"#)
    expect(answer.status, equals: 200, "\(answer.text)")
    try expect(answer.json()["result"], equals: "created")
  }

  @Test("other indexes are told of from the last name to the first, and errors of a sort as they were sent")
  func explainsOthers() throws {
    let reading = try client(.lmdb, 1)
    for name in ["a", "c", "b"] { try makeIndex(reading, #"["\#(name)"]"#, name) }
    let answer = try reading.post("_explain", #"{"selector": {"b": 1}}"#).json()
    expect(answer["index"]["name"], equals: "b")
    let others = answer["index_candidates"].array ?? []
    expect(others.map { $0["index"]["name"].string ?? "" }, equals: ["c", "a", "_all_docs"])
    try expect(
      reading.post("_find", #"{"selector": {}, "sort": [{"n": "up"}]}"#).error,
      equals: ["invalid_sort_field", #"Invalid sort field: {[{<<"n">>,<<"up">>}]}"#])
  }

  @Test("an index that is made, changed or removed counts for the next query", arguments: someEngines)
  func changedIndexes(_ engine: EngineName) throws {
    let reading = try client(engine)
    let body = #"{"selector": {"n": 3}, "limit": 100, "execution_stats": true}"#
    func examined() throws -> Int64? {
      let answer = try reading.post("_find", body).json()
      expect(ids(answer).count, equals: 3)
      return answer["execution_stats"]["total_keys_examined"].int
    }
    try expect(examined(), equals: 60)
    try makeIndex(reading, #"["n"]"#, "n")
    for _ in 0..<2 { try expect(examined(), equals: 3) }
    // Documents that come, change and go between two queries.
    for (number, count) in [(3, 4), (4, 3)] {
      try reading.database.save("other", ["n": .int(Int64(number))])
      try expect(ids(reading.post("_find", body).json()).count, equals: count)
    }
    try expect(
      reading.client.send("DELETE", "/db/_index/i/json/n").status, equals: 200)
    try expect(examined(), equals: 61)
  }

  @Test("an index of the same name with its columns in another order is made again", arguments: someEngines)
  func reordered(_ engine: EngineName) throws {
    let reading = try client(engine, 0)
    for number in 0..<20 {
      try reading.database.save("d\(number)", ["a": .int(Int64(number)), "b": .int(Int64(100 - number))])
    }
    for (first, columns) in [("a", #"["a", "b"]"#), ("b", #"["b", "a"]"#)] {
      try makeIndex(reading, columns, "v")
      let answer = try reading.post(
        "_find",
        #"{"selector": {"a": {"$gte": 0}, "b": {"$gte": 0}}, "fields": ["a", "b"], "sort": \#(columns)}"#
      ).json()
      let found = answer["docs"].array ?? []
      expect(found.count == 20 && found.allSatisfy { ($0["a"].int ?? 0) + ($0["b"].int ?? 0) == 100 })
      let sorted = found.compactMap { $0[first].int }
      expect(sorted, equals: sorted.sorted(), "\(first)")
    }
    try expect(reading.database.check(deep: true), equals: [])
  }

  private func ids(_ answer: JSONValue) -> [String] {
    answer["docs"].array?.compactMap { $0["_id"].string } ?? []
  }

  @Test(
    "an index is used, and examines no more keys than the ranges of the selector have", arguments: someEngines
  )
  func index(_ engine: EngineName) throws {
    let reading = try client(engine)
    try makeIndex(reading, #"["kind", "n"]"#, "kn")
    let body = #"{"selector": {"kind": "x", "n": {"$gte": 5, "$lt": 8}}, "execution_stats": true}"#
    let answer = try reading.post("_find", body).json()
    expect(
      ids(answer), equals: ["d1045", "d1006", "d1066", "d1027", "d1007"].filter { ids(answer).contains($0) })
    let numbers = answer["docs"].array?.compactMap { $0["n"].int } ?? []
    expect(numbers, equals: numbers.sorted())
    expect(numbers.count, equals: 3, "\(answer)")
    expect(answer["warning"].isNull, "\(answer)")
    expect(answer["execution_stats"]["total_keys_examined"], equals: 4)
    expect(answer["execution_stats"]["total_docs_examined"], equals: 4)
    let plan = try reading.post("_explain", body).json()
    expect(plan["index"]["name"], equals: "kn")
    expect(plan["mrargs"]["start_key"], equals: ["x", 5])
    expect(plan["mrargs"]["end_key"], equals: ["x", 8, "<MAX>"])
  }

  @Test("an index follows the documents", arguments: someEngines)
  func changes(_ engine: EngineName) throws {
    let reading = try client(engine, 10)
    try makeIndex(reading, #"["n"]"#, "n")
    let body = #"{"selector": {"n": {"$gt": 7}}, "fields": ["n"]}"#
    func found() throws -> JSONValue { try reading.post("_find", body).json()["docs"] }
    try expect(found(), equals: [["n": 8], ["n": 9]])
    try reading.database.save("new", ["n": "text comes behind numbers"])
    try reading.database.delete("d1008")
    try reading.database.save("d1001", ["other": 1])
    try expect(found(), equals: [["n": 9], ["n": "text comes behind numbers"]])
  }

  @Test("pages by bookmark have each document once, in both directions", arguments: someEngines)
  func bookmarks(_ engine: EngineName) throws {
    let reading = try client(engine)
    try makeIndex(reading, #"["n"]"#, "n")
    for (sort, fields) in [(#"[{"n": "asc"}]"#, ""), (#"[{"n": "desc"}]"#, #","fields": ["_id", "n"]"#)] {
      var all: [String] = []
      var bookmark = "nil"
      while true {
        let answer = try reading.post(
          "_find",
          #"{"selector": {"n": {"$gte": 2}, "kind": "y"}, "sort": \#(sort), "limit": 7, "bookmark": "\#(bookmark)"\#(fields)}"#
        ).json()
        all += ids(answer)
        bookmark = answer["bookmark"].string ?? ""
        if ids(answer).isEmpty { break }
      }
      let whole = try reading.post(
        "_find", #"{"selector": {"n": {"$gte": 2}, "kind": "y"}, "sort": \#(sort), "limit": 1000}"#)
      try expect(all, equals: ids(whole.json()))
      expect(all.count, equals: Set(all).count)
      expect(all.count, equals: 36)
    }
    // Of all documents, too.
    var pages: [String] = []
    var bookmark = ""
    repeat {
      let answer = try reading.post(
        "_find", #"{"selector": {"at.deep": {"$mod": [2, 0]}}, "limit": 4, "bookmark": "\#(bookmark)"}"#
      ).json()
      guard !ids(answer).isEmpty else { break }
      pages += ids(answer)
      bookmark = answer["bookmark"].string ?? ""
    } while true
    expect(pages, equals: (0..<30).map { "d\(1_000 + 2 * $0)" })
    let wrong = try reading.post("_find", #"{"selector": {}, "bookmark": "x!"}"#)
    expect(wrong.status, equals: 400)
    try expect(wrong.json()["error"], equals: "invalid_bookmark")
  }

  @Test("an index is added to design documents of its language alone") func languages() throws {
    let reading = try client(.lmdb, 1)
    for (language, word) in [
      ("", "false"), (#""language": "javascript","#, "<<106,97,118,97,115,99,114,105,112,116>>"),
    ] {
      let design = try JSONValue(json: #"{\#(language) "views": {"v": {"map": "function (doc) {}"}}}"#)
      try reading.database.save("_design/d", .value(design))
      let answer = try reading.post("_index", #"{"index": {"fields": ["n"]}, "ddoc": "d"}"#)
      expect(answer.status, equals: 400)
      try expect(
        answer.error, equals: ["invalid_ddoc_lang", "Existing design doc has an invalid language: \(word)"])
    }
    for (member, value) in [("type", "null"), ("name", "null"), ("ddoc", "1")] {
      let answer = try reading.post("_index", #"{"index": {"fields": ["n"]}, "\#(member)": \#(value)}"#)
      try expect(answer.error, equals: ["invalid_string", "Invalid string: \(value)"])
    }
  }

  @Test("paths below _index that mean nothing aren't there") func noIndexes() throws {
    let reading = try client(.lmdb, 1)
    for path in ["a", "a/b", "a/b/c/d", "a/b/c/d/e"] {
      for method in ["GET", "PUT", "POST", "DELETE", "COPY"] {
        try expect(
          reading.client.send(method, "/db/_index/" + path, "{}").status, equals: 404, "\(method) \(path)")
      }
    }
  }

  @Test("a partial filter is stored with its operators written out") func filters() throws {
    let reading = try client(.lmdb, 6)
    try makeIndex(
      reading, #"["n"]"#, "x", more: #", "partial_filter_selector": {"kind": "x", "n": {"$lt": 9}}"#)
    let stored = try reading.database.document("_design/i")?.value()["views"]["x"]
    expect(
      stored?["map"]["partial_filter_selector"],
      equals: ["$and": [["kind": ["$eq": "x"]], ["n": ["$lt": 9]]]])
    expect(
      stored?["options"]["def"]["partial_filter_selector"], equals: ["kind": "x", "n": ["$lt": 9]])
    let again = try reading.post(
      "_index",
      #"{"index": {"fields": ["n"], "partial_filter_selector": {"kind": "x", "n": {"$lt": 9}}}, "ddoc": "i", "name": "x"}"#
    )
    try expect(again.json()["result"], equals: "exists")
    let found = try reading.post("_find", #"{"selector": {"n": {"$gt": -1}, "kind": "x"}, "use_index": "i"}"#)
    try expect(ids(found.json()), equals: ["d1000", "d1003"])
  }

  @Test("an index of _conflicts has the documents with conflicts", arguments: someEngines)
  func conflicts(_ engine: EngineName) throws {
    let reading = try client(engine, 3)
    try makeIndex(reading, #"["_conflicts"]"#, "c")
    let body = #"{"selector": {"_conflicts": {"$exists": true}}, "conflicts": true}"#
    try expect(ids(reading.post("_find", body).json()), equals: [])
    let made = try reading.post(
      "_bulk_docs", #"{"new_edits": false, "docs": [{"_id": "d1001", "_rev": "1-0", "other": 1}]}"#)
    expect(made.status, equals: 201)
    let answer = try reading.post("_find", body).json()
    expect(ids(answer), equals: ["d1001"])
    expect(answer["docs"][0]["_conflicts"].array?.count, equals: 1)
    try expect(reading.post("_explain", body).json()["index"]["name"], equals: "c")
  }

  @Test("documents that are read with a quorum are counted by themselves") func quorum() throws {
    let reading = try client(.lmdb, 4)
    for (quorum, counts) in [(1, [4, 0]), (3, [0, 4])] {
      let answer = try reading.post(
        "_find", #"{"selector": {"n": {"$gte": 0}}, "r": \#(quorum), "execution_stats": true}"#
      ).json()["execution_stats"]
      expect(
        [answer["total_docs_examined"], answer["total_quorum_docs_examined"]],
        equals: counts.map { .int(Int64($0)) })
    }
  }

  @Test("a long answer is read in slices, and has each document once", arguments: someEngines)
  func slices(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    let filler = JSONValue.string(String(repeating: "x", count: 3_000))
    try reading.database.inBatch {
      for number in 0..<300 {
        try reading.database.save("d\(1_000 + number)", ["n": .int(Int64(number)), "filler": filler])
      }
    }
    try makeIndex(reading, #"["n"]"#, "n")
    for selector in [#"{"n": {"$gte": 0}}"#, #"{"_id": {"$gt": null}}"#] {
      let answer = try reading.post("_find", #"{"selector": \#(selector), "limit": 1000}"#)
      try expect(ids(answer.json()), equals: (0..<300).map { "d\(1_000 + $0)" })
    }
  }

  @Test("a partial index is used if it is named, and has what passes its filter", arguments: someEngines)
  func partial(_ engine: EngineName) throws {
    let reading = try client(engine)
    try makeIndex(reading, #"["n"]"#, "p", more: #", "partial_filter_selector": {"kind": "x"}"#)
    let all = try reading.post("_find", #"{"selector": {"n": 3}, "limit": 100}"#).json()
    expect(ids(all).count, equals: 3)
    let some = try reading.post("_find", #"{"selector": {"n": 3}, "use_index": ["i", "p"]}"#).json()
    expect(ids(some), equals: ["d1003"])
    let list = try reading.get("_index").json()["indexes"][1]["def"]
    expect(list, equals: ["fields": [["n": "asc"]], "partial_filter_selector": ["kind": ["$eq": "x"]]])
    let other = try reading.post("_find", #"{"selector": {"kind": "x"}, "use_index": "i/p", "limit": 1}"#)
      .json()
    let reason = other["warning"].string ?? ""
    expect(
      reason.hasPrefix("_design/i, p was not used because it is not a valid index for this query."),
      "\(reason)")
    let strict = try reading.post(
      "_find", #"{"selector": {"kind": "x"}, "use_index": "i/p", "allow_fallback": false}"#)
    expect(strict.status, equals: 400)
    try expect(strict.json()["error"], equals: "invalid_index")
  }

  @Test("an index that a replicator brings is used; its columns are in the order of its definition")
  func replicated() throws {
    let reading = try client(.lmdb)
    let view =
      #"{"map": {"fields": {"kind": "asc", "at.deep": "asc", "n": "asc"}, "partial_filter_selector": {}}, "reduce": "_count", "options": {"def": {"fields": ["n", {"kind": "asc"}, "at.deep"]}}}"#
    let design = #"{"_id": "_design/r", "_rev": "1-a", "language": "query", "views": {"v": \#(view)}}"#
    try expect(
      reading.client.send("POST", "/db/_bulk_docs", #"{"new_edits": false, "docs": [\#(design)]}"#).text,
      equals: "[]\n")
    let body = #"{"selector": {"n": 4, "kind": "x"}, "sort": ["at.deep"], "fields": ["at.deep"]}"#
    let answer = try reading.post("_find", body).json()
    expect(answer["docs"].isNull == false || answer["error"].isNull == false)
    let usable = try reading.post(
      "_find",
      #"{"selector": {"n": 4, "kind": "x", "at.deep": {"$gt": 0}}, "sort": ["n", "kind", "at.deep"], "fields": ["at.deep"], "execution_stats": true}"#
    ).json()
    expect(usable["docs"], equals: [["at": ["deep": 24]]])
    expect(usable["execution_stats"]["total_docs_examined"], equals: 0)
    // It is a view like others.
    let counted = try reading.get("_design/r/_view/v?group_level=1&startkey=%5B4%5D&endkey=%5B4,%7B%7D%5D")
      .json()
    expect(counted["rows"], equals: [["key": [4], "value": 3]])
  }

  @Test("indexes are made once, listed and removed", arguments: someEngines)
  func indexes(_ engine: EngineName) throws {
    let reading = try client(engine, 3)
    let json = #"{"index": {"fields": ["n", {"kind": "asc"}]}}"#
    let first = try reading.post("_index", json).json()
    expect(first["result"], equals: "created")
    let name = first["name"].string ?? ""
    expect(first["id"], equals: .string("_design/" + name))
    try expect(reading.post("_index", json).json()["result"], equals: "exists")
    try makeIndex(reading, #"["n"]"#, "one")
    try makeIndex(reading, #"["kind"]"#, "two")
    try expect(reading.get("_index").json()["total_rows"], equals: 4)
    try expect(reading.get("_index?limit=1&skip=1").json()["indexes"].array?.count, equals: 1)
    func delete(_ path: String) throws -> Int {
      try reading.client.ask("DELETE", "/db/_index/" + path).status
    }
    try expect(delete("i/json/one"), equals: 200)
    try expect(delete("i/json/one"), equals: 404)
    try expect(delete("i/text/two"), equals: 404)
    try expect(delete("_design/i/json/two"), equals: 200)
    // The design document has gone with its last index.
    try expect(reading.get("_design/i").status, equals: 404)
    let bulk = try reading.post("_index/_bulk_delete", #"{"docids": ["\#(name)", "_design/none"]}"#).json()
    expect(bulk["success"], equals: [["id": .string("_design/" + name), "ok": true]])
    expect(bulk["fail"], equals: [["id": "_design/none", "error": "not_found"]])
    try expect(reading.get("_index").json()["total_rows"], equals: 1)
  }

  @Test(
    "wrong requests are CouchDB's errors",
    arguments: [
      ("_find", "[]", 400, "bad_request"), ("_find", "{", 400, "bad_request"),
      ("_find", #"{"selector": {}, "skip": -1}"#, 400, "invalid_non_neg_integer"),
      ("_find", #"{"selector": {}, "sort": {}}"#, 400, "invalid_sort_json"),
      ("_find", #"{"selector": {}, "sort": [{"a": "up"}]}"#, 400, "invalid_sort_field"),
      ("_find", #"{"selector": {}, "sort": [{"a": "asc"}, {"b": "desc"}]}"#, 400, "unsupported_mixed_sort"),
      ("_find", #"{"selector": {}, "fields": "a"}"#, 400, "invalid_fields"),
      ("_find", #"{"selector": {}, "conflicts": 1}"#, 400, "invalid_boolean"),
      ("_find", #"{"selector": {}, "use_index": {}}"#, 400, "invalid_index_name"),
      ("_find", #"{"selector": {}, "strange": 1}"#, 400, "invalid_key"),
      ("_index", #"{}"#, 400, "missing_required_key"), ("_index", #"{"index": 1}"#, 400, "invalid_index"),
      ("_index", #"{"index": {}}"#, 400, "missing_required_key"),
      ("_index", #"{"index": {"fields": ["a"]}, "name": ""}"#, 400, "invalid_empty_string"),
      ("_index", #"{"index": {"fields": ["a"]}, "type": "odd"}"#, 400, "invalid_index"),
      ("_index", #"{"index": {}, "type": "text"}"#, 503, "required index service unavailable"),
    ])
  func errors(_ target: String, _ body: String, _ status: Int, _ error: String) throws {
    let answer = try client(.lmdb, 1).post(target, body)
    expect(answer.status, equals: status, "\(answer.text)")
    try expect(answer.json()["error"], equals: .string(error))
  }

  @Test("feeds and replications choose by selectors", arguments: someEngines)
  func feeds(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.saveKnown()
    func changed(_ query: String, _ selector: String) throws -> [String] {
      let answer = try reading.post("_changes?filter=_selector" + query, #"{"selector": \#(selector)}"#)
        .json()
      return answer["results"].array?.map { row in
        let revisions = row["changes"].array?.compactMap { $0["rev"].string } ?? []
        return "\(row["id"].string ?? "") \(revisions.joined(separator: " "))"
      } ?? []
    }
    try expect(changed("", #"{"x": {"$gte": 3}}"#), equals: ["c 1-c", "conf 2-x"])
    try expect(changed("&style=all_docs", #"{"x": 5}"#), equals: ["conf 2-w"])
    try expect(changed("", #"{"_deleted": true}"#), equals: ["gone 2-g"])
    try expect(changed("", #"{"_id": {"$in": ["a", "b"]}}"#), equals: ["a 1-a", "b 1-b"])
    let wrong = try reading.post("_changes?filter=_selector", #"{"selector": {"a": {"$foo": 1}}}"#)
    expect(wrong.status, equals: 400)
  }
}
