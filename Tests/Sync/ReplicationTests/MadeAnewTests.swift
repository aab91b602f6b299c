// A document is purged here, or expires, and is made again under its ID: the other side has another one, which the pull has
// passed.

import Blobs
import Documents
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationBLIP

@Suite("A document is purged here and made anew") struct MadeAnewTests {
  private let databases = TestDatabases()

  private func two(_ engines: (EngineName, EngineName) = (.sqlite, .lmdb)) throws -> (Database, Database) {
    (try databases.open(engines.0), try databases.open(engines.1))
  }

  /// Makes a document there, brings it here, and makes it anew here.
  private func remake(_ a: Database, _ b: Database, _ ids: [String] = ["d"], edits: Int = 3) throws {
    try b.inBatch {
      for id in ids {
        for number in 0..<edits { try b.update(id, creating: true) { $0["old"] = .int(Int64(number)) } }
      }
    }
    try replicate(a, b)
    try a.inBatch {
      for id in ids {
        try a.purge(id)
        try a.save(id, ["new": 1])
      }
    }
  }

  @Test("both sides agree after one replication, and the next one has nothing to do", arguments: enginePairs)
  func agree(_ here: EngineName, _ there: EngineName) throws {
    let (a, b) = try two((here, there))
    try a.save("other", ["n": 1])
    try remake(a, b)
    let outcome = try replicate(a, b)
    expect(outcome.status.error == nil && outcome.failed == [:] && outcome.pulled == ["d"])
    try expectEqual(a, b)
    // The higher generation wins.
    try expect(a.document("d")?["old"].int, equals: 2)
    try expect(replicate(a, b).documents, equals: [])
    try a.update("d") { $0["n"] = 3 }
    try replicate(a, b)
    try expect(b.document("d")?["n"].int, equals: 3)
    try expect(a.check(deep: true) == [] && b.check(deep: true) == [])
  }

  @Test("an expired document that is made anew is no other case") func expired() throws {
    let (a, b) = try two()
    try b.save("d", ["old": 1])
    try replicate(a, b)
    try a.setExpiration(of: "d", at: Date(timeIntervalSinceNow: 86_400))
    try expect(a.purgeExpired(asOf: Date(timeIntervalSinceNow: 100_000)), equals: 1)
    try a.save("d", ["new": 1])
    try expect(replicate(a, b).failed, equals: [:])
    try expectEqual(a, b)
  }

  @Test("the resolver decides, and its result goes to the other side", .disabled(if: linksByHTTP))
  func resolver() throws {
    let (a, b) = try two()
    let text = JSONValue.string(String(repeating: "x", count: 400))
    try b.save("d", ["old": 1, "text": text, "blob": try b.makeBlob([1, 2, 3]).jsonValue])
    try replicate(a, b)
    try a.purge("d")
    try a.save("d", ["new": 1, "text": text])
    let outcome = try replicate(a, b) {
      $0.conflictResolver = .custom(
        ClosureConflictResolver { conflict in
          var body = conflict.remote.body ?? [:]
          body["new"] = conflict.local.body?["new"] ?? .null
          return .merged(body)
        })
    }
    expect(outcome.failed == [:] && outcome.pushed == ["d"] && outcome.pulled == ["d"])
    try expectEqual(a, b)
    let blob = try #require(try b.document("d")?["blob"].blob)
    try expect(a.document("d")?["new"].int == 1 && b.contents(of: blob) == [1, 2, 3])
    try expect(replicate(a, b).documents, equals: [])
  }

  @Test("what was edited, deleted, or purged and made anew there too comes together", arguments: 0..<4)
  func alsoThere(_ what: Int) throws {
    let (a, b) = try two()
    try remake(a, b)
    switch what {
    case 0: try b.update("d") { $0["old"] = 9 }
    case 1: try b.delete("d")
    case 2: try b.purge("d")
    default:
      try b.purge("d")
      try b.save("d", ["newer": 1])
    }
    let outcome = try replicate(a, b)
    expect(outcome.failed == [:] && outcome.status.error == nil)
    try expectEqual(a, b)
    // A deletion that is pulled wins against what was made anew. If the push comes first, the other side takes what was made
    // anew over its tombstone.
    try expect(what == 1 || a.document("d") != nil)
    try replicate(a, b)
    try expect(replicate(a, b).documents, equals: [])
  }

