import TestSupport

@Suite("Exports to .cblite2") struct ExportTests {
  private let directory = TemporaryDirectory()

  /// Something of everything that a database can hold; deterministic.
  static func fill(_ database: Database, seed: UInt64, documents: Int = 60) throws {
    var random = SeededGenerator(seed: seed)
    try database.inBatch {
      for n in 0..<documents {
        let id = "doc-\(n)"
        var body: JSONValue = [
          "n": .int(Int64(n)), "@odd name": .string("größe \(n)"), "list": [1, 2.5, .null, true],
        ]
        for _ in 0..<Int.random(in: 0...6, using: &random) {
          body["key\(Int.random(in: 0..<90, using: &random))"] = .double(Double(n) / 3)
        }
        try database.save(id, .value(body))
        for again in 0..<Int.random(in: 0...3, using: &random) {
          try database.save(id, ["again": .int(Int64(again)), "n": .int(Int64(n * 100_000))])
        }
        if n % 7 == 0 { try database.delete(id, keeping: n % 2 == 0 ? [:] : ["why": "because"]) }
        if n % 5 == 0 {
          try database.apply(
            PulledRevision(
              id: id, history: ["2-\(n % 2 == 0 ? "aa" : "ff")", "1-11"], body: ["side": "pulled"]))
        }
        if n % 10 == 0 {
          try database.apply(
            PulledRevision(id: id, history: ["3-ee", "2-dd", "1-11"], isDeleted: true, body: ["gone": true]))
        }
      }
    }
    let blob = try database.makeBlob(
      (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }, contentType: "a/b")
    try database.save("blob", ["file": blob.jsonValue, "deep": ["list": [blob.jsonValue]]])
    var attached = MutableDocument(id: "attached")
    attached.setAttachment("a.txt", try database.makeBlob(Array("text".utf8), contentType: "text/plain"))
    try database.save(&attached)
    try database.setExpiration(of: "doc-1", at: Date(timeIntervalSince1970: 4_000_000_000.125))
    try database.saveLocalDocument("settings", ["a": 1])
    try database.saveLocalDocument("settings", ["a": 2], basedOn: 1)
    try database.purge("doc-\(documents - 1)")
  }

  @Test("come back as they went, sequences too", arguments: someEngines, [1, 2] as [UInt64])
  func roundTrip(_ engine: EngineName, _ seed: UInt64) throws {
    let database = try newDatabase(directory.file("db"), engine)
    try Self.fill(database, seed: seed)
    let report = try database.exportCBLite2(to: directory.file("out.cblite2"))
    let counts = try (database.documentCount, database.tombstoneCount)
    expect(report.documents == counts.0 && report.tombstones == counts.1)
    expect(report.blobs == 2 && report.localDocuments == 1 && report.expirations == 1)
    expect(report.rewrittenIDs == 0 && report.skipped == 0 && report.conflicts > 0)
    for other in someEngines where isLong || other == engine || other == .lmdb {
      let back = try newDatabase(directory.file("back-\(other)"), other)
      let imported = try back.importCBLite2(directory.file("out.cblite2"))
      expect(
        imported.skipped == 0 && imported.revisions == report.revisions && imported.bodies == report.bodies)
      expect(imported.conflicts == report.conflicts && imported.otherWinners == 0)
      try expect(differences(database, back, sequences: true), equals: [], "seed \(seed)")
      try expectSound(back)
      // The same again is the same bytes.
      let second = directory.file("second-\(other).cblite2")
      try back.exportCBLite2(to: second)
      let all =
        "SELECT hex(key), sequence, flags, hex(version), hex(body), expiration FROM kv_default ORDER BY key"
      try expect(rows(directory.file("out.cblite2"), all), equals: rows(second, all))
      try back.close()
    }
    try database.close()
  }

