import Bytes
import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// The database `_users`.
@Suite struct UsersDatabaseTests {
  private func client(
    _ engine: EngineName = .lmdb, _ change: (inout DatabaseServiceConfiguration) -> Void = { _ in }
  ) throws -> APIClient {
    let client = try APIClient.secured(engine, change)
    client.service.start()
    return client
  }

  private func user(_ name: String, _ password: String, _ roles: String = "") -> String {
    #"{"type":"user","name":"\#(name)","roles":[\#(roles)],"password":"\#(password)"}"#
  }

  private func logIn(_ client: APIClient, _ name: String, _ password: String) -> [String]? {
    client.service.users.check(ByteString(name), Array(password.utf8))?.roles
  }

  @Test("it and _replicator are there from the start, where clients make databases", arguments: someEngines)
  func start(_ engine: EngineName) throws {
    let client = try client(engine)
    try expect(
      client.send("GET", "/_all_dbs", as: Person.root).text, equals: "[\"_replicator\",\"_users\",\"db\"]\n")
    try expect(client.send("GET", "/_users", as: Person.root).json()["doc_count"], equals: 0)
    client.service.start()
    let fixed = APIClient(["db": try TestDatabases().open(.lmdb)])
    fixed.service.start()
    try expect(fixed.get("/_all_dbs").text, equals: "[\"db\"]\n")
  }

