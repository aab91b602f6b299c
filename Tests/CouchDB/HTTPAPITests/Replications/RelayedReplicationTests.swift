import Fleece
import Foundation
import RawHTTP
import Storage
import StorageConformance
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI
@testable import TouchstoneServer

/// Replications between two other servers, by way of a third one: `_replicate` and `_replicator`, over
/// sockets.
@Suite("Replications between two other servers", .serialized) struct RelayedReplicationTests {
  /// A listener over a folder.
  private final class Served {
    let directory = TemporaryDirectory()
    let folder: DatabaseFolder
    let listener: SyncListener

    init(_ engine: EngineName = .lmdb, _ change: (inout SyncListenerConfiguration) -> Void = { _ in }) throws
    {
      folder = try DatabaseFolder(directory.path, options: try options(engine))
      var configuration = SyncListenerConfiguration(folder: folder)
      configuration.letsClientsMakeDatabases = true
      configuration.servesHTTP = true
      change(&configuration)
      listener = SyncListener(configuration)
      try listener.start()
    }

    deinit {
      listener.stop(graceSeconds: 0)
      try? folder.close()
    }

    var address: String { "127.0.0.1:\(listener.port ?? 0)" }

    func url(_ name: String, login: String = "") -> String { "http://\(login)\(address)/\(name)" }

    func ask(_ method: String, _ target: String, _ body: JSONValue? = nil, headers: [String] = []) throws
      -> RawClient.Answer
    {
      try RawClient(UInt16(listener.port ?? 0)).ask(
        method, target, body?.jsonText() ?? [], headers: headers)
    }

    func get(_ target: String) throws -> JSONValue { try ask("GET", target).json() }

    /// Makes a database with documents `a0`, `a1`, …
    func make(_ name: String, documents: Int = 0) throws {
      try expect(ask("PUT", "/" + name).status, equals: 201)
      guard documents > 0 else { return }
      let docs = (0..<documents).map { JSONValue(["_id": .string("a\($0)"), "n": JSONValue($0)]) }
      try expect(ask("POST", "/\(name)/_bulk_docs", ["docs": .array(docs)]).status, equals: 201)
    }

    /// Writes a revision that was made elsewhere.
    func write(_ name: String, _ id: String, _ history: [String], _ body: JSONObject) throws {
      var document = body
      document["_id"] = .string(id)
      document["_revisions"] = [
        "start": JSONValue(history.count),
        "ids": .array(history.map { .string(String($0.drop { $0 != "-" }.dropFirst())) }),
      ]
      document["_rev"] = .string(history[0])
      let answer = try ask("POST", "/\(name)/_bulk_docs", ["new_edits": false, "docs": [.object(document)]])
      try expect(answer.status == 201 && answer.json() == [], "\(answer.text)")
    }

    /// All leaves of all documents with their histories, bodies and attachments, without the digests and
    /// places.
    func contents(_ name: String) throws -> [String: [String]] {
      var contents: [String: [String]] = [:]
      for row in try get("/\(name)/_changes?style=all_docs")["results"].array ?? [] {
        let id = row["id"].string ?? ""
        let path = id.replacingOccurrences(of: " ", with: "%20")
        contents[id] = try (row["changes"].array ?? []).map { change in
          let revision = change["rev"].string ?? ""
          let target = "/\(name)/\(path)?rev=\(revision)&revs=true&attachments=true"
          return try ask("GET", target, headers: ["Accept: application/json"]).json().canonicalJSON()
        }
      }
      return contents
    }
  }

  /// The server that replicates, the source and the target.
  private static func three(_ engine: EngineName = .lmdb) throws -> (Served, Served, Served) {
    (try Served(), try Served(engine), try Served(engine))
  }

