// What Couchbase Lite and Sync Gateway send beside what databases of this library send each other.

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

@Suite("Messages of the originals") struct OriginalPeerTests {
  private let databases = TestDatabases()

  @Test(
    "that all changes were sent is said by an empty list, by null, and by nothing",
    arguments: ["[]", "null", ""])
  func caughtUp(_ text: String) throws {
    let local = try databases.open(.sqlite)
    let outcome = try replicate(
      local,
      ScriptedServer.offering(
        #"[[1,"a","1-aa"]]"#, caughtUp: text, [(["id": "a", "rev": "1-aa", "sequence": "1"], "{}")])
    )
    expect(outcome.status.error == nil && outcome.pulled == ["a"])
    // The passive side takes them too.
    let client = ScriptedClient(local)
    for profile in ["changes", "proposeChanges"] {
      try expect(client.error(profile, [:], text), equals: "none")
    }
  }

  @Test("a null answer to proposed changes asks for all of them") func nullAnswer() throws {
    let local = try databases.open(.sqlite)
    try local.save("a", ["n": 1])
    let server = ScriptedServer([
      "proposeChanges": { _, request in request.reply(BLIPReply(body: .bytes(Array("null".utf8)))) }
    ])
    try expect(replicate(local, server).pushed, equals: ["a"])
  }

  @Test("a revision that the client couldn't send changes nothing") func unsent() throws {
    let database = try databases.open(.sqlite)
    try database.save("a", ["v": "precious"])
    let current = try #require(try database.document("a")).revisionID.description
    let client = ScriptedClient(database)
    let reply = try client.ask(
      "rev", ["id": "a", "rev": "2-abcd", "sequence": "1", "history": current, "error": "404"])
    expect(reply.error == nil)
    try expect(database.document("a")?.revisionID.description, equals: current)
  }

  @Test(
    "a removed document is purged, or kept if that is wanted, and the pull goes on behind it",
    arguments: [true, false])
  func removed(_ purges: Bool) throws {
    let local = try databases.open(.lmdb)
    for id in ["a", "b"] {
      var document = MutableDocument(id: id, ["text": .string(String(repeating: "x", count: 300))])
      try local.save(&document)
    }
    let old = try #require(try local.document("b")).revisionID.description
    let server = ScriptedServer.offering(
      #"[[1,"a","5-aa"],[2,"b","5-bb"],[3,"c","1-cc"]]"#,
      [
        (["id": "a", "rev": "5-aa", "sequence": "1"], #"{"_removed":true}"#),
        (["id": "b", "rev": "5-bb", "sequence": "2", "deltaSrc": old], #"{"_removed":true,"text":[]}"#),
        (["id": "c", "rev": "1-cc", "sequence": "3"], #"{"removed":true,"_removed":false}"#),
      ])
    let outcome = try replicate(local, server) {
      $0.direction = .pull
      $0.purgesOnLostAccess = purges
    }
    expect(outcome.status.error == nil && outcome.pulled == ["c"] && outcome.failed.isEmpty)
    for id in ["a", "b"] {
      try expect(
        local.document(id, includeDeleted: true)?["text"].string?.count, equals: (purges ? nil : 300))
    }
    expect(server.checkpoint.withLock { $0 }?["remote"], equals: 3)
  }

  @Test("the tombstone of a removed document is a tombstone") func removedTombstone() throws {
    let local = try databases.open(.sqlite)
    try local.save("a", ["n": 1])
    let current = try #require(try local.document("a")).revisionID.description
    let outcome = try replicate(
      local,
      ScriptedServer.offering(
        #"[[1,"a","2-aa",5]]"#,
        [(["id": "a", "rev": "2-aa", "sequence": "1", "history": current, "deleted": "1"], "{}")])
    ) { $0.direction = .pull }
    expect(outcome.pulled, equals: ["a"])
    try expect(local.document("a", includeDeleted: true)?.isDeleted, equals: true)
  }

  @Test("attachments that name no blob stay as they are, and make no fault") func unknownAttachments() throws
  {
    let local = try databases.open(.sqlite)
    let bodies = [
      #"{"_attachments":{"a":{"digest":"md5-abc","stub":true,"revpos":1},"b":{"length":3}}}"#,
      #"{"_attachments":[1,"x"]}"#, #"{"_attachments":{"c":7}}"#,
      #"{"x":{"@type":"blob","digest":"sha1-xx","length":3}}"#,
      #"{"x":{"@type":"blob","length":3}}"#,
    ]
    let server = ScriptedServer.offering(
      "[" + bodies.indices.map { #"[\#($0 + 1),"d\#($0)","1-aa"]"# }.joined(separator: ",") + "]",
      bodies.enumerated().map { index, body in
        (["id": "d\(index)", "rev": "1-aa", "sequence": "\(index + 1)"], body)
      })
    let outcome = try replicate(local, server)
    expect(outcome.failed.isEmpty && outcome.pulled.count == bodies.count)
    for (index, body) in bodies.enumerated() {
      try expect(local.document("d\(index)")?.value(), equals: JSONValue(json: body))
    }
    try expect(local.check(deep: true), equals: [])
    expect(server.checkpoint.withLock { $0 }?["remote"], equals: .int(Int64(bodies.count)))
    // A change goes back with them.
    try local.update("d0") { $0["n"] = 1 }
    let other = ScriptedServer()
    try expect(replicate(local, other).pushed.contains("d0"))
  }

  @Test("changes that nobody can answer are ignored, and a lost document may have any ID") func oddChanges()
    throws
  {
    let local = try databases.open(.sqlite)
    let server = ScriptedServer([
      "subChanges": { server, request in
        request.reply()
        var silent = BLIPRequest(
          "changes", ["collection": "0"], body: .bytes(Array(#"[[1,"a","1-aa"]]"#.utf8)))
        silent.isNoReply = true
        server.send(silent)
        server.offer(#"[[2,"","1-aa",2],[3,"_x","1-aa",4]]"#) { _ in server.offer("[]") }
      }
    ])
    let outcome = try replicate(local, server) { $0.direction = .pull }
    expect(outcome.status.error == nil && outcome.documents.isEmpty)
    expect(server.checkpoint.withLock { $0 }?["remote"], equals: 3)
  }

  // MARK: Long IDs

  private static let long = String(repeating: "i", count: 256)
  private static let fitting = String(repeating: "i", count: 255)

  private func longIDs() throws -> Database {
    let database = try databases.open(.sqlite)
    for id in ["a", Self.fitting, Self.long, "z"] {
      try database.apply(PulledRevision(id: id, history: ["1-aa"], body: ["n": 1]))
    }
    return database
  }

  @Test("an ID that is too long for the originals costs its own document only") func longPushed() throws {
    let local = try longIDs()
    let server = ScriptedServer([
      "proposeChanges": { server, request in
        guard case .array(let items) = request.message.json,
          items.allSatisfy({ $0[0].string.map { $0.utf8.count < 256 } ?? false })
        else { return _ = request.reply(BLIPErrorReply(domain: "LiteCore", code: 26, text: "Invalid docID")) }
        ScriptedServer.usual["proposeChanges"]?(server, request)
      }
    ])
    let outcome = try replicate(local, server) { $0.direction = .push }
    expect(outcome.status.error == nil && outcome.pushed == ["a", Self.fitting, "z"])
    expect(outcome.failed.mapValues(\.code), equals: [Self.long: 400])
    expect(server.requests("rev").allSatisfy { $0["id"] != Self.long })
  }

  @Test("a client of the original isn't offered such an ID, and gets the rest") func longOffered() throws {
    let offered = Lock<[String]>([])
    let end = Awaited<Bool>()
    let client = ScriptedClient(
      try longIDs(), PassiveResponder.Options(),
      [
        "changes": { request in
          guard case .array(let items) = request.message.json, !items.isEmpty else { return end.set(true) }
          offered.withLock { $0 += items.compactMap { $0[1].string } }
          request.reply(
            BLIPReply(["maxHistory": "20", "blobs": "true"], body: .bytes(Array("[[],[],[]]".utf8))))
        },
        "rev": { request in
          offered.withLock { $0.append("rev \(request.message.properties["id"] ?? "")") }
          request.reply()
        },
      ])
    try expect(client.error("subChanges"), equals: "none")
    try expect(end.get())
    eventually { offered.withLock { $0.count } == 6 }
    expect(
      offered.withLock { Set($0) }, equals: ["a", Self.fitting, "z", "rev a", "rev \(Self.fitting)", "rev z"])
  }

  @Test("databases of this library exchange such IDs") func longExchanged() throws {
    let (local, other) = (try longIDs(), try databases.open(.lmdb))
    try other.apply(PulledRevision(id: Self.long + "2", history: ["1-aa"], body: [:]))
    let outcome = try run(ReplicatorConfiguration(local, ReplicatorTarget(pipeConnector(other))))
    expect(outcome.status.error == nil && outcome.failed.isEmpty)
    try expectEqual(local, other)
    // Also if there is nothing else to ask about.
    let (one, two) = (try databases.open(.sqlite), try databases.open(.sqlite))
    try one.apply(PulledRevision(id: Self.long, history: ["1-aa"], body: [:]))
    var push = ReplicatorConfiguration(one, ReplicatorTarget(pipeConnector(two)))
    push.direction = .push
    try expect(run(push).pushed, equals: [Self.long])
  }

  // MARK: Limits

  @Test("a peer that doesn't wait for answers to its changes loses the connection") func manyLists() throws {
    let list = "[" + (0..<1_000).map { "[\($0 + 1),\"d\($0)\",\"1-aa\"]" }.joined(separator: ",") + "]"
    for (lists, isTooMuch) in [(20, false), (22, true)] {
      let server = ScriptedServer([
        "subChanges": { server, request in
          request.reply()
          for _ in 0..<lists { server.offer(list) }
          if !isTooMuch { server.close(.webSocket(1002, "enough")) }
        }
      ])
      let outcome = try replicate(try databases.open(.sqlite), server) { $0.direction = .pull }
      expect(outcome.status.error?.code, equals: (isTooMuch ? 1011 : 1002))
    }
  }
}
