import TestSupport

private struct Stop: Error {}

@Suite("Saving documents") struct SavingTests {
  private let databases = TestDatabases()

  @Test("a saved document reads back", arguments: someEngines)
  func readsBack(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var hotel = MutableDocument(
      id: "hotel_1",
      [
        "type": "hotel", "name": "Apple Droid", "stars": 4, "rate": 99.5, "open": true, "fax": .null,
        "geo": ["lat": 51.5, "lon": -0.1], "tags": ["quiet", "a very long tag that is not shared at all"],
      ])
    let saved = try database.save(&hotel)
    #expect(saved.sequence == 1)
    #expect(hotel.revisionID == saved.revisionID)
    let read = try #require(try database.document("hotel_1"))
    #expect(read.revisionID == saved.revisionID)
    #expect(read.sequence == 1)
    #expect(read["name"].string == "Apple Droid")
    #expect(read["stars"].int == 4)
    #expect(read["rate"].double == 99.5)
    #expect(read["open"].bool == true)
    #expect(read["fax"].exists)
    #expect(read["geo"]["lat"].double == 51.5)
    #expect(read["tags"][1].string == "a very long tag that is not shared at all")
    #expect(read["tags"].count == 2)
    #expect(!read["nothing"]["at"]["all"].exists)
    #expect(try read.value() == hotel.body)
    #expect(try database.document("hotel_2") == nil)
    #expect(try database.documentCount == 1)
    #expect(try database.lastSequence == 1)
  }

