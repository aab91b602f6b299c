import Blobs
import Documents
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication

/// Documents that are refused, or gone on one side.
extension ReplicatorTests {
  @Test("a document that a validation refuses isn't stored, and isn't asked for again") func validation()
    throws
  {
    let (a, b) = try two()
    for number in 0..<5 { try a.save("a\(number)", ["n": .int(Int64(number))]) }
    for number in 0..<5 { try b.save("b\(number)", ["n": .int(Int64(number))]) }
    for database in [a, b] {
      try database.setValidation("v") { revision, context in
        if revision.isFromSync, revision.body["n"] == 3 { context.reject("no threes") }
      }
    }
    let outcome = try replicate(a, b)
    expect(outcome.failed.keys.sorted(), equals: ["a3", "b3"])
    expect(outcome.failed["a3"]?.code == 403 && outcome.failed["b3"]?.code == 403)
    expect(outcome.pushed.count == 4 && outcome.pulled.count == 4 && outcome.status.error == nil)
    try expect(replicate(a, b).documents, equals: [])
  }

  @Test("a passive side that allows one direction refuses the other") func oneWay() throws {
    let (a, b) = try two()
    try a.save("a", ["n": 1])
    var options = PassiveResponder.Options()
    options.acceptsRevisions = false
    let target = ReplicatorTarget(connection(to: b, options))
    try expect(replicate(a, b) { $0.target = target }.status.error?.code, equals: 403)
    options = PassiveResponder.Options()
    options.givesRevisions = false
    let other = ReplicatorTarget(connection(to: b, options))
    try expect(replicate(a, b) { $0.target = other }.status.error?.code, equals: 403)
    try expect(replicate(a, b) { ($0.target, $0.direction) = (other, .push) }.status.error == nil)
  }

  @Test("a purge removes what was known of the remote, and the document comes back with a reset") func purge()
    throws
  {
    let (a, b) = try two()
    try a.save("doc", ["n": 1])
    try a.save("other", ["n": 1])
    try replicate(a, b)
    let remote = try a.replicating { try $0.remoteNumber(connection(to: b).remoteID) }
    try expect(
      a.replicating { try $0.mark(of: "doc", remote: remote) },
      equals: a.document("doc")?.revisionID.description)
    try a.purge("doc")
    try expect(a.replicating { try $0.mark(of: "doc", remote: remote) } == nil)
    try expect(a.check(), equals: [])
    try expect(replicate(a, b).documents, equals: [])
    try expect(replicate(a, b) { $0.resetsCheckpoint = true }.pulled, equals: ["doc"])
    try expectEqual(a, b)
  }

  @Test("documents that can't be read there any more are purged here, or not", arguments: [true, false])
  func lostAccess(_ purges: Bool) throws {
    let (a, b) = try two()
    for number in 0..<3 { try a.save("doc\(number)", ["n": 1]) }
    try replicate(a, b)
    let hook = HookConnector(inner: connection(to: b)) {}
    // IDs that can't be are skipped, as in other changes.
    hook.lost.withLock { $0 = ["", "doc1", "_x", "unknown", String(repeating: "i", count: 500)] }
    let outcome = try replicate(a, b) {
      $0.target = ReplicatorTarget(hook)
      $0.purgesOnLostAccess = purges
    }
    expect(outcome.status.error == nil)
    try expect((a.document("doc1", includeDeleted: true) == nil) == purges && a.document("doc2") != nil)
    try expect(b.documentCount, equals: 3)
  }

  @Test("an expired document is purged here and stays there") func expiration() throws {
    let (a, b) = try two()
    try a.save("doc", ["n": 1])
    try replicate(a, b)
    try a.setExpiration(of: "doc", at: Date(timeIntervalSinceNow: -1))
    eventually { (try? a.document("doc", includeDeleted: true)) == .some(nil) }
    try replicate(a, b)
    try expect(b.document("doc") != nil && a.document("doc", includeDeleted: true) == nil)
  }

  @Test("documents that change, go or are purged while they are sent") func changedWhileSent() throws {
    let (a, b) = try two()
    for number in 0..<6 { try a.save("doc\(number)", ["n": 1]) }
    let hook = HookConnector(inner: connection(to: b)) {
      _ = try? a.update("doc0") { $0["n"] = 2 }
      _ = try? a.delete("doc1")
      try? a.purge("doc2")
      try? a.compact()
    }
    let first = try replicate(a, b) { $0.target = ReplicatorTarget(hook) }
    expect(first.status.error == nil && first.failed == [:])
    expect(hook.unavailable.withLock { $0 }, equals: ["doc0 410", "doc1 410", "doc2 404"])
    try replicate(a, b)
    try expectEqual(a, b)
    try expect(
      b.document("doc0")?["n"].int == 2 && b.document("doc1", includeDeleted: true)?.isDeleted == true)
  }

