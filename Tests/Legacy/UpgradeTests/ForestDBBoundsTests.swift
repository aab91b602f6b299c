import Datasets
import TestSupport

/// Files of ForestDB that would take time or memory out of all proportion, and numbers at the end of their range.
@Suite("ForestDB files with no measure") struct ForestDBBoundsTests {
  private typealias Sketch = ForestDBSketch

  /// JSON of a megabyte that can't be compressed much.
  private static func large(_ megabytes: Int) -> String {
    var random = SeededGenerator(seed: 11)
    var bytes = [UInt8](repeating: 0x61, count: megabytes << 20)
    for index in stride(from: 0, to: bytes.count, by: 8) {
      bytes[index] = UInt8.random(in: 0x61...0x7A, using: &random)
    }
    return "{\"b\":\"\(String(decoding: bytes, as: UTF8.self))\"}"
  }

  @Test("end when many commit marks name one large record")
  func marks() throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch()
    let place = try sketch.put("large", Sketch.tree(1, Self.large(4)))
    for _ in 0..<5_000 { try sketch.mark(place) }
    try sketch.commit()
    let error = try #require(throws: UpgradeError.self) { try database.upgrade() }
    expect(error.code == .damaged && error.message.contains("again and again"), "\(error)")
  }

  @Test("end when many entries of the trie name one damaged record")
  func entries() throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch()
    let place = try sketch.put("large", Sketch.tree(1, Self.large(4)))
    try sketch.commit()
    for number in 0..<5_000 { sketch.index[Sketch.key("large-\(number)")] = UInt64(place) }
    try sketch.commit(isFlushed: true)
    try database.damage { $0.bytes[place + 1_000_000] ^= 1 }
    let report = try database.upgrade()
    expect(report.documents.skipped == 5_001 && report.documents.carried == 0)
    expect(report.issues.count { $0.message.contains("share bytes") } > 900)
  }

  @Test("end when many revisions name one damaged record, and tell that it is damaged")
  func revisions() throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch()
    let place = try sketch.put("doc", Sketch.tree(1, Self.large(4)))
    let count = 3_000
    try sketch.put(
      "doc",
      Sketch.tree(
        (0...count).map { index in
          (
            UInt64(count + 1 - index), 0xAA, index == count ? -1 : index + 1, index == 0 ? 0x82 : 0x40,
            index == 0 ? 0 : 1, index == 0 ? Array("{}".utf8) : Sketch.varint(UInt64(place))
          )
        }))
    try sketch.commit(isFlushed: true)
    try database.damage { $0.bytes[place + 1_000_000] ^= 1 }
    let report = try database.upgrade()
    // It was read once.
    expect(report.issueCounts, equals: ["unreadableOldBody": 1], "\(report.issues)")
    try expect(database.current(), equals: ["doc": "\(count + 1)-aa"])
  }

  @Test("leave out bodies that are larger than any that Couchbase Lite writes", .enabled(if: !isSanitized))
  func largeBodies() throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch()
    func text(_ megabytes: Int) -> String {
      "{\"b\":\"\(String(decoding: [UInt8](repeating: 0x78, count: megabytes << 20), as: UTF8.self))\"}"
    }
    try sketch.put("twenty", Sketch.tree(1, text(20)))
    try sketch.put("thirty", Sketch.tree(1, text(30)))
    try sketch.put("sixty", Sketch.tree(1, text(60)))
    try sketch.put("small", Sketch.tree(1))
    try sketch.commit()
    let report = try database.upgrade()
    expect(
      report.issueCounts, equals: ["unreadableBody": 1, "noRevision": 1, "damagedRecord": 1],
      "\(report.issues)")
    try expect(database.current(), equals: ["twenty": "1-aa", "small": "1-aa"])
  }

  @Test("keep the large bodies of replaced revisions", arguments: [1, 2])
  func largeHistory(_ version: Int) throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch(version)
    let texts = (1...4).map { "{\"n\":\($0),\"b\":\"\(String(repeating: "\($0)", count: 3 << 20))\"}" }
    var places: [Int] = []
    for (index, text) in texts.enumerated() {
      var revisions: [(UInt64, UInt8, Int, UInt8, UInt64, [UInt8])] = [
        (UInt64(index + 1), 0xAA, index == 0 ? -1 : 1, 0x82, 0, Array(text.utf8))
      ]
      for (older, place) in places.enumerated().reversed() {
        revisions.append(
          (
            UInt64(older + 1), 0xAA, older == 0 ? -1 : revisions.count + 1, 0x40, UInt64(older + 1),
            Sketch.varint(UInt64(place))
          ))
      }
      places.append(try sketch.put("doc", Sketch.tree(revisions)))
    }
    try sketch.commit(isFlushed: version == 1)
    let report = try database.upgrade(isStrict: true)
    expect(report.bodies.carried == 4 && report.issues.isEmpty)
    let result = try database.directory.openNew()
    defer { try? result.close() }
    let revisions = try #require(try result.revisions(of: "doc"))
    for (index, revision) in revisions.enumerated() {
      let body = try #require(revision.body)
      expect(body["n"].int == Int64(4 - index) && (body["b"].string?.utf8.count ?? 0) == 3 << 20)
    }
  }

  @Test("keep room for sequences when the header's last one can't be right")
  func sequences() throws {
    for last: UInt64 in [1 << 63 - 1, 1 << 63, .max] {
      let database = try SketchedDatabase()
      let sketch = try database.sketch()
      try sketch.put("a", Sketch.tree(1), sequence: 5)
      try sketch.put("b", Sketch.tree(1), sequence: 5)
      sketch.saidLastSequence = last
      try sketch.commit()
      let report = try database.upgrade(isStrict: true)
      expect(report.issueCounts, equals: ["sharedSequence": 1, "damagedElsewhere": 1], "\(report.issues)")
      let result = try database.directory.openNew()
      try expect(result.lastSequence, equals: 6)
      try result.close()
    }
    // Those of the documents may be as high.
    let database = try SketchedDatabase()
    let sketch = try database.sketch()
    for id in ["a", "b"] { try sketch.put(id, Sketch.tree(1), sequence: UInt64(Int64.max)) }
    sketch.saidLastSequence = UInt64(Int64.max)
    try sketch.commit()
    try expect(upgradeCode { try database.upgrade() }, equals: .damaged)
  }

  @Test("may have sequences above the last one in their revision trees")
  func sequencesOfTrees() throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch()
    func leaf(_ sequence: UInt64) -> [UInt8] {
      Sketch.tree([(1, 0xAA, -1, 0x82, sequence, Array("{}".utf8))])
    }
    // The first new sequence is one of them.
    for (id, sequence) in [("a", 5), ("b", 1), ("c", 1), ("d", 900)] {
      try sketch.put(id, leaf(UInt64(sequence)))
    }
    try sketch.commit()
    try expect(database.upgrade(isStrict: true).issueCounts, equals: ["sharedSequence": 1])
    let result = try database.directory.openNew()
    defer { try? result.close() }
    try expect(result.lastSequence == 900 && result.document("c")?.sequence == 6)
  }

  @Test("count new sequences only for what is stored")
  func sharedAndSkipped() throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch()
    try sketch.put("a", Sketch.tree(1), sequence: 2)
    try sketch.put("b", Sketch.tree(1, "no JSON"), sequence: 2)
    try sketch.commit()
    try expect(database.upgrade().issueCounts, equals: ["unreadableBody": 1, "noRevision": 1])
    // A leaf that is left out, beside one that isn't.
    let other = try SketchedDatabase()
    let second = try other.sketch()
    let leaves: [(String, UInt8)] = [("{}", 0xAB), ("no JSON", 0xAA)]
    try second.put("a", Sketch.tree(1), sequence: 2)
    try second.put(
      "b", Sketch.tree(leaves.map { (2, $0.1, -1, 0x82, 2, Array($0.0.utf8)) }), sequence: 2)
    try second.commit()
    let report = try other.upgrade()
    expect(report.issueCounts, equals: ["unreadableBody": 1, "sharedSequence": 1], "\(report.issues)")
  }
}
