import Blobs
import Documents
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

@Suite("Replications over HTTP with a listener of this library") struct HTTPReplicationTests {
  private let databases = TestDatabases()

  private func two(_ pair: (EngineName, EngineName) = (.lmdb, .sqlite)) throws -> (
    Database, Database, TestServer
  ) {
    let (a, b) = (try databases.open(pair.0), try databases.open(pair.1))
    return (a, b, try TestServer(["db": b]))
  }

  @Test("documents, updates and tombstones go both ways", arguments: enginePairs)
  func both(_ here: EngineName, _ there: EngineName) throws {
    let (a, b, server) = try two((here, there))
    for number in 0..<1_700 {
      try a.save("a\(number)", ["n": .int(Int64(number)), "type": "a", "text": "hello \"you\" \\ é"])
    }
    for number in 0..<1_300 {
      try b.save(
        "b\(number)", ["type": "b", "other": .array([1, 2.5, .null, true]), "o": .object(["x": "]}"])])
    }
    let first = try replicate(a, server)
    expect(first.status.error == nil && first.failed == [:])
    expect(first.pushed.count == 1_700 && first.pulled.count == 1_300)
    try expectEqual(a, b)
    for number in 0..<50 { try a.delete("a\(number)") }
    for number in 50..<100 { try b.update("a\(number)") { $0["n"] = .string("new") } }
    for number in 0..<20 {
      for round in 0..<5 { try b.update("b\(number)") { $0["round"] = .int(Int64(round)) } }
    }
    try a.save("created and deleted", ["n": 1])
    try a.delete("created and deleted")
    let second = try replicate(a, server)
    expect(second.pushed.count == 51 && second.pulled.count == 70)
    try expectEqual(a, b)
    try expect(a.check(deep: true) == [] && b.check(deep: true) == [])
    try expect(b.revisions(of: "b0", withBodies: false)?.count, equals: 6)
    try expect(a.revisions(of: "b0", withBodies: false)?.count, equals: 6)
    let third = try replicate(a, server)
    expect(third.documents.isEmpty && third.traffic.receivedMessages < 12)
  }

  @Test("a direction that isn't wanted does nothing", arguments: [EngineName.lmdb, .sqlite])
  func directions(_ engine: EngineName) throws {
    let (a, b, server) = try two((engine, engine))
    try a.save("a", ["n": 1])
    try b.save("b", ["n": 1])
    let push = try replicate(a, server) { $0.direction = .push }
    expect(push.pushed == ["a"] && push.pulled == [])
    let pull = try replicate(a, server) { $0.direction = .pull }
    expect(pull.pushed == [] && pull.pulled == ["b"])
    try expectEqual(a, b)
  }

  @Test("who has a revision that is deeper than the tree gets no conflict", arguments: enginePairs)
  func histories(_ here: EngineName, _ there: EngineName) throws {
    let (a, b, server) = try two((here, there))
    try a.setMaximumTreeDepth(3)
    try a.save("x", ["n": 0])
    func edit(_ count: Int) throws {
      for _ in 0..<count { try a.update("x") { $0["n"] = .int(($0["n"].int ?? 0) + 1) } }
    }
    try edit(9)
    _ = try replicate(a, server) { $0.direction = .push }
    let third = try databases.open(there)
    for database in [b, third] { try database.setMaximumTreeDepth(1_000) }
    let own = try TestServer(["db": a])
    _ = try replicate(third, own) { $0.direction = .pull }
    try edit(12)
    let shown = try a.revisions(of: "x", withBodies: false)?.map(\.id.generation)
    expect(shown, equals: [22, 21, 20, 10])
    _ = try replicate(a, server) { $0.direction = .push }
    _ = try replicate(third, own) { $0.direction = .pull }
    let current = try a.document("x")?.revisionID
    for database in [b, third] {
      let revisions = try database.revisions(of: "x", withBodies: false) ?? []
      try expect(database.document("x")?.revisionID, equals: current)
      expect(revisions.count { $0.isLeaf }, equals: 1)
      expect(revisions.map(\.id.generation).sorted(), equals: Array(8...22))
      try expect(database.check(deep: true), equals: [])
    }
  }

