import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone
import Views

@testable import HTTPAPI

/// Who may do what, route by route.
@Suite struct AuthorizationTests {
  /// A path of each pattern, below a database that exists.
  private static func target(_ pattern: String) -> String {
    // What is below `_index` isn't `_index`.
    var target = pattern.replacing("_index/…", with: "_index/x").replacing("/…", with: "")
      .replacing("{db}", with: "db")
    for name in ["{doc}", "{attachment}", "{design}", "{view}", "{id}", "{type}", "{name}", "{node}"] {
      target = target.replacing(name, with: "x")
    }
    return target
  }

  /// Each method of each route, with its right.
  private static var requests: [(method: String, target: String, right: Right)] {
    func lines<Call>(_ base: String, _ route: Route<Call>) -> [(String, String, Right)] {
      let methods = route.methods.isEmpty ? ["GET", "POST", "PUT", "DELETE"] : route.methods
      return methods.map { ($0, target(base + route.pattern), route.right($0)) }
    }
    return Routes.server.routes.flatMap { lines("/", $0) } + lines("/", Routes.wholeDatabase)
      + [("PUT", "/db", .serverAdmin)]
      + (Routes.database.routes + [Routes.document, Routes.localDocument, Routes.attachment]).flatMap {
        lines("/{db}/", $0)
      }
  }

  @Test("every route refuses who hasn't its right, and reads no body of theirs", arguments: someEngines)
  func routes(_ engine: EngineName) throws {
    let client = try APIClient.secured(engine)
    let people: [(UserContext, Set<Right>)] = [
      (Person.nobody, [.everybody]), (Person.stranger, [.everybody, .user]),
      (Person.member, [.everybody, .user, .member]), (Person.reader, [.everybody, .user, .member]),
      (Person.boss, [.everybody, .user, .member, .databaseAdmin]),
      (Person.chief, [.everybody, .user, .member, .databaseAdmin]),
    ]
    for (method, target, right) in Self.requests {
      for (person, rights) in people where !rights.contains(right) {
        let body = UnreadBody()
        let answer = try client.begin(method, target, HTTPHeaders(), body, as: person)
        let status = person.name == nil || right != .member ? 401 : 403
        expect(answer.status, equals: status, "\(method) \(target) by \(person.name ?? "nobody")")
        expect(!body.isRead, "\(method) \(target)")
      }
    }
    // All is there still.
    try expect(client.send("GET", "/db/_security", as: Person.root).text, equals: APIClient.security + "\n")
  }

  @Test("no route answers 401 or 403 to who has its right") func allowed() throws {
    let client = try APIClient.secured { $0.allowsTemporaryViews = true }
    let people: [(UserContext, Right)] = [
      (Person.member, .member), (Person.boss, .databaseAdmin), (Person.nobody, .everybody),
    ]
    for (method, target, right) in Self.requests {
      // A login without a name is refused, and another security object would let others in.
      if target == "/_session" || target == "/db/_security" { continue }
      for (person, own) in people where own == right {
        let answer = try client.send(method, target, "{}", as: person)
        expect(![401, 403].contains(answer.status), "\(method) \(target): \(answer.text)")
      }
    }
  }

  @Test("another method doesn't get round a right") func methods() throws {
    let client = try APIClient.secured()
    for (path, _, _) in Routes.all {
      let target = Self.target(path)
      if ["/", "/_up", "/_uuids", "/_session", "/_utils", "/favicon.ico"].contains(target) { continue }
      for method in ["PATCH", "MOVE", "get"] {
        let answer = try client.send(method, target, as: Person.nobody)
        expect(answer.status, equals: 401, "\(method) \(target)")
      }
      let answer = try client.ask(
        "POST", target, headers: [("X-HTTP-Method-Override", "DELETE")], as: Person.nobody)
      expect(answer.status, equals: 401, "\(target)")
    }
  }

  @Test(
    "paths that are written in another way are refused too",
    arguments: [
      "//db/doc", "/db//doc", "/%64b/doc", "/db/%5Flocal/x", "/db/_local%2Fx", "/db/_design%2Fx",
      "/db/_design/x/file", "/db/%FF", "/db/_all_docs/", "/db/_changes?feed=continuous", "http://h/db/doc",
    ]) func spellings(_ target: String) throws
  {
    let client = try APIClient.secured()
    try expect(client.send("PUT", "/db/doc", "{}", as: Person.member).status, equals: 201)
    try expect(client.send("GET", target, as: Person.nobody).status, equals: 401)
    try expect(client.send("GET", target, as: Person.stranger).status, equals: 403)
  }

  @Test("who hasn't logged in doesn't get to know which databases there are") func names() throws {
    let client = try APIClient.secured()
    for target in [
      "/db", "/none", "/db/x", "/none/x", "/_none", "/_users", "/_replicator/_all_docs", "/%C3%9C",
    ] {
      for method in ["GET", "PUT", "DELETE", "POST"] {
        try expect(client.send(method, target, as: Person.nobody).status, equals: 401, "\(method) \(target)")
      }
    }
    try expect(client.send("GET", "/none", as: Person.stranger).status, equals: 404)
  }

