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
    expect(saved.sequence, equals: 1)
    expect(hotel.revisionID, equals: saved.revisionID)
    let read = try #require(try database.document("hotel_1"))
    expect(read.revisionID, equals: saved.revisionID)
    expect(read.sequence, equals: 1)
    expect(read["name"].string, equals: "Apple Droid")
    expect(read["stars"].int, equals: 4)
    expect(read["rate"].double, equals: 99.5)
    expect(read["open"].bool, equals: true)
    expect(read["fax"].exists)
    expect(read["geo"]["lat"].double, equals: 51.5)
    expect(read["tags"][1].string, equals: "a very long tag that is not shared at all")
    expect(read["tags"].count, equals: 2)
    expect(!read["nothing"]["at"]["all"].exists)
    try expect(read.value(), equals: hotel.body)
    try expect(database.document("hotel_2") == nil)
    try expect(database.documentCount, equals: 1)
    try expect(database.lastSequence, equals: 1)
  }

  @Test("the revision ID is that of the recipe, on every engine", arguments: someEngines)
  func revisionID(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let first = try database.save("a", DocumentBody(json: #"{"ans*wer":42}"#))
    expect(first.revisionID.description, equals: "1-feb9f18cfe84f614f750040e3eed3eb84a6b5332")
    try expect(database.save("b", ["ans*wer": 42]).revisionID, equals: first.revisionID)
    // The order of the properties doesn't matter, an integral double isn't an integer.
    let x = try database.save("c", DocumentBody(json: #"{"b":1,"a":2}"#))
    let y = try database.save("d", DocumentBody(json: #"{"a":2,"b":1}"#))
    let z = try database.save("e", DocumentBody(json: #"{"a":2,"b":1.0}"#))
    expect(x.revisionID, equals: y.revisionID)
    expect(x.revisionID != z.revisionID)
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
    for engine in someEngines.dropFirst() { try expect(history(engine), equals: reference) }
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
    try expect(documentCode { try database.save(&mine, onConflict: .fail) }, equals: .conflict)
    try expect(database.document("a")?["n"].int, equals: 2)
    try expect(database.lastSequence, equals: 2)
    let saved = try database.save(&mine)
    expect(saved.generation, equals: 3)
    try expect(database.document("a")?["n"].int, equals: 3)
    try expect(
      documentCode { try database.delete("a", basedOn: yours.revisionID, onConflict: .fail) },
      equals: .conflict)
    try expect(documentCode { try database.save("a", [:], onConflict: .fail) }, equals: .conflict)
    try database.delete("a", basedOn: saved.revisionID, onConflict: .fail)
    try expect(database.document("a") == nil)
  }

  @Test("a deletion leaves a tombstone, and a save undoes it", arguments: someEngines)
  func tombstones(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1])
    try database.save("b", ["n": 1])
    try expect(database.delete("a", keeping: ["why": "old"]).generation, equals: 2)
    try expect(database.document("a") == nil)
    let tombstone = try #require(try database.document("a", includeDeleted: true))
    expect(tombstone.isDeleted)
    expect(tombstone["why"].string, equals: "old")
    try expect(database.documentCount, equals: 1)
    try expect(database.tombstoneCount, equals: 1)
    try expect(database.changes().map(\.documentID), equals: ["b", "a"])
    try expect(database.changes().map(\.isDeleted), equals: [false, true])
    try expect(database.save("a", ["n": 2], onConflict: .fail).generation, equals: 3)
    try expect(database.documentCount, equals: 2)
    try expect(database.tombstoneCount, equals: 0)
    try expect(documentCode { try database.delete("c") }, equals: .notFound)
  }

  @Test("what can't be saved is refused, and nothing changes", arguments: someEngines)
  func refusals(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for id in ["", "_a", "a\u{1}b", String(repeating: "x", count: 241)] {
      try expect(documentCode { try database.save(id, [:]) }, equals: .invalidDocumentID, "\(id)")
    }
    try database.save(String(repeating: "x", count: 240), [:])
    try expect(documentCode { try database.save("a", DocumentBody(json: "[1]")) }, equals: .invalidBody)
    try expect(documentCode { try database.save("a", DocumentBody(json: "1")) }, equals: .invalidBody)
    try expect(documentCode { try database.save("a", DocumentBody(json: #"{"a":"#)) }, equals: .invalidBody)
    try expect(documentCode { try database.save("a", DocumentBody(json: "")) }, equals: .invalidBody)
    try expect(documentCode { try database.save("a", ["d": .double(.nan)]) }, equals: .invalidBody)
    for name in ["_id", "_rev", "_deleted", "_anything", "_a name that is longer than sixteen bytes"] {
      try expect(
        documentCode { try database.save("a", .value([name: 1])) }, equals: .reservedProperty, "\(name)")
    }
    try database.save("b", ["inner": ["_id": "not reserved below the top"]])
    try expect(database.documentCount, equals: 2)
    try expect(database.lastSequence, equals: 2)
  }

  @Test("a batch is all or nothing, and nested ones join it", arguments: someEngines)
  func batches(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.save("before", ["n": 0])
      do {
        try database.inBatch {
          for number in 0..<100 { try database.save("doc\(number)", ["key\(number)": 1]) }
          try expect(database.document("doc7") != nil)
          try expect(database.documentCount, equals: 101)
          try database.delete("before")
          throw Stop()
        }
        Issue.record("the batch went through")
      } catch is Stop {}
      try expect(database.documentCount, equals: 1)
      try expect(database.lastSequence, equals: 1)
      try expect(database.changes().count, equals: 1)
      // Shared keys of the batch that was undone are not left behind.
      try database.inBatch {
        try database.save("a", ["other": 1])
        try database.inBatch { try database.save("b", ["another": 2]) }
        try expect(documentCode { _ = try database.save("a", [:], onConflict: .fail) }, equals: .conflict)
      }
      try expect(database.document("a")?["other"].int, equals: 1)
      try expect(database.document("b")?["another"].int, equals: 2)
      try expect(database.document("b")?["key0"].exists, equals: false)
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
      expect(found, equals: .batchFailed)
      try expect(database.documentCount, equals: 3)
    }
  }

  @Test("replaced bodies stay until compaction", arguments: someEngines)
  func replacedBodies(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      for number in 1...30 { try database.save("a", ["n": .int(Int64(number))]) }
      var revisions = try #require(try database.revisions(of: "a"))
      let generations: [UInt64] = (11...30).reversed()
      expect(revisions.map(\.id.generation), equals: generations)
      let numbers: [JSONValue] = (11...30).reversed().map { .int($0) }
      expect(revisions.compactMap { $0.body?["n"] }, equals: numbers)
      expect(revisions.filter(\.isLeaf).count, equals: 1)
      expect(revisions.last?.parent == nil)
      expect(revisions.first?.parent, equals: revisions[1].id)
      try database.compact()
      revisions = try #require(try database.revisions(of: "a"))
      expect(revisions.count, equals: 20)
      expect(revisions.filter { $0.body != nil }.map(\.isCurrent), equals: [true])
      try expect(database.document("a")?["n"].int, equals: 30)
    }
    try withDatabase(engine, { $0.keepsReplacedBodies = false }) { database in
      for number in 1...3 { try database.save("a", ["n": .int(Int64(number))]) }
      try expect(database.revisions(of: "a")?.map { $0.body != nil }, equals: [true, false, false])
    }
    try withDatabase(engine, { $0.maximumTreeDepth = 1 }) { database in
      for number in 1...3 { try database.save("a", ["n": .int(Int64(number))]) }
      try expect(database.revisions(of: "a")?.count, equals: 1)
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
    try expect(documentCode { try database.save(&document, onConflict: .fail) }, equals: .conflict)
    expect(document.revisionID, equals: revision)
    try expect(
      documentCode { try database.save("x", ["v": 3], basedOn: revision, onConflict: .fail) },
      equals: .conflict)
    try expect(
      documentCode { try database.delete("x", basedOn: revision, onConflict: .fail) }, equals: .notFound)
    try expect(database.document("x") == nil)
    // The last write wins over a purge as well.
    try expect(database.save(&document).revisionID.generation, equals: 1)
    // It starts again, and then there is nothing to change.
    var runs = 0
    try expect(
      documentCode {
        try database.update("x") { document in
          runs += 1
          try database.purge("x")
          document["z"] = 1
        }
      }, equals: .notFound)
    expect(runs, equals: 1)
    // Or a new document.
    try database.save("x", ["v": 4])
    runs = 0
    let saved = try database.update("x", creating: true) { document in
      runs += 1
      if runs == 1 { try database.purge("x") }
      document["z"] = 1
    }
    expect(runs == 2 && saved.revisionID.generation == 1)
    try expect(database.document("x")?.value(), equals: ["z": 1])
  }

  @Test("a purged document leaves nothing", arguments: someEngines)
  func purge(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for number in 0..<5 { try database.save("a", ["n": .int(Int64(number))]) }
    try database.save("b", [:])
    try database.purge("a")
    try expect(database.document("a", includeDeleted: true) == nil)
    try expect(database.changes().map(\.documentID), equals: ["b"])
    try expect(database.lastSequence, equals: 6)
    try expect(documentCode { try database.purge("a") }, equals: .notFound)
    try expect(database.engine.maintenance.statistics().entries["bodies"], equals: 0)
    try expect(database.save("a", [:]).generation, equals: 1)
    try database.purge("b")
    try expect(database.lastSequence, equals: 7)
  }

  @Test("large and small bodies", arguments: someEngines)
  func sizes(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for size in [0, 1, 100, 4_000, 8_192, 70_000, 1_000_000, 20_000_000] {
      let text = String(repeating: "x", count: size)
      try database.save("size\(size)", ["text": .string(text)])
      try expect(database.document("size\(size)")?["text"].string, equals: text)
    }
    let many = JSONValue.object(JSONObject((0..<5_000).map { ("property\($0)", .int(Int64($0))) }))
    try database.save("many", .value(many))
    try expect(database.document("many")?.value(), equals: many)
    try expect(database.document("many")?["property4999"].int, equals: 4_999)
  }
}
