import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

@Suite("Checkpoints, options and feeds over HTTP") struct HTTPOptionTests {
  private let databases = TestDatabases()

  private func add(_ couch: CouchServer, _ id: String, _ body: JSONObject = [:]) {
    couch.model.add(
      id, .init(history: ["1-\(id.replacing(" ", with: "x"))"], isDeleted: false, body: body, attachments: [])
    )
  }

  @Test("the names of checkpoints are those of 1.x, one for each direction") func names() throws {
    var id = CheckpointID(remoteID: "http://example.com/db")
    let uuid = [UInt8](repeating: 0xAA, count: 16)
    let plain = try id.legacyNames(uuid)
    expect(plain.push.utf8.count == 40 && plain.push != plain.pull)
    // {"localUUID":"AAAAAAAA-AAAA-AAAA-AAAA-AAAAAAAAAAAA","push":true,"remoteURL":"http://example.com/db"}
    expect(plain.push, equals: "b77d1690fcaed651bcf7b9c389b7c1d382bfce6b")
    id.filter = "a/b"
    let filtered = try id.legacyNames(uuid)
    id.filterParameters = ["x": "1"]
    let parameters = try id.legacyNames(uuid)
    id.documentIDs = ["a"]
    try expect(Set([plain, filtered, parameters, try id.legacyNames(uuid)]).count, equals: 4)
  }

  @Test("a checkpoint is readable for 1.x and has a history as CouchDB's") func content() throws {
    let couch = try CouchServer()
    let local = try databases.open(.lmdb)
    for round in 0..<3 {
      add(couch, "there\(round)")
      try local.save("here\(round)", [:])
      // The end of a run saves one, however long it takes. The first run may do so once more: it begins before the other side
      // has said that there is none.
      try expect(couch.replicate(local) { $0.checkpointDelay = 600 }.status.error == nil)
    }
    let locals = couch.model.state.withLock { $0.locals }
    expect(locals.count, equals: 2)
    for (_, document) in locals {
      let history = document["history"]?.array ?? []
      expect((3...4).contains(history.count) && Set(history.map { $0["session_id"].string }).count == 3)
      expect(history[0]["recorded_seq"], equals: document["source_last_seq"])
      expect(document["session_id"], equals: history[0]["session_id"])
      expect(document["lastSequence"]?.string != nil && document["_rev"]?.string == "0-\(history.count)")
    }
  }

  @Test("a side that was restored goes on at the latest place that both know") func restored() throws {
    let couch = try CouchServer()
    let local = try databases.open(.lmdb)
    var backups: [[String: JSONObject]] = []
    for round in 0..<4 {
      for number in 0..<5 {
        add(couch, "there\(round) \(number)")
        try local.save("here\(round) \(number)", [:])
      }
      try expect(couch.replicate(local).status.error == nil)
      backups.append(couch.model.state.withLock { $0.locals })
    }
    let asked = Lock<[String]>([])
    couch.server.faults.withLock {
      $0 = { request in
        if request.path.hasSuffix("_changes") { asked.withLock { $0.append(request.query["since"] ?? "") } }
        return nil
      }
    }
    let restored = backups[1]
    couch.model.state.withLock { $0.locals = restored }
    try expect(couch.replicate(local).status.error == nil)
    // Each round brought ten revisions there.
    expect(asked.withLock { $0.first?.hasPrefix("20-") }, equals: true, "\(asked.withLock { $0 })")
    asked.withLock { $0 = [] }
    couch.model.state.withLock { $0.locals = [:] }
    try expect(couch.replicate(local).status.error == nil)
    expect(asked.withLock { $0.first }, equals: "0")
    expect(couch.model.complaints, equals: [])
  }