  @Test("the revision ID is that of the recipe, on every engine", arguments: someEngines)
  func revisionID(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let first = try database.save("a", DocumentBody(json: #"{"ans*wer":42}"#))
    #expect(first.revisionID.description == "1-feb9f18cfe84f614f750040e3eed3eb84a6b5332")
    #expect(try database.save("b", ["ans*wer": 42]).revisionID == first.revisionID)
    // The order of the properties doesn't matter, an integral double isn't an integer.
    let x = try database.save("c", DocumentBody(json: #"{"b":1,"a":2}"#))
    let y = try database.save("d", DocumentBody(json: #"{"a":2,"b":1}"#))
    let z = try database.save("e", DocumentBody(json: #"{"a":2,"b":1.0}"#))
    #expect(x.revisionID == y.revisionID)
    #expect(x.revisionID != z.revisionID)
  }

  @Test("the same documents have the same revision IDs on all engines")
  func sameOnAllEngines() throws {
    func history(_ engine: EngineName) throws -> [String] {
      var history: [String] = []
      try withDatabase(engine) { database in
        for round in 0..<3 {
          for number in 0..<50 {
            let id = "doc\(number)"
            let body: DocumentBody = ["n": .int(Int64(number)), "round": .int(Int64(round)), "d": 0.1]
            history.append(try database.save(id, body).revisionID.description)
          }
        }
        for number in 0..<10 { history.append(try database.delete("doc\(number)").revisionID.description) }
      }
      return history
    }
    let reference = try history(.sqlite)
    for engine in someEngines.dropFirst() { #expect(try history(engine) == reference) }
  }

  @Test("the last write wins, or a conflict is refused", arguments: someEngines)
  func concurrencyControl(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var mine = MutableDocument(id: "a", ["n": 1])
    try database.save(&mine)
    var yours = try MutableDocument(try #require(try database.document("a")))
    yours["n"] = 2
    try database.save(&yours, onConflict: .fail)
    mine["n"] = 3
    #expect(try documentCode { try database.save(&mine, onConflict: .fail) } == .conflict)
    #expect(try database.document("a")?["n"].int == 2)
    #expect(try database.lastSequence == 2)
    let saved = try database.save(&mine)
    #expect(saved.generation == 3)
    #expect(try database.document("a")?["n"].int == 3)
    #expect(
      try documentCode { try database.delete("a", basedOn: yours.revisionID, onConflict: .fail) }
        == .conflict)
    #expect(try documentCode { try database.save("a", [:], onConflict: .fail) } == .conflict)
    try database.delete("a", basedOn: saved.revisionID, onConflict: .fail)
    #expect(try database.document("a") == nil)
  }

  @Test("a deletion leaves a tombstone, and a save undoes it", arguments: someEngines)
  func tombstones(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    try database.save("b", ["n": 1])
    #expect(try database.delete("a", keeping: ["why": "old"]).generation == 2)
    #expect(try database.document("a") == nil)
    let tombstone = try #require(try database.document("a", includeDeleted: true))
    #expect(tombstone.isDeleted)
    #expect(tombstone["why"].string == "old")
    #expect(try database.documentCount == 1)
    #expect(try database.tombstoneCount == 1)
    #expect(try database.changes().map(\.documentID) == ["b", "a"])
    #expect(try database.changes().map(\.isDeleted) == [false, true])
    #expect(try database.save("a", ["n": 2], onConflict: .fail).generation == 3)
    #expect(try database.documentCount == 2)
    #expect(try database.tombstoneCount == 0)
    #expect(try documentCode { try database.delete("c") } == .notFound)
  }

  @Test("what can't be saved is refused, and nothing changes", arguments: someEngines)
  func refusals(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for id in ["", "_a", "a\u{1}b", String(repeating: "x", count: 241)] {
      #expect(try documentCode { try database.save(id, [:]) } == .invalidDocumentID, "\(id)")
    }
    try database.save(String(repeating: "x", count: 240), [:])
    #expect(try documentCode { try database.save("a", DocumentBody(json: "[1]")) } == .invalidBody)
    #expect(try documentCode { try database.save("a", DocumentBody(json: "1")) } == .invalidBody)
    #expect(try documentCode { try database.save("a", DocumentBody(json: #"{"a":"#)) } == .invalidBody)
    #expect(try documentCode { try database.save("a", DocumentBody(json: "")) } == .invalidBody)
    #expect(try documentCode { try database.save("a", ["d": .double(.nan)]) } == .invalidBody)
    for name in ["_id", "_rev", "_deleted", "_anything", "_a name that is longer than sixteen bytes"] {
      #expect(try documentCode { try database.save("a", .value([name: 1])) } == .reservedProperty, "\(name)")
    }
    try database.save("b", ["inner": ["_id": "not reserved below the top"]])
    #expect(try database.documentCount == 2)
    #expect(try database.lastSequence == 2)
  }

  @Test("a batch is all or nothing, and nested ones join it", arguments: someEngines)
  func batches(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.save("before", ["n": 0])
      do {
        try database.inBatch {
          for number in 0..<100 { try database.save("doc\(number)", ["key\(number)": 1]) }
          #expect(try database.document("doc7") != nil)
          #expect(try database.documentCount == 101)
          try database.delete("before")
          throw Stop()
        }
        Issue.record("the batch went through")
      } catch is Stop {}
      #expect(try database.documentCount == 1)
      #expect(try database.lastSequence == 1)
      #expect(try database.changes().count == 1)
      // Shared keys of the batch that was undone are not left behind.
      try database.inBatch {
        try database.save("a", ["other": 1])
        try database.inBatch { try database.save("b", ["another": 2]) }
        #expect(try documentCode { _ = try database.save("a", [:], onConflict: .fail) } == .conflict)
      }
      #expect(try database.document("a")?["other"].int == 1)
      #expect(try database.document("b")?["another"].int == 2)
      #expect(try database.document("b")?["key0"].exists == false)
      // An inner batch that failed can't be left out.
      let found = try documentCode {
        try database.inBatch {
          try database.save("c", [:])
          try? database.inBatch {
            try database.save("d", [:])
            throw Stop()
          }
        }
      }
      #expect(found == .batchFailed)
      #expect(try database.documentCount == 3)
    }
  }

  @Test("replaced bodies stay until compaction", arguments: someEngines)
  func replacedBodies(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      for number in 1...30 { try database.save("a", ["n": .int(Int64(number))]) }
      var revisions = try #require(try database.revisions(of: "a"))
      let generations: [UInt64] = (11...30).reversed()
      #expect(revisions.map(\.id.generation) == generations)
      let numbers: [JSONValue] = (11...30).reversed().map { .int($0) }
      #expect(revisions.compactMap { $0.body?["n"] } == numbers)
      #expect(revisions.filter(\.isLeaf).count == 1)
      #expect(revisions.last?.parent == nil)
      #expect(revisions.first?.parent == revisions[1].id)
      try database.compact()
      revisions = try #require(try database.revisions(of: "a"))
      #expect(revisions.count == 20)
      #expect(revisions.filter { $0.body != nil }.map(\.isCurrent) == [true])
      #expect(try database.document("a")?["n"].int == 30)
    }
    try withDatabase(engine, { $0.keepsReplacedBodies = false }) { database in
      for number in 1...3 { try database.save("a", ["n": .int(Int64(number))]) }
      #expect(try database.revisions(of: "a")?.map { $0.body != nil } == [true, false, false])
    }
    try withDatabase(engine, { $0.maximumTreeDepth = 1 }) { database in
      for number in 1...3 { try database.save("a", ["n": .int(Int64(number))]) }
      #expect(try database.revisions(of: "a")?.count == 1)
    }
  }

  @Test("a change that may not win notices that its document was purged", arguments: someEngines)
  func changeOfPurged(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var document = MutableDocument(id: "x", ["v": 1])
    try database.save(&document)
    document["v"] = 2
    try database.save(&document)
    let revision = document.revisionID
    try database.purge("x")
    document["v"] = 3
    #expect(try documentCode { try database.save(&document, onConflict: .fail) } == .conflict)
    #expect(document.revisionID == revision)
    #expect(
      try documentCode { try database.save("x", ["v": 3], basedOn: revision, onConflict: .fail) }
        == .conflict)
    #expect(try documentCode { try database.delete("x", basedOn: revision, onConflict: .fail) } == .notFound)
    #expect(try database.document("x") == nil)
    // The last write wins over a purge as well.
    #expect(try database.save(&document).revisionID.generation == 1)
    // It starts again, and then there is nothing to change.
    var runs = 0
    #expect(
      try documentCode {
        try database.update("x") { document in
          runs += 1
          try database.purge("x")
          document["z"] = 1
        }
      } == .notFound)
    #expect(runs == 1)
    // Or a new document.
    try database.save("x", ["v": 4])
    runs = 0
    let saved = try database.update("x", creating: true) { document in
      runs += 1
      if runs == 1 { try database.purge("x") }
      document["z"] = 1
    }
    #expect(runs == 2 && saved.revisionID.generation == 1)
    #expect(try database.document("x")?.value() == ["z": 1])
  }

  @Test("a purged document leaves nothing", arguments: someEngines)
  func purge(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for number in 0..<5 { try database.save("a", ["n": .int(Int64(number))]) }
    try database.save("b", [:])
    try database.purge("a")
    #expect(try database.document("a", includeDeleted: true) == nil)
    #expect(try database.changes().map(\.documentID) == ["b"])
    #expect(try database.lastSequence == 6)
    #expect(try documentCode { try database.purge("a") } == .notFound)
    #expect(try database.engine.maintenance.statistics().entries["bodies"] == 0)
    #expect(try database.save("a", [:]).generation == 1)
    try database.purge("b")
    #expect(try database.lastSequence == 7)
  }

  @Test("large and small bodies", arguments: someEngines)
  func sizes(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for size in [0, 1, 100, 4_000, 8_192, 70_000, 1_000_000, 20_000_000] {
      let text = String(repeating: "x", count: size)
      try database.save("size\(size)", ["text": .string(text)])
      #expect(try database.document("size\(size)")?["text"].string == text)
    }
    let many = JSONValue.object(JSONObject((0..<5_000).map { ("property\($0)", .int(Int64($0))) }))
    try database.save("many", .value(many))
    #expect(try database.document("many")?.value() == many)
    #expect(try database.document("many")?["property4999"].int == 4_999)
  }
}