  /// Conflicts, tombstones, a design document, attachments.
  private func fill(_ source: Served) throws {
    try source.make("db", documents: 30)
    try source.write("db", "branched", ["1-a"], ["v": 1])
    for suffix in ["b", "c", "d"] {
      try source.write(
        "db", "branched", ["2-\(suffix)", "1-a"], ["v": .string(suffix), "_deleted": .bool(suffix == "d")])
    }
    try source.write("db", "_design/d", ["1-a"], ["views": ["v": ["map": "function (doc) { emit(1); }"]]])
    let rev = try source.get("/db/a3")["_rev"].string ?? ""
    try expect(source.ask("DELETE", "/db/a3?rev=\(rev)").status, equals: 200)
    let text = Data(String(repeating: "text ", count: 2_000).utf8).base64EncodedString()
    let binary = Data((0..<600_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) })
      .base64EncodedString()
    let attachments: JSONValue = [
      "b/ü": ["content_type": "text/plain", "data": .string(text)],
      "a": ["content_type": "image/png", "data": .string(binary)],
      "empty": ["content_type": "x/y", "data": ""],
    ]
    let first = try source.ask("PUT", "/db/with%20files", ["_attachments": attachments]).json()
    var changed = try source.get("/db/with%20files")
    changed["changed"] = true
    expect(first["ok"], equals: true)
    try expect(source.ask("PUT", "/db/with%20files", changed).status, equals: 201)
  }

  @Test(
    "a server copies all between two others, tells what it did, and goes on there", arguments: someEngines)
  func all(_ engine: EngineName) throws {
    let (server, source, target) = try Self.three(engine)
    try fill(source)
    let body: JSONValue = [
      "source": .string(source.url("db")), "target": ["url": .string(target.url("copy"))],
      "create_target": true,
    ]
    var withoutMaking = body
    withoutMaking["create_target"] = false
    let missing = try server.ask("POST", "/_replicate", withoutMaking)
    try expect(
      missing.json(),
      equals: ["error": "db_not_found", "reason": .string("could not open \(target.url("copy"))/")])
    let first = try server.ask("POST", "/_replicate", body)
    expect(first.status, equals: 200, "\(first.text)")
    let answer = try first.json()
    expect(answer["ok"] == true && answer["replication_id_version"] == 4 && answer["no_changes"].isNull)
    try expect(answer["source_last_seq"], equals: (try source.get("/db")["update_seq"]))
    let run = answer["history"][0]
    for name in ["missing_checked", "missing_found", "docs_read", "docs_written"] {
      expect(run[name], equals: 35, "\(name)")
    }
    expect(run["doc_write_failures"] == 0 && run["start_last_seq"] == 0)
    expect(run["recorded_seq"] == answer["source_last_seq"] && run["session_id"] == answer["session_id"])
    try expect(source.contents("db"), equals: (try target.contents("copy")))
    // Nothing is here, and both sides have the record.
    try expect(server.get("/_all_dbs"), equals: ["_replicator", "_users"])
    for (side, name) in [(source, "db"), (target, "copy")] {
      let record = try side.get("/\(name)/_local_docs?include_docs=true")["rows"][0]["doc"]
      expect(record["session_id"], equals: answer["session_id"])
      expect(record["history"], equals: answer["history"])
    }
    let again = try server.ask("POST", "/_replicate", body).json()
    expect(again["no_changes"] == true && again["history"] == answer["history"], "\(again)")

    try expect(source.ask("PUT", "/db/new", ["n": 1]).status, equals: 201)
    // Another server goes on with the same record.
    let other = try Served()
    let third = try other.ask("POST", "/_replicate", body).json()
    expect(third["history"].array?.count == 2 && third["history"][1] == run, "\(third)")
    expect(third["history"][0]["start_last_seq"], equals: answer["source_last_seq"])
    expect(third["history"][0]["docs_written"], equals: 36)
    try expect(source.contents("db"), equals: (try target.contents("copy")))

    // The other way.
    try expect(target.ask("PUT", "/copy/back", ["n": 2]).status, equals: 201)
    let back: JSONValue = ["source": .string(target.url("copy")), "target": .string(source.url("db"))]
    let returned = try server.ask("POST", "/_replicate", back).json()["history"][0]
    expect(returned["docs_written"] == 1 && returned["missing_checked"] == 37, "\(returned)")
    try expect(source.contents("db"), equals: (try target.contents("copy")))
  }

  @Test("only what is chosen goes") func chosen() throws {
    let (server, source, target) = try Self.three()
    try source.make("db", documents: 10)
    let design: JSONValue = [
      "filters": ["more": "function (doc, req) { return doc.n >= Number(req.query.than); }"],
      "views": ["odd": ["map": "function (doc) { if (doc.n % 2) emit(doc.n); }"]],
    ]
    try expect(source.ask("PUT", "/db/_design/f", design).status, equals: 201)
    let sequence = try source.get("/db/_changes?limit=8")["last_seq"]
    for (number, (options, wanted))
      in ([
        (["doc_ids": ["a3", "a1", "nosuch"]], ["a1", "a3"]),
        (["selector": ["n": ["$gte": 8]]], ["a8", "a9"]),
        (["filter": "f/more", "query_params": ["than": 7]], ["a7", "a8", "a9"]),
        (["filter": "_view", "query_params": ["view": "f/odd"]], ["a1", "a3", "a5", "a7", "a9"]),
        (["filter": "_design"], ["_design/f"]), (["since_seq": sequence], ["_design/f", "a8", "a9"]),
        (["doc_ids": ["none"]], []), (["filter": "f/more", "query_params": ["than": 99]], []),
      ] as [(JSONValue, [String])]).enumerated()
    {
      try target.make("t\(number)")
      var body = options
      body["source"] = .string(source.url("db"))
      body["target"] = .string(target.url("t\(number)"))
      let answer = try server.ask("POST", "/_replicate", body)
      expect(answer.status, equals: 200, "\(options): \(answer.text)")
      try expect(target.contents("t\(number)").keys.sorted(), equals: wanted, "\(options)")
      if options["doc_ids"].isNull == false, !wanted.isEmpty {
        try expect(answer.json()["docs_written"], equals: JSONValue(wanted.count))
      }
      try expect(
        server.ask("POST", "/_replicate", body).json()["no_changes"], equals: true, "\(options)")
    }
    try source.write("db", "branched", ["1-a"], [:])
    try source.write("db", "branched", ["1-b"], [:])
    try target.make("winners")
    let winners: JSONValue = [
      "source": .string(source.url("db")), "target": .string(target.url("winners")),
      "winning_revs_only": true, "use_checkpoints": false,
    ]
    try expect(
      server.ask("POST", "/_replicate", winners).json(), equals: ["ok": true, "use_checkpoints": false])
    try expect(target.contents("winners")["branched"]?.count, equals: 1)
    try expect(target.get("/winners/_local_docs")["rows"], equals: [])
    let none = try server.ask(
      "POST", "/_replicate",
      ["source": .string(source.url("db")), "target": .string(target.url("t0")), "filter": "no/such"])
    expect(none.status, equals: 500, "\(none.text)")
  }

  @Test("a target is made with the options that are given", arguments: [true, false])
  func making(sourceIsHere: Bool) throws {
    let (server, source, target) = try Self.three()
    let from = sourceIsHere ? server : source
    try from.make("db", documents: 2)
    try expect(from.ask("PUT", "/db/p:1", ["n": 1]).status, equals: 201)
    let body: JSONValue = [
      "source": .string(sourceIsHere ? "db" : source.url("db")), "target": .string(target.url("new")),
      "create_target": true, "create_target_params": ["partitioned": true, "q": 2, "x&y=": "z"],
    ]
    let answer = try server.ask("POST", "/_replicate", body)
    expect(answer.status, equals: 200, "\(answer.text)")
    try expect(target.get("/new")["props"], equals: ["partitioned": true])
    // Documents without a partition are refused.
    let run = try answer.json()["history"][0]
    expect(run["docs_written"] == 1 && run["doc_write_failures"] == 2, "\(run)")
    try expect(target.contents("new").keys.sorted(), equals: ["p:1"])
  }

  @Test("what the target refuses is counted, and the rest goes on") func refused() throws {
    let (server, source, target) = try Self.three()
    try source.make("db", documents: 6)
    try target.make("db")
    let design: JSONValue = [
      "validate_doc_update": "function (n, o, u) { if (n.n % 2) throw({forbidden: 'odd'}); }"
    ]
    try expect(target.ask("PUT", "/db/_design/v", design).status, equals: 201)
    let body: JSONValue = ["source": .string(source.url("db")), "target": .string(target.url("db"))]
    let run = try server.ask("POST", "/_replicate", body).json()["history"][0]
    expect(run["docs_written"] == 3 && run["doc_write_failures"] == 3 && run["docs_read"] == 6, "\(run)")
    try expect(Set(try target.contents("db").keys), equals: ["a0", "a2", "a4", "_design/v"])
    try expect(server.ask("POST", "/_replicate", body).json()["no_changes"], equals: true)
  }

  @Test("each side has a login of its own, and nobody sees it") func logins() throws {
    func checked(_ password: String) throws -> Served {
      try Served { $0.authenticator = .basic { $0 == "me" && $1 == password } }
    }
    let (server, source, target) = (try Served(), try checked("from"), try checked("to"))
    func header(_ password: String) -> String {
      "Authorization: Basic " + Data("me:\(password)".utf8).base64EncodedString()
    }
    try expect(source.ask("PUT", "/db", headers: [header("from")]).status, equals: 201)
    try expect(source.ask("PUT", "/db/a", ["n": 1], headers: [header("from")]).status, equals: 201)
    try expect(target.ask("PUT", "/db", headers: [header("to")]).status, equals: 201)
    func replicate(_ from: String, _ to: String) throws -> RawClient.Answer {
      try server.ask(
        "POST", "/_replicate",
        [
          "source": .string(source.url("db", login: "me:\(from)@")),
          "target": [
            "url": .string(target.url("db")), "auth": ["basic": ["username": "me", "password": .string(to)]],
          ],
        ])
    }
    for (from, to, side) in [("wrong", "to", source), ("from", "wrong", target)] {
      let answer = try replicate(from, to)
      expect(answer.status, equals: 401)
      let named = try answer.json()["reason"].string ?? ""
      expect(named.contains(side.url("db")) && !answer.text.contains("wrong"), "\(answer.text)")
    }
    try expect(replicate("from", "to").json()["history"][0]["docs_written"], equals: 1)
    let lasting: JSONValue = [
      "source": .string(source.url("db", login: "me:from@")),
      "target": .string(target.url("db", login: "me:to@")), "continuous": true,
    ]
    try expect(server.ask("PUT", "/_replicator/x", lasting).status, equals: 201)
    eventually { (try? server.get("/_scheduler/docs/_replicator/x")["state"]) == "running" }
    for path in ["/_scheduler/docs", "/_scheduler/jobs", "/_active_tasks"] {
      let text = try server.ask("GET", path).text
      expect(text.contains(source.url("db")) && !text.contains("me:"), "\(path): \(text)")
    }
  }

  @Test("replications that last follow the source until they are ended") func lasting() throws {
    let (server, source, target) = try Self.three()
    try source.make("db", documents: 5)
    for name in ["one", "two"] { try target.make(name) }
    var body: JSONValue = [
      "source": .string(source.url("db")), "target": .string(target.url("one")), "continuous": true,
      "checkpoint_interval": 100,
    ]
    let id = try server.ask("POST", "/_replicate", body).json()["_local_id"].string ?? ""
    expect(id.hasSuffix("+continuous"))
    body["target"] = .string(target.url("two"))
    try expect(server.ask("PUT", "/_replicator/two", body).status, equals: 201)
    eventually { (try? target.contents("one").count == 5 && target.contents("two").count == 5) ?? false }
    try expect(source.ask("PUT", "/db/late", ["n": 1]).status, equals: 201)
    eventually { (try? target.contents("one").count == 6 && target.contents("two").count == 6) ?? false }
    eventually {
      let tasks = try? server.get("/_active_tasks").array
      return tasks?.count == 2
        && tasks?.allSatisfy {
          $0["docs_written"] == 6 && $0["type"] == "replication" && $0["process_status"] == "waiting"
            && $0["checkpointed_source_seq"].string?.hasPrefix("6-") == true
        } == true
    }
    let row = try server.get("/_scheduler/docs/_replicator/two")
    expect(row["state"] == "running" && row["source"] == .string(source.url("db") + "/"))
    expect(row["info"]["docs_written"] == 6 && row["info"]["doc_write_failures"] == 0, "\(row)")
    try expect(
      server.ask("POST", "/_replicate", ["replication_id": .string(id), "cancel": true]).status, equals: 200)
    let document = try server.get("/_replicator/two")["_rev"].string ?? ""
    try expect(server.ask("DELETE", "/_replicator/two?rev=\(document)").status, equals: 200)
    eventually { (try? server.get("/_active_tasks")) == [] }
    // One that ends says so in its document.
    body["continuous"] = false
    try expect(server.ask("PUT", "/_replicator/once", body).status, equals: 201)
    eventually { (try? server.get("/_replicator/once")["_replication_state"]) == "completed" }
    try expect(server.get("/_replicator/once")["_replication_stats"]["docs_written"], equals: 6)
  }

  @Test("both sides have to be among the servers that may be reached") func hosts() throws {
    let (source, target) = (try Served(), try Served())
    try source.make("db", documents: 2)
    try target.make("db")
    let body: JSONValue = ["source": .string(source.url("db")), "target": .string(target.url("db"))]
    for (hosts, status) in [
      ([source.address], 403), ([target.address], 403), ([source.address, target.address], 200),
    ] {
      let server = try Served { $0.replicationHosts = .hosts(hosts) }
      try expect(server.ask("POST", "/_replicate", body).status, equals: status, "\(hosts)")
    }
    let server = try Served { $0.replicationHosts = SyncListenerConfiguration.ReplicationHosts.none }
    try expect(server.ask("POST", "/_replicate", body).status, equals: 403)
    try expect(target.contents("db").count, equals: 2)
  }

  @Test("WebSockets and a server's database to itself are refused") func refusals() throws {
    let (server, source, target) = try Self.three()
    try source.make("db", documents: 2)
    let plain = source.url("db")
    let socket = "ws://\(target.address)/db"
    for (from, to, status) in [(plain, socket, 501), (socket, plain, 501), (plain, plain + "/", 400)] {
      let answer = try server.ask(
        "POST", "/_replicate", ["source": .string(from), "target": .string(to)])
      expect(answer.status, equals: status, "\(from) \(to): \(answer.text)")
      if status == 501 { expect(answer.text.contains(socket), "\(answer.text)") }
    }
    // A document that can't ever run has failed.
    let lasting: JSONValue = ["source": .string(plain), "target": .string(socket), "continuous": true]
    try expect(server.ask("PUT", "/_replicator/x", lasting).status, equals: 201)
    eventually { (try? server.get("/_replicator/x")["_replication_state"]) == "failed" }
  }

  /// The server that replicates is a process of its own, and is killed while the source changes.
  @Test("a killed server goes on where it was") func kills() throws {
    let directory = TemporaryDirectory()
    let (source, target) = (try Served(), try Served())
    try source.make("db", documents: 300)
    try target.make("db")
    var server = try ServingChild(.lmdb, directory.path)
    let body: JSONValue = [
      "source": .string(source.url("db")), "target": .string(target.url("db")), "continuous": true,
      "checkpoint_interval": 100,
    ]
    try expect(server.client().ask("PUT", "/_replicator/x", body.jsonText()).status, equals: 201)
    var random = SeededGenerator(seed: testSeed)
    for round in 0..<times(4, sanitized: 3, long: 40) {
      for number in 0..<100 {
        let attachment: JSONValue = [
          "x": ["content_type": "x/y", "data": .string(String(repeating: "AAAA", count: 1 + number * 20))]
        ]
        let content: JSONValue = number % 5 == 0 ? ["_attachments": attachment] : ["n": JSONValue(number)]
        try expect(source.ask("PUT", "/db/r\(round)n\(number)", content).status, equals: 201)
      }
      usleep(UInt32(random.below(200_000)))
      try server.kill()
      server = try ServingChild(.lmdb, directory.path)
    }
    eventually { (try? target.get("/db")["doc_count"] == source.get("/db")["doc_count"]) ?? false }
    try expect(source.contents("db"), equals: (try target.contents("db")), "TOUCHSTONE_SEED=\(testSeed)")
    // What was recorded wasn't asked about again.
    eventually {
      let rows = try? target.get("/db/_local_docs?include_docs=true")["rows"][0]["doc"]
      let sequence = try? source.get("/db")["update_seq"]
      return rows?["source_last_seq"] == sequence && (rows?["history"].array?.count ?? 0) > 1
    }
  }

  @Test("attachments pass through in bounded memory") func memory() throws {
    let megabytes = times(96, sanitized: 96, long: 512)
    let directories = (0..<3).map { _ in TemporaryDirectory() }
    let servers = try directories.map { try ServingChild(.lmdb, $0.path) }
    for server in servers.dropFirst() { try expect(server.client().ask("PUT", "/db").status, equals: 201) }
    let client = try servers[1].client()
    try client.send(
      "PUT /db/doc/file HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
        + "Content-Length: \(megabytes << 20)\r\n\r\n")
    for number in 0..<megabytes {
      try client.send([UInt8](repeating: UInt8(truncatingIfNeeded: number &* 7), count: 1 << 20))
    }
    try expect(client.answer().status, equals: 201)
    let most = Lock(0)
    let isDone = Lock(false)
    let watching = CountingSemaphore()
    let watched = servers[0]
    Thread.detachNewThread {
      while !isDone.withLock({ $0 }) {
        let bytes = watched.anonymousBytes
        most.withLock { $0 = max($0, bytes) }
        usleep(2_000)
      }
      watching.signal()
    }
    let body: JSONValue = [
      "source": .string("http://127.0.0.1:\(servers[1].port)/db"),
      "target": .string("http://127.0.0.1:\(servers[2].port)/db"),
    ]
    let answer = try servers[0].client().ask("POST", "/_replicate", body.jsonText())
    isDone.withLock { $0 = true }
    watching.wait()
    let bytes = most.withLock { $0 }
    print("\(megabytes) MiB in \(bytes >> 20) MiB of memory")
    expect(answer.status, equals: 200, "\(answer.text)")
    if !isSanitized { expect(bytes < 64 << 20) }
    let head = try servers[2].client().ask("HEAD", "/db/doc/file")
    expect(head.status, equals: 200)
    let part = try servers[2].client().ask("GET", "/db/doc/file", headers: ["Range: bytes=-1048576"])
    expect(
      part.status == 206 && part.body.allSatisfy { $0 == UInt8(truncatingIfNeeded: (megabytes - 1) &* 7) })
  }
}

