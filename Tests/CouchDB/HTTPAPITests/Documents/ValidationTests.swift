import Fleece
import HTTPAPI
import TestSupport
import Testing
import Touchstone

@Suite struct DocumentValidationTests {
  private let function = """
    function (newDoc, oldDoc, userCtx, secObj) {
      if (newDoc.forbid) { throw({forbidden: 'no ' + newDoc.forbid}); }
      if (newDoc.unauth) { throw({unauthorized: 'log in'}); }
      if (newDoc.boom) { null.x; }
      if (oldDoc && oldDoc.keep && newDoc._deleted) { throw({forbidden: 'kept ' + oldDoc._rev + ' ' + userCtx.roles[0]}); }
    }
    """

  private func client(_ engine: EngineName) throws -> APIClient {
    let client = try APIClient(engine)
    _ = try client.ask("PUT", "/db")
    let source = function.jsonText
    try expect(client.send("PUT", "/db/_design/v", "{\"validate_doc_update\":\(source)}").status, equals: 201)
    return client
  }

  @Test("functions of design documents see every save", arguments: someEngines)
  func validation(_ engine: EngineName) throws {
    let client = try client(engine)
    try expect(client.send("PUT", "/db/a", #"{"forbid":"way"}"#).status, equals: 403)
    try expect(client.send("PUT", "/db/a", #"{"forbid":"way"}"#).error, equals: ["forbidden", "no way"])
    try expect(client.send("POST", "/db", #"{"_id":"a","unauth":1}"#).status, equals: 401)
    try expect(
      client.send("PUT", "/db/a?new_edits=false", #"{"_rev":"1-a","unauth":1}"#).error,
      equals: [
        "unauthorized", "log in",
      ])
    let boom = try client.send("PUT", "/db/a", #"{"boom":1}"#)
    expect(boom.status, equals: 500)
    try expect(boom.error[0], equals: "TypeError")
    try expect(client.ask("PUT", "/db/f/x", body: [1]).status, equals: 201)
    let bulk = try client.send(
      "POST", "/db/_bulk_docs",
      #"{"docs":[{"_id":"v1"},{"_id":"v2","forbid":"way"},{"_id":"v3","unauth":1}]}"#)
    try expect(
      bulk.json().array?.map { $0["error"].string ?? "ok" }, equals: ["ok", "forbidden", "unauthorized"])
    let foreign = try client.send(
      "POST", "/db/_bulk_docs",
      #"{"new_edits":false,"docs":[{"_id":"v5","_rev":"1-a"},{"_id":"v6","_rev":"1-a","forbid":"way"}]}"#)
    expect(foreign.text, equals: #"[{"id":"v6","rev":"1-a","error":"forbidden","reason":"no way"}]"# + "\n")
    let kept = try client.save("/db/k", #"{"keep":1}"#)
    try expect(
      client.send("DELETE", "/db/k?rev=\(kept)").error, equals: ["forbidden", "kept \(kept) _admin"])
    try expect(client.get("/db/a").status, equals: 404)
    try expect(client.save("/db/_local/a", #"{"forbid":"way"}"#), equals: "0-1")
  }

  @Test("design documents that don't compile aren't stored")
  func design() throws {
    let client = try client(.lmdb)
    let bad = try client.send("PUT", "/db/_design/bad", #"{"views":{"v":{"map":"function ("}}}"#)
    expect(bad.status, equals: 400)
    try expect(bad.error[0], equals: "compilation_error")
    let bulk = try client.send(
      "POST", "/db/_bulk_docs",
      #"{"docs":[{"_id":"ok"},{"_id":"_design/bad","views":{"v":{"map":"function ("}}}]}"#)
    try expect(bulk.json().array?.map { $0["error"].string ?? "ok" }, equals: ["ok", "compilation_error"])
    try expect(client.get("/db/_design/bad").status, equals: 404)
  }

  @Test("views of the language query are objects")
  func queryDesigns() throws {
    let client = try APIClient.withDatabase()
    for (views, reason) in [
      (#"[]"#, "`views` field must have object type"),
      (#"{"v":5}"#, "`views.v` field must have object type"),
      (#"{"v":{}}"#, "View `v` must contain map function"),
      (#"{"v":{"map":"function (doc) {}"}}"#, "`views.v.map` field must have object type"),
      (#"{"v":{"map":{"fields":{"a":"asc"}},"reduce":1}}"#, "`views.v.reduce` field must have string type"),
    ] {
      let answer = try client.send("PUT", "/db/_design/q", #"{"language":"query","views":\#(views)}"#)
      try expect(answer.error, equals: ["invalid_design_doc", reason])
    }
    let index = #"{"language":"query","views":{"v":{"map":{"fields":{"a":"asc"}},"reduce":"_count"}}}"#
    try expect(client.send("PUT", "/db/_design/q", index).status, equals: 201)
  }

  @Test("members of a design document have CouchDB's types")
  func designMembers() throws {
    let client = try APIClient.withDatabase()
    for (body, path, types) in [
      (#"{"filters":[]}"#, "filters", "object"), (#"{"filters":{"f":1}}"#, "filters.f", "object or string"),
      (#"{"language":1}"#, "language", "string"), (#"{"lists":"x"}"#, "lists", "object"),
      (#"{"options":[]}"#, "options", "object"),
      (#"{"options":{"include_design":"yes"}}"#, "options.include_design", "boolean"),
      (#"{"options":{"local_seq":1}}"#, "options.local_seq", "boolean"),
      (#"{"rewrites":{}}"#, "rewrites", "string or array"),
      (#"{"shows":{"s":[]}}"#, "shows.s", "object or string"),
      (#"{"updates":[]}"#, "updates", "object"),
      (#"{"validate_doc_update":1}"#, "validate_doc_update", "string"),
      (#"{"language":"other","filters":7}"#, "filters", "object"),
    ] {
      let answer = try client.send("PUT", "/db/_design/x", body)
      expect(answer.status, equals: 400, "\(body)")
      try expect(answer.error, equals: ["invalid_design_doc", "`\(path)` field must have \(types) type"])
    }
    let right = #"""
      {"filters":{"f":"function(){}","lib":{"a":"x"}},"language":"javascript","lists":{},"options":{"local_seq":true},
      "rewrites":[],"shows":{},"updates":{}}
      """#
    try expect(client.send("PUT", "/db/_design/x", right).status, equals: 201)
  }

  @Test("nothing is written where clients only read")
  func readOnly() throws {
    let databases = TestDatabases()
    var configuration = DatabaseServiceConfiguration()
    configuration.isReadOnly = true
    let client = APIClient(["db": try databases.open(.lmdb)], configuration)
    for (method, target, body) in [
      ("PUT", "/db/a", "{}"), ("POST", "/db", "{}"), ("POST", "/db/_bulk_docs", #"{"docs":[{}]}"#),
      ("PUT", "/db/a/x", "x"),
      ("DELETE", "/db/a?rev=1-a", ""), ("DELETE", "/db/a/x?rev=1-a", ""), ("COPY", "/db/a", ""),
      ("POST", "/db/_purge", "{}"), ("POST", "/db/_view_cleanup", ""),
      ("DELETE", "/db/_local/a", ""),
    ] {
      try expect(client.send(method, target, body).status, equals: 403, "\(method) \(target)")
    }
    try expect(client.send("POST", "/db/_revs_diff", "{}").status, equals: 200)
  }
}
