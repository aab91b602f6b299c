import Datasets
import TestSupport

/// What is damaged in a log is told, and an older version of a document is never taken for the damaged one without a
/// word.
@Suite("Damaged logs of ForestDB") struct ForestDBLogDamageTests {
  private typealias Sketch = ForestDBSketch

  /// Documents a, b and c in the trie, and newer ones of a and b and a new d in the log. Returns where they are.
  private func make(
    _ database: SketchedDatabase, _ version: Int, isMarked: Bool = true
  ) throws -> (records: [String: Int], marks: [Int]) {
    let sketch = try database.sketch(version)
    for id in ["a", "b", "c"] { try sketch.put(id, Sketch.tree(1)) }
    try sketch.commit(isFlushed: true)
    var records: [String: Int] = [:]
    for id in ["a", "b", "d"] { records[id] = try sketch.put(id, Sketch.tree(2), isMarked: isMarked) }
    try sketch.commit()
    return (records, sketch.lastMarks)
  }

  /// The place of the sequence in a record whose ID has one byte.
  private static let sequenceAt = 16 + 9 + 4

  @Test("with a commit mark that names no place are reported", arguments: [1, 2])
  func markOfNothing(_ version: Int) throws {
    for lost in 0..<3 {
      let database = try SketchedDatabase()
      let places = try make(database, version)
      try database.damage { $0.bytes[places.marks[lost] + 16 + 3] = 0xBA }
      let report = try database.upgrade()
      let id = ["a", "b", "d"][lost]
      // What the mark named is the record whose sequence no other has.
      expect(report.issueCounts, equals: ["damagedRecord": 2], "\(lost): \(report.issues)")
      expect(report.issues.first?.message.contains("at byte \(places.marks[lost]) of"), equals: true)
      expect(report.issues.last?.documentID == id && report.documents.skipped == 1)
      var expected = ["a": "2-aa", "b": "2-aa", "c": "1-aa", "d": "2-aa"]
      expected[id] = nil
      try expect(database.current(), equals: expected)
      #expect(throws: UpgradeError.self) { try database.upgrade(isStrict: true) }
    }
  }

  @Test("don't believe the sequence of a record whose checksum is wrong", arguments: [1, 2], [true, false])
  func sequence(_ version: Int, _ isMarked: Bool) throws {
    for (byte, change) in [(0, 0x10), (7, 0x04), (7, 0x40), (6, 1)] as [(Int, UInt8)] {
      let database = try SketchedDatabase()
      let places = try make(database, version, isMarked: isMarked)
      let place = try #require(places.records["b"])
      try database.damage { $0.bytes[place + Self.sequenceAt + byte] ^= change }
      let report = try database.upgrade()
      expect(report.issueCounts, equals: ["damagedRecord": 1], "\(byte): \(report.issues)")
      expect(report.issues.first?.documentID, equals: "b")
      try expect(database.current(), equals: ["a": "2-aa", "c": "1-aa", "d": "2-aa"])
    }
  }

