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
    // A live revision that lost against a deletion here isn't news. Its ancestors and the tombstone of its branch go on as before.
    try database.apply(PulledRevision(id: "lost", history: ["1-11"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "lost", history: ["2-aa", "1-11"], body: ["n": 2]))
    try database.apply(
      PulledRevision(id: "lost", history: ["2-bb", "1-11"], isDeleted: true),
      resolvingWith: DefaultConflictResolver())
    let ended = try #require(
      try database.leaves(of: "lost", includeDeleted: true).first { $0.id.description != "2-bb" })
    #expect(ended.isDeleted && ended.parent?.description == "2-aa")
    #expect(try answer("lost", "2-aa", nil) == .conflict(current: "2-bb"))
    #expect(try answer("lost", "2-aa", "") == .conflict(current: "2-bb"))
    #expect(try answer("lost", "2-aa", "2-bb") == .send)
    #expect(try answer("lost", "1-11", nil) == .send)
    #expect(try answer("lost", ended.id.description, nil) == .send)
    #expect(try answer("lost", "1-22", nil) == .send)
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
  @Test("a database for reading only takes checkpoints, and forgets them", arguments: someEngines)
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