/// What both sides of a relay have recorded, compared.
@Suite struct CommonRecordTests {
  private func run(_ session: String, _ sequence: String, before: String? = nil) -> JSONValue {
    var run: JSONValue = [
      "session_id": .string(session), "recorded_seq": .string(sequence), "docs_written": 3,
    ]
    if let before { run["recorded_seq_before"] = .string(before) }
    return run
  }

  private func record(_ runs: JSONValue...) -> JSONValue {
    [
      "session_id": runs[0]["session_id"], "source_last_seq": runs[0]["recorded_seq"],
      "replication_id_version": 4, "history": .array(runs),
    ]
  }

  private func common(_ source: JSONValue, _ target: JSONValue) -> JSONValue? {
    ReplicationRecord(common: source, target)?.lastSequence
  }

  @Test func theLatestPlaceThatBothKnowCounts() {
    let (a, b, c) = (run("a", "10-x"), run("b", "20-x", before: "15-x"), run("c", "30-x", before: "25-x"))
    expect(common(record(b, a), record(b, a)), equals: "20-x")
    expect(ReplicationRecord(common: record(b, a), record(b, a))?.counts.written, equals: 3)
    // One side lacks the last run, or runs.
    expect(common(record(c, b, a), record(b, a)), equals: "20-x")
    expect(common(record(a), record(c, b, a)), equals: "10-x")
    expect(ReplicationRecord(common: record(c, b, a), record(a))?.runs.count, equals: 1)
    // A server was killed between both writes of a run.
    expect(common(record(b, a), record(run("b", "15-x", before: "12-x"), a)), equals: "15-x")
    expect(common(record(run("b", "15-x", before: "12-x"), a), record(b, a)), equals: "15-x")
    // The same run has recorded more since, and more than once.
    expect(common(record(b, a), record(run("b", "12-x"), a)), equals: "10-x")
    // A side that was restored counts its sequences once more.
    expect(common(record(run("d", "20-x"), a), record(b, a)), equals: "10-x")
  }

  @Test func whatOneSideDoesNotKnowCountsForNothing() {
    let (a, b) = (run("a", "10-x"), run("b", "20-x"))
    expect(common(record(a), record(b)) == nil)
    for other: JSONValue in [
      [:], .null, ["history": []], ["session_id": "a", "source_last_seq": "10-x"], [1],
    ] {
      expect(common(record(a), other) == nil && common(other, record(a)) == nil, "\(other)")
    }
  }
}
