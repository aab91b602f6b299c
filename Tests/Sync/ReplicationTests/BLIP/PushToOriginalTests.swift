// Pushes to Couchbase Lite and Sync Gateway, which refuse what databases of this library take.

import BLIP
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationBLIP

@Suite("Pushes to the originals") struct PushToOriginalTests {
  private let databases = TestDatabases()

  /// Pushes a document, changes it, and pushes it to another server.
  private func pushChanged(
    _ server: ScriptedServer, depth: Int = 20, edits: Int = 1,
    _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
  ) throws -> (first: String, outcome: Outcome) {
    let local = try databases.open(.lmdb)
    try local.setMaximumTreeDepth(depth)
    try local.save("a", ["n": 0])
    let first = try #require(try local.document("a")).revisionID.description
    let earlier = ScriptedServer()
    try expect(replicate(local, earlier).pushed, equals: ["a"])
    for number in 1...edits { try local.update("a") { $0["n"] = JSONValue(number) } }
    let checkpoint = try #require(earlier.checkpoint.withLock { $0 })
    server.kept.withLock { $0 = checkpoint }
    return (first, try replicate(local, server, change))
  }

  @Test("a conflict between two servers ends, although each keeps its own branch", arguments: [true, false])
  func twoServers(_ saysRevision: Bool) throws {
    let local = try databases.open(.lmdb)
    let servers = [OriginalServer(saysRevision: saysRevision), OriginalServer(saysRevision: saysRevision)]
    for (server, revision) in zip(servers, ["1-aa", "1-bb"]) {
      server.state.withLock { state in
        state.sequence = 1
        state.documents["d"] = OriginalServer.Document(
          parents: [revision: ""], current: revision, isDeleted: false, json: "{\"from\":\"\(revision)\"}",
          sequence: 1)
      }
    }
    let scripted = servers.enumerated().map { $1.scripted(remoteID: "ws://localhost:498\($0)/db/_blipsync") }
    var pushed: [Int] = []
    for round in 0..<6 {
      if round == 3 { try local.update("d") { $0["edited"] = true } }
      for server in scripted {
        let outcome = try replicate(local, server)
        expect(outcome.status.error == nil && outcome.failed.isEmpty)
        pushed.append(outcome.pushed.count)
      }
    }
    expect(pushed[4...5] == [0, 0] && pushed[10...11] == [0, 0], "\(pushed)")
    let contents = servers.map { $0.json("d") }
    expect(contents[0] == contents[1] && contents[0]?["edited"] == true)
    let generation = try #require(try local.document("d")).revisionID.generation
    expect(generation < 12)
  }

  @Test(
    "a revision that comes behind its descendant isn't taken for the server's current one",
    arguments: [false, true])
  func lateAncestor(_ isDeleted: Bool) throws {
    let local = try databases.open(.sqlite)
    var newer: BLIPProperties = ["id": "d", "rev": "2-bb", "sequence": "2", "history": "1-aa"]
    if isDeleted { newer.append("deleted", "1") }
    let first = ScriptedServer.offering(
      #"[[1,"d","1-aa"],[2,"d","2-bb"]]"#,
      [(newer, "{}"), (["id": "d", "rev": "1-aa", "sequence": "1"], "{\"old\":true}")])
    try expect(replicate(local, first) { $0.skipsTombstonesOfFirstPull = false }.status.error == nil)
    try local.save("d", ["n": 3])
    let server = ScriptedServer()
    server.kept.withLock { [first] in $0 = first.checkpoint.withLock { $0 } }
    try expect(replicate(local, server).pushed, equals: ["d"])
    expect(server.requests("proposeChanges").first?.json[0][2], equals: "2-bb")
  }

  @Test("a peer that goes on from what it has taken hasn't crossed with it") func crossings() {
    for isOnItsWay in [false, true] {
      var crossings = Crossings()
      crossings.take("d", "1-aa")
      crossings.pull("d", ["2-bb", "1-aa"], isOnItsWay: isOnItsWay)
      crossings.end("d")
      // Histories end with what is known here.
      crossings.pull("d", ["3-dd", "2-bb"], isOnItsWay: false)
      expect(crossings.takeCrossed().isEmpty)
      crossings.take("d", "4-ee")
      crossings.pull("d", ["4-ff", "3-dd"], isOnItsWay: false)
      expect(crossings.takeCrossed().map(\.revision), equals: ["4-ee"])
    }
  }

  @Test("what has crossed doesn't move a mark back", arguments: someEngines) func marks(_ engine: EngineName)
    throws
  {
    let database = try databases.open(engine)
    try database.apply(PulledRevision(id: "d", history: ["3-cc", "2-bb", "1-aa"], body: ["n": 1]))
    try database.replicatingChanges { store in
      for (revision, movesBack, expected) in [
        ("2-bb", false, "2-bb"), ("1-aa", false, "2-bb"), ("3-cc", false, "3-cc"), ("2-bb", false, "3-cc"),
        ("1-aa", true, "1-aa"), ("9-ff", false, "9-ff"),
      ] {
        try store.mark([("d", revision)], remote: 1, movesBack: movesBack)
        try expect(store.mark(of: "d", remote: 1), equals: expected)
      }
    }
  }

