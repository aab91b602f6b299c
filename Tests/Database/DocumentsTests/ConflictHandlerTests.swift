import TestSupport
import Testing
import Touchstone

@Suite("Saving with a conflict handler, and deleting by saving") struct ConflictHandlerTests {
  @Test(
    "the handler is called on a conflict, again after another one, and may give up", arguments: someEngines)
  func handler(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      var hotel = MutableDocument(id: "hotel", ["likes": ["Ann"], "name": "a"])
      // Without a conflict it isn't called.
      let first = try database.save(&hotel) { _, _ in
        Issue.record("there is no conflict")
        return false
      }
      expect(first?.revisionID, equals: hotel.revisionID)
      try database.save("hotel", ["likes": ["Bob"], "name": "b"])
      hotel["name"] = "c"
      let before = hotel.revisionID
      try expect(database.save(&hotel) { _, _ in false } == nil)
      expect(hotel.revisionID, equals: before)
      var calls: [String] = []
      let saved = try database.save(&hotel) { hotel, stored in
        calls.append(stored?["name"].string ?? "-")
        // It runs outside of the transaction. The first time, another writer comes first.
        if calls.count == 1 { try database.save("hotel", ["likes": ["Cid"], "name": "d"]) }
        hotel["likes"] = try stored?["likes"].jsonValue()
        return true
      }
      expect(calls, equals: ["b", "d"])
      expect(saved?.generation == 4 && hotel.revisionID == saved?.revisionID)
      try expect(database.document("hotel")?.value(), equals: ["likes": ["Cid"], "name": "c"])
      try expect(database.conflicts(of: "hotel").isEmpty)
    }
  }

  @Test("a stored document that was deleted or purged is nil", arguments: someEngines)
  func gone(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      var hotel = MutableDocument(id: "hotel", ["n": 1])
      try database.save(&hotel)
      try database.delete("hotel")
      hotel["n"] = 2
      var seen: [Bool] = []
      let saved = try database.save(&hotel) { _, stored in
        seen.append(stored == nil)
        return true
      }
      expect(seen == [true] && saved?.generation == 3)
      try database.purge("hotel")
      hotel["n"] = 3
      let again = try database.save(&hotel) { _, stored in
        seen.append(stored == nil)
        return true
      }
      expect(seen == [true, true] && again?.generation == 1)
      try expect(database.document("hotel")?["n"].int, equals: 3)
      // A new document whose ID is in use.
      var other = MutableDocument(id: "hotel", ["n": 4])
      try database.save(&other) { other, stored in
        other["was"] = try stored?["n"].jsonValue()
        return true
      }
      try expect(database.document("hotel")?.value(), equals: ["n": 4, "was": 3])
      struct Stop: Error {}
      other.body = ["n": 5]
      try database.save("hotel", [:])
      #expect(throws: Stop.self) { try database.save(&other) { _, _ in throw Stop() } }
      try expect(database.document("hotel")?.value(), equals: [:])
    }
  }

  @Test("a rolled back transaction leaves no revision that was never stored", arguments: someEngines)
  func rolledBack(_ engine: EngineName) throws {
    struct Stop: Error {}
    try withDatabase(engine) { database in
      var hotel = MutableDocument(id: "hotel", ["n": 1])
      try database.save(&hotel)
      let stored = hotel.revisionID
      #expect(throws: Stop.self) {
        try database.write { transaction in
          try transaction.save("hotel", ["n": 2])
          hotel["n"] = 3
          let saved = try transaction.save(&hotel) { _, other in other?["n"].int == 2 }
          expect(saved?.revisionID, equals: hotel.revisionID)
          throw Stop()
        }
      }
      expect(hotel.revisionID, equals: stored)
      try expect(database.document("hotel")?.revisionID, equals: stored)
    }
  }

  @Test("_deleted in a saved body makes a tombstone with the other properties", arguments: someEngines)
  func deletedProperty(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      var hotel = MutableDocument(id: "hotel", ["name": "a", "n": 1])
      try database.save(&hotel)
      hotel.body = ["_deleted": true, "deleted_at": "now"]
      let saved = try database.save(&hotel)
      try expect(database.document("hotel") == nil)
      let tombstone = try #require(try database.document("hotel", includeDeleted: true))
      expect(tombstone.isDeleted && tombstone.revisionID == saved.revisionID)
      try expect(tombstone.value(), equals: ["deleted_at": "now"])
      // The revision is the one that a deletion makes.
      try database.save("other", ["name": "a", "n": 1])
      let deleted = try database.delete("other", keeping: ["deleted_at": "now"])
      expect(deleted.revisionID, equals: saved.revisionID)
      let changes = try database.changes()
      expect(changes.map(\.isDeleted), equals: [true, true])
      // As JSON, in an update, in a batch, and with false.
      try database.save("json", DocumentBody(json: #"{"_deleted":false,"n":1}"#))
      try expect(database.document("json")?.value(), equals: ["n": 1])
      try database.save("json", DocumentBody(json: #"{"a":1,"_deleted":true,"n":1}"#))
      try expect(database.document("json", includeDeleted: true)?.value(), equals: ["a": 1, "n": 1])
      try database.save("update", ["n": 1])
      try database.inBatch { try database.update("update") { $0["_deleted"] = true } }
      try expect(database.document("update", includeDeleted: true)?.value(), equals: ["n": 1])
      let refused = [
        try documentCode { try database.save("none", ["_deleted": true]) },
        try documentCode { try database.save("update", ["_deleted": true]) },
        try documentCode { try database.save("x", ["_deleted": 1]) },
        try documentCode { try database.save("x", ["_deleted": false, "_other": 1]) },
      ]
      expect(refused, equals: [.notFound, .notFound, .reservedProperty, .reservedProperty])
      try expect(storageFaults(database), equals: [])
    }
  }
}
