import Fleece
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Views

/// CouchDB's options and answers where the recordings show nothing.
@Suite struct CouchDBViewTests {
  private let databases = TestDatabases()

  private func answer(_ database: Database, _ view: String, _ query: [(name: String, value: String)] = [])
    throws
    -> String
  {
    let output = Lock<[UInt8]>([])
    let parts = view.split(separator: "/").map(String.init)
    let options = try CouchDBViewOptions(query: query)
    try database.couchDBView(parts[0], parts[1]).answer(options) { piece in output.withLock { $0 += piece } }
    return String(decoding: output.withLock { $0 }, as: UTF8.self).replacing("\r\n", with: "")
  }

  private func error(_ body: () throws -> Void) -> CouchDBError? {
    do { try body() } catch { return error as? CouchDBError }
    return nil
  }

  private func reason(_ query: [(name: String, value: String)], hasReducer: Bool = true) -> String? {
    error { _ = try CouchDBViewOptions(query: query).selection(hasReducer: hasReducer) }?.reason
  }

  @Test func optionsThatDontFitTogetherAreRefused() {
    expect(reason([("group", "false"), ("group_level", "0")]) == nil)
    expect(
      reason([("group", "false"), ("group_level", "1")]),
      equals: "Can't specify group=false and group_level>0 at the same time")
    expect(reason([("keys", "[1,2]"), ("group_level", "1")])?.hasPrefix("Multi-key fetches"), equals: true)
    expect(
      reason([("keys", "[1,2]"), ("key", "1"), ("group", "true")])?.hasPrefix("`keys` is incompatible"),
      equals: true)
    expect(
      reason([("keys", "[1,2]"), ("startkey", "1")], hasReducer: false)?.hasPrefix("`keys` is"), equals: true)
    expect(reason([("keys", "[]"), ("startkey", "1")], hasReducer: false) == nil)
    expect(reason([("limit", "99999999999999999999")]) == nil)
    expect(reason([("limit", "1.5")]), equals: "Invalid value for integer: \"1.5\"")
    expect(reason([("limit", "a\"\\")]), equals: #"Invalid value for integer: "a\"\\""#)
    expect(reason([("descending", "TRUE"), ("sorted", "False"), ("", ""), ("unknown", "x")]) == nil)
    expect(reason([("startkey", "[1")]), equals: "invalid UTF-8 JSON")
    expect(reason([("reduce", "true")], hasReducer: false), equals: "Reduce is invalid for map-only views.")
  }

  @Test func bodiesAreRead() throws {
    let body =
      #" {"keys": [ {"b":1,"a":2} , 2], "limit":"3", "descending" : true, "skip":1, "stale":"update_after"}"#
    var options = try CouchDBViewOptions(body: Array(body.utf8), query: [("limit", "4")])
    expect(options.keys?.map { String(decoding: $0, as: UTF8.self) }, equals: [#"{"b":1,"a":2}"#, "2"])
    expect(options.limit == 4 && options.isDescending && options.skip == 1 && options.update == .after)
    options = try CouchDBViewOptions(body: Array(#"{"update":false,"start_key":null}"#.utf8))
    expect(options.update == .never && options.startKey == Array("null".utf8))
    for (body, reason) in [
      ("[]", "Request body must be a JSON object"), ("", "invalid UTF-8 JSON"),
      (#"{"skip":-1}"#, "Invalid value for positive integer: -1"),
      (#"{"skip":1.5}"#, "Invalid value for integer: 1.5"),
      (#"{"reduce":1}"#, "Invalid boolean parameter: 1"),
      (#"{"queries":[]}"#, "The `queries` parameter is no longer supported at this endpoint"),
      (#"{"startkey_docid":1}"#, "`start_key_docid` must be a string."),
    ] {
      expect(error { _ = try CouchDBViewOptions(body: Array(body.utf8)) }?.reason, equals: reason, "\(body)")
    }
  }

  @Test("documents that values refer to", arguments: someEngines)
  func linkedDocuments(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let map =
      "function (doc) { if (doc.link) emit(doc._id, doc.rev ? {_id: doc.link, _rev: doc.rev} : {_id: doc.link}); }"
    try database.save("_design/d", ["views": ["v": ["map": .string(map)]]])
    for (index, letter) in ["a", "b"].enumerated() {
      let history = ["a", "b"].prefix(index + 1).enumerated().reversed().map { index, letter in
        "\(index + 1)-" + String(repeating: letter, count: 32)
      }
      try database.apply(PulledRevision(id: "x", history: history, body: ["n": .string(letter)]))
    }
    let older = "1-" + String(repeating: "a", count: 32)
    try database.save("gone", [:])
    try database.delete("gone")
    for (id, body) in [
      ("1", ["link": "x"]), ("2", ["link": "x", "rev": .string(older)]), ("3", ["link": "gone"]),
      ("4", ["link": "nosuch"]), ("5", ["link": "_local/x"]), ("6", ["link": "x", "rev": "9-ab"]),
      ("7", ["link": .string(String(repeating: "x", count: 1000))]), ("8", ["link": 5]),
    ] as [(String, [String: JSONValue])] {
      try database.save(id, .value(JSONValue(body)))
    }
    let text = try answer(database, "d/v", [("include_docs", "true")])
    let rows = try JSONValue(json: text)["rows"].array ?? []
    let documents = rows.map { $0["doc"] }
    expect(documents[0]["n"] == "b" && documents[0]["_rev"].string?.hasPrefix("2-b") == true)
    expect(documents[1]["n"] == "a" && documents[1]["_rev"] == .string(older), "\(text)")
    for index in 2...6 { expect(rows[index].object?["doc"], equals: .null, "\(rows[index])") }
    expect(documents[7]["_id"], equals: "8")
    let conflicts = try answer(
      database, "d/v", [("include_docs", "true"), ("conflicts", "true"), ("limit", "1")])
    expect(!conflicts.contains("_conflicts"))

    // A revision without an ID is one of the row's document.
    let own = "function (doc) { if (doc._id === 'x') emit(null, {_rev: '\(older)'}); }"
    try database.save("_design/own", ["views": ["v": ["map": .string(own)]]])
    let ownText = try answer(database, "own/v", [("include_docs", "true")])
    let document = try JSONValue(json: ownText)["rows"].array?.first?["doc"]
    expect(document?["_rev"] == .string(older) && document?["n"] == "a", "\(ownText)")
  }

  @Test("the documents of each key of a list have bounds too", arguments: someEngines)
  func keysWithDocumentIDs(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let map = "function (doc) { for (var i = 0; i < 3; i++) emit(i, 1); }"
    try database.save("_design/d", ["views": ["v": ["map": .string(map), "reduce": "_sum\n"]]])
    for id in 10...30 { try database.save(String(id), [:]) }
    func found(_ query: (name: String, value: String)...) throws -> [String] {
      let rows = try JSONValue(json: answer(database, "d/v", [("reduce", "false")] + query))["rows"].array
      return (rows ?? []).map { "\($0["key"].int ?? -1):\($0["id"].string ?? "")" }
    }
    let bounds: [(name: String, value: String)] = [
      ("keys", "[2,0]"), ("startkey_docid", "21"), ("endkey_docid", "23"),
    ]
    try expect(
      found(bounds[0], bounds[1], bounds[2]), equals: ["2:21", "2:22", "2:23", "0:21", "0:22", "0:23"])
    try expect(
      found(bounds[0], ("startkey_docid", "23"), ("endkey_docid", "22"), ("descending", "true")),
      equals: ["0:23", "0:22", "2:23", "2:22"])
    try expect(
      found(bounds[0], bounds[1], bounds[2], ("skip", "2"), ("limit", "2")), equals: ["2:23", "0:21"])
    try expect(found(("keys", "[1]"), bounds[1], bounds[2]), equals: ["1:21", "1:22", "1:23"])
    try expect(found(bounds[0], ("endkey_docid", "10")), equals: ["2:10", "0:10"])
    try expect(
      answer(database, "d/v", [("group", "true")] + bounds),
      equals: #"{"rows":[{"key":2,"value":3},{"key":0,"value":3}]}"# + "\n")
  }

  @Test("whatever follows the name of a built-in reducer is ignored", arguments: someEngines)
  func namesWithMore(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for name in ["_sum", "_count", "_stats", "_approx_count_distinct", "_first", "_last"] {
      for more in ["\n", " ", "orama", "\nand\nmore"] {
        let view: JSONValue = ["map": "function (doc) { emit(1, 2); }", "reduce": .string(name + more)]
        try database.save("_design/d", ["views": ["v": view]])
        try database.save("a", [:])
        let value = try JSONValue(json: answer(database, "d/v"))["rows"].array?.first?["value"]
        let expected: JSONValue =
          switch name {
          case "_sum", "_first", "_last": 2
          case "_stats": ["sum": 2, "count": 1, "min": 2, "max": 2, "sumsqr": 4]
          default: 1
          }
        expect(value, equals: expected, "\(name + more)")
      }
    }
  }

  @Test("a list of keys in descending order gives the rows of its last key first", arguments: someEngines)
  func descendingKeys(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save(
      "_design/d",
      [
        "views": [
          "v": ["map": "function (doc) { emit(1, doc._id); emit(2, doc._id) }", "reduce": "_count"]
        ]
      ])
    for id in ["a", "b"] { try database.save(id, [:]) }
    func rows(_ query: [(name: String, value: String)]) throws -> [String] {
      try answer(database, "d/v", query).matches(of: /"id":"(.)","key":(.)/).map { "\($0.2)\($0.1)" }
    }
    let keys = (name: "keys", value: "[1,2]")
    try expect(rows([keys, ("reduce", "false")]), equals: ["1a", "1b", "2a", "2b"])
    try expect(rows([keys, ("reduce", "false"), ("descending", "true")]), equals: ["2b", "2a", "1b", "1a"])
    try expect(
      rows([keys, ("reduce", "false"), ("descending", "true"), ("skip", "1"), ("limit", "2")]),
      equals: ["2a", "1b"])
    // Groups stay in the order of the list.
    try expect(
      answer(database, "d/v", [keys, ("group", "true"), ("descending", "true")]),
      equals: #"{"rows":[{"key":1,"value":2},{"key":2,"value":2}]}"# + "\n")
  }

  @Test("the order of raw keys is an option of the view, not of the design document", arguments: someEngines)
  func rawCollation(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let map: JSONValue = "function (doc) { emit(doc.k, null) }"
    let raw: JSONValue = ["collation": "raw"]
    try database.save("_design/v", ["views": ["t": ["map": map, "options": raw]]])
    try database.save("_design/d", ["options": raw, "views": ["t": ["map": map]]])
    let values: [JSONValue] = [.null, 1, "B", "a", "b", [1], ["a": 1], true]
    for (index, value) in values.enumerated() { try database.save("\(index)", ["k": value]) }
    func keys(_ view: String) throws -> [String] { try database.view(view).query().run().map(\.keyJSON) }
    try expect(
      keys("v/t"), equals: ["1", "null", "true", #"{"a":1}"#, "[1]", #""B""#, #""a""#, #""b""#])
    let unicode = ["null", "true", "1", #""a""#, #""b""#, #""B""#, "[1]", #"{"a":1}"#]
    try expect(keys("d/t"), equals: unicode)
    // Another order builds the rows again.
    try database.save("_design/v", ["views": ["t": ["map": map]]])
    try expect(keys("v/t"), equals: unicode)
    try expect(database.check(), equals: [])
  }

  @Test("rows of one document with equal keys are in the order of their values", arguments: someEngines)
  func equalKeys(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save(
      "_design/d",
      [
        "views": [
          "v": [
            "map": """
            function (doc) {
              emit(1, "multiple values!"); emit(1, doc); emit(1, "crayon!"); emit(0, 2); emit(1, null); emit(1, 7);
              emit(1, "x".repeat(3 << 20)); emit(0, 1); emit(1); emit(1, [3]);
            }
            """
          ],
          "reduced": [
            "map": "function (doc) { emit(1, 2); emit(1, 1) }", "reduce": "function (k, v) { return v }",
          ],
        ]
      ])
    for id in ["b", "a"] { try database.save(id, [:]) }
    func values(_ document: String) throws -> [String] {
      try database.view("d/v").query().run().filter { $0.documentID == document }
        .map { $0.valueJSON.utf8.count > 1 << 20 ? "long" : $0.valueJSON }
    }
    for document in ["a", "b"] {
      let found = try values(document)
      expect(found.count, equals: 10)
      expect(
        found.prefix(8),
        equals: ["1", "2", "null", "null", "7", #""crayon!""#, #""multiple values!""#, "[3]"])
      expect(found.dropFirst(8).first?.contains(#""_id":"\#(document)""#) == true && found.last == "long")
    }
    // In the order of the documents, whichever came first.
    try expect(
      answer(database, "d/reduced", [("group", "true")]),
      equals: #"{"rows":[{"key":1,"value":[1,2,1,2]}]}"#
        + "\n")
    // A change keeps the order.
    try database.save("a", ["n": 1])
    try expect(values("a").prefix(5), equals: ["1", "2", "null", "null", "7"])
    try expect(database.check(), equals: [])
  }

  @Test("values that _stats can't take are an error of the whole view", arguments: someEngines)
  func invalidValues(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let maps = [
      "strings": "emit(1, 'x')", "mixed": "emit(1, 1); emit(2, [1])",
      "lengths": "emit(1, [1]); emit(2, [1, 2])", "right": "emit(1, [1, 2]); emit(2, [3, 4])",
    ]
    var views = JSONObject()
    for (name, emit) in maps {
      views[name] = ["map": .string("function (doc) { \(emit) }"), "reduce": "_stats"]
    }
    views["sum"] = ["map": "function (doc) { emit(1, 'x') }", "reduce": "_sum"]
    try database.save("_design/d", ["views": .object(views)])
    try database.save("a", [:])
    for name in ["strings", "mixed", "lengths"] {
      for query in [[], [("group", "true")], [("group", "true"), ("startkey", "9")]] as [[(String, String)]] {
        let failure = error { _ = try answer(database, "d/" + name, query.map { ($0.0, $0.1) }) }
        expect(failure?.status == 500 && failure?.error == "invalid_value", "\(name) \(query)")
        expect(failure?.reason.hasPrefix("The _stats function requires"), equals: true, "\(name)")
      }
      // Rows that aren't reduced can be read all the same.
      try expect(answer(database, "d/" + name, [("reduce", "false")]).contains(#""id":"a""#))
    }
    try expect(answer(database, "d/right", [("group", "true")]).contains(#""key":2"#))
    try expect(answer(database, "d/sum").contains("builtin_reduce_error"))
  }

  @Test("reduce functions that fail or collect", arguments: someEngines)
  func failingGroups(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let map = "function (doc) { emit([doc.k, 1], doc.v); }"
    try database.save(
      "_design/d",
      [
        "views": [
          "throws": [
            "map": .string(map),
            "reduce": "function (k, v) { if (v[0] === 'bad') throw 'no'; return v.length; }",
          ],
          "collects": [
            "map": .string(map),
            "reduce": "function (k, v) { return v[0] === 'long' ? Array(2000).join('abc') : \"\\n\"; }",
          ],
          "swift": ["map": .string(map)],
        ]
      ])
    for (id, key, value) in [("a", "x", "good"), ("b", "y", "bad"), ("c", "z", "long")]
      as [(String, String, String)]
    {
      try database.save(id, ["k": .string(key), "v": .string(value)])
    }
    try expect(
      answer(database, "d/throws", [("group_level", "1")]),
      equals: #"{"rows":[{"key":["x"],"value":1},{"key":["y"],"value":null},{"key":["z"],"value":1}]}"# + "\n"
    )
    // The input is the line that CouchDB sends without the function, but with the three escapes of its text.
    try expect(
      answer(database, "d/collects", [("group", "true"), ("startkey", "[\"y\"]")]),
      equals:
        #"{"rows":[{"key":["y",1],"value":"\n"},{"key":["z",1],"error":"reduce_overflow_error","reason":"#
        + #""Reduce output must shrink more rapidly: input size: 43 output size: 6001"}]}"# + "\n")
    try expect(database.check(), equals: [])
    var query = try database.view("d/collects").query()
    query.groupsByKey = true
    #expect(throws: ViewError.self) { try query.run() }
  }

  @Test("views of this process, and those that aren't brought up to date", arguments: someEngines)
  func processViews(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let view = try database.view("app/n")
    try view.setMap(version: "1") { document, emit in emit(document["n"], document.id) }
    for number in 1...3 { try database.save("d\(number)", ["n": .int(Int64(number))]) }
    try expect(
      answer(database, "app/n", [("update", "false")]),
      equals: #"{"total_rows":0,"offset":0,"rows":[]}"# + "\n")
    try expect(
      answer(database, "app/n", [("startkey", "2"), ("update_seq", "true")]),
      equals: #"{"total_rows":3,"offset":1,"update_seq":"3-g\#(database.publicUUID.prefix(8))","#
        + #""rows":[{"id":"d2","key":2,"value":"d2"},"#
        + #"{"id":"d3","key":3,"value":"d3"}]}"# + "\n")
    try database.save("d4", ["n": 0])
    try expect(answer(database, "app/n", [("stale", "ok"), ("limit", "0")]).hasPrefix(#"{"total_rows":3,"#))
    // Another function, and another reducer: what is stored isn't theirs.
    view.setReduce(.sum)
    try expect(answer(database, "app/n", [("stale", "ok"), ("reduce", "true")]), equals: "{\"rows\":[]}\n")
    view.setReduce(nil)
    try view.setMap(version: "2") { document, emit in emit(document["n"]) }
    try expect(answer(database, "app/n", [("stale", "ok")]).hasPrefix(#"{"total_rows":0,"#))
    try expect(answer(database, "app/n", [("stale", "false")]).hasPrefix(#"{"total_rows":4,"#))
    for (design, name, reason) in [
      ("app", "m", "missing"), ("app", String(repeating: "m", count: 300), "missing"),
    ] {
      expect(
        error { _ = try database.couchDBView(design, name) }, equals: CouchDBError(404, "not_found", reason))
    }
    try database.save("_design/gone", [:])
    expect(error { _ = try database.couchDBView("gone", "v") }?.reason, equals: "missing_named_view")
    try database.delete("_design/gone")
    expect(error { _ = try database.couchDBView("gone", "v") }?.reason, equals: "deleted")
    try database.save("_design/bad", ["views": ["v": ["map": "function ("]]])
    expect(error { _ = try database.couchDBView("bad", "v") }?.status, equals: 500)
  }
}
