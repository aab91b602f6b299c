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
    #expect(first.status == 200)
    let answer = try first.json()
    #expect(answer["ok"] == true)
    #expect(client.number(answer["source_last_seq"]) == "30")
    #expect(answer["source_last_seq"] == (try client.get("/a")["update_seq"]))
    #expect(answer["replication_id_version"] == 4)
    #expect(answer["no_changes"].isNull)
    let run = answer["history"][0]
    #expect(run["session_id"] == answer["session_id"])
    #expect(run["start_last_seq"] == 0 && client.number(run["end_last_seq"]) == "30")
    #expect(run["recorded_seq"] == run["end_last_seq"])
    for name in ["missing_checked", "missing_found", "docs_read", "docs_written"] {
      #expect(run[name] == 30, "\(name)")
    }
    #expect(run["doc_write_failures"] == 0)
    #expect(run["start_time"].string?.hasSuffix(" GMT") == true)
    #expect(try client.contents("a") == client.contents("b"))

    let again = try client.replicate(body).json()
    #expect(again["no_changes"] == true && again["session_id"] == answer["session_id"])
    #expect(again["history"] == answer["history"])

    #expect(try client.ask("PUT", "/a/new", ["n": 1]).status == 201)
    let rev = try client.get("/a/a0")["_rev"].string ?? ""
    #expect(try client.ask("DELETE", "/a/a0?rev=\(rev)").status == 200)
    let third = try client.replicate(body).json()
    #expect(third["history"].array?.count == 2)
    #expect(client.number(third["history"][0]["start_last_seq"]) == "30")
    #expect(client.number(third["history"][0]["end_last_seq"]) == "32")
    // As in CouchDB, the numbers are those of all runs.
    #expect(third["history"][0]["docs_written"] == 32)
    #expect(third["history"][1] == run)
    #expect(try client.contents("a") == client.contents("b"))
    // Both sides keep the record.
    for name in ["a", "b"] {
      let record = try client.get("/\(name)/_local_docs?include_docs=true")["rows"][0]["doc"]
      #expect(record["session_id"] == third["session_id"] && record["history"].array?.count == 2)
    }
  }

  @Test(arguments: someEngines) func attachmentsAndTombstonesAreCopied(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a")
    let attachment: JSONValue = ["a.bin": ["content_type": "x/y", "data": "AAECAwQFBgcICQ=="]]
    #expect(try client.ask("PUT", "/a/with", ["_attachments": attachment]).status == 201)
    let rev = try client.ask("PUT", "/a/gone", [:]).json()["rev"].string ?? ""
    #expect(try client.ask("DELETE", "/a/gone?rev=\(rev)").status == 200)
    let answer = try client.replicate(["source": "a", "target": "b", "create_target": true]).json()
    #expect(answer["history"][0]["docs_written"] == 2)
    #expect(try client.ask("GET", "/b/with/a.bin").body() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    #expect(try client.contents("a") == client.contents("b"))
    let parameters: JSONValue = ["q": 2, "n": "1", "placement": "z:1", "partitioned": false]
    #expect(
      try client.replicate([
        "source": "a", "target": "c", "create_target": true, "create_target_params": parameters,
      ]).status == 200)
    #expect(try client.contents("a") == client.contents("c"))
    // A target that is there is no error.
    #expect(try client.replicate(["source": "a", "target": "b", "create_target": true]).status == 200)
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
      #expect(answer.status == 500, "\(body)")
      #expect(try answer.json()["error"] == "db_not_found", "\(body)")
    }
    #expect(try client.replicate(["source": "a", "target": "new", "create_target": "yes"]).status == 400)
    #expect(try client.ask("GET", "/new").status == 404)
    let making: JSONValue = ["source": "a", "target": "new", "create_target": true, "continuous": true]
    let id = try client.replicate(making).json()["_local_id"].string ?? ""
    #expect(id.hasSuffix("+continuous+create_target"))
    try eventually { try client.get("/new")["error"].isNull && client.contents("new").count == 3 }
    #expect(try client.replicate(["replication_id": .string(id), "cancel": true]).status == 200)
    // It isn't made anew: what it has stays.
    #expect(try client.ask("PUT", "/new/mine", [:]).status == 201)
    #expect(try client.replicate(["source": "a", "target": "new", "create_target": true]).status == 200)
    #expect(try client.contents("new").count == 4)
  }

  @Test(arguments: someEngines) func bothWaysEndEqual(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 5)
    try client.make("b")
    #expect(try client.ask("PUT", "/b/mine", ["n": 1]).status == 201)
    #expect(try client.replicate(["source": "a", "target": "b"]).status == 200)
    let back = try client.replicate(["source": "b", "target": "a"]).json()
    #expect(back["history"][0]["docs_written"] == 1)
    #expect(try client.contents("a") == client.contents("b"))
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
      #expect(try client.ask("POST", "/\(name)/_bulk_docs", bulk).status == 201)
    }
    try write("a", "2-b", "1-a")
    try write("a", "2-c", "1-a")
    try write("a", "3-e", "2-d", "1-a", isDeleted: true)
    try write("b", "1-z")
    let body: JSONValue = ["source": "a", "target": "b"]
    #expect(try client.replicate(body).json()["history"][0]["docs_written"] == 3)
    #expect(try client.contents("b") == ["doc": "2-c 2-b 1-z 3-e"])
    #expect(try client.get("/b/doc?rev=2-b")["from"] == "2-b")
    // A branch that goes on, and one that is closed.
    try write("a", "3-f", "2-b", "1-a")
    try write("a", "3-g", "2-c", "1-a", isDeleted: true)
    #expect(try client.replicate(body).json()["history"][0]["docs_written"] == 5)
    #expect(try client.contents("b") == ["doc": "3-f 1-z 3-g 3-e"])
    #expect(try client.replicate(body).json()["no_changes"] == true)
    // The other way only the leaf that isn't there.
    #expect(try client.replicate(["source": "b", "target": "a"]).json()["history"][0]["docs_written"] == 1)
    #expect(try client.contents("a") == client.contents("b"))
    // Only the current revision goes if that is wanted.
    try client.make("c")
    let winners: JSONValue = ["source": "a", "target": "c", "winning_revs_only": true]
    #expect(try client.replicate(winners).status == 200)
    #expect(try client.contents("c") == ["doc": "3-f"])
  }

  @Test(arguments: someEngines) func onlyWhatIsChosenIsCopied(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 10)
    for name in ["ids", "filtered", "late", "none", "fresh"] { try client.make(name) }
    let byID = try client.replicate([
      "source": "a", "target": "ids", "doc_ids": ["a3", "a1", "nosuch", "a3"],
    ]).json()
    #expect(byID["docs_written"] == 2 && byID["start_time"].string != nil)
    #expect(Set(try client.contents("ids").keys) == ["a1", "a3"])

    let design: JSONValue = [
      "views": ["odd": ["map": "function (doc) { if (doc.n % 2) emit(doc.n); }"]],
      "filters": ["more": "function (doc, req) { return doc.n >= Number(req.query.than); }"],
    ]
    #expect(try client.ask("PUT", "/a/_design/f", design).status == 201)
    let filtered: JSONValue = [
      "source": "a", "target": "filtered", "filter": "f/more", "query_params": ["than": 7],
    ]
    #expect(try client.replicate(filtered).json()["history"][0]["docs_written"] == 3)
    #expect(Set(try client.contents("filtered").keys) == ["a7", "a8", "a9"])
    // Another parameter is another replication, which begins at the start.
    let other: JSONValue = [
      "source": "a", "target": "filtered", "filter": "f/more", "query_params": ["than": "5"],
    ]
    #expect(try client.replicate(other).json()["history"][0]["docs_written"] == 2)

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
      #expect(answer.status == 200)
      #expect(try client.contents(String(name)).keys.sorted() == expected)
    }

    #expect(
      try client.replicate(["source": "a", "target": "late", "since_seq": "8"]).json()["history"][0][
        "start_last_seq"] == "8")
    #expect(Set(try client.contents("late").keys) == ["a8", "a9", "_design/f"])

    let none = try client.replicate(["source": "a", "target": "none", "doc_ids": ["x", "y"]])
    #expect(try none.json() == ["ok": true, "no_changes": true])

    let fresh = try client.replicate(["source": "a", "target": "fresh", "use_checkpoints": false])
    #expect(try fresh.json() == ["ok": true, "use_checkpoints": false])
    #expect(try client.contents("fresh").count == 11)
    #expect(try client.get("/fresh/_local_docs")["rows"] == [])
  }

  @Test(arguments: someEngines) func aTargetRefusesDocuments(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 6)
    try client.make("b")
    let design: JSONValue = [
      "validate_doc_update": "function (n, o, u) { if (n.n % 2) throw({forbidden: 'odd'}); }"
    ]
    #expect(try client.ask("PUT", "/b/_design/v", design).status == 201)
    let answer = try client.replicate(["source": "a", "target": "b"]).json()
    #expect(answer["history"][0]["docs_written"] == 3 && answer["history"][0]["doc_write_failures"] == 3)
    #expect(Set(try client.contents("b").keys) == ["a0", "a2", "a4", "_design/v"])
    // They count as done.
    #expect(try client.replicate(["source": "a", "target": "b"]).json()["no_changes"] == true)
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
        ["source": "a", "target": "n", "create_target": true, "create_target_params": ["partitioned": true]],
        501,
        "not_implemented"
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
      #expect(answer.status == status, "\(body): \(answer.text)")
      #expect(try answer.json()["error"].string == error, "\(body)")
    }
    #expect(try client.ask("GET", "/_replicate").status == 400)
    #expect(try client.ask("PUT", "/_replicate", [:]).status == 405)
    #expect(try client.client.ask("POST", "/_replicate", body: Array("{}".utf8)).status == 415)
    #expect(try client.get("/_scheduler/jobs")["jobs"] == [])
  }

  @Test func aServerThatIsReadRunsNoReplication() throws {
    let client = try ReplicationClient(.lmdb) { $0.isReadOnly = true }
    #expect(try client.replicate(["source": "a", "target": "b"]).status == 403)
    #expect(try client.ask("PUT", "/_replicator/x", ["source": "a", "target": "b"]).status == 403)
  }

  @Test(arguments: someEngines) func aContinuousReplicationRunsUntilItIsCancelled(_ engine: EngineName) throws
  {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 3)
    try client.make("b")
    let body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    let begun = try client.replicate(body)
    #expect(begun.status == 202)
    let id = try begun.json()["_local_id"].string ?? ""
    #expect(id.hasSuffix("+continuous") && id.utf8.count == 43)
    // The same again is the same.
    #expect(try client.replicate(body).json()["_local_id"].string == id)
    try eventually { try client.contents("b").count == 3 }
    #expect(try client.ask("PUT", "/a/later", [:]).status == 201)
    try eventually { try client.contents("a") == client.contents("b") }

    try eventually { try client.get("/_active_tasks")[0]["process_status"] == "waiting" }
    try eventually { try client.get("/_active_tasks")[0]["docs_written"] == 4 }
    let task = try client.get("/_active_tasks")[0]
    #expect(task["type"] == "replication" && task["replication_id"].string == id)
    #expect(task["source"] == "a" && task["target"] == "b" && task["continuous"] == true)
    #expect(task["docs_written"] == 4 && task["doc_id"].isNull && task["database"].isNull)
    #expect(client.number(task["source_seq"]) == "4")
    let jobs = try client.get("/_scheduler/jobs")
    #expect(jobs["total_rows"] == 1 && jobs["jobs"][0]["id"].string == id)
    #expect(jobs["jobs"][0]["history"].array?.compactMap { $0["type"].string } == ["started", "added"])
    #expect(try client.get("/_scheduler/jobs/\(id)")["info"]["docs_read"] == 4)
    #expect(try client.get("/_metrics_nosuch")["error"] == "not_found")

    var cancel = body
    cancel["cancel"] = true
    #expect(try client.replicate(cancel).json() == ["ok": true, "_local_id": .string(id)])
    #expect(try client.replicate(cancel).status == 404)
    #expect(try client.get("/_active_tasks") == [])
    #expect(try client.ask("GET", "/_scheduler/jobs/\(id)").status == 404)
    #expect(try client.ask("PUT", "/a/unseen", [:]).status == 201)
    #expect(try client.contents("b")["unseen"] == nil)
    // Another one goes on where it has stopped.
    #expect(try client.replicate(body).status == 202)
    try eventually { try client.contents("b")["unseen"] != nil }
    #expect(try client.replicate(["replication_id": .string(id), "cancel": true]).status == 200)
  }

  @Test("nobody joins a replication that runs with another password, other headers or for another user")
  func otherPassword() throws {
    let client = try ReplicationClient { $0.replicationTargets = NamedTargets() }
    try client.make("a")
    func replicate(_ password: String, _ headers: JSONValue = [:], user: String? = nil) throws -> Response {
      let target: JSONValue = [
        "url": "http://other/b", "headers": headers,
        "auth": ["basic": ["username": "me", "password": .string(password)]],
      ]
      return try client.ask(
        "POST", "/_replicate", ["source": "a", "target": target, "continuous": true], user: user)
    }
    #expect(try replicate("one").status == 202)
    #expect(try replicate("one").status == 202)
    #expect(try replicate("two").status == 409)
    #expect(try replicate("one", ["Authorization": "Bearer x"]).status == 409)
    #expect(try replicate("one", user: "other").status == 409)
    #expect(try client.get("/_scheduler/jobs")["total_rows"] == 1)
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
      #expect(answer.status == 403)
      #expect(try answer.json()["error"] == "forbidden")
    }
    // Databases of the server itself are always reached.
    try client.make("b")
    #expect(try client.replicate(["source": "a", "target": "http://self/b"]).status == 200)
  }

  @Test func aDatabaseThatIsDeletedEndsItsReplication() throws {
    let client = try ReplicationClient()
    try client.make("a", documents: 3)
    try client.make("b")
    #expect(try client.replicate(["source": "a", "target": "b", "continuous": true]).status == 202)
    try eventually { try client.contents("b").count == 3 }
    #expect(try client.ask("DELETE", "/b").status == 200)
    try eventually { try client.get("/_scheduler/jobs")["jobs"][0]["history"][0]["type"] == "crashed" }
    let reason = try client.get("/_scheduler/jobs")["jobs"][0]["history"][0]["reason"].string ?? ""
    #expect(!reason.isEmpty)
    // It is tried again.
    try client.make("b")
    client.timer.advance(by: 31)
    try eventually { try client.contents("b").count == 3 }
  }
}