  @Test("document IDs, selectors and filters with parameters choose what is pulled") func chosen() throws {
    let couch = try CouchServer()
    for number in 0..<10 {
      add(couch, "doc\(number)", ["type": number % 2 == 0 ? "even" : "odd", "n": .int(Int64(number))])
    }
    func pull(_ change: (inout ReplicatorConfiguration) -> Void) throws -> [String] {
      try couch.replicate(try databases.open(.lmdb), .pull, change).pulled
    }
    try expect(pull { $0.documentIDs = ["doc3", "doc5", "none"] }, equals: ["doc3", "doc5"])
    try expect(pull { $0.selector = ["type": "odd", "n": 7] }, equals: ["doc7"])
    try expect(
      pull {
        $0.filter = "app/type"
        $0.filterParameters = ["type": "even"]
      }, equals: ["doc0", "doc2", "doc4", "doc6", "doc8"])
    let local = try databases.open(.lmdb)
    for id in ["a", "b", "c"] { try local.save(id, ["private": .bool(id == "b")]) }
    let push = try couch.replicate(local, .push) { configuration in
      configuration.documentIDs = ["a", "b"]
      configuration.pushFilter = { try $0.body()["private"].bool != true }
    }
    expect(push.pushed == ["a"] && couch.model.complaints == [])
  }

