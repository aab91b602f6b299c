import Foundation
import Synchronization
import TestSupport
import Testing
import Touchstone

@Suite("Validation functions") struct ValidationTests {
  @Test("they see saved, deleted and pulled revisions, and may reject them", arguments: someEngines)
  func rejecting(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.save("old", ["type": "hotel", "n": 1])
      let seen = Mutex<[String]>([])
      try database.setValidation("names") { revision, context in
        let kind = (revision.isDeleted ? "deleted" : "saved") + (revision.isFromSync ? " from sync" : "")
        let parent = revision.parentRevisionID.map { "\($0.generation)" } ?? "-"
        let stored = context.currentRevision.map { $0.isDeleted ? "tombstone" : "live" } ?? "none"
        let changed = try context.changedKeys().joined(separator: ",")
        seen.withLock { $0.append("\(revision.documentID) \(kind) \(parent) \(stored) \(changed)") }
        if !revision.isDeleted, revision.body["name"] == nil { context.reject("a hotel needs a name") }
        if revision.body["kept"] == true { context.reject() }
      }
      func message(_ body: () throws -> Void) throws -> String? {
        let error = try thrown(DocumentError.self, by: body)
        return error?.code == .rejected ? error?.message : nil
      }
      let refusal = "the validation \"names\" rejected the revision: a hotel needs a name"
      let sequence = try database.lastSequence
      try expect(message { try database.save("old", ["type": "hotel", "n": 2]) }, equals: refusal)
      try expect(message { try database.save("new", ["n": 1]) }, equals: refusal)
      let pulled = PulledRevision(id: "pulled", history: ["2-bb", "1-aa"], body: ["n": 1])
      try expect(message { try database.apply(pulled) }, equals: refusal)
      try expect(message { try database.delete("old", keeping: ["kept": true]) } != nil)
      try expect(database.lastSequence, equals: sequence)
      try database.save("new", ["name": "a", "n": 1])
      try database.save("new", ["name": "b", "m": 1])
      try database.apply(PulledRevision(id: "pulled", history: ["2-bb"], body: ["name": "p"]))
      try database.delete("new")
      try database.save(
        "new", ["_deleted": true], basedOn: database.document("new", includeDeleted: true)?.revisionID)
      // Purges aren't validated.
      try database.purge("old")
      expect(
        seen.withLock { $0 },
        equals: [
          "old saved 1 live n", "new saved - none n", "pulled saved from sync - none n",
          "old deleted 1 live kept,n,type", "new saved - none n,name", "new saved 1 live m,n,name",
          "pulled saved from sync - none name", "new deleted 2 live m,name", "new deleted 3 tombstone ",
        ])
      try expect(database.validation("names") != nil && database.validation("other") == nil)
      try database.setValidation("names", nil)
      try database.save("new", [:])
      try expect(storageFaults(database), equals: [])
    }
  }

  @Test("a batch goes on after a rejection, and functions read but don't write", arguments: someEngines)
  func inBatches(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      struct Odd: Error {}
      try database.save("limit", ["n": 3])
      try database.setValidation("b limit") { [weak database] revision, context in
        let limit = try database?.document("limit")?["n"].int ?? 0
        if revision.body["n"].intValue > limit { context.reject("over \(limit)") }
      }
      try database.setValidation("a writes") { [weak database] revision, _ in
        if revision.body["n"] == 0 { try database?.save("by a function", [:]) }
        if revision.body["n"] == -1 { throw Odd() }
      }
      try database.inBatch {
        try database.save("one", ["n": 1])
        try expect(documentCode { try database.save("two", ["n": 4]) }, equals: .rejected)
        try expect(documentCode { try database.save("two", ["n": 0]) }, equals: .writeInScan)
        #expect(throws: Odd.self) { try database.save("two", ["n": -1]) }
        try database.save("limit", ["n": 2])
        try expect(documentCode { try database.save("two", ["n": 3]) }, equals: .rejected)
        try database.save("two", ["n": 2])
      }
      try expect(database.documentCount, equals: 3)
      // A rejected revision of many fails all of them.
      let revisions = (1...3).map {
        PulledRevision(id: "p\($0)", history: ["1-a"], body: ["n": .int(Int64($0))])
      }
      try expect(documentCode { try database.apply(revisions) }, equals: .rejected)
      try expect(database.documentCount, equals: 3)
      try expect(storageFaults(database), equals: [])
    }
  }

  @Test(
    "the resolution of a conflict is validated, the ends of losing branches aren't", arguments: someEngines)
  func conflicts(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.apply(PulledRevision(id: "d", history: ["1-a"], body: ["n": 1]))
      try database.apply(PulledRevision(id: "d", history: ["1-b"], body: ["n": 2]))
      try database.setValidation("no deletions") { revision, context in
        if revision.isDeleted || revision.body["n"].intValue > 5 { context.reject() }
      }
      let leaf = try #require(try database.document("d")?.revisionID)
      try expect(
        documentCode { try database.resolveConflict(of: "d", keeping: leaf, merged: ["n": 6]) },
        equals: .rejected)
      try database.resolveConflict(of: "d", keeping: leaf, merged: ["n": 3])
      try expect(database.conflicts(of: "d").isEmpty)
      try expect(database.document("d")?["n"].int, equals: 3)
      let pulled = PulledRevision(id: "d", history: ["1-c"], body: ["n": 4])
      let resolver = ClosureConflictResolver { _ in .merged(["n": 7]) }
      try expect(documentCode { try database.apply(pulled, resolvingWith: resolver) }, equals: .rejected)
      try expect(database.document("d")?["n"].int, equals: 3)
    }
  }
}
