import Blobs
import Documents
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication

/// What is pending, and what the passive side answers.
extension ReplicatorTests {
  @Test("pending documents are those whose revision isn't there") func pending() throws {
    let (a, b) = try two()
    for number in 0..<5 { try a.save("doc\(number)", ["n": 1]) }
    var configuration = ReplicatorConfiguration(a, ReplicatorTarget(connection(to: b)))
    configuration.documentIDs = ["doc1", "doc2", "doc9"]
    let replicator = Replicator(configuration)
    try expect(replicator.pendingDocumentIDs(), equals: ["doc1", "doc2"])
    try expect(replicator.isDocumentPending("doc1") && !replicator.isDocumentPending("doc3"))
    _ = try run(configuration)
    try expect(replicator.pendingDocumentIDs(), equals: [])
    try a.update("doc2") { $0["n"] = 2 }
    try expect(replicator.pendingDocumentIDs() == ["doc2"] && replicator.isDocumentPending("doc2"))
    configuration.direction = .pull
    try expect(Replicator(configuration).pendingDocumentIDs(), equals: [])
  }

  /// Every row of the table of answers to proposed changes.
  @Test("the passive side answers proposed changes", arguments: [EngineName.lmdb, .sqlite])
  func proposals(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let live = try database.save("live", ["n": 1]).revisionID.description
    try database.save("deleted", ["n": 1])
    let deleted = try database.delete("deleted").revisionID.description
    let responder = PassiveResponder(database)
    func answer(_ id: String, _ revision: String, _ parent: String?) throws -> ProposalStatus {
      try responder.answer([ProposedChange(id: id, revision: revision, remoteRevision: parent)]).statuses[0]
    }
    try expect(answer("missing", "1-aa", nil), equals: .send)
    try expect(answer("missing", "1-aa", ""), equals: .send)
    try expect(answer("missing", "2-aa", "1-aa"), equals: .conflict(current: ""))
    try expect(answer("live", live, nil), equals: .known)
    try expect(answer("live", live, "1-aa"), equals: .known)
    try expect(answer("live", "1-aa", nil), equals: .conflict(current: live))
    try expect(answer("deleted", "1-aa", nil), equals: .send)
    try expect(answer("live", "2-aa", live), equals: .send)
    try expect(answer("live", "2-aa", "1-bb"), equals: .conflict(current: live))
    try expect(answer("deleted", "3-aa", deleted), equals: .send)
    try expect(answer("deleted", "3-aa", "2-bb"), equals: .conflict(current: deleted))
    try expect(answer("_bad", "1-aa", nil), equals: .send)
    // A live revision that lost against a deletion here isn't news, nor is one that was deleted here. The tombstone of a branch goes on.
    try expect(answer("deleted", live, nil), equals: .conflict(current: deleted))
    try expect(answer("deleted", live, ""), equals: .conflict(current: deleted))
    try database.apply(PulledRevision(id: "lost", history: ["1-11"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "lost", history: ["2-aa", "1-11"], body: ["n": 2]))
    try database.apply(
      PulledRevision(id: "lost", history: ["2-bb", "1-11"], isDeleted: true),
      resolvingWith: DefaultConflictResolver())
    let ended = try #require(
      try database.leaves(of: "lost", includeDeleted: true).first { $0.id.description != "2-bb" })
    expect(ended.isDeleted && ended.parent?.description == "2-aa")
    try expect(answer("lost", "2-aa", nil), equals: .conflict(current: "2-bb"))
    try expect(answer("lost", "2-aa", ""), equals: .conflict(current: "2-bb"))
    try expect(answer("lost", "2-aa", "2-bb"), equals: .send)
    try expect(answer("lost", "1-11", nil), equals: .conflict(current: "2-bb"))
    try expect(answer("lost", ended.id.description, nil), equals: .send)
    try expect(answer("lost", "1-22", nil), equals: .send)
    // Its branch was deleted, and another one is current.
    try database.apply(PulledRevision(id: "ended", history: ["1-aa"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "ended", history: ["1-bb"], body: ["n": 2]))
    try expect(answer("ended", "1-aa", "1-cc"), equals: .conflict(current: "1-bb"))
    try database.delete("ended")
    for parent in [nil, "1-cc"] {
      try expect(answer("ended", "1-bb", parent), equals: .ended(current: "1-aa"))
      try expect(answer("ended", "2-bb", parent), equals: .conflict(current: "1-aa"))
    }
    try expect(responder.setCheckpoint("x", Array("{}".utf8), basedOn: ""), equals: "1-cc")
    #expect(throws: ReplicationError.self) { try responder.setCheckpoint("x", Array("{}".utf8), basedOn: "") }
    #expect(throws: ReplicationError.self) {
      try responder.setCheckpoint("x", Array("{}".utf8), basedOn: "2-cc")
    }
    try expect(responder.setCheckpoint("x", Array("{}".utf8), basedOn: "1-cc"), equals: "2-cc")
    try expect(responder.checkpoint("x")?.revision == "2-cc" && responder.checkpoint("y") == nil)
    // A revision whose conflict is refused changes nothing.
    let conflicting = SyncRevision(
      id: "live", history: ["1-ff"], isDeleted: false, body: .json(Array("{}".utf8)))
    try expect(responder.insert([OutgoingRevision(conflicting, sequence: 1)])[0]?.code, equals: 409)
    try expect(
      responder.insert([OutgoingRevision(conflicting, sequence: 1, allowsNoConflict: false)])[0] == nil)
    try expect(database.conflicts(of: "live").count, equals: 2)
    let invalid = SyncRevision(id: "_x", history: ["1-ff"], isDeleted: false, body: .json(Array("{}".utf8)))
    try expect(responder.insert([OutgoingRevision(invalid, sequence: 1)])[0] != nil)
  }

