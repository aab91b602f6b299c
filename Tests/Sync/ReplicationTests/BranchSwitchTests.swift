// The other side goes over to another branch of a document that wasn't changed here.

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

/// A resolver that counts its calls.
private struct CountingResolver: ConflictResolver {
  let calls: Lock<Int>
  func resolve(_ conflict: Conflict) -> ConflictResolution {
    calls.withLock { $0 += 1 }
    return DefaultConflictResolver().resolve(conflict)
  }
}

@Suite("A peer goes over to another branch", .disabled(if: linksByHTTP)) struct BranchSwitchTests {
  private let databases = TestDatabases()
  private let calls = Lock(0)

  @discardableResult
  private func sync(
    _ local: Database, _ other: Database, _ direction: ReplicatorConfiguration.Direction = .pushAndPull
  ) throws -> Outcome {
    try replicate(local, other) {
      $0.direction = direction
      $0.conflictResolver = .custom(CountingResolver(calls: calls))
    }
  }

  private func add(_ database: Database, _ history: [String], _ name: String, isDeleted: Bool = false) throws
  {
    try database.apply(
      PulledRevision(
        id: "d", history: history, isDeleted: isDeleted, body: isDeleted ? [:] : ["name": .string(name)]))
  }

  private func name(_ database: Database) throws -> String? { try database.document("d")?["name"].string }

  @Test("a document that was purged there and made anew comes as it is there", arguments: enginePairs)
  func madeAnew(_ engines: (EngineName, EngineName)) throws {
    let (local, other) = (try databases.open(engines.0), try databases.open(engines.1))
    for number in 0..<3 { try other.save("d", ["name": "old", "n": JSONValue(number)]) }
    _ = try sync(local, other)
    try other.purge("d")
    try other.save("d", ["name": "new"])
    let outcome = try sync(local, other)
    expect(outcome.status.error == nil && outcome.pulled == ["d"] && outcome.pushed.isEmpty)
    expect(outcome.documents.allSatisfy { !$0.hadConflict })
    try expect(name(local) == "new" && name(other) == "new")
    try expect(sync(local, other).documents.isEmpty && calls.withLock { $0 } == 0)
    // It goes on from there.
    try other.update("d") { $0["name"] = "newer" }
    try sync(local, other)
    try local.update("d") { $0["name"] = "newest" }
    try sync(local, other)
    try expectEqual(local, other)
    try expect(name(other) == "newest" && calls.withLock { $0 } == 0)
    try expect(local.check(deep: true) == [] && other.check(deep: true) == [])
  }

  @Test(
    "what the purge of a branch leaves goes to the other side, in both directions", arguments: enginePairs)
  func purged(_ engines: (EngineName, EngineName)) throws {
    for isPurgedThere in [false, true] {
      let (local, other) = (try databases.open(engines.0), try databases.open(engines.1))
      let purging = isPurgedThere ? other : local
      try add(purging, ["1-x"], "old")
      try sync(local, other)
      try add(purging, ["2-aa", "1-x"], "a")
      try add(purging, ["2-bb", "1-x"], "b")
      try sync(local, other)
      try expect(name(local) == "b" && name(other) == "b")
      try purging.purge("d", branch: #require(RevisionID("2-bb")))
      let outcome = try sync(local, other)
      expect(outcome.status.error == nil && outcome.documents.allSatisfy { $0.error == nil })
      try expect(name(local) == "a" && name(other) == "a")
      try expect(sync(local, other).documents.isEmpty && calls.withLock { $0 } == 0)
      // A tombstone is left: the document is deleted.
      try add(purging, ["2-cc", "1-x"], "", isDeleted: true)
      try purging.purge("d", branch: #require(RevisionID("2-aa")))
      try expect(sync(local, other).status.error == nil)
      try expect(name(local) == nil && name(other) == nil)
      try expect(sync(local, other).documents.isEmpty)
      try expect(local.check(deep: true) == [] && other.check(deep: true) == [])
    }
  }

  @Test("a deleted document that was made anew there comes back", arguments: enginePairs)
  func revived(_ engines: (EngineName, EngineName)) throws {
    let (local, other) = (try databases.open(engines.0), try databases.open(engines.1))
    try other.save("d", ["name": "old"])
    try other.delete("d")
    _ = try sync(local, other)
    try expect(local.document("d", includeDeleted: true)?.isDeleted, equals: true)
    try other.purge("d")
    try other.save("d", ["name": "new"])
    try expect(sync(local, other).pulled, equals: ["d"])
    try expect(name(local) == "new" && name(other) == "new" && calls.withLock { $0 } == 0)
  }

  /// As the originals: the branch that was current there ends, and so the other one is.
  @Test("the end of one branch there makes the other one current here", arguments: enginePairs)
  func ended(_ engines: (EngineName, EngineName)) throws {
    let (local, other) = (try databases.open(engines.0), try databases.open(engines.1))
    try add(other, ["1-11111111"], "one")
    try add(other, ["2-ffffffff", "1-11111111"], "two")
    try add(other, ["3-33333333", "2-22222222", "1-11111111"], "three")
    try expect(sync(local, other, .pull).pulled, equals: ["d"])
    try expect(name(local), equals: "three")
    try add(other, ["4-dddddddd", "3-33333333", "2-22222222", "1-11111111"], "", isDeleted: true)
    try expect(name(other), equals: "two")
    let outcome = try sync(local, other)
    expect(outcome.status.error == nil && outcome.pushed.isEmpty && calls.withLock { $0 } == 0)
    try expect(local.document("d")?.revisionID.description, equals: "2-ffffffff")
    try expect(other.document("d")?.revisionID.description, equals: "2-ffffffff")
    try expect(local.leaves(of: "d").count, equals: 1)
  }

  /// The other side has ended a branch when a deletion won there. A third database brings that branch here, where it is current.
  @Test(
    "a branch that lost against a deletion there goes on from the deletion",
    arguments: enginePairs, [ReplicatorConfiguration.Direction.push, .pushAndPull])
  func lostThere(_ engines: (EngineName, EngineName), _ first: ReplicatorConfiguration.Direction) throws {
    let (local, other) = (try databases.open(engines.0), try databases.open(engines.1))
    for database in [local, other] {
      try add(database, ["1-11111111"], "old")
      try add(database, ["2-aaaaaaaa", "1-11111111"], "edited")
    }
    let deletion = PulledRevision(id: "d", history: ["2-bbbbbbbb", "1-11111111"], isDeleted: true)
    try local.apply(deletion)
    try other.apply(deletion, resolvingWith: DefaultConflictResolver())
    try expect(local.document("d")?.revisionID.description, equals: "2-aaaaaaaa")
    try expect(other.document("d", includeDeleted: true)?.revisionID.description, equals: "2-bbbbbbbb")
    if first == .push {
      // Nothing resolves conflicts, and it isn't told as pushed.
      let outcome = try sync(local, other, .push)
      expect(outcome.pushed.isEmpty && outcome.failed["d"]?.code == 409)
      try expect(name(local) == "edited" && name(other) == nil)
    }
    let outcome = try sync(local, other)
    expect(outcome.status.error == nil && outcome.failed.isEmpty && calls.withLock { $0 } == 0)
    try expectEqual(local, other)
    try expect(name(local) == "edited" && name(other) == "edited")
    try expect(sync(local, other).documents.isEmpty)
  }

  @Test("a document that was changed here too has a conflict", arguments: enginePairs)
  func changedHere(_ engines: (EngineName, EngineName)) throws {
    let (local, other) = (try databases.open(engines.0), try databases.open(engines.1))
    try other.save("d", ["name": "old"])
    _ = try sync(local, other)
    try local.update("d") { $0["name"] = "mine" }
    try other.purge("d")
    try other.save("d", ["name": "new"])
    let outcome = try sync(local, other)
    expect(outcome.status.error == nil && calls.withLock { $0 } == 1)
    expect(outcome.documents.contains { $0.hadConflict })
    try expectEqual(local, other)
    try expect(name(other), equals: "mine")
  }

  @Test("three databases agree after one has made a document anew", arguments: enginePairs)
  func three(_ engines: (EngineName, EngineName)) throws {
    let all = try [engines.0, engines.1, engines.0].map { try databases.open($0) }
    for number in 0..<3 { try all[0].save("d", ["name": "old", "n": JSONValue(number)]) }
    func syncAll() throws {
      for (left, right) in [(0, 1), (1, 2), (2, 0)] { _ = try sync(all[left], all[right]) }
    }
    for _ in 0..<2 { try syncAll() }
    try all[2].purge("d")
    try all[2].save("d", ["name": "new"])
    for _ in 0..<6 { try syncAll() }
    try expectEqual(all[0], all[1])
    try expectEqual(all[1], all[2])
    for (left, right) in [(0, 1), (1, 2), (2, 0)] {
      try expect(sync(all[left], all[right]).documents.isEmpty)
    }
  }

  /// Two branches are asked for. The first one waits for its blob, and the second one is stored meanwhile.
  @Test("a branch that arrives late doesn't take the place of a newer one") func late() throws {
    let local = try databases.open(.sqlite)
    let held = Lock<BLIPIncomingRequest?>(nil)
    @Sendable func rev(
      _ server: ScriptedServer, _ revision: String, _ sequence: String, _ body: String,
      _ done: @escaping @Sendable () -> Void
    ) {
      server.rev(["collection": "0", "id": "d", "rev": revision, "sequence": sequence], body) { _ in done() }
    }
    let blob =
      #"{"@type":"blob","digest":"sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=","length":3,"content_type":"text/plain"}"#
    let server = ScriptedServer([
      "subChanges": { server, request in
        request.reply()
        server.offer(#"[[1,"d","1-aa"]]"#) { _ in
          rev(server, "1-aa", "1", #"{"n":1}"#) {
            server.offer(#"[[2,"d","1-bb"]]"#) { _ in
              rev(server, "1-bb", "2", "{\"n\":2,\"blob\":\(blob)}") {}
            }
          }
        }
      },
      "getAttachment": { server, request in
        held.withLock { $0 = request }
        server.offer(#"[[3,"d","1-ab"]]"#) { _ in
          rev(server, "1-ab", "3", #"{"n":3}"#) {
            held.withLock { $0 }?.reply(BLIPReply(body: .bytes(Array("abc".utf8))))
            server.offer("[]")
          }
        }
      },
    ])
    let outcome = try replicate(local, server) { $0.direction = .pull }
    expect(outcome.status.error == nil)
    try expect(local.document("d")?["n"].int, equals: 3)
    expect(server.checkpoint.withLock { $0 }?["remote"], equals: 3)
  }
}