  @Test("very long histories are cut, and known ancestors are found", arguments: [3, 20, 200])
  func histories(_ depth: Int) throws {
    let (a, b) = try two()
    try a.setMaximumTreeDepth(depth)
    try b.setMaximumTreeDepth(depth)
    try a.save("doc", ["n": 0])
    for number in 1..<150 { try a.update("doc") { $0["n"] = .int(Int64(number)) } }
    try replicate(a, b)
    try expectEqual(a, b)
    try expect(b.revisions(of: "doc", withBodies: false)?.count, equals: min(depth, 150))
    for number in 1..<150 { try b.update("doc") { $0["n"] = .int(Int64(-number)) } }
    let outcome = try replicate(a, b)
    expect(outcome.failed, equals: [:])
    try expectEqual(a, b)
    try expect(a.conflicts(of: "doc").isEmpty)
    try expect(a.check() == [] && b.check() == [])
  }

  @Test("a document arrives however often it was edited since the last time", arguments: enginePairs)
  func manyEdits(_ here: EngineName, _ there: EngineName) throws {
    for (depth, edits) in [(2, 1), (2, 3), (3, 40), (20, 19), (20, 20), (20, 21), (20, 60)] {
      let what: Comment = "\(depth) \(edits)"
      let (a, b) = try two((here, there))
      try a.setMaximumTreeDepth(depth)
      try b.setMaximumTreeDepth(20)
      try a.save("doc", ["n": 0])
      try replicate(a, b)
      for number in 1...edits { try a.update("doc") { $0["n"] = .int(Int64(number)) } }
      // The pull from the beginning offers the old revision once more.
      let outcome = try replicate(a, b) { $0.resetsCheckpoint = true }
      expect(outcome.pushed == ["doc"] && outcome.failed == [:], what)
      try expectEqual(a, b)
      try expect(a.document("doc")?.revisionID.generation, equals: UInt64(edits + 1), what)
      try expect(a.conflicts(of: "doc").isEmpty && b.conflicts(of: "doc").isEmpty, what)
      if !linksByHTTP {
        // It is one branch there.
        let leaves = try b.revisions(of: "doc", withBodies: false)?.filter(\.isLeaf)
        expect(leaves?.count, equals: 1, what)
      }
      try expect(replicate(a, b).documents, equals: [], what)
      try expect(a.check(deep: true) == [] && b.check(deep: true) == [], what)
    }
  }

  @Test(
    "a merge has its base however often the document was edited",
    .enabled(if: !linksByHTTP, "over HTTP all leaves go, and conflicts stay"), arguments: enginePairs)
  func mergeBase(_ here: EngineName, _ there: EngineName) throws {
    let (a, b) = try two((here, there))
    try a.setMaximumTreeDepth(3)
    let text = JSONValue.string(String(repeating: "x", count: 300))
    try a.save("doc", ["n": 0, "text": text])
    try replicate(a, b)
    for number in 1...30 { try a.update("doc") { $0["n"] = .int(Int64(number)) } }
    try b.update("doc") { $0["m"] = 1 }
    let bases = Lock<[JSONValue?]>([])
    let outcome = try replicate(a, b) {
      $0.conflictResolver = .custom(
        ClosureConflictResolver { conflict in
          bases.withLock { $0.append(conflict.commonAncestor?.body) }
          return .merged(["n": conflict.local.body?["n"] ?? .null, "m": conflict.remote.body?["m"] ?? .null])
        })
    }
    let base: JSONValue = ["n": 0, "text": text]
    expect(outcome.failed == [:] && bases.withLock { $0 } == [base])
    try expectEqual(a, b)
    try expect(b.document("doc")?.value(), equals: ["n": 30, "m": 1])
    // What was kept goes with the next mark.
    for number in 31...35 { try a.update("doc") { $0["n"] = .int(Int64(number)) } }
    try replicate(a, b)
    for number in 36...40 { try a.update("doc") { $0["n"] = .int(Int64(number)) } }
    let live = try a.revisions(of: "doc", withBodies: false)?.filter { !$0.isDeleted }
    try expect(live?.map(\.id.generation).first, equals: (try a.document("doc")?.revisionID.generation))
    try expect(a.check(deep: true) == [] && b.check(deep: true) == [])
  }

  @Test("a document that was purged there comes back when it is edited here", arguments: enginePairs)
  func purgedThere(_ here: EngineName, _ there: EngineName) throws {
    for direction in [ReplicatorConfiguration.Direction.push, .pushAndPull] {
      let (a, b) = try two((here, there))
      for id in ["doc", "other"] { try a.save(id, ["n": 0]) }
      try replicate(a, b)
      try b.purge("doc")
      try a.update("doc") { $0["n"] = 1 }
      let outcome = try replicate(a, b) { $0.direction = direction }
      expect(outcome.pushed == ["doc"] && outcome.failed == [:])
      try expectEqual(a, b)
    }
  }
}