  @Test("a server that goes back to an older copy after it was asked makes no conflict of an ancestor")
  func restoredMeanwhile() throws {
    let model = CouchModel("db")
    let older = Lock<[String: CouchModel.Document]?>(nil)
    let server = try MiniServer { request in
      if request.path.hasSuffix("_bulk_docs"), let older = older.withLock({ $0 }) {
        model.state.withLock { $0.documents = older }
      }
      return model.answer(request)
    }
    let local = try databases.open(.lmdb)
    func push() throws {
      var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
      configuration.direction = .push
      let outcome = try run(configuration)
      expect(outcome.status.error == nil && outcome.failed.isEmpty)
    }
    try local.save("x", ["n": 1])
    for number in 2...3 { try local.update("x") { $0["n"] = .int(Int64(number)) } }
    try push()
    let copy = model.state.withLock { $0.documents }
    try local.update("x") { $0["n"] = 4 }
    try push()
    try local.delete("x")
    older.withLock { $0 = copy }
    try push()
    let leaves = try local.leaves(of: "x", includeDeleted: true).map(\.id.description)
    expect(model.state.withLock { $0.documents["x"]?.leaves }, equals: leaves)
    expect(model.state.withLock { $0.documents["x"]?.parents.count }, equals: 5)
    expect(model.complaints, equals: [])
  }

  @Test("all branches go both ways, and conflicts stay", arguments: enginePairs)
  func conflicts(_ here: EngineName, _ there: EngineName) throws {
    let (a, b, server) = try two((here, there))
    for database in [a, b] { for id in ["both", "deleted", "many"] { try database.save(id, ["n": 0]) } }
    try a.update("both") { $0["from"] = "a" }
    try b.update("both") { $0["from"] = "b" }
    try a.delete("deleted")
    try b.update("deleted") { $0["from"] = "b" }
    for number in 0..<5 {
      let from = number % 2 == 0 ? a : b
      try from.apply(
        PulledRevision(
          id: "many", history: ["2-\(String(repeating: "abcde".dropFirst(number).first ?? "f", count: 32))"],
          isDeleted: number == 3, body: .value(["branch": .int(Int64(number))])))
    }
    let outcome = try replicate(a, server)
    expect(outcome.status.error == nil && outcome.failed == [:])
    try expectEqual(a, b)
    try expect(a.conflicts(of: "both").count, equals: 2)
    try expect(a.document("deleted")?["from"].string, equals: "b")
    try expect(a.leaves(of: "many", includeDeleted: true).count, equals: 6)
    // A resolution ends the other branch with a tombstone, which goes too.
    let winner = try #require(try a.document("both")).revisionID
    try a.resolveConflict(of: "both", keeping: winner)
    try replicate(a, server)
    try expectEqual(a, b)
    try expect(b.conflicts(of: "both").isEmpty)
    try expect(replicate(a, server).documents.isEmpty)
  }

  @Test("attachments and blobs go both ways", arguments: enginePairs)
  func attachments(_ here: EngineName, _ there: EngineName) throws {
    let (a, b, server) = try two((here, there))
    let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    for (from, name) in [(a, "a"), (b, "b")] {
      for number in 0..<12 {
        var document = MutableDocument(id: "\(name)\(number)")
        document.setAttachment("x", try Blob([1, 2, UInt8(number)], contentType: "text/plain"))
        document.setAttachment("big/ü \(name)", try Blob(bytes + [UInt8(number)], contentType: "image/png"))
        document.setAttachment("empty", try Blob([], contentType: "text/plain"))
        try from.save(&document)
      }
    }
    let outcome = try replicate(a, server)
    expect(outcome.status.error == nil && outcome.failed == [:])
    try expectEqual(a, b)
    try expect(
      b.document("a3")?.attachment("big/ü a")?.blob.digest,
      equals: a.document("a3")?.attachment("big/ü a")?.blob.digest)
    // Later revisions leave what the other side has.
    try a.update("a3") { $0["n"] = 1 }
    var changed = try #require(try b.document("b5")).toMutable()
    changed.setAttachment("x", try Blob([9, 9], contentType: "text/plain"))
    try b.save(&changed)
    let second = try replicate(a, server)
    expect(second.pushed == ["a3"] && second.pulled == ["b5"])
    expect(second.traffic.sentBytes < 20_000 && second.traffic.receivedBytes < 20_000)
    try expectEqual(a, b)
    try expect(a.check(deep: true) == [] && b.check(deep: true) == [])
  }
}