  @Test("have trees of the described bytes")
  func bytes() throws {
    let database = try newDatabase(directory.file("db"))
    try database.apply(PulledRevision(id: "a", history: ["1-11"], body: [:]))
    try database.apply(PulledRevision(id: "a", history: ["2-bb", "1-11"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "a", history: ["2-aa", "1-11"], body: ["n": 2]))
    try database.apply(PulledRevision(id: "b", history: ["300-00ff"], isDeleted: true, body: [:]))
    try database.exportCBLite2(to: directory.file("out.cblite2"))
    let all = "SELECT key, sequence, flags, hex(version), hex(body) FROM kv_default ORDER BY key"
    let a = [
      "00000013 0002 82 02 02BB 02 7001 0000 0001 8003",  // current: of an older change than the document's
      "00000013 0002 A2 02 02AA 00 7001 0000 0002 8003",
      "0000000D FFFF 90 02 0111 01 7000", "00000000",
    ].joined().filter { $0 != " " }
    let b = "0000000F FFFF 83 04 AC0200FF 00 7000 00000000".filter { $0 != " " }
    try expect(rows(directory.file("out.cblite2"), all), equals: ["a|3|2|02BB|\(a)", "b|4|1|AC0200FF|\(b)"])
    try expect(
      rows(directory.file("out.cblite2"), "SELECT name, lastSeq FROM kvmeta ORDER BY name"),
      equals: [
        "default|4", "info|4",
      ])
    let info = try rows(
      directory.file("out.cblite2"), "SELECT key, length(body), hex(body) FROM kv_info ORDER BY sequence")
    expect(info[0] == "versioning|8|0000000000000000" && info[1].hasPrefix("publicUUID|16|"))
    expect(info[2].hasPrefix("privateUUID|16|") && info[3] == "SharedKeys|6|6001416E8002")
    try database.close()
  }

  @Test("rewrite revision IDs that 2.x can't hold, always in the same way", arguments: someEngines)
  func oddIDs(_ engine: EngineName) throws {
    let database = try newDatabase(directory.file("db"), engine)
    try database.apply(PulledRevision(id: "a", history: ["3-foo", "2-ABCD", "1-ab"], body: ["n": 1]))
    try database.apply(PulledRevision(id: "a", history: ["3-bar", "2-ABCD", "1-ab"], body: ["n": 2]))
    try database.save("b", ["n": 1])
    let report = try database.exportCBLite2(to: directory.file("out.cblite2"))
    expect(report.rewrittenIDs, equals: 3)
    expect(Set(report.rewritten.map(\.revision)), equals: ["3-foo", "3-bar", "2-ABCD"])
    // The SHA-1 of "3-foo".
    let written = report.rewritten.first { $0.revision == "3-foo" }?.written
    expect(written, equals: "3-163eb18de274671cfcb03d908b6213b6a6dd2e9e")
    let back = try newDatabase(directory.file("back"), engine)
    try back.importCBLite2(directory.file("out.cblite2"))
    try expect(back.leaves(of: "a").count, equals: 2)
    try expect(Set(try back.leaves(of: "a").map { $0.body ?? .null }), equals: [["n": 1], ["n": 2]])
    let ancestors = try #require(try back.revisions(of: "a")).filter { !$0.isLeaf }
    expect(ancestors.map(\.id.generation) == [2, 1] && ancestors[1].id.description == "1-ab")
    try expectSound(back)
    try expect(
      database.exportCBLite2(to: directory.file("again.cblite2")).rewritten, equals: report.rewritten)
    try back.close()
    try database.close()
  }

  @Test("say what 2.x can't take: long IDs, blobs that aren't here, indexes")
  func leftBehind() throws {
    let database = try newDatabase(directory.file("db"))
    let long = String(repeating: "x", count: 241)
    try database.apply(PulledRevision(id: long, history: ["1-aa"], body: [:]))
    var pulled = PulledRevision(
      id: "blob", history: ["1-aa"],
      body: ["file": ["@type": "blob", "digest": "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=", "length": 3]])
    pulled.allowsMissingBlobs = true
    try database.apply(pulled)
    try database.createIndex("byN", on: ["n"])
    let report = try database.exportCBLite2(to: directory.file("out.cblite2"))
    expect(report.skipped == 1 && report.missingBlobs == 1 && report.documents == 1)
    expect(report.details.map(\.id).sorted() == ["blob", long] && report.indexes == ["byN"])
    try database.close()
  }

  @Test("appear whole or not at all, and take no other's place")
  func whole() throws {
    struct Stop: Error {}
    let database = try newDatabase(directory.file("db"))
    try Self.fill(database, seed: 3, documents: 300)
    #expect(throws: Stop.self) {
      try database.exportCBLite2(to: directory.file("out.cblite2")) { count in if count > 255 { throw Stop() }
      }
    }
    try expect(FileManager.default.contentsOfDirectory(atPath: directory.path), equals: ["db.touchstone"])
    try database.exportCBLite2(to: directory.file("out.cblite2"))
    #expect(throws: DatabaseError.self) { try database.exportCBLite2(to: directory.file("out.cblite2")) }
    try expect(
      FileManager.default.contentsOfDirectory(atPath: directory.file("out.cblite2")).sorted(),
      equals: ["Attachments", "db.sqlite3"])
    try database.close()
  }

  @Test("keep how deep trees may be")
  func treeDepth() throws {
    let database = try newDatabase(directory.file("db"))
    try database.setMaximumTreeDepth(70)
    for n in 0..<60 { try database.save("doc", ["n": .int(Int64(n))]) }
    try database.exportCBLite2(to: directory.file("out.cblite2"))
    let back = try newDatabase(directory.file("back"))
    try back.importCBLite2(directory.file("out.cblite2"))
    try expect(back.maximumTreeDepth, equals: 70)
    try expect(back.revisions(of: "doc")?.count, equals: 60)
    try expect(differences(database, back), equals: [])
    try expectSound(back)
    try database.close()
    try back.close()
  }
}

extension ExportTests {
  @Test("Deep histories go out whole and come back", arguments: someEngines)
  func deepHistory(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let database = try newDatabase(directory.file("db"), engine)
    try database.setMaximumTreeDepth(2_000)
    try database.inBatch {
      for n in 0..<700 {
        for name in n < 5 ? ["deep", "other"] : ["deep"] { try database.save(name, ["n": .int(Int64(n))]) }
      }
    }
    try expect(database.exportCBLite2(to: directory.file("out.cblite2")).revisions, equals: 705)
    let back = try newDatabase(directory.file("back"), engine)
    try back.importCBLite2(directory.file("out.cblite2"))
    try expect(back.revisions(of: "deep", withBodies: false)?.count, equals: 700)
    try expect(differences(database, back, sequences: true), equals: [])
    try expectSound(back)
    // It goes on, on top of what was put in whole.
    for n in 0..<3 { try back.save("deep", ["m": .int(Int64(n))]) }
    try expectSound(back)
    try database.close()
    try back.close()
  }
}