  @Test(
    "a blob that is collected while another one of its document comes is fetched too", arguments: someEngines)
  func collectedBlob(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let contents = [Array("first".utf8), Array("second".utf8)]
      // The first one is stored elsewhere only.
      var blobs: [Blob] = []
      try withDatabase(engine) { peer in blobs = try contents.map { try peer.makeBlob($0) } }
      try database.save("other", ["blob": database.makeBlob(contents[1]).jsonValue])
      let body: JSONValue = ["a": blobs[0].jsonValue, "b": blobs[1].jsonValue]
      let fetched = Lock<[BlobDigest]>([])
      let inserter = RevisionInserter(PassiveResponder(database)) { [blobs] blob, _, writer, done in
        do {
          let index = blob.digest == blobs[0].digest ? 0 : 1
          if fetched.withLock({
            $0.append(blob.digest); return $0.count
          }) == 1 {
            try database.purge("other")
            try database.compact()
          }
          try writer.write(contents[index])
          done(.success(()))
        } catch { done(.failure(ReplicationError(error))) }
      }
      let revision = try SyncRevision(
        id: "doc", history: ["1-aa"], isDeleted: false, body: .json(Array(body.canonicalJSON().utf8)))
      let results = Lock<[RevisionInserter.InsertResult]>([])
      inserter.store([IncomingRevision(revision, sequence: RemoteSequence(json: "1"))]) { stored in
        results.withLock { $0 = stored }
      }
      try eventually { results.withLock { $0.count == 1 } }
      if case .failure(let error) = results.withLock({ $0[0] }) { Issue.record("\(error)") }
      expect(fetched.withLock { $0 }, equals: blobs.map(\.digest))
      for blob in blobs { try expect(database.open(blob).length > 0) }
    }
  }

  /// Couchbase Lite ends a pull with an error when its checkpoint can't be saved.
  @Test("a database for reading only takes checkpoints, and forgets them", arguments: someEngines)
  func checkpointsOfReadOnly(_ engine: EngineName) throws {
    try withTemporaryDirectory { directory in
      var options = try options(engine)
      try Database.open("test", in: directory, options: options).close()
      options.isReadOnly = true
      options.creation = .openExisting
      let database = try Database.open("test", in: directory, options: options)
      let responder = PassiveResponder(database)
      try expect(responder.setCheckpoint("x", Array("{}".utf8), basedOn: ""), equals: "1-cc")
      try expect(responder.setCheckpoint("x", Array("{}".utf8), basedOn: "1-cc"), equals: "2-cc")
      try expect(responder.checkpoint("x") == nil)
      try database.close()
    }
  }
}