  @Test("a history ends with what the peer has, also if that is pruned", arguments: [20, 5, 1])
  func prunedHistory(_ depth: Int) throws {
    let server = ScriptedServer()
    let (first, outcome) = try pushChanged(server, depth: depth, edits: 30)
    expect(outcome.pushed, equals: ["a"])
    expect(server.requests("proposeChanges").first?.json[0][2].string, equals: first)
    let history = try #require(server.requests("rev").first?["history"]).split(separator: ",").map(
      String.init)
    // As many as the server takes, the last of which it has. LiteCore takes a gap only behind the first 19.
    expect(history.count == 20 && history.last == first)
    expect(
      history.dropLast().compactMap { RevisionID($0)?.generation },
      equals: (12...30).reversed().map { UInt64($0) })
    // A short one is whole.
    let other = ScriptedServer()
    try expect(pushChanged(other, depth: depth, edits: 8).outcome.pushed, equals: ["a"])
    let short = try #require(other.requests("rev").first?["history"]).split(separator: ",").map(String.init)
    expect(short.compactMap { RevisionID($0)?.generation }, equals: (1...8).reversed().map { UInt64($0) })
  }

  @Test("what the peer has is no ancestor if it is on another branch here") func otherBranch() throws {
    let local = try databases.open(.sqlite)
    let first = ScriptedServer.offering(
      #"[[1,"a","4-aa"]]"#, [(["id": "a", "rev": "4-aa", "sequence": "1"], "{}")])
    try expect(replicate(local, first).pulled, equals: ["a"])
    try local.apply(PulledRevision(id: "a", history: ["6-bb", "5-cc"], body: ["n": 1]))
    let server = ScriptedServer()
    server.kept.withLock { $0 = first.checkpoint.withLock { $0 } }
    try expect(replicate(local, server).pushed, equals: ["a"])
    expect(server.requests("proposeChanges").first?.json[0][2].string, equals: "4-aa")
    expect(server.requests("rev").map { $0["history"] }, equals: ["5-cc"])
  }

  /// Couchbase Lite 2.8 doesn't say which revision it has, nor that it has none.
  @Test("a server that was erased gets documents as new ones", arguments: [true, false])
  func erased(_ pulls: Bool) throws {
    let server = ScriptedServer([
      "proposeChanges": { server, request in
        if request.message.json[0][2].string == "" {
          ScriptedServer.usual["proposeChanges"]?(server, request)
        } else {
          request.reply(BLIPReply(["maxHistory": "20"], body: .bytes(Array("[409]".utf8))))
        }
      }
    ])
    let (first, outcome) = try pushChanged(server) {
      server.kept.withLock { $0 = nil }
      $0.direction = pulls ? .pushAndPull : .push
    }
    expect(outcome.pushed == ["a"] && outcome.failed.isEmpty)
    expect(server.requests("proposeChanges").prefix(2).map { $0.json[0][2].string }, equals: [first, ""])
  }

  @Test("what is known of a server is named first, also if it hasn't the checkpoint") func untrusted() throws
  {
    let server = ScriptedServer()
    let (first, outcome) = try pushChanged(server) { _ in server.kept.withLock { $0 = nil } }
    expect(outcome.pushed, equals: ["a"])
    expect(server.requests("proposeChanges").first?.json[0][2].string, equals: first)
  }

  @Test("a server that says that it hasn't the document gets it as a new one") func lost() throws {
    let server = ScriptedServer([
      "proposeChanges": { server, request in
        if request.message.json[0][2].string == "" {
          ScriptedServer.usual["proposeChanges"]?(server, request)
        } else {
          request.reply(BLIPReply(body: .bytes(Array(#"[{"status":409,"rev":""}]"#.utf8))))
        }
      }
    ])
    let (first, outcome) = try pushChanged(server)
    expect(outcome.pushed == ["a"] && outcome.failed.isEmpty)
    expect(server.requests("proposeChanges").prefix(2).map { $0.json[0][2].string }, equals: [first, ""])
  }

  @Test("a conflict that nothing follows is reported at the end", arguments: ["proposeChanges", "rev"])
  func reported(_ profile: String) throws {
    let server = ScriptedServer([
      profile: { _, request in
        if profile == "rev" {
          request.reply(BLIPErrorReply(domain: "HTTP", code: 409))
        } else {
          request.reply(BLIPReply(["maxHistory": "20"], body: .bytes(Array("[409]".utf8))))
        }
      }
    ])
    let (_, outcome) = try pushChanged(server)
    expect(outcome.status.error == nil && outcome.failed.mapValues(\.code) == ["a": 409])
  }

  @Test("a document that can't be changed any more costs itself only") func lastGeneration() throws {
    let local = try databases.open(.sqlite)
    let first = ScriptedServer.offering(
      #"[[1,"a","4-aa"]]"#, [(["id": "a", "rev": "4-aa", "sequence": "1"], "{}")])
    try expect(replicate(local, first).pulled, equals: ["a"])
    try local.apply(PulledRevision(id: "a", history: ["9223372036854775807-aa"], body: ["n": 1]))
    try local.save("b", ["n": 1])
    let server = ScriptedServer([
      "rev": { _, request in
        if request.message.properties["id"] == "a" {
          request.reply(BLIPErrorReply(domain: "HTTP", code: 409))
        } else {
          request.reply()
        }
      }
    ])
    server.kept.withLock { $0 = first.checkpoint.withLock { $0 } }
    let outcome = try replicate(local, server)
    expect(outcome.status.error == nil && outcome.pushed == ["b"])
    expect(outcome.failed.mapValues(\.domain), equals: ["a": .touchstone])
  }

  @Test("what the user may not change is sent once more, after the other revisions") func forbidden() throws {
    let local = try databases.open(.sqlite)
    for id in ["a", "b", "c"] { try local.save(id, ["n": 1]) }
    for refusals in [1, 2] {
      let count = Lock(0)
      let server = ScriptedServer([
        "rev": { _, request in
          let isRefused =
            request.message.properties["id"] == "a"
            && count.withLock { count in
              count += 1
              return count <= refusals
            }
          if isRefused { request.reply(BLIPErrorReply(domain: "HTTP", code: 403)) } else { request.reply() }
        }
      ])
      let outcome = try replicate(local, server) { $0.resetsCheckpoint = true }
      expect(outcome.pushed, equals: (refusals == 1 ? ["a", "b", "c"] : ["b", "c"]))
      expect(outcome.failed.mapValues(\.code), equals: (refusals == 1 ? [:] : ["a": 403]))
      expect(server.requests("rev").map { $0["id"] }, equals: ["a", "b", "c", "a"])
    }
  }

  @Test("a peer that doesn't answer the last checkpoint holds up a stop for two seconds at most")
  func silentAtTheEnd() throws {
    let local = try databases.open(.sqlite)
    try local.save("a", ["n": 1])
    let asked = Lock<[BLIPIncomingRequest]>([])
    let server = ScriptedServer(["setCheckpoint": { _, request in asked.withLock { $0.append(request) } }])
    let timer = ManualTimer()
    var configuration = ReplicatorConfiguration(local, ReplicatorTarget(server.connector))
    configuration.timer = timer
    let replicator = Replicator(configuration)
    replicator.start()
    eventually { !asked.withLock { $0.isEmpty } }
    eventually { timer.delays.contains(60) }
    timer.advance(by: 3)
    expect(replicator.status.activity != .stopped)
    replicator.stop()
    eventually { timer.delays.contains(2) }
    timer.advance(by: 2)
    eventually { replicator.status.activity == .stopped }
  }

  @Test("an error without a text is told by its domain and code") func namelessError() throws {
    let local = try databases.open(.sqlite)
    try local.save("a", ["n": 1])
    let server = ScriptedServer([
      "rev": { _, request in request.reply(BLIPErrorReply(domain: "LiteCore", code: 10, text: "")) }
    ])
    let error = try #require(try replicate(local, server).failed["a"])
    expect(error.message, equals: "the peer answers with the error LiteCore 10")
  }

  /// The server has deleted the document. Before it says that it has taken the edit, the deletion arrives and wins here.
  @Test("what the pull has resolved while a revision was on its way is pushed behind it")
  func overtaken() throws {
    let local = try databases.open(.lmdb)
    try local.apply(PulledRevision(id: "a", history: ["1-aa"], body: ["n": 0]))
    try local.update("a") { $0["n"] = 1 }
    let edited = try #require(try local.document("a")).revisionID.description
    let isFirst = Lock(true)
    let server = ScriptedServer([
      "subChanges": { _, request in request.reply() },
      "rev": { server, request in
        let isFirst = isFirst.withLock { isFirst in
          defer { isFirst = false }
          return isFirst
        }
        guard isFirst else { return _ = request.reply() }
        server.offer(#"[[1,"a","2-dd",1]]"#) { _ in
          let properties: BLIPProperties = [
            "collection": "0", "id": "a", "rev": "2-dd", "sequence": "1", "history": "1-aa", "deleted": "1",
          ]
          server.rev(properties, "{}") { _ in
            request.reply()
            server.offer("[]")
          }
        }
      },
    ])
    let outcome = try replicate(local, server)
    expect(outcome.status.error == nil && outcome.failed.isEmpty)
    let current = try #require(try local.document("a", includeDeleted: true))
    expect(current.isDeleted)
    // What is current here was sent last, on top of what the server had taken.
    let last = try #require(server.requests("rev").last)
    expect(server.requests("proposeChanges").last { $0.json != [] }?.json[0][2].string, equals: edited)
    expect(last["rev"] == current.revisionID.description && last["deleted"] == "1")
  }
}
