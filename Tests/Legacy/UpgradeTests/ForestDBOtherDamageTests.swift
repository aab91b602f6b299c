import Datasets
import TestSupport

/// Damage in the trie, and in what isn't a document.
@Suite("Other damage of ForestDB files") struct ForestDBOtherDamageTests {
  private typealias Sketch = ForestDBSketch

  @Test("is told for expirations and values of the database", arguments: [1, 2], [true, false])
  func values(_ version: Int, _ isFlushed: Bool) throws {
    for lost in ["expiry", "publicUUID", "max_revs", "checkpoint/x", "local"] {
      let database = try SketchedDatabase()
      let sketch = try database.sketch(version)
      try sketch.put("doc", Sketch.tree(1))
      var places = ["expiry": try sketch.put("doc", Sketch.varint(4_102_444_800), in: .expiry)]
      for (key, value) in [
        ("publicUUID", "2e9c5c0e-8f0e-4d62-9d5c-27f5d1f0a3b2"), ("max_revs", "7"), ("checkpoint/x", "1"),
      ] { places[key] = try sketch.put(key, Array(value.utf8), in: .info) }
      places["local"] = try sketch.put("_local/x", Array("{}".utf8), in: .local)
      try sketch.commit(isFlushed: isFlushed)
      let place = try #require(places[lost])
      // The padding of a head is covered by the checksum alone.
      try database.damage { $0.bytes[place + 14] ^= 1 }
      let report = try database.upgrade()
      let kind =
        ["expiry": "expiration", "local": "localDocument", "checkpoint/x": "damagedElsewhere"][lost]
        ?? "damagedRecord"
      expect(report.issueCounts, equals: [kind: 1], "\(lost): \(report.issues)")
      expect(report.expirations.skipped, equals: (lost == "expiry" ? 1 : 0))
      let winners = try database.upgrade(.winners)
      expect(winners.issueCounts, equals: [:], "\(lost): \(winners.issues)")
    }
  }

  @Test("is told where the trie names no place, without another document's name", arguments: [1, 2])
  func trieOffset(_ version: Int) throws {
    for id in ["a", "b", "c"] {
      for newPlace in [1 << 40, 0] as [UInt64] {
        let database = try SketchedDatabase()
        let sketch = try database.sketch(version)
        var places: [String: Int] = [:]
        for id in ["a", "b", "c"] { places[id] = try sketch.put(id, Sketch.tree(1)) }
        // Not a place of another store.
        try sketch.put("_local/x", Array("{}".utf8), in: .local)
        try sketch.commit()
        // A place where no record is, or the record of another document.
        let other = try #require(places[id == "a" ? "b" : "a"])
        sketch.index[Sketch.key(id)] = newPlace > 0 ? newPlace : UInt64(other)
        try sketch.commit(isFlushed: true)
        let report = try database.upgrade()
        expect(report.issueCounts, equals: ["damagedRecord": 1], "\(id), \(newPlace): \(report.issues)")
        expect(report.issues.first?.documentID == nil)
        var expected = ["a": "1-aa", "b": "1-aa", "c": "1-aa"]
        expected[id] = nil
        try expect(database.current(), equals: expected)
      }
    }
  }

  @Test("of a document is told once, though its store alone is in the trie", arguments: [1, 2])
  func onlyStore(_ version: Int) throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch(version)
    let place = try sketch.put("doc-1", Sketch.tree(1))
    try sketch.put("doc-2", Sketch.tree(1))
    try sketch.commit(isFlushed: true)
    try sketch.put("_local/x", Array("{}".utf8), in: .local)
    try sketch.commit()
    for byte in [14, 16 + 5] {
      try database.damage { $0.bytes[place + byte] ^= 1 }
      let report = try database.upgrade()
      expect(report.issueCounts, equals: ["damagedRecord": 1], "\(byte): \(report.issues)")
      expect(report.localDocuments.carried, equals: 1)
    }
  }

  @Test("isn't hidden behind the ID of a document in the log")
  func otherKey() throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch()
    let place = try sketch.put("doc-2", Sketch.tree(1))
    try sketch.put("doc-3", Sketch.tree(1))
    try sketch.commit(isFlushed: true)
    try sketch.put("doc-3", Sketch.tree(2))
    try sketch.commit()
    try database.damage { $0.bytes[place + 16 + 8 + 4] ^= 1 }
    let report = try database.upgrade()
    expect(report.issueCounts, equals: ["damagedRecord": 1], "\(report.issues)")
    try expect(database.current(), equals: ["doc-3": "2-aa"])
  }

  @Test("is told for the body of a replaced revision", arguments: [1, 2])
  func oldBody(_ version: Int) throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch(version)
    let place = try sketch.put("doc", Sketch.tree(1, "{\"n\":1}"))
    try sketch.commit()
    try sketch.put(
      "doc",
      Sketch.tree([
        (2, 0xAA, 1, 0x82, 0, Array("{\"n\":2}".utf8)), (1, 0xAA, -1, 0x40, 1, Sketch.varint(UInt64(place))),
      ]))
    try sketch.commit(isFlushed: true)
    try expect(database.upgrade().bodies.carried, equals: 2)
    try database.damage { $0.bytes[place + 14] ^= 1 }
    let report = try database.upgrade()
    expect(report.issueCounts == ["unreadableOldBody": 1] && report.bodies.carried == 1, "\(report.issues)")
    expect(report.issues.first?.revisionID, equals: "1-aa")
  }

  @Test("isn't made of local documents whose IDs aren't UTF-8")
  func localIDs() throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch()
    try sketch.put("doc", Sketch.tree(1))
    for byte in [0xFE, 0xFF] as [UInt8] {
      try sketch.put(Sketch.key("_local/", in: .local) + [byte], Array("{}".utf8), in: .local)
    }
    try sketch.put("_local/x", Array("{}".utf8), in: .local)
    try sketch.commit()
    let report = try database.upgrade()
    expect(report.issueCounts == ["localDocument": 2] && report.localDocuments.carried == 1)
    expect(report.issues.allSatisfy { $0.message.contains("isn't UTF-8") })
  }

  @Test("isn't made by a result inside the source")
  func target() throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch()
    try sketch.put("doc", Sketch.tree(1))
    try sketch.commit()
    try FileManager.default.createDirectory(
      atPath: database.source + "/deep", withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: database.directory.path + "/link", withDestinationPath: database.source + "/deep")
    let before = try Files(database.source)
    for path in [
      database.source + "/inner", database.source + "/deep/inner", database.directory.path + "/link/inner",
    ] {
      let error = #expect(throws: DatabaseError.self) { try Database.upgrade(database.source, to: path) }
      expect(error?.code, equals: .invalidName)
    }
    try expect(Files(database.source), equals: before)
  }
}
