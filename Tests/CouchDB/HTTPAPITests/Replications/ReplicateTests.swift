import Fleece
import HTTPAPI
import TestSupport
import Testing
import Touchstone

/// `_replicate` between databases of one server.
@Suite struct ReplicateTests {
  @Test(arguments: someEngines) func aReplicationCopiesAllAndTellsItsHistory(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 30)
    try client.make("b")
    let body: JSONValue = ["source": "a", "target": "b"]
    let first = try client.replicate(body)
    expect(first.status, equals: 200)
    let answer = try first.json()
    expect(answer["ok"], equals: true)
    expect(client.number(answer["source_last_seq"]), equals: "30")
    try expect(answer["source_last_seq"], equals: (try client.get("/a")["update_seq"]))
    expect(answer["replication_id_version"], equals: 4)
    expect(answer["no_changes"].isNull)
    let run = answer["history"][0]
    expect(run["session_id"], equals: answer["session_id"])
    expect(run["start_last_seq"] == 0 && client.number(run["end_last_seq"]) == "30")
    expect(run["recorded_seq"], equals: run["end_last_seq"])
    for name in ["missing_checked", "missing_found", "docs_read", "docs_written"] {
      expect(run[name], equals: 30, "\(name)")
    }
    expect(run["doc_write_failures"], equals: 0)
    expect(run["start_time"].string?.hasSuffix(" GMT"), equals: true)
    try expect(client.contents("a"), equals: client.contents("b"))

    let again = try client.replicate(body).json()
    expect(again["no_changes"] == true && again["session_id"] == answer["session_id"])
    expect(again["history"], equals: answer["history"])

