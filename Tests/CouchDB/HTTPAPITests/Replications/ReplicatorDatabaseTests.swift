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
    try expect(client.ask("GET", "/_replicator").status, equals: 404)
    let saved = try client.ask("PUT", "/_replicator/one", ["source": "a", "target": "b"], user: "me")
    expect(saved.status, equals: 201)
    try eventually { try client.state("one") == "completed" }
    try expect(client.contents("a"), equals: client.contents("b"))
    let document = try client.get("/_replicator/one")
    expect(document["_replication_state"] == "completed" && document["owner"] == "me")
    expect(document["_replication_state_time"].string?.hasSuffix("Z"), equals: true)
    expect(document["_rev"].string?.hasPrefix("2-"), equals: true)
    let statistics = document["_replication_stats"]
    expect(statistics["docs_written"], equals: 7)
    expect(client.number(statistics["checkpointed_source_seq"]), equals: "7")
    let row = try client.get("/_scheduler/docs")["docs"][0]
    expect(
      row["doc_id"] == "one" && row["id"].isNull && row["state"] == "completed" && row["error_count"] == 0)
    expect(row["info"]["docs_written"] == 7 && row["source"] == "a")
    try expect(client.get("/_scheduler/jobs")["total_rows"], equals: 0)

    // Without its state it runs again.
    try expect(client.ask("PUT", "/a/new", [:]).status, equals: 201)
    let again: JSONValue = ["source": "a", "target": "b", "_rev": document["_rev"]]
    try expect(client.ask("PUT", "/_replicator/one", again).status, equals: 201)
    try eventually { try client.get("/_replicator/one")["_replication_stats"]["docs_written"] == 8 }
    try expect(client.contents("a"), equals: client.contents("b"))
  }

  @Test(arguments: someEngines) func aContinuousOneFollowsItsDocument(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 3)
    for name in ["b", "c"] { try client.make(name) }
    var body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    let first = try client.ask("PUT", "/_replicator/job", body).json()["rev"]
    try eventually { try client.state("job") == "running" && client.contents("b").count == 3 }
    // While it runs, nothing is written into the document.
    try expect(client.get("/_replicator/job")["_rev"], equals: first)
    let job = try client.get("/_scheduler/jobs")["jobs"][0]
    expect(job["doc_id"] == "job" && job["database"] == "_replicator")
    try expect(client.get("/_active_tasks")[0]["doc_id"], equals: "job")
    // Cancelling it would bring it back with the next start.
    try expect(client.replicate(["replication_id": job["id"], "cancel": true]).status, equals: 403)

    // A change of what doesn't matter lets it run, another target begins another one.
    body["comment"] = "mine"
    body["_rev"] = first
    let second = try client.ask("PUT", "/_replicator/job", body).json()["rev"]
    try expect(client.ask("PUT", "/a/x", [:]).status, equals: 201)
    try eventually { try client.contents("b")["x"] != nil }
    try expect(client.get("/_scheduler/jobs")["jobs"][0]["id"], equals: job["id"])
    body["target"] = "c"
    body["_rev"] = second
    let third = try client.ask("PUT", "/_replicator/job", body).json()["rev"].string ?? ""
    try eventually { try client.contents("c") == client.contents("a") }
    try expect(client.get("/_scheduler/jobs")["total_rows"], equals: 1)
    try expect(client.get("/_scheduler/jobs")["jobs"][0]["id"] != job["id"])

    try expect(client.ask("DELETE", "/_replicator/job?rev=\(third)").status, equals: 200)
    try eventually { try client.state("job") == nil && client.get("/_scheduler/jobs")["total_rows"] == 0 }
    eventually { client.client.service.runningReplications == 0 }
    try expect(client.ask("PUT", "/a/y", [:]).status, equals: 201)
    try expect(client.contents("c")["y"] == nil)
  }

  @Test(arguments: someEngines) func jobsGoOnAfterARestart(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 5)
    for name in ["b", "c"] { try client.make(name) }
    try expect(client.ask("PUT", "/_replicator/once", ["source": "a", "target": "c"]).status, equals: 201)
    let body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    try expect(client.ask("PUT", "/_replicator/live", body).status, equals: 201)
    try eventually { try client.state("once") == "completed" && client.contents("b").count == 5 }
    let done = try client.get("/_replicator/once")["_rev"]
    try client.restart()
    try expect(client.ask("PUT", "/a/later", [:]).status, equals: 201)
    try eventually { try client.contents("b")["later"] != nil }
    // What has ended stays so.
    try expect(client.get("/_replicator/once")["_rev"], equals: done)
    try expect(client.contents("c")["later"] == nil)
    try expect(
      client.get("/_scheduler/docs")["docs"].array?.compactMap { $0["state"].string },
      equals: [
        "running", "completed",
      ])
    try expect(client.get("/_scheduler/docs?states=completed")["total_rows"], equals: 1)
    try expect(client.get("/_scheduler/docs?skip=1&limit=1")["docs"][0]["doc_id"], equals: "once")
    try expect(client.ask("GET", "/_scheduler/docs?limit=x").status, equals: 400)
  }

  @Test(arguments: someEngines) func whatWasDoneStaysInTheDocument(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try client.make("a", documents: 6)
    try client.make("b")
    let design: JSONValue = [
      "validate_doc_update": "function (n, o, u) { if (n.n % 3 == 0) throw({forbidden: 'no'}); }"
    ]
    try expect(client.ask("PUT", "/b/_design/v", design).status, equals: 201)
    func expectKept(_ name: String, checked: Int64, written: Int64, failed: Int64) throws {
      func look() throws -> (document: JSONValue, row: JSONValue) {
        (
          try client.get("/_replicator/\(name)"), try client.get("/_scheduler/docs/_replicator/\(name)")
        )
      }
      let (document, row) = try look()
      let statistics = document["_replication_stats"]
      expect(statistics["revisions_checked"], equals: .int(checked), "\(name)")
      expect(statistics["docs_read"], equals: .int(checked), "\(name)")
      expect(statistics["docs_written"], equals: .int(written), "\(name)")
      expect(statistics["doc_write_failures"], equals: .int(failed), "\(name)")
      expect(row["state"] == "completed" && row["info"]["doc_write_failures"] == .int(failed), "\(name)")
      expect(row["start_time"] == statistics["start_time"] && !row["start_time"].isNull, "\(name)")
      expect(row["last_updated"], equals: document["_replication_state_time"], "\(name)")
      try client.restart()
      let after = try look()
      expect(after.document == document && after.row == row, "\(name)")
      try expect(client.get("/_scheduler/jobs")["total_rows"], equals: 0)
      try expect(client.get("/_active_tasks"), equals: [])
    }
    try expect(client.ask("PUT", "/_replicator/one", ["source": "a", "target": "b"]).status, equals: 201)
    try eventually { try client.state("one") == "completed" }
    try expectKept("one", checked: 6, written: 4, failed: 2)
    // The numbers go on where the same replication runs again, whichever document describes it.
    for number in 7...9 {
      try expect(client.ask("PUT", "/a/n\(number)", ["n": JSONValue(number)]).status, equals: 201)
    }
    try expect(client.ask("PUT", "/_replicator/two", ["source": "a", "target": "b"]).status, equals: 201)
    try eventually { try client.state("two") == "completed" }
    try expectKept("two", checked: 9, written: 6, failed: 3)
    try expect(client.get("/_replicator/one")["_replication_stats"]["docs_read"], equals: 6)
    try expect(client.contents("b").count, equals: 7)
  }

  @Test func whatDescribesNoReplicationIsRefused() throws {
    let client = try ReplicationClient()
    for body: JSONValue in [
      ["a": 1], ["source": "a"], ["source": "not a name", "target": 5],
      ["source": "a", "target": "b", "continuous": 1],
    ] {
      let answer = try client.ask("PUT", "/_replicator/junk", body)
      expect(answer.status, equals: 403, "\(body)")
      try expect(answer.json()["error"], equals: "forbidden")
    }
    let bulk: JSONValue = ["docs": [["_id": "x", "a": 1], ["_id": "_design/x", "a": 1]]]
    let answers = try client.ask("POST", "/_replicator/_bulk_docs", bulk).json()
    expect(answers[0]["error"] == "forbidden" && answers[1]["ok"] == true)
    // Elsewhere they are documents like others, and so are the members that the server writes.
    try client.make("db")
    try expect(client.ask("PUT", "/db/x", ["a": 1, "_replication_state": "x"]).status, equals: 201)
    try expect(client.get("/db/x")["_replication_state"], equals: "x")
    try expect(client.ask("PUT", "/db/y", ["_replication_other": "x"]).status, equals: 400)
  }

  @Test(arguments: someEngines) func whatCameAnotherWayFailsForGood(_ engine: EngineName) throws {
    let client = try ReplicationClient(engine)
    try expect(client.ask("PUT", "/_replicator").status, equals: 201)
    // An app, or another process, has written it.
    let database = try client.folder.openExisting("_replicator")
    defer { try? database.close() }
    try database.save("bad", ["source": "a"])
    try eventually { try client.get("/_replicator/bad")["_replication_state"] == "failed" }
    try expect(
      client.get("/_replicator/bad")["_replication_state_reason"], equals: "Missing replicator database")
    let row = try client.get("/_scheduler/docs/_replicator/bad")
    expect(
      row["state"] == "failed" && row["info"]["error"] == "Missing replicator database"
        && row["error_count"] == 1)
    try database.save("two", ["source": "http://h/a", "target": "http://h/b"])
    try eventually { try client.state("two") == "failed" }
  }

  @Test func whatFailsIsTriedAgainLaterAndLater() throws {
    let client = try ReplicationClient()
    try client.make("b")
    try expect(client.ask("PUT", "/_replicator/job", ["source": "late", "target": "b"]).status, equals: 201)
    try eventually { try client.state("job") == "crashing" }
    let row = try client.get("/_scheduler/docs/_replicator/job")
    expect(row["info"]["error"] == "db_not_found: could not open late" && row["error_count"] == 1)
    try expect(client.get("/_replicator/job")["_replication_state"].isNull)
    for count in 2...4 {
      client.timer.advance(by: 30 * Double(1 << (count - 2)) + 1)
      try eventually {
        let row = try client.get("/_scheduler/docs/_replicator/job")
        return row["state"] == "crashing" && row["error_count"] == JSONValue(count)
      }
    }
    // Others are those of the turn.
    expect(client.timer.delays.filter { $0 >= 30 }.suffix(4), equals: [30, 60, 120, 240])
    try client.make("late", documents: 2)
    client.timer.advance(by: 241)
    try eventually { try client.state("job") == "completed" }
    try expect(client.contents("b").count, equals: 2)
  }

  @Test func twoDocumentsOfOneReplicationTakeTurns() throws {
    let client = try ReplicationClient()
    try client.make("a", documents: 1)
    try client.make("b")
    let body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    let rev = try client.ask("PUT", "/_replicator/first", body).json()["rev"].string ?? ""
    try eventually { try client.state("first") == "running" }
    try expect(client.ask("PUT", "/_replicator/second", body).status, equals: 201)
    try eventually { try client.state("second") == "error" }
    try expect(
      client.get("/_scheduler/docs/_replicator/second")["info"]["error"].string?.contains(
        "the document first"), equals: true)
    try expect(client.ask("DELETE", "/_replicator/first?rev=\(rev)").status, equals: 200)
    try eventually { try client.state("second") == "running" }
  }

  /// Whoever asks for a replication that waits for its next try has it tried. Who only waits for it doesn't, whatever ends meanwhile.
  @Test func aDocumentThatWaitsDoesNotHurryTheOther() throws {
    let client = try ReplicationClient()
    try client.make("b")
    let body: JSONValue = ["source": "late", "target": "b"]
    func errors() throws -> JSONValue { try client.get("/_scheduler/docs/_replicator/first")["error_count"] }
    try expect(client.ask("PUT", "/_replicator/first", body).status, equals: 201)
    try eventually { try client.state("first") == "crashing" }
    try expect(client.ask("PUT", "/_replicator/second", body).status, equals: 201)
    try eventually { try client.state("second") == "error" && errors() == 2 }
    try client.make("a", documents: 1)
    for name in ["third", "fourth", "fifth"] {
      try expect(
        client.ask("PUT", "/_replicator/\(name)", ["source": "a", "target": "b", "since_seq": .string(name)])
          .status, equals: 201)
      try eventually { ["completed", "failed"].contains(try client.state(name)) }
    }
    try expect(errors(), equals: 2)
    expect(client.timer.delays.filter { [30, 60, 120].contains($0) }, equals: [30, 60])
  }

  @Test func aDeletedDatabaseEndsItsJobs() throws {
    let client = try ReplicationClient()
    try client.make("a", documents: 1)
    try client.make("b")
    let body: JSONValue = ["source": "a", "target": "b", "continuous": true]
    try expect(client.ask("PUT", "/_replicator/job", body).status, equals: 201)
    try eventually { try client.state("job") == "running" }
    try expect(client.ask("DELETE", "/_replicator").status, equals: 200)
    try eventually { try client.get("/_scheduler/jobs")["total_rows"] == 0 }
    try expect(client.get("/_scheduler/docs")["total_rows"], equals: 0)
    // A new one is followed too.
    try expect(client.ask("PUT", "/_replicator/job", body).status, equals: 201)
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
      expect(refused.status == 403 && refused.text.contains("--create"))
      try folder.open("_replicator", options: options(.lmdb)).close()
      try expect(client.ask("PUT", "/_replicator/x", headers: headers, body: body).status, equals: 201)
    }
  }

  @Test func oneAfterTheOtherRunsWhereOnlyOneMay() throws {
    let client = try ReplicationClient(.lmdb) { $0.maximumReplications = 1 }
    try client.make("a", documents: 1)
    for name in ["b", "c"] {
      try client.make(name)
      let body: JSONValue = ["source": "a", "target": .string(name), "continuous": true]
      try expect(client.ask("PUT", "/_replicator/\(name)", body).status, equals: 201)
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