  @Test("keep a healthy record behind a damaged one of the same document", arguments: [1, 2])
  func later(_ version: Int) throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch(version)
    let place = try sketch.put("a", Sketch.tree(1))
    try sketch.commit()
    try sketch.put("a", Sketch.tree(2))
    try sketch.commit()
    try database.damage { $0.bytes[place + Self.sequenceAt] ^= 0x10 }
    try expect(database.upgrade().issueCounts, equals: [:])
    try expect(database.current(), equals: ["a": "2-aa"])
  }

  @Test("aren't hidden by damaged records of the trie that they replace", arguments: [1, 2], [0x40, 0x01])
  func replaced(_ version: Int, _ change: UInt8) throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch(version)
    let place = try sketch.put("a", Sketch.tree(1))
    try sketch.put("b", Sketch.tree(1))
    try sketch.put("local", Array("{}".utf8), in: .local)
    try sketch.commit(isFlushed: true)
    try sketch.put("a", Sketch.tree(2))
    try sketch.commit()
    try database.damage { $0.bytes[place + Self.sequenceAt] ^= change }
    let report = try database.upgrade(isStrict: true)
    expect(report.issueCounts == ["damagedElsewhere": 1] && report.losses == 0, "\(report.issues)")
    try expect(database.current(), equals: ["a": "2-aa", "b": "1-aa"])
  }

  @Test("find the right flags of a record, which its head's checksum doesn't cover", arguments: [1, 2])
  func flags(_ version: Int) throws {
    for change in [0x08, 0x20, 0x10, 0x04, 0xFF] as [UInt8] {
      for isMarked in [true, false] {
        let database = try SketchedDatabase()
        let places = try make(database, version, isMarked: isMarked)
        let place = try #require(places.records["b"])
        try database.damage { $0.bytes[place + 12] ^= change }
        try expect(database.upgrade().issueCounts, equals: [:], "\(change)")
        try expect(
          database.current(), equals: ["a": "2-aa", "b": "2-aa", "c": "1-aa", "d": "2-aa"], "\(change)")
      }
    }
  }

  // MARK: Blocks

  /// Thirty documents of several to a block in the trie, and newer ones in the log. Returns where those are.
  private func makeMany(_ database: SketchedDatabase, _ version: Int) throws -> (places: [Int], marks: [Int])
  {
    let sketch = try database.sketch(version)
    for number in 0..<30 { try sketch.put("doc-\(number)", Sketch.tree(1)) }
    try sketch.commit(isFlushed: true)
    var random = SeededGenerator(seed: 7)
    let places = try (0..<30).map { number in
      let text = (0..<50).map { _ in String(random.next(), radix: 36) }.joined()
      return try sketch.put("doc-\(number)", Sketch.tree(2, "{\"text\":\"\(text)\"}"))
    }
    try sketch.beginBlocks()
    try sketch.commit()
    return (places, sketch.lastMarks)
  }

  private enum Filling: CaseIterable {
    case marker, otherMarker, zeros, ones, zerosWithMarker, otherRound

    func fill(_ file: inout ForestBytes, _ block: Int) {
      let last = block * 4_096 + 4_095
      switch self {
      case .marker: file.bytes[last] ^= 2
      case .otherMarker: file.bytes[last] = 0xFF
      case .zeros: file.fill(block, 0)
      case .ones: file.fill(block, 0xFF)
      case .zerosWithMarker:
        file.fill(block, 0)
        file.bytes[last] = 0xDD
      case .otherRound: file.bytes[last - 6] ^= 5
      }
    }
  }

  @Test("with a damaged block of records leave out what was in it, and nothing else", arguments: [1, 2])
  func blockOfRecords(_ version: Int) throws {
    for filling in Filling.allCases {
      let database = try SketchedDatabase()
      let (places, _) = try makeMany(database, version)
      let block = places[15] / 4_096
      try database.damage { filling.fill(&$0, block) }
      let report = try database.upgrade()
      let current = try database.current()
      if filling == .otherRound, version == 2 {
        expect(report.issueCounts, equals: [:], "\(report.issues)")
        continue
      }
      // A record can begin in the block before.
      let touched = (0..<30).filter { number in
        let end = number < 29 ? places[number + 1] - 1 : places[number]
        return places[number] / 4_096 <= block && end / 4_096 >= block
      }
      expect(report.losses > 0, "\(filling)")
      let notNew = (0..<30).filter { current["doc-\($0)"] != "2-aa" }
      expect(Set(notNew).isSubset(of: touched), "\(filling): \(notNew) of \(touched)")
      // Where the ID could be read, no older version came back.
      let old = notNew.filter { current["doc-\($0)"] == "1-aa" }
      expect(old.allSatisfy { places[$0] / 4_096 == block }, "\(filling): \(old)")
    }
  }

  @Test("with a damaged block of commit marks leave out what they named", arguments: [1, 2])
  func blockOfMarks(_ version: Int) throws {
    for filling in [Filling.marker, .otherMarker, .zeros, .ones, .zerosWithMarker] {
      let database = try SketchedDatabase()
      let (_, marks) = try makeMany(database, version)
      try database.damage { filling.fill(&$0, marks[3] / 4_096) }
      let report = try database.upgrade()
      expect(report.losses > 0, "\(filling)")
      try expect(database.current().isEmpty, "\(filling)")
      expect(report.documents.skipped, equals: 30, "\(filling): \(report.documents)")
    }
  }

  @Test("with blocks that a killed writer never wrote lose nothing", arguments: [1, 2])
  func killedWriter(_ version: Int) throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch(version)
    try sketch.put("a", Sketch.tree(1))
    try sketch.commit()
    var blocks: Set<Int> = []
    for number in 0..<30 {
      let body = Sketch.tree(9, "{\"n\":\(number)}") + [UInt8](repeating: 0, count: 200)
      blocks.insert(try sketch.put("x-\(number)", body, isAborted: true) / 4_096)
    }
    try sketch.beginBlocks()
    try sketch.put("b", Sketch.tree(1))
    try sketch.commit()
    try database.damage { file in for block in blocks { file.fill(block, 0) } }
    try expect(database.upgrade(isStrict: true).issueCounts, equals: [:])
    try expect(database.current(), equals: ["a": "1-aa", "b": "1-aa"])
  }

  @Test("leave out a document whose record begins at the end of a block and is damaged", arguments: [1, 2])
  func rest(_ version: Int) throws {
    let payload = version == 1 ? 4_095 : 4_080
    let lengths = 3_850..<4_050
    var random = SeededGenerator(seed: 3)
    let letters = (0..<lengths.upperBound).map { _ in UInt8.random(in: 0x61...0x7A, using: &random) }
    for wanted in [5, 10, 15] {
      let database = try SketchedDatabase()
      var place = 0
      // The record before is as long as it has to be.
      for length in lengths {
        let text = String(decoding: letters[..<length], as: UTF8.self)
        let sketch = try database.sketch(version)
        try sketch.put("a", Sketch.tree(1))
        try sketch.commit(isFlushed: true)
        try sketch.put("filler", Sketch.tree(1, "{\"t\":\"\(text)\"}"), isMarked: false)
        place = try sketch.put("a", Sketch.tree(2, "{\"b\":1}"), isMarked: false)
        try sketch.commit()
        if payload - place % 4_096 == wanted { break }
      }
      guard payload - place % 4_096 == wanted else { continue }
      try database.damage { file in
        let next = version == 1 ? place / 4_096 + 1 : Int(file.integer(place / 4_096 * 4_096 + 4_080))
        file.bytes[next * 4_096 + 50] ^= 1
      }
      let report = try database.upgrade()
      expect(report.issues.map(\.documentID), equals: ["a"], "\(wanted): \(report.issues)")
      try expect(database.current()["a"] == nil)
    }
  }

  @Test("report changes that are above the last sequence of the header", arguments: [1, 2])
  func lastSequence(_ version: Int) throws {
    let database = try SketchedDatabase()
    let sketch = try database.sketch(version)
    try sketch.put("a", Sketch.tree(1))
    try sketch.commit()
    try sketch.put("b", Sketch.tree(1))
    try sketch.put("a", Sketch.tree(2))
    sketch.saidLastSequence = 1
    try sketch.commit()
    let report = try database.upgrade()
    expect(report.issueCounts, equals: ["damagedRecord": 1], "\(report.issues)")
    expect(report.issues.first?.message.contains("changes up to 3 were committed"), equals: true)
  }
}