  @Test("the content of an older revision, made again, isn't taken for the other side's revision")
  func sameContent() throws {
    let (a, b) = try two()
    try b.save("d", ["n": 1])
    try b.save("e", ["n": 1])
    try replicate(a, b)
    try b.update("d") { $0["n"] = 2 }
    try replicate(a, b)
    for id in ["d", "e"] {
      try a.purge(id)
      try a.save(id, ["n": 1])
    }
    try expect(replicate(a, b).failed, equals: [:])
    try expectEqual(a, b)
    try expect(a.document("d")?["n"].int, equals: 2)
  }

  @Test("the content of an older revision, made again on the other side, gets what has followed it")
  func sameContentThere() throws {
    let (a, b) = try two()
    for id in ["d", "e"] { try a.save(id, ["n": 1]) }
    try replicate(a, b)
    try a.update("d") { $0["n"] = 2 }
    try a.delete("e")
    try replicate(a, b)
    for id in ["d", "e"] {
      try b.purge(id)
      try b.save(id, ["n": 1])
    }
    try expect(replicate(a, b).failed, equals: [:])
    try expectEqual(a, b)
    try expect(b.document("d")?["n"].int == 2 && b.document("e") == nil)
    try expect(replicate(a, b).documents, equals: [])
  }

  @Test("the content from before a deletion, made again after a purge of the tombstone, is deleted once more")
  func contentOfDeleted() throws {
    let (a, b) = try two()
    for database in [a, b] { try database.save("d", ["n": 1]) }
    try replicate(a, b)
    try a.delete("d")
    try replicate(a, b)
    try a.purge("d")
    // It has the ID of the first revision again, which the other side has deleted.
    try a.save("d", ["n": 1])
    try expect(replicate(a, b).failed, equals: [:])
    try expectEqual(a, b)
    try expect(a.document("d") == nil && b.document("d") == nil)
    try a.save("d", ["n": 1])
    try expect(replicate(a, b).failed, equals: [:])
    try expectEqual(a, b)
    try expect(b.document("d")?["n"].int, equals: 1)
  }

  @Test("a push alone of what was deleted there is a conflict in each run", .disabled(if: linksByHTTP))
  func pushOfDeleted() throws {
    let (a, b) = try two()
    try a.save("d", ["n": 1])
    try replicate(a, b)
    try a.delete("d")
    try replicate(a, b)
    try a.purge("d")
    try a.save("d", ["n": 1])
    for _ in 0..<2 {
      let outcome = try replicate(a, b) { $0.direction = .push }
      expect(outcome.failed.mapValues(\.code), equals: ["d": 409])
    }
    try expect(replicate(a, b).failed, equals: [:])
    try expectEqual(a, b)
  }

  @Test("a push alone says the conflict in each run, and never that all is well", .disabled(if: linksByHTTP))
  func pushAlone() throws {
    let (a, b) = try two()
    try remake(a, b)
    try a.save("other", ["n": 1])
    for run in 0..<3 {
      let outcome = try replicate(a, b) { $0.direction = .push }
      expect(outcome.failed.mapValues(\.code) == ["d": 409] && outcome.status.error == nil)
      expect(outcome.pushed, equals: (run == 0 ? ["other"] : []))
      // Nothing else is proposed again.
      expect(outcome.status.progress.total, equals: (run == 0 ? 2 : 1))
      let replicator = Replicator(
        ReplicatorConfiguration(a, ReplicatorTarget(connection(to: b))))
      try expect(replicator.pendingDocumentIDs() == ["d"] && replicator.isDocumentPending("d"))
    }
    try expect(replicate(a, b) { $0.direction = .pull }.documents, equals: [])
    try expect(replicate(a, b).failed, equals: [:])
    try expectEqual(a, b)
    try expect(replicate(a, b) { $0.direction = .push }.documents, equals: [])
  }

  @Test("a document that a filter keeps from coming is a conflict in each run", .disabled(if: linksByHTTP))
  func filtered() throws {
    let (a, b) = try two()
    try remake(a, b)
    for _ in 0..<3 {
      let outcome = try replicate(a, b) { $0.pullFilter = { $0.documentID != "d" } }
      expect(outcome.failed.mapValues(\.code) == ["d": 409] && outcome.pulled == [])
    }
    try expect(a.document("d")?["new"].int, equals: 1)
    try expect(replicate(a, b).failed, equals: [:])
    try expectEqual(a, b)
  }

  @Test("only the documents that are replicated are asked for", .disabled(if: linksByHTTP))
  func chosen() throws {
    let (a, b) = try two()
    try remake(a, b, ["d", "e"])
    let outcome = try replicate(a, b) { $0.documentIDs = ["e", "f"] }
    expect(outcome.failed == [:] && outcome.pulled == ["e"])
    try expect(a.document("d")?["new"].int == 1 && a.document("e")?["old"].int == 2)
  }