    try expect(client.ask("PUT", "/a/new", ["n": 1]).status, equals: 201)
    let rev = try client.get("/a/a0")["_rev"].string ?? ""
    try expect(client.ask("DELETE", "/a/a0?rev=\(rev)").status, equals: 200)
    let third = try client.replicate(body).json()
    expect(third["history"].array?.count, equals: 2)
    expect(client.number(third["history"][0]["start_last_seq"]), equals: "30")
    expect(client.number(third["history"][0]["end_last_seq"]), equals: "32")
    // As in CouchDB, the numbers are those of all runs.
    expect(third["history"][0]["docs_written"], equals: 32)
    expect(third["history"][1], equals: run)
    try expect(client.contents("a"), equals: client.contents("b"))
    // Both sides keep the record.
    for name in ["a", "b"] {
      let record = try client.get("/\(name)/_local_docs?include_docs=true")["rows"][0]["doc"]
      expect(record["session_id"] == third["session_id"] && record["history"].array?.count == 2)
    }
  }

  @Test(arguments: someEngines) func attachmentsAndTombstonesAreCopied(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a")
    let attachment: JSONValue = ["a.bin": ["content_type": "x/y", "data": "AAECAwQFBgcICQ=="]]
    try expect(client.ask("PUT", "/a/with", ["_attachments": attachment]).status, equals: 201)
    let rev = try client.ask("PUT", "/a/gone", [:]).json()["rev"].string ?? ""
    try expect(client.ask("DELETE", "/a/gone?rev=\(rev)").status, equals: 200)
    let answer = try client.replicate(["source": "a", "target": "b", "create_target": true]).json()
    expect(answer["history"][0]["docs_written"], equals: 2)
    try expect(client.ask("GET", "/b/with/a.bin").body(), equals: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    try expect(client.contents("a"), equals: client.contents("b"))
    let parameters: JSONValue = ["q": 2, "n": "1", "placement": "z:1", "partitioned": false]
    try expect(
      client.replicate([
        "source": "a", "target": "c", "create_target": true, "create_target_params": parameters,
      ]).status, equals: 200)
    try expect(client.contents("a"), equals: client.contents("c"))
    // A target that is there is no error.
    try expect(client.replicate(["source": "a", "target": "b", "create_target": true]).status, equals: 200)
  }

  @Test(arguments: someEngines) func aTargetIsMadeOnlyIfThatIsWanted(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 3)
    for body: JSONValue in [
      ["source": "a", "target": "new"], ["source": "a", "target": "new", "create_target": false],
      // The source isn't made.
      ["source": "new", "target": "other", "create_target": true],
    ] {
      let answer = try client.replicate(body)
      expect(answer.status, equals: 500, "\(body)")
      try expect(answer.json()["error"], equals: "db_not_found", "\(body)")
    }
    try expect(
      client.replicate(["source": "a", "target": "new", "create_target": "yes"]).status, equals: 400)
    try expect(client.ask("GET", "/new").status, equals: 404)
    let making: JSONValue = ["source": "a", "target": "new", "create_target": true, "continuous": true]
    let id = try client.replicate(making).json()["_local_id"].string ?? ""
    expect(id.hasSuffix("+continuous+create_target"))
    try eventually { try client.get("/new")["error"].isNull && client.contents("new").count == 3 }
    try expect(client.replicate(["replication_id": .string(id), "cancel": true]).status, equals: 200)
    // It isn't made anew: what it has stays.
    try expect(client.ask("PUT", "/new/mine", [:]).status, equals: 201)
    try expect(client.replicate(["source": "a", "target": "new", "create_target": true]).status, equals: 200)
    try expect(client.contents("new").count, equals: 4)
  }

  @Test(arguments: someEngines) func bothWaysEndEqual(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 5)
    try client.make("b")
    try expect(client.ask("PUT", "/b/mine", ["n": 1]).status, equals: 201)
    try expect(client.replicate(["source": "a", "target": "b"]).status, equals: 200)
    let back = try client.replicate(["source": "b", "target": "a"]).json()
    expect(back["history"][0]["docs_written"], equals: 1)
    try expect(client.contents("a"), equals: client.contents("b"))
  }

  @Test(arguments: someEngines) func aSelectorChooses(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a")
    try client.make("b")
    for number in 0..<6 {
      try expect(client.ask("PUT", "/a/d\(number)", ["n": .int(Int64(number))]).status, equals: 201)
    }
    let body: JSONValue = ["source": "a", "target": "b", "selector": ["n": ["$gte": 4]]]
    try expect(client.replicate(body).json()["history"][0]["docs_written"], equals: 2)
    try expect(client.contents("b").keys.sorted(), equals: ["d4", "d5"])
    let wrong: JSONValue = ["source": "a", "target": "b", "selector": ["n": ["$foo": 4]]]
    try expect(client.replicate(wrong).json()["error"], equals: "invalid_operator")
  }

  @Test(arguments: someEngines) func allLeavesAreCopied(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a")
    try client.make("b")
    func write(_ name: String, _ history: String..., isDeleted: Bool = false) throws {
      let suffixes = history.map { JSONValue.string(String($0.dropFirst(2))) }
      let document: JSONValue = [
        "_id": "doc", "_rev": .string(history[0]), "from": .string(history[0]), "_deleted": .bool(isDeleted),
        "_revisions": ["start": .int(Int64(String(history[0].prefix(1))) ?? 0), "ids": .array(suffixes)],
      ]
      let bulk: JSONValue = ["new_edits": false, "docs": [document]]
      try expect(client.ask("POST", "/\(name)/_bulk_docs", bulk).status, equals: 201)
    }
    try write("a", "2-b", "1-a")
    try write("a", "2-c", "1-a")
    try write("a", "3-e", "2-d", "1-a", isDeleted: true)
    try write("b", "1-z")
    let body: JSONValue = ["source": "a", "target": "b"]
    try expect(client.replicate(body).json()["history"][0]["docs_written"], equals: 3)
    try expect(client.contents("b"), equals: ["doc": "2-c 2-b 1-z 3-e"])
    try expect(client.get("/b/doc?rev=2-b")["from"], equals: "2-b")
    // A branch that goes on, and one that is closed.
    try write("a", "3-f", "2-b", "1-a")
    try write("a", "3-g", "2-c", "1-a", isDeleted: true)
    try expect(client.replicate(body).json()["history"][0]["docs_written"], equals: 5)
    try expect(client.contents("b"), equals: ["doc": "3-f 1-z 3-g 3-e"])
    try expect(client.replicate(body).json()["no_changes"], equals: true)
    // The other way only the leaf that isn't there.
    try expect(
      client.replicate(["source": "b", "target": "a"]).json()["history"][0]["docs_written"], equals: 1)
    try expect(client.contents("a"), equals: client.contents("b"))
    // Only the current revision goes if that is wanted.
    try client.make("c")
    let winners: JSONValue = ["source": "a", "target": "c", "winning_revs_only": true]
    try expect(client.replicate(winners).status, equals: 200)
    try expect(client.contents("c"), equals: ["doc": "3-f"])
  }

  @Test(arguments: someEngines) func onlyWhatIsChosenIsCopied(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 10)
    for name in ["ids", "filtered", "late", "none", "fresh"] { try client.make(name) }
    let byID = try client.replicate([
      "source": "a", "target": "ids", "doc_ids": ["a3", "a1", "nosuch", "a3"],
    ]).json()
    expect(byID["docs_written"] == 2 && byID["start_time"].string != nil)
    try expect(Set(try client.contents("ids").keys), equals: ["a1", "a3"])

    let design: JSONValue = [
      "views": ["odd": ["map": "function (doc) { if (doc.n % 2) emit(doc.n); }"]],
      "filters": ["more": "function (doc, req) { return doc.n >= Number(req.query.than); }"],
    ]
    try expect(client.ask("PUT", "/a/_design/f", design).status, equals: 201)
    let filtered: JSONValue = [
      "source": "a", "target": "filtered", "filter": "f/more", "query_params": ["than": 7],
    ]
    try expect(client.replicate(filtered).json()["history"][0]["docs_written"], equals: 3)
    try expect(Set(try client.contents("filtered").keys), equals: ["a7", "a8", "a9"])
    // Another parameter is another replication, which begins at the start.
    let other: JSONValue = [
      "source": "a", "target": "filtered", "filter": "f/more", "query_params": ["than": "5"],
    ]
    try expect(client.replicate(other).json()["history"][0]["docs_written"], equals: 2)

    // With another function it begins at the start, too, and once.
    let revision = try client.get("/a/_design/f")["_rev"]
    let wider: JSONValue = [
      "_rev": revision, "filters": ["more": "function (doc, req) { return doc.n >= 2; }"],
      "views": design["views"],
    ]
    try expect(client.ask("PUT", "/a/_design/f", wider).status, equals: 201)
    let again = try client.replicate(filtered).json()
    expect(again["history"].array?.count == 1 && again["history"][0]["docs_written"] == 3, "\(again)")
    try expect(Set(try client.contents("filtered").keys), equals: Set((2...9).map { "a\($0)" }))
    try expect(client.replicate(filtered).json()["no_changes"], equals: true)

    let designs = try client.replicate([
      "source": "a", "target": "fresh", "doc_ids": ["_design%2ff", "_design%2Fnone"],
    ]).json()
    expect(designs["docs_written"], equals: 1)
    try expect(client.ask("DELETE", "/fresh").status, equals: 200)
    try client.make("fresh")

    // The filters of `_changes`.
    for (filter, parameters, expected) in [
      ("_view", ["view": "f/odd"] as JSONValue, ["a1", "a3", "a5", "a7", "a9"]),
      ("_design", [:], ["_design/f"]), ("_doc_ids", ["doc_ids": ["a2", "a4", "no"]], ["a2", "a4"]),
    ] {
      let name = filter.dropFirst() + "s"
      try client.make(String(name))
      let answer = try client.replicate([
        "source": "a", "target": .string(String(name)), "filter": .string(filter), "query_params": parameters,
      ])
      expect(answer.status, equals: 200)
      try expect(client.contents(String(name)).keys.sorted(), equals: expected)
    }

    try expect(
      client.replicate(["source": "a", "target": "late", "since_seq": "8"]).json()["history"][0][
        "start_last_seq"], equals: "8")
    try expect(Set(try client.contents("late").keys), equals: ["a8", "a9", "_design/f"])

    let none = try client.replicate(["source": "a", "target": "none", "doc_ids": ["x", "y"]])
    try expect(none.json(), equals: ["ok": true, "no_changes": true])

    let fresh = try client.replicate(["source": "a", "target": "fresh", "use_checkpoints": false])
    try expect(fresh.json(), equals: ["ok": true, "use_checkpoints": false])
    try expect(client.contents("fresh").count, equals: 11)
    try expect(client.get("/fresh/_local_docs")["rows"], equals: [])
  }

  @Test(arguments: someEngines) func aTargetRefusesDocuments(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 6)
    try client.make("b")
    let design: JSONValue = [
      "validate_doc_update": "function (n, o, u) { if (n.n % 2) throw({forbidden: 'odd'}); }"
    ]
    try expect(client.ask("PUT", "/b/_design/v", design).status, equals: 201)
    let answer = try client.replicate(["source": "a", "target": "b"]).json()
    expect(answer["history"][0]["docs_written"] == 3 && answer["history"][0]["doc_write_failures"] == 3)
    try expect(Set(try client.contents("b").keys), equals: ["a0", "a2", "a4", "_design/v"])
    // They count as done.
    try expect(client.replicate(["source": "a", "target": "b"]).json()["no_changes"], equals: true)
  }

  @Test func whatMakesNoSenseIsRefused() throws {
    let client = try ReplicationClient()
    try client.make("a")
    try client.make("b")
    let cases: [(JSONValue, Int, String)] = [
      ([:], 500, "error"), (["source": "a"], 500, "error"), (["source": "", "target": "b"], 500, "error"),
      (["source": "nosuch", "target": "b"], 500, "db_not_found"),
      (["source": "a", "target": "nosuch"], 500, "db_not_found"),
      (["source": "a", "target": "a"], 400, "bad_request"),
      (["source": "a", "target": "Bad", "create_target": true], 400, "illegal_database_name"),
      (["source": "a", "target": 5], 400, "bad_request"),
      (["source": "a b", "target": "b"], 400, "bad_request"),
      (["source": "ftp://h/a", "target": "b"], 400, "bad_request"),
      (["source": "http:///a", "target": "b"], 400, "bad_request"),
      (["source": "http://u%zz@h/a", "target": "b"], 400, "bad_request"),
      (["source": ["url": "http://h/a", "headers": ["a b": "c"]], "target": "b"], 400, "bad_request"),
      (["source": ["url": "http://h/a", "headers": ["x": "c\r\nd"]], "target": "b"], 400, "bad_request"),
      (["source": ["url": "http://h/a", "auth": ["token": "x"]], "target": "b"], 400, "bad_request"),
      (["source": "http://h/a", "target": "b"], 501, "not_implemented"),
      (["source": "a", "target": "b", "continuous": "yes"], 400, "bad_request"),
      (["source": "a", "target": "b", "doc_ids": "a"], 400, "bad_request"),
      (["source": "a", "target": "b", "doc_ids": ["a"], "selector": [:]], 400, "bad_request"),
      (["source": "a", "target": "b", "filter": "f"], 400, "bad_request"),
      (["source": "a", "target": "b", "filter": "no/such"], 404, "not_found"),
      (["source": "a", "target": "b", "filter": "_other"], 400, "bad_request"),
      (["source": "a", "target": "b", "filter": "_selector"], 501, "not_implemented"),
      (["source": "a", "target": "b", "filter": "_doc_ids"], 400, "bad_request"),
      (
        ["source": "a", "target": "b", "filter": "_doc_ids", "query_params": ["doc_ids": "x"]], 400,
        "bad_request"
      ),
      (
        ["source": "a", "target": "n", "create_target": true, "create_target_params": ["q": 0]], 400,
        "bad_request"
      ),
      (["source": "a", "target": "n", "create_target": true, "create_target_params": 7], 400, "bad_request"),
      (
        ["source": "a", "target": "n", "create_target": true, "create_target_params": ["partitioned": 7]],
        400, "bad_request"
      ),
      (["source": "a", "target": "b", "filter": "_view"], 400, "bad_request"),
      (
        ["source": "a", "target": "b", "filter": "_view", "query_params": ["view": "no/such"]], 404,
        "not_found"
      ),
      (["source": "a", "target": "b", "since_seq": "x"], 400, "bad_request"),
      (["source": "a", "target": "b", "retries_per_request": -1], 400, "bad_request"),
      (["source": "a", "target": "b", "cancel": true], 404, "not_found"),
      (["replication_id": "nosuch", "cancel": true], 404, "not_found"), ([1], 400, "bad_request"),
    ]
    for (body, status, error) in cases {
      let answer = try client.replicate(body)
      expect(answer.status, equals: status, "\(body): \(answer.text)")
      try expect(answer.json()["error"].string, equals: error, "\(body)")
    }
    try expect(client.ask("GET", "/_replicate").status, equals: 400)
    try expect(client.ask("PUT", "/_replicate", [:]).status, equals: 405)
    try expect(client.client.ask("POST", "/_replicate", body: Array("{}".utf8)).status, equals: 415)
    try expect(client.get("/_scheduler/jobs")["jobs"], equals: [])
  }

  @Test func aServerThatIsReadRunsNoReplication() throws {
    let client = try ReplicationClient(.lmdb) { $0.isReadOnly = true }
    try expect(client.replicate(["source": "a", "target": "b"]).status, equals: 403)
    try expect(client.ask("PUT", "/_replicator/x", ["source": "a", "target": "b"]).status, equals: 403)
  }

  @Test(arguments: someEngines) func aContinuousReplicationRunsUntilItIsCancelled(_ engine: EngineName) throws
  {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 3)
    try client.make("b")
    let body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    let begun = try client.replicate(body)
    expect(begun.status, equals: 202)
    let id = try begun.json()["_local_id"].string ?? ""
    expect(id.hasSuffix("+continuous") && id.utf8.count == 43)
    // The same again is the same.
    try expect(client.replicate(body).json()["_local_id"].string, equals: id)
    try eventually { try client.contents("b").count == 3 }
    try expect(client.ask("PUT", "/a/later", [:]).status, equals: 201)
    try eventually { try client.contents("a") == client.contents("b") }

    try eventually { try client.get("/_active_tasks")[0]["process_status"] == "waiting" }
    try eventually { try client.get("/_active_tasks")[0]["docs_written"] == 4 }
    let task = try client.get("/_active_tasks")[0]
    expect(task["type"] == "replication" && task["replication_id"].string == id)
    expect(task["source"] == "a" && task["target"] == "b" && task["continuous"] == true)
    expect(task["docs_written"] == 4 && task["doc_id"].isNull && task["database"].isNull)
    expect(client.number(task["source_seq"]), equals: "4")
    let jobs = try client.get("/_scheduler/jobs")
    expect(jobs["total_rows"] == 1 && jobs["jobs"][0]["id"].string == id)
    expect(jobs["jobs"][0]["history"].array?.compactMap { $0["type"].string }, equals: ["started", "added"])
    try expect(client.get("/_scheduler/jobs/\(id)")["info"]["docs_read"], equals: 4)
    try expect(client.get("/_metrics_nosuch")["error"], equals: "not_found")

    var cancel = body
    cancel["cancel"] = true
    try expect(client.replicate(cancel).json(), equals: ["ok": true, "_local_id": .string(id)])
    try expect(client.replicate(cancel).status, equals: 404)
    try expect(client.get("/_active_tasks"), equals: [])
    try expect(client.ask("GET", "/_scheduler/jobs/\(id)").status, equals: 404)
    try expect(client.ask("PUT", "/a/unseen", [:]).status, equals: 201)
    try expect(client.contents("b")["unseen"] == nil)
    // Another one goes on where it has stopped.
    try expect(client.replicate(body).status, equals: 202)
    try eventually { try client.contents("b")["unseen"] != nil }
    try expect(client.replicate(["replication_id": .string(id), "cancel": true]).status, equals: 200)
  }

  @Test("nobody joins a replication that runs with another password, other headers or for another user")
  func otherPassword() throws {
    let client = try ReplicationClient { $0.replicationTargets = NamedTargets() }
    try client.make("a")
    try client.make("b")
    func replicate(_ password: String, _ headers: JSONValue = [:], user: String? = nil) throws -> Response {
      let target: JSONValue = [
        "url": "http://self/b", "headers": headers,
        "auth": ["basic": ["username": "me", "password": .string(password)]],
      ]
      return try client.ask(
        "POST", "/_replicate", ["source": "a", "target": target, "continuous": true], user: user)
    }
    try expect(replicate("one").status, equals: 202)
    try expect(replicate("one").status, equals: 202)
    try expect(replicate("two").status, equals: 409)
    try expect(replicate("one", ["Authorization": "Bearer x"]).status, equals: 409)
    try expect(replicate("one", user: "other").status, equals: 409)
    try expect(client.get("/_scheduler/jobs")["total_rows"], equals: 1)
  }

  @Test("a replication that waits for its next try is tried when somebody asks for it") func askedAgain()
    throws
  {
    let client = try ReplicationClient()
    try client.make("a", documents: 3)
    let body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    func lastEvent() throws -> JSONValue {
      try client.get("/_scheduler/jobs")["jobs"][0]["history"][0]["type"]
    }
    try expect(client.replicate(body).status, equals: 202)
    try eventually { try lastEvent() == "crashed" }
    try client.make("b")
    try expect(client.contents("b").isEmpty)
    try expect(client.replicate(body).status, equals: 202)
    try eventually { try client.contents("b").count == 3 }
    try expect(client.get("/_scheduler/jobs")["total_rows"], equals: 1)
  }

  @Test("a replication that waits for its next try gives way to one with another password")
  func givesWay() throws {
    let client = try ReplicationClient { $0.replicationTargets = NamedTargets() }
    try client.make("a")
    func replicate(_ password: String) throws -> Response {
      let target: JSONValue = [
        "url": "http://other/b", "auth": ["basic": ["username": "me", "password": .string(password)]],
      ]
      return try client.replicate(["source": "a", "target": target, "continuous": true])
    }
    func jobs() throws -> JSONValue { try client.get("/_scheduler/jobs") }
    try expect(replicate("wrong").status, equals: 202)
    try eventually { try jobs()["jobs"][0]["history"][0]["type"] == "crashed" }
    try expect(replicate("right").status, equals: 202)
    try eventually { try jobs()["jobs"][0]["history"][0]["type"] == "crashed" }
    // It is another one: added, started, crashed.
    try expect(jobs()["jobs"][0]["history"].array?.count, equals: 3)
    try expect(jobs()["total_rows"], equals: 1)
  }

  @Test("a replication reaches only the servers that it may") func reach() throws {
    var targets = NamedTargets()
    targets.refused = ["http://inside"]
    let client = try ReplicationClient { [targets] in $0.replicationTargets = targets }
    try client.make("a")
    for body in [
      ["source": "a", "target": "http://inside/b"], ["source": "http://inside/b", "target": "a"],
    ] as [JSONValue] {
      let answer = try client.replicate(body)
      expect(answer.status, equals: 403)
      try expect(answer.json()["error"], equals: "forbidden")
    }
    // Databases of the server itself are always reached.
    try client.make("b")
    try expect(client.replicate(["source": "a", "target": "http://self/b"]).status, equals: 200)
  }

  @Test func aDatabaseThatIsDeletedEndsItsReplication() throws {
    let client = try ReplicationClient()
    try client.make("a", documents: 3)
    try client.make("b")
    try expect(client.replicate(["source": "a", "target": "b", "continuous": true]).status, equals: 202)
    try eventually { try client.contents("b").count == 3 }
    try expect(client.ask("DELETE", "/b").status, equals: 200)
    try eventually { try client.get("/_scheduler/jobs")["jobs"][0]["history"][0]["type"] == "crashed" }
    let reason = try client.get("/_scheduler/jobs")["jobs"][0]["history"][0]["reason"].string ?? ""
    expect(!reason.isEmpty)
    // It is tried again.
    try client.make("b")
    client.timer.advance(by: 31)
    try eventually { try client.contents("b").count == 3 }
  }
}
