import Blobs
import Documents
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication

@Suite("Replications between two databases") struct ReplicatorTests {
  private let databases = TestDatabases()

  private func two(_ pair: (EngineName, EngineName) = (.lmdb, .sqlite)) throws -> (Database, Database) {
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
    #expect(first.status.error == nil && first.failed == [:])
    try expectEqual(a, b)
    // Over HTTP the checkpoint is a local document there.
    #expect(try differences(a, b).filter { $0.kind != .local }.isEmpty)
    #expect(try b.document("blobs")?.blob(forKey: "photo")?.content() == bytes)
    for number in 0..<50 { try a.delete("a\(number)") }
    for number in 50..<100 { try b.update("a\(number)") { $0["n"] = .string("new") } }
    for number in 0..<20 {
      for round in 0..<5 { try b.update("b\(number)") { $0["round"] = .int(Int64(round)) } }
    }
    try a.save("created and deleted", ["n": 1])
    try a.delete("created and deleted")
    let second = try replicate(a, b)
    #expect(second.pushed.count == 51 && second.pulled.count == 70)
    try expectEqual(a, b)
    #expect(try a.check(deep: true) == [] && b.check(deep: true) == [])
    #expect(try b.revisions(of: "b0", withBodies: false)?.count == 6)
    #expect(try a.revisions(of: "b0", withBodies: false)?.count == 6)
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
      #expect(outcome.status.error == nil && outcome.pushed.count == (round == 0 ? 201 : 100))
      let (sent, arrived) = (try winners(a), try winners(b))
      #expect(sent.allSatisfy { arrived[$0.key] == $0.value })
      #expect(try b.check(deep: true) == [])
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
    #expect(outcome.status.error == nil && outcome.pushed == ["doc"])
    try expectEqual(a, b)
  }

  @Test("a direction that isn't wanted does nothing", arguments: [EngineName.lmdb, .sqlite])
  func directions(_ engine: EngineName) throws {
    let (a, b) = try two((engine, engine))
    try a.save("a", ["n": 1])
    try b.save("b", ["n": 1])
    let push = try replicate(a, b) { $0.direction = .push }
    #expect(push.pushed == ["a"] && push.pulled == [])
    #expect(try a.document("b") == nil && b.document("a") != nil)
    let pull = try replicate(a, b) { $0.direction = .pull }
    #expect(pull.pushed == [] && pull.pulled == ["b"])
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
    #expect(try replicate(a, b) { $0.skipsTombstonesOfFirstPull = true }.pulled == ["live"])
    try b.delete("live")
    // A later one brings those after the checkpoint.
    #expect(try replicate(a, b) { $0.skipsTombstonesOfFirstPull = true }.pulled == ["dead", "live"])
    #expect(try a.documentCount == 0 && a.tombstoneCount == 2)
  }

  @Test("only chosen documents go, and filters leave out others") func filters() throws {
    let (a, b) = try two()
    for number in 0..<10 { try a.save("a\(number)", ["n": .int(Int64(number))]) }
    for number in 0..<10 { try b.save("b\(number)", ["n": .int(Int64(number))]) }
    let ids = try replicate(a, b) { $0.documentIDs = ["a1", "b2", "missing"] }
    #expect(ids.pushed == ["a1"] && ids.pulled == ["b2"])
    let filtered = try replicate(a, b) {
      $0.pushFilter = { try $0.body()["n"]?.int ?? 0 >= 8 }
      $0.pullFilter = { $0.documentID.hasSuffix("3") }
    }
    #expect(filtered.pushed == ["a8", "a9"] && filtered.pulled == ["b3"])
    // What was left out counts as replicated.
    #expect(try replicate(a, b).status.progress.total == 0)
    #expect(try a.document("b5") == nil && b.document("a5") == nil)
  }

  @Test(
    "channels are refused by a peer that has none",
    .enabled(if: !linksByHTTP, "over HTTP all leaves go, and conflicts stay")) func channels() throws
  {
    let (a, b) = try two()
    let outcome = try replicate(a, b) { $0.channels = ["x"] }
    #expect(outcome.status.error == ReplicationError(.liteCore, 19, "Filtering not supported"))
  }