  @Test("a checkpoint that another one has saved meanwhile is saved on top of that") func conflict() throws {
    let model = CouchModel("db")
    let local = try databases.open(.lmdb)
    model.add("there", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
    try local.save("here", [:])
    let refused = Lock<Set<String>>([])
    let server = try MiniServer { request in
      // The first save of each direction.
      let isRefused =
        request.method == "PUT" && request.path.hasPrefix("/db/_local/")
        && refused.withLock { $0.insert(request.path).inserted }
      guard isRefused else { return model.answer(request) }
      // The other one's is there now.
      let name = request.segments[2]
      model.state.withLock { $0.locals[name] = ["_id": .string("_local/" + name), "_rev": "0-7"] }
      return MiniAnswer(409, "{\"error\":\"conflict\",\"reason\":\"Document update conflict.\"}")
    }
    let configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
    try expect(run(configuration).status.error == nil)
    let saved = model.state.withLock {
      $0.locals.values.map { Int($0["_rev"]?.string?.dropFirst(2) ?? "") ?? 0 }
    }
    expect(saved.count == 2 && saved.allSatisfy { $0 >= 8 }, "\(saved)")
    server.forget()
    try expect(run(configuration).documents.isEmpty)
    expect(!server.log.contains { $0.contains("_bulk_get") || $0.contains("_revs_diff") })
  }

  @Test("a database whose name needs escapes, and a slash behind it") func escapedName() throws {
    let couch = try CouchServer("x/y+(1)")
    let local = try databases.open(.sqlite)
    add(couch, "there")
    try local.save("here", [:])
    var configuration = ReplicatorConfiguration(
      local, try .httpURL(couch.server.url.replacing("http://", with: "http://me:p%40ss@") + "x%2Fy%2B(1)/"))
    configuration.maximumRetries = 0
    let outcome = try run(configuration)
    expect(outcome.status.error == nil && outcome.pulled == ["there"] && outcome.pushed == ["here"])
    expect(couch.server.log.first == "POST /_session" && couch.model.complaints == [])
  }

  @Test("only current revisions come and go, if that is wanted") func winners() throws {
    let couch = try CouchServer()
    for suffix in ["b", "c"] {
      couch.model.add(
        "there", .init(history: ["2-\(suffix)", "1-a"], isDeleted: false, body: [:], attachments: []))
    }
    let local = try databases.open(.lmdb)
    for suffix in ["b", "c"] {
      try local.apply(
        PulledRevision(id: "here", history: ["2-\(suffix)"], isDeleted: false, body: .value([:])))
    }
    let outcome = try couch.replicate(local) { $0.replicatesOnlyWinners = true }
    expect(outcome.status.error == nil && outcome.failed.isEmpty)
    expect(couch.model.contents["here"], equals: ["2-c {}"])
    try expect(modelContents(local)["there"], equals: ["2-c {}"])
    expect(couch.model.complaints, equals: [])
  }

  @Test("a feed that gives less than was asked for is asked again, and sequences may be arrays") func parts()
    throws
  {
    let local = try databases.open(.lmdb)
    let model = CouchModel("db")
    for number in 0..<7 {
      model.add("doc\(number)", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
    }
    let asked = Lock<[String]>([])
    let server = try MiniServer { request in
      guard request.path == "/db/_changes" else { return model.answer(request) }
      let since = request.query["since"] ?? ""
      asked.withLock { $0.append(since) }
      let start = since == "0" ? 0 : Int(since.dropFirst().prefix { $0 != "," }) ?? 99
      let rows = (start..<min(start + 3, 7)).map { number in
        "{\"seq\":[\(number + 1),\"g1A\"],\"id\":\"doc\(number)\",\"changes\":[{\"rev\":\"1-a\"}]}"
      }
      let last = min(start + 3, 7)
      return MiniAnswer(
        200,
        "{\"results\":[\(rows.joined(separator: ","))],\"last_seq\":[\(last),\"g1A\"],\"pending\":\(7 - last)}"
      )
    }
    var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db/"))
    configuration.direction = .pull
    let outcome = try run(configuration)
    expect(outcome.status.error == nil && outcome.pulled.count == 7)
    expect(asked.withLock { $0 }, equals: ["0", "[3,\"g1A\"]", "[6,\"g1A\"]"])
    try expect(run(configuration).documents.isEmpty)
    expect(asked.withLock { $0.last }, equals: "[7,\"g1A\"]")
  }

  @Test("continuous replications carry changes of both sides, also after the server was gone")
  func continuous() throws {
    let couch = try CouchServer()
    let local = try databases.open(.sqlite)
    add(couch, "first")
    let timer = ManualTimer()
    var configuration = ReplicatorConfiguration(local, try .httpURL(couch.server.url + "db"))
    configuration.isContinuous = true
    configuration.timer = timer
    configuration.connection.firstPause = 0.001
    let replicator = Replicator(configuration)
    replicator.start()
    eventually { (try? local.document("first")) != .some(nil) && replicator.status.activity == .idle }
    for round in 0..<3 {
      add(couch, "there\(round)")
      try local.save("here\(round)", [:])
      eventually {
        (try? local.document("there\(round)")) != .some(nil) && couch.model.contents["here\(round)"] != nil
      }
    }
    // What the server gets from here comes back in its feed, and isn't asked for.
    expect(couch.server.log.filter { $0.contains("_bulk_get") }.count, equals: 4)
    couch.server.faults.withLock { $0 = { _ in .unavailable } }
    add(couch, "wakes the feed")
    eventually { replicator.status.activity == .offline }
    try local.save("made offline", [:])
    couch.server.faults.withLock { $0 = { _ in nil } }
    timer.advance(by: 2)
    eventually {
      (try? local.document("wakes the feed")) != .some(nil) && couch.model.contents["made offline"] != nil
    }
    let here = try local.document("wakes the feed") != nil
    expect(
      here && couch.model.contents["made offline"] != nil,
      "\(replicator.status) \(couch.server.log.suffix(12))")
    couch.model.state.withLock { $0.isClosed = true }
    replicator.stop()
    eventually { replicator.status.activity == .stopped }
    expect(couch.model.complaints, equals: [])
  }

  @Test("the database is made there if that is wanted") func creating() throws {
    let couch = try CouchServer(exists: false)
    let local = try databases.open(.lmdb)
    try local.save("a", [:])
    try expect(couch.replicate(local).status.error?.code, equals: 404)
    let outcome = try couch.replicate(local) { $0.connection.createsDatabase = true }
    expect(outcome.pushed == ["a"] && couch.model.complaints == [])
  }

  @Test(
    "URLs name the database, the user and where to log in",
    arguments: [
      ("http://h/db", "http://h:80/db", nil, nil, "/_session"),
      ("https://Me%40x:p%3Aw@H:5984/a/db%2Fb/", "https://h:5984/a/db%2Fb", "Me@x", "p:w", "/a/_session"),
      ("HTTP://me@[::1]:1/db", "http://[::1]:1/db", "me", nil, "/_session"),
    ] as [(String, String, String?, String?, String)])
  func urls(_ text: String, _ id: String, _ name: String?, _ password: String?, _ session: String) throws {
    let url = try #require(HTTPDatabaseURL(text))
    expect(url.remoteID == id && url.name == name && url.password?.value == password)
    expect(url.session?.target, equals: session)
    expect(url.at("_x", [("a b", "c&d")])?.target.hasSuffix("/_x?a b=c%26d") == nil)
  }

  @Test(
    "other URLs are refused",
    arguments: [
      "", "db", "http://h", "http://h/", "http://h/db?x=1", "ws://h/db", "http://@h/db", "http://a%zz@h/db",
    ])
  func otherURLs(_ text: String) { expect(HTTPDatabaseURL(text) == nil) }
}