  @Test("a user is saved with a hash, logs in, and gets another password", arguments: someEngines)
  func lifetime(_ engine: EngineName) throws {
    let client = try client(engine)
    let path = "/_users/org.couchdb.user:ann"
    let saved = try client.send("PUT", path, user("ann", "secret", #""a","b""#), as: Person.root)
    expect(saved.status, equals: 201)
    let stored = try client.send("GET", path, as: Person.root)
    expect(!stored.text.contains("secret"))
    try expect(stored.json()["iterations"] == 10 && stored.json()["password_scheme"] == "pbkdf2")
    expect(logIn(client, "ann", "secret"), equals: ["a", "b"])
    expect(logIn(client, "ann", "Secret") == nil && logIn(client, "ann", "") == nil)
    expect(logIn(client, "bob", "secret") == nil && logIn(client, "", "") == nil)
    let mark = client.service.users.find("ann")?.mark
    // Without a password the hash stays.
    var body = try stored.json()
    body["roles"] = ["c"]
    var changed = try client.send(
      "PUT", path, String(decoding: body.jsonText(), as: UTF8.self), as: Person.root)
    expect(changed.status, equals: 201)
    expect(logIn(client, "ann", "secret"), equals: ["c"])
    expect(client.service.users.find("ann")?.mark, equals: mark)
    body["_rev"] = try changed.json()["rev"]
    body["password"] = "other"
    changed = try client.send("PUT", path, String(decoding: body.jsonText(), as: UTF8.self), as: Person.root)
    expect(changed.status, equals: 201)
    expect(logIn(client, "ann", "secret") == nil)
    expect(logIn(client, "ann", "other"), equals: ["c"])
    expect(client.service.users.find("ann")?.mark != mark)
    let revision = try changed.json()["rev"].string ?? ""
    try expect(client.send("DELETE", path + "?rev=" + revision, as: Person.root).status, equals: 200)
    expect(logIn(client, "ann", "other") == nil && client.service.users.find("ann") == nil)
  }

  @Test("no way of writing stores a password as it is") func noPlainPasswords() throws {
    let client = try client()
    let ways: [(String, String, String)] = [
      ("PUT", "/_users/org.couchdb.user:a", user("a", "hidden")),
      ("POST", "/_users", #"{"_id":"org.couchdb.user:b",\#(user("b", "hidden").dropFirst())"#),
      (
        "POST", "/_users/_bulk_docs",
        #"{"docs":[{"_id":"org.couchdb.user:c",\#(user("c", "hidden").dropFirst())]}"#
      ),
      (
        "POST", "/_users/_bulk_docs",
        #"{"new_edits":false,"docs":[{"_id":"org.couchdb.user:d","_rev":"1-a",\#(user("d", "hidden").dropFirst())]}"#
      ),
      (
        "PUT", "/_users/org.couchdb.user:e?new_edits=false",
        #"{"_rev":"1-b",\#(user("e", "hidden").dropFirst())"#
      ),
    ]
    for (method, target, body) in ways {
      try expect(client.send(method, target, body, as: Person.root).status, equals: 201, "\(target)")
    }
    for name in ["a", "b", "c", "d", "e"] { expect(logIn(client, name, "hidden"), equals: [], "\(name)") }
    let all = try client.send("GET", "/_users/_all_docs?include_docs=true", as: Person.root)
    try expect(all.json()["rows"].array?.count, equals: 5)
    expect(!all.text.contains("hidden"))
    let rev =
      try client.send("GET", "/_users/org.couchdb.user:a", as: Person.root).json()["_rev"].string ?? ""
    let tombstone =
      #"{"docs":[{"_id":"org.couchdb.user:a","_rev":"\#(rev)","_deleted":true,"password":"hidden"}]}"#
    try expect(client.send("POST", "/_users/_bulk_docs", tombstone, as: Person.root).status, equals: 201)
    try expect(
      !client.send("GET", "/_users/org.couchdb.user:a?open_revs=all", as: Person.root).text.contains("hidden")
    )
    let query = #"{"query":"INSERT INTO _ (KEY, VALUE) VALUES (\"x\", {\"password\": \"hidden\"})"}"#
    try expect(client.send("POST", "/_users/_query", query, as: Person.root).status, equals: 403)
  }

  @Test("documents that aren't users are refused, one by one") func rules() throws {
    let client = try client()
    try expect(
      client.send("PUT", "/_users/bad", #"{"a":1}"#, as: Person.root).error,
      equals: ["forbidden", "doc.type must be user"])
    let bulk = try client.send(
      "POST", "/_users/_bulk_docs",
      #"{"docs":[{"_id":"x"},{"_id":"org.couchdb.user:a",\#(user("a", "p").dropFirst())]}"#, as: Person.root)
    try expect(
      Set((bulk.json().array ?? []).map { $0["error"].string ?? "ok" }), equals: ["forbidden", "ok"])
    try expect(
      client.send("PUT", "/_users/_design/d", #"{"language":"query"}"#, as: Person.root).status, equals: 201)
  }

  @Test("only administrators get at it, and its security object stays", arguments: someEngines)
  func closed(_ engine: EngineName) throws {
    let client = try client(engine)
    let ann = UserContext(name: "ann", roles: [])
    try expect(
      client.send("PUT", "/_users/org.couchdb.user:ann", user("ann", "x"), as: Person.root).status,
      equals: 201)
    for (target, method) in [
      ("/_users", "GET"), ("/_users/org.couchdb.user:ann", "GET"), ("/_users/_all_docs", "GET"),
      ("/_users/_changes", "GET"), ("/_users/_security", "GET"), ("/_users/_find", "POST"),
      ("/_users/org.couchdb.user:ann", "PUT"),
    ] {
      try expect(client.send(method, target, "{}", as: Person.nobody).status, equals: 401, "\(target)")
      try expect([401, 403].contains(client.send(method, target, "{}", as: ann).status), "\(target)")
    }
    try expect(client.send("PUT", "/_users/_security", "{}", as: Person.root).status, equals: 403)
  }

  @Test("where it is open, users read and change their own documents and no others", arguments: someEngines)
  func open(_ engine: EngineName) throws {
    let client = try client(engine) { $0.usersSecurityIsEditable = true }
    try expect(client.send("PUT", "/_users/_security", "{}", as: Person.root).status, equals: 200)
    for name in ["ann", "bob"] {
      try expect(
        client.send("PUT", "/_users/org.couchdb.user:\(name)", user(name, "x", #""r""#), as: Person.root)
          .status,
        equals: 201)
    }
    let ann = UserContext(name: "ann", roles: ["r"])
    let (own, other) = ("/_users/org.couchdb.user:ann", "/_users/org.couchdb.user:bob")
    var body = try client.send("GET", own, as: ann).json()
    expect(body["name"], equals: "ann")
    for target in [
      other, "/_users/org.couchdb.user:none", other + "/file", "/_users/_design/d", "/_users/_local/x",
    ] {
      let status = try client.send("GET", target, as: ann).status
      expect(
        target.contains("/_d") || target.contains("/_l") ? status == 401 : status == 404,
        "\(target): \(status)")
    }
    // Who brings the name along may be somebody else.
    let token = UserContext(name: "ann", roles: ["r"], bringsRoles: true)
    try expect(client.send("GET", own, as: token).status, equals: 404)
    try expect(
      client.send("PUT", own, String(decoding: body.jsonText(), as: UTF8.self), as: token).status, equals: 404
    )
    body["password"] = "new"
    let text = String(decoding: try body.jsonText(), as: UTF8.self)
    try expect(client.send("PUT", other, text, as: ann).status, equals: 404)
    try expect(client.send("PUT", own, text, as: ann).status, equals: 201)
    expect(logIn(client, "ann", "new"), equals: ["r"])
    let rev = try client.send("GET", own, as: ann).json()["_rev"].string ?? ""
    for roles in [#""r","s""#, "", #""_admin""#] {
      let more = #"{"_rev":"\#(rev)",\#(user("ann", "x", roles).dropFirst())"#
      try expect(client.send("PUT", own, more, as: ann).status, equals: 403, "\(roles)")
      let foreign = #"{"_rev":"9-z",\#(user("ann", "x", roles).dropFirst())"#
      try expect(
        client.send("PUT", own + "?new_edits=false", foreign, as: ann).status, equals: 403, "\(roles)")
    }
    // Lists and other documents by way of them stay closed.
    for (method, target, json) in [
      ("GET", "/_users/_all_docs?include_docs=true", ""), ("GET", "/_users/_changes", ""),
      ("POST", "/_users/_bulk_get", #"{"docs":[{"id":"org.couchdb.user:bob"}]}"#),
      ("POST", "/_users/_bulk_docs", #"{"docs":[]}"#), ("POST", "/_users/_find", #"{"selector":{}}"#),
      ("POST", "/_users/_query", #"{"query":"SELECT *"}"#), ("GET", "/_users/_security", ""),
      ("POST", "/_users/_revs_diff", "{}"),
    ] { try expect(client.send(method, target, json, as: ann).status, equals: 401, "\(target)") }
    let copy = try client.ask(
      "COPY", own, headers: [("Destination", "org.couchdb.user:bob?rev=1-a")], as: ann)
    expect(copy.status, equals: 404)
    // Somebody new registers, without roles and for no one else.
    let new = "/_users/org.couchdb.user:new"
    try expect(client.send("PUT", new, user("new", "x", #""r""#), as: Person.nobody).status, equals: 404)
  }

  @Test("who was remembered is forgotten by every change, also one that came another way")
  func forgetting() throws {
    let client = try client()
    let path = "/_users/org.couchdb.user:ann"
    try expect(client.send("PUT", path, user("ann", "x"), as: Person.root).status, equals: 201)
    let users = client.service.users
    expect(users.recall("ann") == nil)
    expect(users.find("ann")?.roles, equals: [])
    expect(users.recall("ann")?.name, equals: "ann")
    // By the API it is gone before the answer.
    var body = try client.send("GET", path, as: Person.root).json()
    body["roles"] = ["r"]
    let text = String(decoding: try body.jsonText(), as: UTF8.self)
    try expect(client.send("PUT", path, text, as: Person.root).status, equals: 201)
    expect(users.recall("ann") == nil)
    // The commit itself is told of a moment later, and then she is forgotten once more.
    eventually { users.find("ann")?.roles == ["r"] && users.recall("ann")?.roles == ["r"] }
    let database = try #require(try client.service.catalog.database("_users"))
    try database.delete("org.couchdb.user:ann")
    eventually { users.recall("ann") == nil }
    expect(users.find("ann") == nil)
    // So it is when the database goes.
    try expect(
      client.send("PUT", "/_users/org.couchdb.user:bob", user("bob", "x"), as: Person.root).status,
      equals: 201)
    expect(users.find("bob") != nil)
    try expect(client.send("DELETE", "/_users", as: Person.root).status, equals: 200)
    eventually { users.recall("bob") == nil }
    expect(users.find("bob") == nil)
  }

  @Test("documents of other users aren't taken for theirs") func otherNames() throws {
    let client = try client()
    let database = try #require(try client.service.catalog.database("_users"))
    let hash = try UserDocument.hashingPassword(
      UserDocument.body(name: "other", password: "x", roles: ["_admin", "r"]), iterations: 10)
    try database.save("org.couchdb.user:ann", .value(.object(hash)))
    expect(logIn(client, "ann", "x") == nil)
    // Roles of the server don't come from a document, however it got there.
    try database.save("org.couchdb.user:other", .value(.object(hash)))
    expect(logIn(client, "other", "x"), equals: ["r"])
    expect(client.service.users.check(ByteString([0xFF]), [0x78]) == nil)
  }

  @Test("a login that fails takes as long for every name") func noOracle() throws {
    // The iterations are counted, and not the time: a busy machine changes that.
    let old = UserPassword(["salt": "a", "password_sha": .string(String(repeating: "0", count: 40))])
    expect(old?.iterations, equals: 0)
    let client = try client()
    expect(client.service.users.iterations, equals: 10)
    expect(logIn(client, "nobody", "x") == nil)
  }

  @Test("few users are remembered") func bound() throws {
    let client = try client()
    let database = try #require(try client.service.catalog.database("_users"))
    let users = client.service.users
    _ = users.find("none")
    let count = UsersDatabase.mostKnown + 10
    try database.inBatch {
      for number in 0..<count {
        let body: JSONValue = ["type": "user", "name": .string("u\(number)"), "roles": []]
        try database.save("org.couchdb.user:u\(number)", .value(body))
      }
    }
    eventually { users.find("u0") != nil && users.recall("u0") != nil }
    for number in 0..<count { _ = users.find(ByteString("u\(number)")) }
    expect(users.knownCount <= UsersDatabase.mostKnown)
    expect(users.recall(ByteString("u\(count - 1)")) != nil)
  }
}
