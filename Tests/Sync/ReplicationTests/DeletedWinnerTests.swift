// Both sides have two branches of a document, as a replication over HTTP leaves them. One side deletes the branch that won.

import Documents
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication

@Suite("One of two branches is deleted", .disabled(if: linksByHTTP, "over HTTP all leaves go"))
struct DeletedWinnerTests {
  private let databases = TestDatabases()

  /// Two databases with the branches 1-bb, which wins, and 1-aa.
  private func two(_ engines: (EngineName, EngineName)) throws -> (Database, Database) {
    let both = (try databases.open(engines.0), try databases.open(engines.1))
    for database in [both.0, both.1] {
      for (revision, number) in [("1-aa", 1), ("1-bb", 2)] {
        try database.apply(PulledRevision(id: "d", history: [revision], body: ["n": .int(Int64(number))]))
      }
    }
    return both
  }

  private func expectLoser(_ database: Database) throws {
    let document = try #require(try database.document("d"))
    expect(document.revisionID.description, equals: "1-aa")
    expect(document["n"].int, equals: 1)
    expect(!document.isConflicted)
  }

  @Test(
    "the branch that is left is current on both sides, whichever side replicates", arguments: enginePairs,
    [true, false])
  func deleted(_ engines: (EngineName, EngineName), _ isHere: Bool) throws {
    let (a, b) = try two(engines)
    try (isHere ? a : b).delete("d")
    let outcome = try replicate(a, b)
    expect(outcome.failed == [:] && outcome.status.error == nil)
    for database in [a, b] { try expectLoser(database) }
    try expect(replicate(a, b).documents, equals: [])
    try expect(replicate(b, a).documents, equals: [])
  }

  @Test("a push alone ends the branch there")
  func pushed() throws {
    let (a, b) = try two((.lmdb, .sqlite))
    try a.delete("d")
    let outcome = try replicate(a, b) { $0.direction = .push }
    expect(outcome.failed == [:] && outcome.status.error == nil)
    for database in [a, b] { try expectLoser(database) }
  }

  @Test("a push alone ends no branch here, and reports the conflict")
  func pushedEnded() throws {
    let (a, b) = try two((.lmdb, .sqlite))
    try b.delete("d")
    let sequence = try a.lastSequence
    for _ in 0..<2 {
      let outcome = try replicate(a, b) { $0.direction = .push }
      expect(outcome.failed["d"] != nil && outcome.status.error == nil)
      try expect(a.lastSequence, equals: sequence)
      try expect(a.document("d")?["n"].int, equals: 2)
      try expectLoser(b)
    }
    // Both ways end it.
    let outcome = try replicate(a, b)
    expect(outcome.failed == [:] && outcome.status.error == nil)
    for database in [a, b] { try expectLoser(database) }
  }

  @Test("an edit of the branch that was deleted there is a conflict, and isn't lost")
  func edited() throws {
    let (a, b) = try two((.lmdb, .sqlite))
    try b.delete("d")
    try a.update("d") { $0["n"] = 3 }
    let outcome = try replicate(a, b)
    expect(outcome.failed == [:] && outcome.status.error == nil)
    for database in [a, b] { try expect(database.document("d")?["n"].int, equals: 3) }
  }

  @Test("each side deletes another branch: the document is the same on both sides")
  func bothDeleted() throws {
    let (a, b) = try two((.lmdb, .sqlite))
    try b.delete("d")
    let loser = try #require(RevisionID("1-aa"))
    try a.delete("d", basedOn: loser)
    let outcome = try replicate(a, b)
    expect(outcome.failed == [:] && outcome.status.error == nil)
    try expectEqual(a, b)
    try expect(replicate(a, b).documents, equals: [])
  }

  @Test("deleting both branches there deletes the document here")
  func allDeleted() throws {
    let (a, b) = try two((.lmdb, .sqlite))
    try b.delete("d")
    try b.delete("d")
    try replicate(a, b)
    for database in [a, b] { try expect(database.document("d") == nil) }
    try expect(replicate(a, b).documents, equals: [])
  }
}
