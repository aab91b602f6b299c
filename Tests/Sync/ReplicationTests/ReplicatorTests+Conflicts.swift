import Blobs
import Documents
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication

/// Conflicts, and who resolves them.
extension ReplicatorTests {
  private func conflict(_ a: Database, _ b: Database) throws {
    try a.save("doc", ["n": 0])
    try replicate(a, b)
    try a.update("doc") { $0["a"] = 1 }
    try b.update("doc") { $0["b"] = 1 }
    try b.update("doc") { $0["b"] = 2 }
  }

  @Test(
    "a conflict is resolved here, and the result is pushed",
    .enabled(if: !linksByHTTP, "over HTTP all leaves go, and conflicts stay"), arguments: enginePairs)
  func conflicts(_ here: EngineName, _ there: EngineName) throws {
    let (a, b) = try two((here, there))
    try conflict(a, b)
    let push = try replicate(a, b) { $0.direction = .push }
    expect(push.failed["doc"]?.code == 409 && push.status.error == nil)
    let outcome = try replicate(a, b)
    expect(outcome.pulled, equals: ["doc"])
    try expectEqual(a, b)
    // The higher generation wins.
    try expect(a.document("doc")?["b"].int, equals: 2)
    try expect(a.conflicts(of: "doc").isEmpty && b.conflicts(of: "doc").isEmpty)
  }

  private static let merge: @Sendable (Conflict) -> ConflictResolution = { conflict in
    .merged(["a": conflict.local.body?["a"] ?? .null, "b": conflict.remote.body?["b"] ?? .null, "n": 9])
  }

  private func expectMerged(_ a: Database, _ b: Database, _ outcome: Outcome) throws {
    expect(outcome.failed == [:] && Set(outcome.pushed) == ["doc"] && outcome.pulled == ["doc"])
    try expectEqual(a, b)
    try expect(b.document("doc")?.value(), equals: ["a": 1, "b": 2, "n": 9])
    try expect(replicate(a, b).documents, equals: [])
  }

  @Test("a custom resolver decides") func customResolver() throws {
    let (a, b) = try two()
    try conflict(a, b)
    let outcome = try replicate(a, b) {
      $0.conflictResolver = .custom(ClosureConflictResolver(Self.merge))
    }
    try expectMerged(a, b, outcome)
  }

  // This test doesn't block its thread: the resolver may have to wait for one of the cooperative pool.
  @Test("an asynchronous resolver decides") func asynchronousResolver() async throws {
    let (a, b) = try two()
    try conflict(a, b)
    var configuration = ReplicatorConfiguration(a, ReplicatorTarget(connection(to: b)))
    configuration.skipsTombstonesOfFirstPull = false
    configuration.conflictResolver = .asynchronous { conflict in
      await Task.yield()
      return Self.merge(conflict)
    }
    let replicator = Replicator(configuration)
    let documents = Lock<[ReplicatedDocument]>([])
    let token = replicator.observeDocuments { new in documents.withLock { $0 += new } }
    replicator.start()
    for await status in replicator.statusChanges where status.activity == .stopped { break }
    token.cancel()
    try expectMerged(
      a, b, Outcome(status: replicator.status, documents: documents.withLock { $0 }))
  }

  @Test("a resolver that fails leaves the revision for the next time") func failingResolver() throws {
    struct Failure: Error {}
    let (a, b) = try two()
    try conflict(a, b)
    let failed = try replicate(a, b) {
      $0.conflictResolver = .custom(ClosureConflictResolver { _ in throw Failure() })
    }
    expect(failed.failed["doc"] != nil && failed.status.error == nil)
    try replicate(a, b)
    try expectEqual(a, b)
  }

  @Test("a document that changes while its conflict is resolved is resolved again") func changedMeanwhile()
    throws
  {
    let (a, b) = try two()
    try conflict(a, b)
    let calls = Lock(0)
    try replicate(a, b) {
      $0.conflictResolver = .custom(
        ClosureConflictResolver { conflict in
          let call = calls.withLock { calls in
            calls += 1
            return calls
          }
          if call < 3 { try a.update("doc") { $0["change"] = .int(Int64(call)) } }
          return .merged(["change": conflict.local.body?["change"] ?? .null])
        })
    }
    expect(calls.withLock { $0 }, equals: 3)
    try expect(b.document("doc")?["change"].int, equals: 2)
    try expectEqual(a, b)
  }

  @Test(
    "deletions conflict with changes, and win",
    .enabled(if: !linksByHTTP, "over HTTP all leaves go, and conflicts stay")) func deletions() throws
  {
    let (a, b) = try two()
    for id in ["here", "there", "both"] { try a.save(id, ["n": 1]) }
    try replicate(a, b)
    try a.delete("here")
    try b.update("here") { $0["n"] = 2 }
    try b.delete("there")
    try a.update("there") { $0["n"] = 2 }
    try a.delete("both", keeping: ["by": "a"])
    try b.delete("both", keeping: ["by": "b"])
    try replicate(a, b)
    try replicate(a, b)
    try expectEqual(a, b, anyTombstone: true)
    try expect(a.documentCount == 0 && b.documentCount == 0)
  }
}