  @Test("members write documents, and only administrators write design documents", arguments: someEngines)
  func designDocuments(_ engine: EngineName) throws {
    let client = try APIClient.secured(engine)
    let design = #"{"views":{"v":{"map":"function (d) { emit(d._id); }"}}}"#
    let statement = #"{"query":"CREATE INDEX a IF NOT EXISTS ON _ (a)"}"#
    for person in [Person.member, Person.reader] {
      try expect(client.send("PUT", "/db/doc-\(person.name ?? "")", "{}", as: person).status, equals: 201)
      let refused = try client.send("PUT", "/db/_design/d", design, as: person)
      expect(refused.status, equals: 403)
      try expect(refused.error, equals: ["forbidden", "You are not a db or server admin."])
      let bulk = try client.send(
        "POST", "/db/_bulk_docs",
        #"{"docs":[{"_id":"_design/d"},{"_id":"b-\#(person.name ?? "")"}]}"#, as: person)
      try expect(bulk.json().array?.map { $0["error"].string ?? "ok" }, equals: ["forbidden", "ok"])
      let foreign = try client.send(
        "PUT", "/db/_design/d?new_edits=false", #"{"_rev":"1-a"}"#, as: person)
      expect(foreign.status, equals: 403)
      let copy = try client.ask(
        "COPY", "/db/doc-\(person.name ?? "")", headers: [("Destination", "_design/d")], as: person)
      expect(copy.status, equals: 403)
      try expect(client.send("PUT", "/db/_design/d/file", "x", as: person).status, equals: 403)
      let index = #"{"index":{"fields":["a"]}}"#
      try expect(client.send("POST", "/db/_index", index, as: person).status, equals: 401)
      try expect(client.send("POST", "/db/_query", statement, as: person).status, equals: 403)
      let prepare = #"{"query":"PREPARE FORCE p AS CREATE INDEX a IF NOT EXISTS ON _ (a)"}"#
      try expect(client.send("POST", "/db/_query", prepare, as: person).status, equals: 403)
      // What a user prepares is that user's alone.
      let own = #"{"query":"PREPARE FORCE p AS SELECT 1"}"#
      try expect(client.send("POST", "/db/_query", own, as: person).status, equals: 200)
      let execute = #"{"query":"EXECUTE p"}"#
      try expect(client.send("POST", "/db/_query", execute, as: person).status, equals: 200)
      try expect(client.send("POST", "/db/_query", execute, as: Person.boss).status, equals: 400)
    }
    for person in [Person.boss, Person.chief, Person.root] {
      let name = person.name ?? ""
      let saved = try client.send("PUT", "/db/_design/\(name)", design, as: person)
      expect(saved.status, equals: 201)
      let revision = try saved.json()["rev"].string ?? ""
      try expect(client.send("POST", "/db/_query", statement, as: person).status, equals: 200)
      // Who reads them may use them, and not delete them.
      try expect(client.send("GET", "/db/_design/\(name)/_view/v", as: Person.member).status, equals: 200)
      let target = "/db/_design/\(name)?rev=\(revision)"
      try expect(client.send("DELETE", target, as: Person.member).status, equals: 403)
      try expect(client.send("DELETE", target, as: person).status, equals: 200)
    }
  }

  @Test("validation functions see who writes, the roles and the security object", arguments: someEngines)
  func validation(_ engine: EngineName) throws {
    let client = try APIClient.secured(engine)
    let function = """
      function (doc, old, user, security) {
        if (doc._deleted) { return; }
        throw({forbidden: JSON.stringify([user.db, user.name, user.roles, security.members.names])});
      }
      """
    let design = "{\"validate_doc_update\":\(function.jsonText)}"
    try expect(client.send("PUT", "/db/_design/v", design, as: Person.boss).status, equals: 201)
    for (person, seen) in [
      (Person.reader, #"["db","re",["readers"],["carol"]]"#),
      (Person.member, #"["db","carol",[],["carol"]]"#),
      (Person.root, #"["db","root",["_admin"],["carol"]]"#),
    ] {
      try expect(client.send("PUT", "/db/a", "{}", as: person).error, equals: ["forbidden", seen])
      let bulk = try client.send("POST", "/db/_bulk_docs", #"{"docs":[{"_id":"a"}]}"#, as: person)
      try expect(bulk.json()[0]["reason"].string, equals: seen)
      let query = #"{"query":"INSERT INTO _ (KEY, VALUE) VALUES (\"q\", {\"n\": 1})"}"#
      try expect(client.send("POST", "/db/_query", query, as: person).error, equals: ["forbidden", seen])
    }
  }

  @Test("filter functions see who asks") func filters() throws {
    let client = try APIClient.secured()
    let filter =
      "function (doc, req) { return req.userCtx.name === 'carol' && req.secObj.admins.names[0] === 'boss'; }"
    try expect(
      client.send("PUT", "/db/_design/f", "{\"filters\":{\"f\":\(filter.jsonText)}}", as: Person.boss).status,
      equals: 201)
    for (person, count) in [(Person.member, 1), (Person.reader, 0)] {
      let answer = try client.send("GET", "/db/_changes?filter=f/f", as: person)
      try expect(answer.json()["results"].array?.count, equals: count)
    }
  }
}