  // MARK: Conflicts

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
    #expect(push.failed["doc"]?.code == 409 && push.status.error == nil)
    let outcome = try replicate(a, b)
    #expect(outcome.pulled == ["doc"])
    try expectEqual(a, b)
    // The higher generation wins.
    #expect(try a.document("doc")?["b"].int == 2)
    #expect(try a.conflicts(of: "doc").isEmpty && b.conflicts(of: "doc").isEmpty)
  }

  private static let merge: @Sendable (Conflict) -> ConflictResolution = { conflict in
    .merged(["a": conflict.local.body?["a"] ?? .null, "b": conflict.remote.body?["b"] ?? .null, "n": 9])
  }

  private func expectMerged(_ a: Database, _ b: Database, _ outcome: Outcome) throws {
    #expect(outcome.failed == [:] && Set(outcome.pushed) == ["doc"] && outcome.pulled == ["doc"])
    try expectEqual(a, b)
    #expect(try b.document("doc")?.value() == ["a": 1, "b": 2, "n": 9])
    #expect(try replicate(a, b).documents == [])
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
    #expect(failed.failed["doc"] != nil && failed.status.error == nil)
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
    #expect(calls.withLock { $0 } == 3)
    #expect(try b.document("doc")?["change"].int == 2)
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
    #expect(try a.documentCount == 0 && b.documentCount == 0)
  }

  // MARK: What is refused or gone

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
    #expect(outcome.failed.keys.sorted() == ["a3", "b3"])
    #expect(outcome.failed["a3"]?.code == 403 && outcome.failed["b3"]?.code == 403)
    #expect(outcome.pushed.count == 4 && outcome.pulled.count == 4 && outcome.status.error == nil)
    #expect(try replicate(a, b).documents == [])
  }

  @Test("a passive side that allows one direction refuses the other") func oneWay() throws {
    let (a, b) = try two()
    try a.save("a", ["n": 1])
    var options = Responder.Options()
    options.acceptsRevisions = false
    let target = ReplicatorTarget(connection(to: b, options))
    #expect(try replicate(a, b) { $0.target = target }.status.error?.code == 403)
    options = Responder.Options()
    options.givesRevisions = false
    let other = ReplicatorTarget(connection(to: b, options))
    #expect(try replicate(a, b) { $0.target = other }.status.error?.code == 403)
    #expect(try replicate(a, b) { ($0.target, $0.direction) = (other, .push) }.status.error == nil)
  }

  @Test("a purge removes what was known of the remote, and the document comes back with a reset") func purge()
    throws
  {
    let (a, b) = try two()
    try a.save("doc", ["n": 1])
    try a.save("other", ["n": 1])
    try replicate(a, b)
    let remote = try a.replicating { try $0.remoteNumber(connection(to: b).remoteID) }
    #expect(
      try a.replicating { try $0.mark(of: "doc", remote: remote) }
        == a.document("doc")?.revisionID.description)
    try a.purge("doc")
    #expect(try a.replicating { try $0.mark(of: "doc", remote: remote) } == nil)
    #expect(try a.check() == [])
    #expect(try replicate(a, b).documents == [])
    #expect(try replicate(a, b) { $0.resetsCheckpoint = true }.pulled == ["doc"])
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
    #expect(outcome.status.error == nil)
    #expect(try (a.document("doc1", includeDeleted: true) == nil) == purges && a.document("doc2") != nil)
    #expect(try b.documentCount == 3)
  }

  @Test("an expired document is purged here and stays there") func expiration() throws {
    let (a, b) = try two()
    try a.save("doc", ["n": 1])
    try replicate(a, b)
    try a.setExpiration(of: "doc", at: Date(timeIntervalSinceNow: -1))
    eventually { (try? a.document("doc", includeDeleted: true)) == .some(nil) }
    try replicate(a, b)
    #expect(try b.document("doc") != nil && a.document("doc", includeDeleted: true) == nil)
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
    #expect(first.status.error == nil && first.failed == [:])
    #expect(hook.unavailable.withLock { $0 } == ["doc0 410", "doc1 410", "doc2 404"])
    try replicate(a, b)
    try expectEqual(a, b)
    #expect(
      try b.document("doc0")?["n"].int == 2 && b.document("doc1", includeDeleted: true)?.isDeleted == true)
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
    #expect(try b.revisions(of: "doc", withBodies: false)?.count == min(depth, 150))
    for number in 1..<150 { try b.update("doc") { $0["n"] = .int(Int64(-number)) } }
    let outcome = try replicate(a, b)
    #expect(outcome.failed == [:])
    try expectEqual(a, b)
    #expect(try a.conflicts(of: "doc").isEmpty)
    #expect(try a.check() == [] && b.check() == [])
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
      #expect(outcome.pushed == ["doc"] && outcome.failed == [:], what)
      try expectEqual(a, b)
      #expect(try a.document("doc")?.revisionID.generation == UInt64(edits + 1), what)
      #expect(try a.conflicts(of: "doc").isEmpty && b.conflicts(of: "doc").isEmpty, what)
      if !linksByHTTP {
        // It is one branch there.
        let leaves = try b.revisions(of: "doc", withBodies: false)?.filter(\.isLeaf)
        #expect(leaves?.count == 1, what)
      }
      #expect(try replicate(a, b).documents == [], what)
      #expect(try a.check(deep: true) == [] && b.check(deep: true) == [], what)
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
    #expect(outcome.failed == [:] && bases.withLock { $0 } == [base])
    try expectEqual(a, b)
    #expect(try b.document("doc")?.value() == ["n": 30, "m": 1])
    // What was kept goes with the next mark.
    for number in 31...35 { try a.update("doc") { $0["n"] = .int(Int64(number)) } }
    try replicate(a, b)
    for number in 36...40 { try a.update("doc") { $0["n"] = .int(Int64(number)) } }
    let live = try a.revisions(of: "doc", withBodies: false)?.filter { !$0.isDeleted }
    #expect(live?.map(\.id.generation).first == (try a.document("doc")?.revisionID.generation))
    #expect(try a.check(deep: true) == [] && b.check(deep: true) == [])
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
      #expect(outcome.pushed == ["doc"] && outcome.failed == [:])
      try expectEqual(a, b)
    }
  }

  @Test("pending documents are those whose revision isn't there") func pending() throws {
    let (a, b) = try two()
    for number in 0..<5 { try a.save("doc\(number)", ["n": 1]) }
    var configuration = ReplicatorConfiguration(a, ReplicatorTarget(connection(to: b)))
    configuration.documentIDs = ["doc1", "doc2", "doc9"]
    let replicator = Replicator(configuration)
    #expect(try replicator.pendingDocumentIDs() == ["doc1", "doc2"])
    #expect(try replicator.isDocumentPending("doc1") && !replicator.isDocumentPending("doc3"))
    _ = try run(configuration)
    #expect(try replicator.pendingDocumentIDs() == [])
    try a.update("doc2") { $0["n"] = 2 }
    #expect(try replicator.pendingDocumentIDs() == ["doc2"] && replicator.isDocumentPending("doc2"))
    configuration.direction = .pull
    #expect(try Replicator(configuration).pendingDocumentIDs() == [])
  }

  /// Every row of the table of answers to proposed changes.
  @Test("the passive side answers proposed changes", arguments: [EngineName.lmdb, .sqlite])
  func proposals(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let live = try database.save("live", ["n": 1]).revisionID.description
    try database.save("deleted", ["n": 1])
    let deleted = try database.delete("deleted").revisionID.description
    let responder = Responder(database)
    func answer(_ id: String, _ revision: String, _ parent: String?) throws -> ProposalStatus {
      try responder.answer([ProposedChange(id: id, revision: revision, remoteRevision: parent)]).statuses[0]
    }
    #expect(try answer("missing", "1-aa", nil) == .send)
    #expect(try answer("missing", "1-aa", "") == .send)
    #expect(try answer("missing", "2-aa", "1-aa") == .conflict(current: ""))
    #expect(try answer("live", live, nil) == .known)
    #expect(try answer("live", live, "1-aa") == .known)
    #expect(try answer("live", "1-aa", nil) == .conflict(current: live))
    #expect(try answer("deleted", "1-aa", nil) == .send)
    #expect(try answer("live", "2-aa", live) == .send)
    #expect(try answer("live", "2-aa", "1-bb") == .conflict(current: live))
    #expect(try answer("deleted", "3-aa", deleted) == .send)
    #expect(try answer("deleted", "3-aa", "2-bb") == .conflict(current: deleted))
    #expect(try answer("_bad", "1-aa", nil) == .send)
    #expect(try responder.setCheckpoint("x", Array("{}".utf8), basedOn: "") == "1-cc")
    #expect(throws: ReplicationError.self) { try responder.setCheckpoint("x", Array("{}".utf8), basedOn: "") }
    #expect(throws: ReplicationError.self) {
      try responder.setCheckpoint("x", Array("{}".utf8), basedOn: "2-cc")
    }
    #expect(try responder.setCheckpoint("x", Array("{}".utf8), basedOn: "1-cc") == "2-cc")
    #expect(try responder.checkpoint("x")?.revision == "2-cc" && responder.checkpoint("y") == nil)
    // A revision whose conflict is refused changes nothing.
    let conflicting = SyncRevision(
      id: "live", history: ["1-ff"], isDeleted: false, body: .json(Array("{}".utf8)))
    #expect(try responder.insert([OutgoingRevision(conflicting, sequence: 1)])[0]?.code == 409)
    #expect(
      try responder.insert([OutgoingRevision(conflicting, sequence: 1, allowsNoConflict: false)])[0] == nil)
    #expect(try database.conflicts(of: "live").count == 2)
    let invalid = SyncRevision(id: "_x", history: ["1-ff"], isDeleted: false, body: .json(Array("{}".utf8)))
    #expect(try responder.insert([OutgoingRevision(invalid, sequence: 1)])[0] != nil)
  }

  /// Couchbase Lite ends a pull with an error when its checkpoint can't be saved.
  @Test("a database for reading only takes checkpoints, and forgets them", arguments: allEngines)
  func checkpointsOfReadOnly(_ engine: EngineName) throws {
    try withTemporaryDirectory { directory in
      var options = try options(engine)
      try Database.open("test", in: directory, options: options).close()
      options.isReadOnly = true
      options.creation = .openExisting
      let database = try Database.open("test", in: directory, options: options)
      let responder = Responder(database)
      #expect(try responder.setCheckpoint("x", Array("{}".utf8), basedOn: "") == "1-cc")
      #expect(try responder.setCheckpoint("x", Array("{}".utf8), basedOn: "1-cc") == "2-cc")
      #expect(try responder.checkpoint("x") == nil)
      try database.close()
    }
  }
}
