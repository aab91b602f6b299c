import Foundation
import TestSupport
import Testing
import Touchstone

@Suite("Models") struct ModelTests {
  struct Hotel: DocumentModel, Hashable {
    struct Review: Codable, Hashable { var stars: Int; var photo: Blob? }
    var id: String?
    var revision = ModelRevision()
    var name: String
    var opened: Date?
    var photo: Blob?
    var reviews: [Review]?
    var likes: UInt64?
  }

  /// A type whose documents have an `id` of their own, and which has defaults.
  struct Landmark: DocumentModel {
    var id: String?
    var revision: ModelRevision
    var number: Int
    var tags: [String]

    enum CodingKeys: String, CodingKey { case id = "_id", revision, number = "id", tags }

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      id = try container.decodeIfPresent(String.self, forKey: .id)
      revision = try container.decode(ModelRevision.self, forKey: .revision)
      number = try container.decode(Int.self, forKey: .number)
      tags = try container.decodeIfPresent([String].self, forKey: .tags) ?? ["new"]
    }
  }

  @Test("are saved, read, updated and deleted", arguments: someEngines)
  func roundTrip(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let bytes = Array("a photo".utf8)
      var hotel = Hotel(
        id: "h", name: "Apple Droid", opened: Date(timeIntervalSince1970: 1_000.5),
        photo: try Blob(bytes, contentType: "image/png"),
        reviews: [.init(stars: 5, photo: try Blob([1, 2, 3])), .init(stars: 1)], likes: .max)
      let saved = try database.save(&hotel)
      expect(hotel.revisionID == saved.revisionID && hotel.revision.sequence == 1)
      let document = try #require(try database.document("h"))
      expect(Set(document.keys), equals: ["name", "opened", "photo", "reviews", "likes"])
      expect(document["opened"].string, equals: "1970-01-01T00:16:40.500Z")
      let read = try #require(try database.get(Hotel.self, "h"))
      expect(read == hotel && read.revisionID == hotel.revisionID)
      try expect(read.photo?.content(), equals: bytes)
      try expect(read.reviews?[0].photo?.content(), equals: [1, 2, 3])
      try expect(database.get(Hotel.self, "none") == nil)
      // An ID is made, a missing property is nil, and one without a default is an error.
      var other = Hotel(name: "b")
      try database.save(&other)
      expect(UUID(uuidString: other.id ?? "") != nil)
      try expect(database.get(Hotel.self, other.id ?? "")?.opened == nil)
      try database.save("odd", ["opened": .null])
      #expect(throws: DecodingError.self) { try database.get(Hotel.self, "odd") }
      // Update, and the conflict control of documents.
      let updated = try database.update(Hotel.self, "h") { $0.name = "Banana" }
      expect(updated.revisionID?.generation, equals: 2)
      hotel.name = "Cherry"
      try expect(documentCode { try database.save(&hotel, onConflict: .fail) }, equals: .conflict)
      expect(hotel.revisionID, equals: saved.revisionID)
      try expect(database.save(&hotel) { _, _ in false } == nil)
      try database.save(&hotel) { hotel, stored in
        expect(stored?.name, equals: "Banana")
        hotel.likes = stored?.likes
        return true
      }
      expect(hotel.revisionID?.generation, equals: 3)
      try expect(documentCode { try database.update(Hotel.self, "none") { $0.name = "" } }, equals: .notFound)
      try database.delete(&hotel, onConflict: .fail)
      try expect(database.document("h") == nil)
      expect(hotel.revisionID?.generation, equals: 4)
      var unsaved = Hotel(name: "x")
      try expect(documentCode { try database.delete(&unsaved) }, equals: .notFound)
      try expect(storageFaults(database), equals: [])
    }
  }

  @Test("a document made from a model is what a save of the model stores", arguments: someEngines)
  func madeIntoDocuments(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      var hotel = Hotel(id: "h", name: "Apple Droid")
      var document = try MutableDocument(encoding: hotel)
      expect(document.id == "h" && !document.contains(key: "id") && !document.contains(key: "revision"))
      try database.save(&document)
      let first = try #require(try database.document("h"))
      try database.purge("h")
      try database.save(&hotel)
      try expect(database.document("h")?.revisionID, equals: first.revisionID)
      try expect(database.read { try $0.document("h").map { try Hotel($0) } }, equals: hotel)
    }
  }

  @Test("documents with an id of their own, and defaults", arguments: someEngines)
  func ownID(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.save("landmark_7", ["id": 7])
      var landmark = try #require(try database.get(Landmark.self, "landmark_7"))
      expect(landmark.id == "landmark_7" && landmark.number == 7 && landmark.tags == ["new"])
      landmark.number = 8
      try database.save(&landmark)
      try expect(database.document("landmark_7")?.value(), equals: ["id": 8, "tags": ["new"]])
      landmark.id = nil
      try database.save(&landmark)
      try expect(database.document(landmark.id ?? "")?.value(), equals: ["id": 8, "tags": ["new"]])
      let all = try database.all(Landmark.self, AllDocuments(prefix: "landmark_"))
      expect(all.map(\.number), equals: [8])
    }
  }

  @Test("of a conflicted document are those of its leaves", arguments: someEngines)
  func conflicts(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      for (history, name) in [("1-a", "first"), ("1-b", "second")] {
        try database.apply(PulledRevision(id: "h", history: [history], body: ["name": .string(name)]))
      }
      var hotels = try database.conflicts(Hotel.self, of: "h")
      expect(hotels.map(\.name), equals: ["second", "first"])
      expect(hotels.map { $0.revisionID?.description }, equals: ["1-b", "1-a"])
      // Each is based on its own branch.
      hotels[1].name = "third"
      try database.save(&hotels[1], onConflict: .fail)
      try expect(database.get(Hotel.self, "h")?.name, equals: "third")
    }
  }

  @Test("a rolled back transaction leaves no revision that was never stored", arguments: someEngines)
  func rolledBack(_ engine: EngineName) throws {
    struct Stop: Error {}
    try withDatabase(engine) { database in
      var old = Hotel(id: "old", name: "a")
      try database.save(&old)
      let stored = old.revisionID
      var new = Hotel(name: "b")
      #expect(throws: Stop.self) {
        try database.write { transaction in
          old.name = "c"
          try transaction.save(&old)
          try transaction.save(&old)
          try transaction.save(&new)
          expect(old.revisionID?.generation == 3 && new.revisionID?.generation == 1)
          try expect(transaction.get(Hotel.self, "old")?.name, equals: "c")
          try expect(transaction.all(Hotel.self).count, equals: 2)
          try transaction.update(Hotel.self, "old") { $0.name = "d" }
          try transaction.delete(&new)
          throw Stop()
        }
      }
      expect(old.revisionID == stored && new.revisionID == nil)
      try expect(database.get(Hotel.self, "old")?.name, equals: "a")
      try database.save(&new)
      try database.save(&old, onConflict: .fail)
      expect(old.revisionID?.generation, equals: 2)
    }
  }
}
