import Bytes
import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// The rights of replications that the server runs.
@Suite struct UserReplicationTests {
  /// Logins of the persons.
  private struct Logins: LoginSessions {
    let cookieSeconds = 600
    func check(
      _ user: String, _ password: String, from network: ByteString,
      _ completion: @escaping @Sendable (LoginResult) -> Void
    ) {
      guard let context = context(of: user), password == "pw" else {
        return completion(.failure(LoginRefusal(401, "Name or password is incorrect.")))
      }
      completion(.success(AcceptedLogin(context, cookie: "c")))
    }
    func context(of user: String) -> UserContext? {
      [Person.root, Person.boss, Person.chief, Person.member, Person.reader, Person.stranger].first {
        $0.name == user
      }
    }
    func renewal(of cookie: String) -> String? { nil }
    func end(_ cookie: String) {}
  }

  private func client(_ engine: EngineName = .lmdb) throws -> APIClient {
    let client = try APIClient.secured(engine) {
      $0.logins = Logins()
      $0.replicationTargets = NamedTargets()
    }
    try expect(client.send("PUT", "/other", as: Person.root).status, equals: 201)
    try expect(client.send("PUT", "/db/doc", #"{"n":1}"#, as: Person.root).status, equals: 201)
    let open = #"{"members":{"names":["carol","dave"]},"admins":{"names":["carol"]}}"#
    try expect(client.send("PUT", "/other/_security", open, as: Person.root).status, equals: 200)
    return client
  }

  private func replicate(
    _ client: APIClient, _ source: String, _ target: String, as user: UserContext, _ more: String = ""
  )
    throws -> Response
  {
    try client.send(
      "POST", "/_replicate", #"{"source":"\#(source)","target":"\#(target)"\#(more)}"#, as: user)
  }

  @Test("a replication is ended by its user and by administrators") func cancelling() throws {
    let client = try client()
    func begin(_ user: UserContext) throws -> String {
      let answer = try replicate(client, "db", "other", as: user, #","continuous":true"#)
      expect(answer.status, equals: 202, "\(answer.text)")
      return try answer.json()["_local_id"].string ?? ""
    }
    func cancel(_ id: String, _ user: UserContext) throws -> Int {
      try client.send("POST", "/_replicate", #"{"replication_id":"\#(id)","cancel":true}"#, as: user).status
    }
    let id = try begin(Person.member)
    // Who brings the name along may be somebody else.
    let token = UserContext(name: Person.member.name, roles: [], bringsRoles: true)
    for other in [Person.stranger, Person.reader, Person.chief, token] {
      try expect(cancel(id, other), equals: 401)
    }
    // Nor by naming what it does.
    let same = #","continuous":true,"cancel":true"#
    try expect(replicate(client, "db", "other", as: Person.stranger, same).status, equals: 401)
    try expect(cancel(id, Person.member), equals: 200)
    try expect(cancel(id, Person.member), equals: 404)
    try expect(cancel(begin(Person.member), Person.root), equals: 200)
    let root = try begin(Person.root)
    try expect(cancel(root, Person.member), equals: 401)
    try expect(cancel(root, Person.root), equals: 200)
  }

  @Test("a replication has the rights of who asks for it", arguments: someEngines)
  func rights(_ engine: EngineName) throws {
    let client = try client(engine)
    try expect(replicate(client, "db", "other", as: Person.nobody).status, equals: 401)
    // A stranger reads `other`, and not `db`.
    try expect(replicate(client, "db", "other", as: Person.stranger).status, equals: 403)
    try expect(replicate(client, "other", "db", as: Person.stranger).status, equals: 403)
    try expect(client.send("GET", "/other/doc", as: Person.root).status, equals: 404)
    // A member of both.
    try expect(replicate(client, "db", "other", as: Person.member).status, equals: 200)
    try expect(client.send("GET", "/other/doc", as: Person.stranger).status, equals: 200)
    // Who makes databases?
    try expect(
      replicate(client, "db", "new", as: Person.member, #","create_target":true"#).status, equals: 401)
    try expect(client.send("GET", "/new", as: Person.root).status, equals: 404)
    try expect(replicate(client, "db", "new", as: Person.root, #","create_target":true"#).status, equals: 200)
    // A replication doesn't bring a new database the old one's security object.
    try expect(client.send("GET", "/new/doc", as: Person.member).status, equals: 403)
  }

  @Test("who may not replicate doesn't keep others from it", arguments: someEngines)
  func noPlaceholders(_ engine: EngineName) throws {
    let client = try client(engine)
    client.service.start()
    try expect(client.send("PUT", "/_replicator/_security", "{}", as: Person.root).status, equals: 200)
    try expect(
      replicate(client, "db", "other", as: Person.stranger, #","continuous":true"#).status, equals: 403)
    try expect(client.send("GET", "/_scheduler/jobs", as: Person.root).json()["total_rows"], equals: 0)
    // A document is taken, and fails again and again.
    try expect(
      client.send("PUT", "/_replicator/job", #"{"source":"db","target":"other"}"#, as: Person.stranger)
        .status,
      equals: 201)
    func state() -> String? {
      let row = try? client.send("GET", "/_scheduler/docs/_replicator/job", as: Person.root).json()
      return row?["state"].string
    }
    eventually { state() == "crashing" }
    try expect(replicate(client, "db", "other", as: Person.member).status, equals: 200)
    try expect(client.send("GET", "/other/doc", as: Person.root).status, equals: 200)
    // Its place is free again.
    eventually { state() == "crashing" }
  }

  @Test("design documents go only where an administrator of the target takes them") func designs() throws {
    let client = try client()
    try expect(
      client.send("PUT", "/db/_design/d", #"{"language":"javascript"}"#, as: Person.boss).status, equals: 201)
    // carol administers `other`, and not `db`.
    try expect(replicate(client, "db", "other", as: Person.member).status, equals: 200)
    try expect(client.send("GET", "/other/_design/d", as: Person.root).status, equals: 200)
    try expect(
      client.send("PUT", "/other/_design/e", #"{"language":"javascript"}"#, as: Person.member).status,
      equals: 201)
    let back = try replicate(client, "other", "db", as: Person.member)
    expect(back.status, equals: 200)
    try expect(back.json()["history"][0]["doc_write_failures"], equals: 1)
    try expect(client.send("GET", "/db/_design/e", as: Person.root).status, equals: 404)
  }

  @Test("a URL of the server has the rights of its login") func urls() throws {
    let client = try client()
    try expect(
      replicate(client, "http://dave:pw@self/db", "other", as: Person.member).status, equals: 403)
    try expect(
      replicate(client, "http://carol:pw@self/db", "other", as: Person.stranger).status, equals: 200)
    try expect(client.send("GET", "/other/doc", as: Person.stranger).status, equals: 200)
  }

  @Test("documents of _replicator belong to who has written them") func owners() throws {
    let client = try client()
    client.service.start()
    try expect(client.send("PUT", "/_replicator/_security", "{}", as: Person.root).status, equals: 200)
    let job = #""source":"db","target":"other""#
    let path = "/_replicator/job"
    try expect(
      client.send("PUT", path, "{\(job),\"owner\":\"root\"}", as: Person.stranger).status, equals: 403)
    try expect(
      client.send("PUT", path + "?new_edits=false", "{\"_rev\":\"1-a\",\(job)}", as: Person.stranger).status,
      equals: 403)
    try expect(
      client.send(
        "PUT", path + "?new_edits=false", "{\"_rev\":\"1-a\",\(job),\"owner\":\"root\"}", as: Person.stranger
      )
      .status, equals: 403)
    try expect(
      client.send(
        "PUT", path, "{\(job),\"user_ctx\":{\"name\":\"root\",\"roles\":[\"_admin\"]}}", as: Person.stranger
      )
      .status, equals: 201)
    let body = try client.send("GET", path, as: Person.stranger).json()
    expect(body["owner"], equals: "dave")
    // dave isn't a member of db, whatever the document says.
    eventually {
      let row = try? client.send("GET", "/_scheduler/docs/_replicator/job", as: Person.root).json()
      return ["crashing", "failed"].contains(row?["state"].string)
    }
    try expect(client.send("GET", "/other/doc", as: Person.root).status, equals: 404)
    let rev = body["_rev"].string ?? ""
    let mine = "{\"_rev\":\"\(rev)\",\(job)}"
    try expect(client.send("PUT", path, mine, as: Person.reader).status, equals: 403)
    try expect(client.send("DELETE", path + "?rev=\(rev)", as: Person.reader).status, equals: 403)
    try expect(client.send("DELETE", path + "?rev=\(rev)", as: Person.stranger).status, equals: 200)
    for target in ["_all_docs", "_changes", "_local/x"] {
      try expect(client.send("GET", "/_replicator/\(target)", as: Person.stranger).status, equals: 401)
    }
  }

  @Test("users are replicated by administrators, with hashes and never with passwords") func users() throws {
    let client = try client()
    client.service.start()
    try expect(
      client.send(
        "PUT", "/db/org.couchdb.user:a", #"{"type":"user","name":"a","roles":[],"password":"p"}"#,
        as: Person.root
      ).status, equals: 201)
    try expect(
      client.send(
        "PUT", "/db/org.couchdb.user:b", #"{"type":"user","name":"b","roles":["_admin"]}"#, as: Person.root
      ).status, equals: 201)
    try expect(
      client.send("PUT", "/db/org.couchdb.user:c", #"{"type":"user","name":"c","roles":[]}"#, as: Person.root)
        .status, equals: 201)
    try expect(replicate(client, "db", "_users", as: Person.boss).status, equals: 401)
    try expect(replicate(client, "_users", "db", as: Person.boss).status, equals: 401)
    try expect(replicate(client, "db", "_users", as: Person.root).status, equals: 200)
    let rows = try client.send("GET", "/_users/_all_docs", as: Person.root).json()["rows"].array ?? []
    expect(rows.compactMap { $0["id"].string }, equals: ["org.couchdb.user:c"])
  }
}
