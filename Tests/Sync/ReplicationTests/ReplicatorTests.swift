import Blobs
import Documents
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication

@Suite("Replications between two databases") struct ReplicatorTests {
  let databases = TestDatabases()

  func two(_ pair: (EngineName, EngineName) = (.lmdb, .sqlite)) throws -> (Database, Database) {
    (try databases.open(pair.0), try databases.open(pair.1))
  }

  @Test("documents, updates, tombstones and blobs go both ways", arguments: enginePairs)
  func both(_ here: EngineName, _ there: EngineName) throws {
    let (a, b) = try two((here, there))
    for number in 0..<700 {
      try a.save("a\(number)", ["n": .int(Int64(number)), "type": "a", "text": "hello"])
    }
    for number in 0..<300 {
      try b.save("b\(number)", ["type": "b", "other": .array([1, 2.5, .null, true])])
    }
    let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    var blobs = MutableDocument(id: "blobs")
    blobs.set(try Blob(bytes, contentType: "image/png"), forKey: "photo")
    blobs.setAttachment("x", try Blob([1, 2, 3], contentType: "text/plain"))
    try a.save(&blobs)
    var other = MutableDocument(id: "same blob")
    other.set(try Blob(bytes, contentType: "image/png"), forKey: "again")
    try b.save(&other)
    let first = try replicate(a, b)
    expect(first.status.error == nil && first.failed == [:])
    try expectEqual(a, b)
    // Over HTTP the checkpoint is a local document there.
    try expect(differences(a, b).filter { $0.kind != .local }.isEmpty)
    try expect(b.document("blobs")?.blob(forKey: "photo")?.content(), equals: bytes)
    for number in 0..<50 { try a.delete("a\(number)") }
    for number in 50..<100 { try b.update("a\(number)") { $0["n"] = .string("new") } }
    for number in 0..<20 {
      for round in 0..<5 { try b.update("b\(number)") { $0["round"] = .int(Int64(round)) } }
    }
    try a.save("created and deleted", ["n": 1])
    try a.delete("created and deleted")
    let second = try replicate(a, b)
    expect(second.pushed.count == 51 && second.pulled.count == 70)
    try expectEqual(a, b)
    try expect(a.check(deep: true) == [] && b.check(deep: true) == [])
    try expect(b.revisions(of: "b0", withBodies: false)?.count, equals: 6)
    try expect(a.revisions(of: "b0", withBodies: false)?.count, equals: 6)
  }

  @Test("bodies arrive whole whatever shared keys both sides have", arguments: [0, 1, 40, 600, 2_100])
  func sharedKeys(_ names: Int) throws {
    let (a, b) = try two()
    // The other side has none, or some of its own, which may be those of this side.
    if names % 40 == 1 { try b.save("own", ["k0": 1, "other": 2]) }
    if names == 40 { try b.save("own", ["k0": 1, "k1": 2]) }
    try a.save("first", ["k0": 1, "k1": ["k0": [["k1": 2]]]])
    for number in 0..<200 {
      var body: JSONObject = ["n": .int(Int64(number)), "a name that is no shared key": .null]
      for name in 0..<(names / 20) { body["k\((number * 13 + name) % max(1, names))"] = .int(Int64(name)) }
      try a.save("d\(number)", .value(.object(body)))
    }
    for round in 0..<2 {
      let outcome = try replicate(a, b) { $0.direction = .push }
      expect(outcome.status.error == nil && outcome.pushed.count == (round == 0 ? 201 : 100))
      let (sent, arrived) = (try winners(a), try winners(b))
      expect(sent.allSatisfy { arrived[$0.key] == $0.value })
      try expect(b.check(deep: true), equals: [])
      // Both tables grow, each in its own way.
      try b.save("round \(round)", ["here\(round)": 1])
      for number in 0..<100 { try a.update("d\(number)") { $0["there\(round)"] = .int(Int64(number)) } }
    }
  }

  @Test("a change reaches the peer although it wasn't noted what the peer has", arguments: [true, false])
  func lostMark(_ pushesOnly: Bool) throws {
    let (a, b) = try two()
    let first = try a.save("doc", ["n": 1]).revisionID.description
    try replicate(a, b)
    try a.update("doc") { $0["n"] = 2 }
    try replicate(a, b)
    // The checkpoints have passed the second revision. As if this side had ended before it noted the answer:
    let remote = try a.replicating { try $0.remoteNumber(LocalConnector(b).remoteID) }
    try a.replicatingChanges { try $0.mark([("doc", first)], remote: remote) }
    try a.update("doc") { $0["n"] = 3 }
    let outcome = try replicate(a, b) { $0.direction = pushesOnly ? .push : .pushAndPull }
    expect(outcome.status.error == nil && outcome.pushed == ["doc"])
    try expectEqual(a, b)
  }

  @Test("a direction that isn't wanted does nothing", arguments: [EngineName.lmdb, .sqlite])
  func directions(_ engine: EngineName) throws {
    let (a, b) = try two((engine, engine))
    try a.save("a", ["n": 1])
    try b.save("b", ["n": 1])
    let push = try replicate(a, b) { $0.direction = .push }
    expect(push.pushed == ["a"] && push.pulled == [])
    try expect(a.document("b") == nil && b.document("a") != nil)
    let pull = try replicate(a, b) { $0.direction = .pull }
    expect(pull.pushed == [] && pull.pulled == ["b"])
    try expectEqual(a, b)
  }

  @Test(
    "the first pull into an empty database leaves out tombstones, as Couchbase Lite",
    .enabled(if: !linksByHTTP, "over HTTP all leaves go, and conflicts stay")) func firstPull()
    throws
  {
    let (a, b) = try two()
    try b.save("live", ["n": 1])
    try b.save("dead", ["n": 1])
    try b.delete("dead")
    try expect(replicate(a, b) { $0.skipsTombstonesOfFirstPull = true }.pulled, equals: ["live"])
    try b.delete("live")
    // A later one brings those after the checkpoint.
    try expect(replicate(a, b) { $0.skipsTombstonesOfFirstPull = true }.pulled, equals: ["dead", "live"])
    try expect(a.documentCount == 0 && a.tombstoneCount == 2)
  }

  @Test("only chosen documents go, and filters leave out others") func filters() throws {
    let (a, b) = try two()
    for number in 0..<10 { try a.save("a\(number)", ["n": .int(Int64(number))]) }
    for number in 0..<10 { try b.save("b\(number)", ["n": .int(Int64(number))]) }
    let ids = try replicate(a, b) { $0.documentIDs = ["a1", "b2", "missing"] }
    expect(ids.pushed == ["a1"] && ids.pulled == ["b2"])
    let filtered = try replicate(a, b) {
      $0.pushFilter = { try $0.body()["n"]?.int ?? 0 >= 8 }
      $0.pullFilter = { $0.documentID.hasSuffix("3") }
    }
    expect(filtered.pushed == ["a8", "a9"] && filtered.pulled == ["b3"])
    // What was left out counts as replicated.
    try expect(replicate(a, b).status.progress.total, equals: 0)
    try expect(a.document("b5") == nil && b.document("a5") == nil)
  }

  @Test(
    "channels are refused by a peer that has none",
    .enabled(if: !linksByHTTP, "over HTTP all leaves go, and conflicts stay")) func channels() throws
  {
    let (a, b) = try two()
    let outcome = try replicate(a, b) { $0.channels = ["x"] }
    expect(outcome.status.error, equals: ReplicationError(.liteCore, 19, "Filtering not supported"))
  }
}