  @Test("a continuous replication brings both sides together", .disabled(if: linksByHTTP))
  func continuous() throws {
    let (a, b) = try two()
    try b.save("d", ["old": 1])
    var configuration = ReplicatorConfiguration(a, ReplicatorTarget(connection(to: b)))
    configuration.isContinuous = true
    configuration.refusalDelay = 0.01
    let replicator = Replicator(configuration)
    let failures = Lock(0)
    let token = replicator.observeDocuments { new in failures.withLock { $0 += new.count { $0.error != nil } }
    }
    replicator.start()
    eventually { replicator.status.activity == .idle && (try? a.document("d")) != .some(nil) }
    for number in 0..<3 {
      try a.purge("d")
      try a.save("d", ["new": .int(Int64(number)), "both": true])
      func isEqual() -> Bool {
        guard let here = try? a.document("d"), let there = try? b.document("d") else { return false }
        return here.revisionID == there.revisionID
      }
      eventually { replicator.status.activity == .idle && isEqual() }
      if !isEqual() || replicator.status.activity != .idle {
        Issue.record("\(number): \(replicator.status), \(try winners(a)), \(try winners(b))")
        break
      }
      try b.update("d") { $0["old"] = .int(Int64(number)) }
      eventually { isEqual() }
    }
    replicator.stop()
    eventually { replicator.status.activity == .stopped }
    token.cancel()
    expect(failures.withLock { $0 } == 0 && replicator.status.error == nil)
    try expectEqual(a, b)
  }

  @Test("more conflicts than are remembered end as well, with bounded lists", .disabled(if: linksByHTTP))
  func many() throws {
    let (a, b) = try two((.lmdb, .lmdb))
    let ids = (0..<2_500).map { "d\($0)" }
    try remake(a, b, ids, edits: 1)
    let pushed = try replicate(a, b) { $0.direction = .push }
    expect(pushed.failed.count, equals: ids.count)
    let again = try replicate(a, b) { $0.direction = .push }
    expect(again.failed.count, equals: ids.count)
    let outcome = try replicate(a, b)
    expect(outcome.failed == [:] && outcome.status.error == nil)
    try expectEqual(a, b)
    try expect(replicate(a, b).documents, equals: [])
  }

  @Test("a lost connection delays it to the next run", .disabled(if: linksByHTTP), arguments: 0..<12)
  func cut(_ seed: UInt64) throws {
    let (a, b) = try two()
    try remake(a, b, (0..<30).map { "d\($0)" })
    let faults = Faults(
      seed: seed, Faults.Rates(cut: 8, lostAnswer: 8, duplicate: 0, delay: 0, refusedConnection: 4))
    for _ in 0..<3 {
      _ = try replicate(a, b) {
        $0.target = ReplicatorTarget(FaultyConnector(inner: connection(to: b), faults: faults))
        $0.maximumRetries = 0
        $0.checkpointDelay = 0.001
      }
    }
    let outcome = try replicate(a, b)
    expect(outcome.failed == [:] && outcome.status.error == nil)
    try expectEqual(a, b)
    try replicate(a, b)
    try expect(replicate(a, b).documents, equals: [])
  }

  @Test(
    "a server of Couchbase Lite is asked for the document too", .disabled(if: linksByHTTP),
    arguments: [false, true])
  func original(_ saysRevision: Bool) throws {
    let database = try databases.open(.sqlite)
    let original = OriginalServer(saysRevision: saysRevision)
    original.state.withLock { state in
      for id in ["d", "e"] {
        state.sequence += 1
        state.documents[id] = OriginalServer.Document(
          parents: ["2-bb": "1-aa", "1-aa": ""], current: "2-bb", isDeleted: false, json: #"{"old":1}"#,
          sequence: state.sequence)
      }
    }
    try expect(replicate(database, original.scripted()).pulled, equals: ["d", "e"])
    try database.purge("d")
    try database.save("d", ["new": 1])
    let server = original.scripted()
    let outcome = try replicate(database, server)
    expect(outcome.failed == [:] && outcome.status.error == nil)
    try expect(original.current("d"), equals: (try database.document("d")?.revisionID.description))
    expect(server.requests("subChanges").count, equals: 2)
    let next = original.scripted()
    try expect(replicate(database, next).documents, equals: [])
    expect(next.requests("subChanges").count == 1 && next.requests("proposeChanges").isEmpty)
  }
}
