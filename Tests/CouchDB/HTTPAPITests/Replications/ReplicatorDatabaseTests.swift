import Fleece
import HTTPAPI
import Storage
import TestSupport
import Testing
import Touchstone

/// Replications that documents of `_replicator` describe.
@Suite struct ReplicatorDatabaseTests {
  @Test(arguments: someEngines) func aDocumentSaysHowItsReplicationHasEnded(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 7)
    try client.make("b")
    // The database is made with its first document.
    #expect(try client.ask("GET", "/_replicator").status == 404)
    let saved = try client.ask("PUT", "/_replicator/one", ["source": "a", "target": "b"], user: "me")
    #expect(saved.status == 201)
    try eventually { try client.state("one") == "completed" }
    #expect(try client.contents("a") == client.contents("b"))
    let document = try client.get("/_replicator/one")
    #expect(document["_replication_state"] == "completed" && document["owner"] == "me")
    #expect(document["_replication_state_time"].string?.hasSuffix("Z") == true)
    #expect(document["_rev"].string?.hasPrefix("2-") == true)
    let statistics = document["_replication_stats"]
    #expect(statistics["docs_written"] == 7)
    #expect(client.number(statistics["checkpointed_source_seq"]) == "7")
    let row = try client.get("/_scheduler/docs")["docs"][0]
    #expect(
      row["doc_id"] == "one" && row["id"].isNull && row["state"] == "completed" && row["error_count"] == 0)
    #expect(row["info"]["docs_written"] == 7 && row["source"] == "a")
    #expect(try client.get("/_scheduler/jobs")["total_rows"] == 0)

    // Without its state it runs again.
    #expect(try client.ask("PUT", "/a/new", [:]).status == 201)
    let again: JSONValue = ["source": "a", "target": "b", "_rev": document["_rev"]]
    #expect(try client.ask("PUT", "/_replicator/one", again).status == 201)
    try eventually { try client.get("/_replicator/one")["_replication_stats"]["docs_written"] == 8 }
    #expect(try client.contents("a") == client.contents("b"))
  }

  @Test(arguments: someEngines) func aContinuousOneFollowsItsDocument(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 3)
    for name in ["b", "c"] { try client.make(name) }
    var body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    let first = try client.ask("PUT", "/_replicator/job", body).json()["rev"]
    try eventually { try client.state("job") == "running" && client.contents("b").count == 3 }
    // While it runs, nothing is written into the document.
    #expect(try client.get("/_replicator/job")["_rev"] == first)
    let job = try client.get("/_scheduler/jobs")["jobs"][0]
    #expect(job["doc_id"] == "job" && job["database"] == "_replicator")
    #expect(try client.get("/_active_tasks")[0]["doc_id"] == "job")
    // Cancelling it would bring it back with the next start.
    #expect(try client.replicate(["replication_id": job["id"], "cancel": true]).status == 403)

    // A change of what doesn't matter lets it run, another target begins another one.
    body["comment"] = "mine"
    body["_rev"] = first
    let second = try client.ask("PUT", "/_replicator/job", body).json()["rev"]
    #expect(try client.ask("PUT", "/a/x", [:]).status == 201)
    try eventually { try client.contents("b")["x"] != nil }
    #expect(try client.get("/_scheduler/jobs")["jobs"][0]["id"] == job["id"])
    body["target"] = "c"
    body["_rev"] = second
    let third = try client.ask("PUT", "/_replicator/job", body).json()["rev"].string ?? ""
    try eventually { try client.contents("c") == client.contents("a") }
    #expect(try client.get("/_scheduler/jobs")["total_rows"] == 1)
    #expect(try client.get("/_scheduler/jobs")["jobs"][0]["id"] != job["id"])

    #expect(try client.ask("DELETE", "/_replicator/job?rev=\(third)").status == 200)
    try eventually { try client.state("job") == nil && client.get("/_scheduler/jobs")["total_rows"] == 0 }
    eventually { client.client.service.runningReplications == 0 }
    #expect(try client.ask("PUT", "/a/y", [:]).status == 201)
    #expect(try client.contents("c")["y"] == nil)
  }

  @Test(arguments: someEngines) func jobsGoOnAfterARestart(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 5)
    for name in ["b", "c"] { try client.make(name) }
    #expect(try client.ask("PUT", "/_replicator/once", ["source": "a", "target": "c"]).status == 201)
    let body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    #expect(try client.ask("PUT", "/_replicator/live", body).status == 201)
    try eventually { try client.state("once") == "completed" && client.contents("b").count == 5 }
    let done = try client.get("/_replicator/once")["_rev"]
    try client.restart()
    #expect(try client.ask("PUT", "/a/later", [:]).status == 201)
    try eventually { try client.contents("b")["later"] != nil }
    // What has ended stays so.
    #expect(try client.get("/_replicator/once")["_rev"] == done)
    #expect(try client.contents("c")["later"] == nil)
    #expect(
      try client.get("/_scheduler/docs")["docs"].array?.compactMap { $0["state"].string } == [
        "running", "completed",
      ])
    #expect(try client.get("/_scheduler/docs?states=completed")["total_rows"] == 1)
    #expect(try client.get("/_scheduler/docs?skip=1&limit=1")["docs"][0]["doc_id"] == "once")
    #expect(try client.ask("GET", "/_scheduler/docs?limit=x").status == 400)
  }

  @Test(arguments: someEngines) func whatWasDoneStaysInTheDocument(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 6)
    try client.make("b")
    let design: JSONValue = [
      "validate_doc_update": "function (n, o, u) { if (n.n % 3 == 0) throw({forbidden: 'no'}); }"
    ]
    #expect(try client.ask("PUT", "/b/_design/v", design).status == 201)
    func expectKept(_ name: String, checked: Int64, written: Int64, failed: Int64) throws {
      func look() throws -> (document: JSONValue, row: JSONValue) {
        (
          try client.get("/_replicator/\(name)"), try client.get("/_scheduler/docs/_replicator/\(name)")
        )
      }
      let (document, row) = try look()
      let statistics = document["_replication_stats"]
      #expect(statistics["revisions_checked"] == .int(checked), "\(name)")
      #expect(statistics["docs_read"] == .int(checked), "\(name)")
      #expect(statistics["docs_written"] == .int(written), "\(name)")
      #expect(statistics["doc_write_failures"] == .int(failed), "\(name)")
      #expect(row["state"] == "completed" && row["info"]["doc_write_failures"] == .int(failed), "\(name)")
      #expect(row["start_time"] == statistics["start_time"] && !row["start_time"].isNull, "\(name)")
      #expect(row["last_updated"] == document["_replication_state_time"], "\(name)")
      try client.restart()
      let after = try look()
      #expect(after.document == document && after.row == row, "\(name)")
      #expect(try client.get("/_scheduler/jobs")["total_rows"] == 0)
      #expect(try client.get("/_active_tasks") == [])
    }
    #expect(try client.ask("PUT", "/_replicator/one", ["source": "a", "target": "b"]).status == 201)
    try eventually { try client.state("one") == "completed" }
    try expectKept("one", checked: 6, written: 4, failed: 2)
    // The numbers go on where the same replication runs again, whichever document describes it.
    for number in 7...9 {
      #expect(try client.ask("PUT", "/a/n\(number)", ["n": JSONValue(number)]).status == 201)
    }
    #expect(try client.ask("PUT", "/_replicator/two", ["source": "a", "target": "b"]).status == 201)
    try eventually { try client.state("two") == "completed" }
    try expectKept("two", checked: 9, written: 6, failed: 3)
    #expect(try client.get("/_replicator/one")["_replication_stats"]["docs_read"] == 6)
    #expect(try client.contents("b").count == 7)
  }

  @Test func whatDescribesNoReplicationIsRefused() throws {
    let client = try ReplicationClient()
    for body: JSONValue in [
      ["a": 1], ["source": "a"], ["source": "not a name", "target": 5],
      ["source": "a", "target": "b", "continuous": 1],
    ] {
      let answer = try client.ask("PUT", "/_replicator/junk", body)
      #expect(answer.status == 403, "\(body)")
      #expect(try answer.json()["error"] == "forbidden")
    }
    let bulk: JSONValue = ["docs": [["_id": "x", "a": 1], ["_id": "_design/x", "a": 1]]]
    let answers = try client.ask("POST", "/_replicator/_bulk_docs", bulk).json()
    #expect(answers[0]["error"] == "forbidden" && answers[1]["ok"] == true)
    // Elsewhere they are documents like others, and so are the members that the server writes.
    try client.make("db")
    #expect(try client.ask("PUT", "/db/x", ["a": 1, "_replication_state": "x"]).status == 201)
    #expect(try client.get("/db/x")["_replication_state"] == "x")
    #expect(try client.ask("PUT", "/db/y", ["_replication_other": "x"]).status == 400)
  }

  @Test(arguments: someEngines) func whatCameAnotherWayFailsForGood(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    #expect(try client.ask("PUT", "/_replicator").status == 201)
    // An app, or another process, has written it.
    let database = try client.folder.openExisting("_replicator")
    defer { try? database.close() }
    try database.save("bad", ["source": "a"])
    try eventually { try client.get("/_replicator/bad")["_replication_state"] == "failed" }
    #expect(try client.get("/_replicator/bad")["_replication_state_reason"] == "Missing replicator database")
    let row = try client.get("/_scheduler/docs/_replicator/bad")
    #expect(
      row["state"] == "failed" && row["info"]["error"] == "Missing replicator database"
        && row["error_count"] == 1)
    try database.save("two", ["source": "http://h/a", "target": "http://h/b"])
    try eventually { try client.state("two") == "failed" }
  }

  @Test func whatFailsIsTriedAgainLaterAndLater() throws {
    let client = try ReplicationClient()
    try client.make("b")
    #expect(try client.ask("PUT", "/_replicator/job", ["source": "late", "target": "b"]).status == 201)
    try eventually { try client.state("job") == "crashing" }
    let row = try client.get("/_scheduler/docs/_replicator/job")
    #expect(row["info"]["error"] == "db_not_found: could not open late" && row["error_count"] == 1)
    #expect(try client.get("/_replicator/job")["_replication_state"].isNull)
    for count in 2...4 {
      client.timer.advance(by: 30 * Double(1 << (count - 2)) + 1)
      try eventually {
        let row = try client.get("/_scheduler/docs/_replicator/job")
        return row["state"] == "crashing" && row["error_count"] == JSONValue(count)
      }
    }
    #expect(client.timer.delays.suffix(4) == [30, 60, 120, 240])
    try client.make("late", documents: 2)
    client.timer.advance(by: 241)
    try eventually { try client.state("job") == "completed" }
    #expect(try client.contents("b").count == 2)
  }

  @Test func twoDocumentsOfOneReplicationTakeTurns() throws {
    let client = try ReplicationClient()
    try client.make("a", documents: 1)
    try client.make("b")
    let body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    let rev = try client.ask("PUT", "/_replicator/first", body).json()["rev"].string ?? ""
    try eventually { try client.state("first") == "running" }
    #expect(try client.ask("PUT", "/_replicator/second", body).status == 201)
    try eventually { try client.state("second") == "error" }
    #expect(
      try client.get("/_scheduler/docs/_replicator/second")["info"]["error"].string?.contains(
        "the document first") == true)
    #expect(try client.ask("DELETE", "/_replicator/first?rev=\(rev)").status == 200)
    try eventually { try client.state("second") == "running" }
  }

  @Test func aDeletedDatabaseEndsItsJobs() throws {
    let client = try ReplicationClient()
    try client.make("a", documents: 1)
    try client.make("b")
    let body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    #expect(try client.ask("PUT", "/_replicator/job", body).status == 201)
    try eventually { try client.state("job") == "running" }
    #expect(try client.ask("DELETE", "/_replicator").status == 200)
    try eventually { try client.get("/_scheduler/jobs")["total_rows"] == 0 }
    #expect(try client.get("/_scheduler/docs")["total_rows"] == 0)
    // A new one is followed too.
    #expect(try client.ask("PUT", "/_replicator/job", body).status == 201)
    try eventually { try client.state("job") == "running" }
  }

  @Test func onlyWhereClientsMakeDatabasesItIsMade() throws {
    try withTemporaryDirectory { directory in
      let folder = try DatabaseFolder(directory, options: options(.lmdb))
      defer { try? folder.close() }
      let client = APIClient(folder: folder, letsClientsMake: false)
      let headers = [("Content-Type", "application/json")]
      let body = Array(#"{"source":"a","target":"b"}"#.utf8)
      let refused = try client.ask("PUT", "/_replicator/x", headers: headers, body: body)
      #expect(refused.status == 403 && refused.text.contains("--create"))
      try folder.open("_replicator", options: options(.lmdb)).close()
      #expect(try client.ask("PUT", "/_replicator/x", headers: headers, body: body).status == 201)
    }
  }

  @Test func oneAfterTheOtherRunsWhereOnlyOneMay() throws {
    let client = try ReplicationClient(.lmdb) { $0.maximumReplications = 1 }
    try client.make("a", documents: 1)
    for name in ["b", "c"] {
      try client.make(name)
      let body: JSONValue = ["source": "a", "target": .string(name), "continuous": true]
      #expect(try client.ask("PUT", "/_replicator/\(name)", body).status == 201)
    }
    try eventually { try client.state("b") == "running" && client.contents("b").count == 1 }
    try eventually { try client.state("c") == "pending" }
    func turns() -> Int { client.timer.delays.count { $0 == 60 } }
    eventually { turns() == 1 }
    // A one-shot replication waits too, and the first one gives way after a minute.
    client.timer.advance(by: 61)
    try eventually { try client.state("c") == "running" && client.contents("c").count == 1 }
    try eventually { try client.state("b") == "pending" }
    eventually { turns() == 2 }
    client.timer.advance(by: 61)
    try eventually { try client.state("b") == "running" }
  }
}
