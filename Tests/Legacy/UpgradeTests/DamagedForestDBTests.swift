import Datasets
import TestSupport

/// Damaged files of ForestDB: what is damaged is told, and the rest comes over.
@Suite("Damaged ForestDB databases") struct DamagedForestDBTests {
  private let directory = TemporaryDirectory()

  private static func settings() -> LegacyDatabase {
    var settings = MadeForestDBTests.settings()
    settings.conflicts = 0
    settings.tombstones = 0
    return settings
  }

  private func make(_ version: Int, flush: Int, endsFlushed: Bool = false) throws -> (
    source: String, file: ForestBytes
  ) {
    var shape = LegacyForestDB()
    shape.version = version
    shape.flush = flush
    shape.endsFlushed = endsFlushed
    shape.hasUnfinished = false
    let source = try LegacyForestDBMaker(Self.settings(), shape).make("old", in: directory.path)
    return (source, try ForestBytes(source + "/db.forest.0"))
  }

  private func upgrade(_ source: String) throws -> UpgradeReport {
    try Database.upgrade(source, to: directory.new, options: UpgradeOptions(verifies: true))
  }

  @Test("lose a document of the trie whose record is damaged, and no other", arguments: [1, 2])
  func recordOfTrie(_ version: Int) throws {
    var (source, file) = try make(version, flush: 1, endsFlushed: true)
    let place = try #require(file.lastRecord(of: "doc-17"))
    file.bytes[place + 60] ^= 1
    try file.write()
    let report = try upgrade(source)
    expect(report.issueCounts, equals: ["damagedRecord": 1])
    expect(report.documents.skipped == 1 && report.documents.carried == 149 && report.losses == 1)
    let issue = try #require(report.issues.first)
    expect(issue.documentID == "doc-17" && issue.message.contains("at byte \(place) of"))
    let strict = try upgradeCode {
      try Database.upgrade(source, to: directory.file("strict"), options: UpgradeOptions(isStrict: true))
    }
    expect(strict, equals: .refused)
    try expect(directory.names(), equals: ["new.touchstone", "old.cblite2"])
  }

  @Test(
    "never take an older version of a document for the one whose record in the log is damaged",
    arguments: [1, 2])
  func recordOfLog(_ version: Int) throws {
    var (source, file) = try make(version, flush: 0)
    let place = try #require(file.lastRecord(of: "doc-17"))
    file.bytes[place + 60] ^= 1
    try file.write()
    let report = try upgrade(source)
    expect(report.issueCounts["damagedRecord"], equals: 1, "\(report.issues)")
    expect(report.issues.first?.documentID, equals: "doc-17")
    let database = try directory.openNew()
    defer { try? database.close() }
    try expect(database.document("doc-17") == nil)
    try expect(database.documentCount, equals: 149)
  }

  @Test("say where a node of the trie is damaged", arguments: [1, 2])
  func node(_ version: Int) throws {
    var (source, file) = try make(version, flush: 1, endsFlushed: true)
    let block = try #require(file.lastBlock(0xFF))
    file.bytes[block * 4_096 + 100] ^= 1
    try file.write()
    let error = try #require(throws: UpgradeError.self) { try upgrade(source) }
    expect(error.code == .damaged && error.path == source + "/db.forest.0", "\(error)")
    expect(error.message.contains("at byte \(block * 4_096)"))
    try expect(directory.names(), equals: ["old.cblite2"])
  }

  @Test("take the commit before one whose header is damaged, and say so", arguments: [1, 2])
  func header(_ version: Int) throws {
    var (source, file) = try make(version, flush: 0)
    let block = try #require(file.lastBlock(0xEE))
    file.bytes[block * 4_096 + 20] ^= 1
    try file.write()
    let report = try upgrade(source)
    expect(report.issueCounts["damagedCommit"] == 1 && report.losses == 1, "\(report.issues)")
    expect(report.issues.first?.message.contains("at byte \(block * 4_096) of"), equals: true)
    expect(report.documents.carried > 100)
  }

  @Test("take the file before one that is damaged as a whole, and say so")
  func file() throws {
    let (source, _) = try make(1, flush: 2)
    try Data([UInt8](repeating: 0x5C, count: 40_960)).write(to: URL(filePath: source + "/db.forest.1"))
    var meta = try ForestBytes(source + "/db.forest.meta")
    meta.bytes[4 + "db.forest.".utf8.count] = UInt8(ascii: "1")
    try meta.write()
    // The meta file isn't valid, but file 0 doesn't say that a compaction had begun either.
    try expect(upgrade(source).issueCounts, equals: ["damagedCommit": 1])
    try FileManager.default.removeItem(atPath: directory.new + ".touchstone")
    meta.sealMeta()
    try meta.write()
    let report = try upgrade(source)
    expect(report.issueCounts == ["damagedCommit": 1] && report.documents.carried == 150)
    expect(report.issues.first?.message.contains(source + "/db.forest.1"), equals: true, "\(report.issues)")
    for name in ["db.forest.0", "db.forest.1"] {
      try FileManager.default.removeItem(atPath: source + "/" + name)
    }
    try expect(upgradeCode { try Database.upgrade(source, to: directory.file("none")) }, equals: .foreign)
  }

  @Test("are read up to the commit before the place where they were cut off, or say so", arguments: [1, 2])
  func truncated(_ version: Int) throws {
    let (source, file) = try make(version, flush: 0)
    var carried = 0
    for part in [0, 1, 4_095, 4_096, 16_384, 20_480, 50_000, file.bytes.count / 2, file.bytes.count - 4_096] {
      try? FileManager.default.removeItem(atPath: directory.new + ".touchstone")
      try Data(file.bytes.prefix(part)).write(to: URL(filePath: source + "/db.forest.0"))
      do {
        let report = try upgrade(source)
        carried += 1
        if version == 2 { expect(report.losses > 0 || part == file.bytes.count - 4_096, "\(part) bytes") }
      } catch let error as UpgradeError {
        expect([.truncated, .damaged, .keyRequired].contains(error.code), "\(part) bytes: \(error)")
      }
    }
    expect(carried > 0)
  }

  @Test("with lengths and pointers beyond all bounds are errors", arguments: [1, 2])
  func bounds(_ version: Int) throws {
    let (source, whole) = try make(version, flush: 1, endsFlushed: true)
    let shift = version == 1 ? 0 : 8
    let header = UInt64(try #require(whole.lastBlock(0xEE)))
    // The header says where the trie and the stores are.
    for (place, value) in [
      (0, 0x7FFF_FFFF_FFFF), (0, 0x00E0_0000_0000_0001), (0, header), (56 + shift, 1 << 40),
      (56 + shift, 4_095),
      (56 + shift, 0), (48 + shift, 1 << 50), (48 + shift, 1 << 20),
    ] as [(Int, UInt64)] {
      var file = whole
      let block = try #require(file.lastBlock(0xEE))
      file.set(value, at: block * 4_096 + place)
      file.sealHeader(block, version)
      try file.write()
      let code = try upgradeCode { try upgrade(source) }
      expect(code, equals: .damaged, "\(place): \(value): \(String(describing: code))")
    }
    // A node that is its own child, and one with more entries than it has room for.
    let block = try #require(whole.lastBlock(0xEE))
    let root = whole.integer(block * 4_096)
    let node = Int(root & 0xFFFF_FFFF_FFFF) * 4_096
    let size = root >> 53 & 7 == 0 ? 4_096 : 128 << Int((root >> 53 & 7) - 1)
    let place = node + Int(root >> 48 & 31) * size
    for change in [
      { (file: inout ForestBytes) in file.set(root | 1 << 63, at: place + 40) },
      { (file: inout ForestBytes) in file.bytes[place + 6] = 0xFF },
      { (file: inout ForestBytes) in file.bytes[place + 4] = 0xFF },
      { (file: inout ForestBytes) in file.bytes[place + 16] = 0xFF },
    ] {
      var file = whole
      change(&file)
      file.sealNodes(node / 4_096)
      try file.write()
      try expect(upgradeCode { try upgrade(source) }, equals: .damaged)
    }
  }

  @Test("with records that claim to be huge lose these records alone", arguments: [1, 2])
  func hugeRecords(_ version: Int) throws {
    var (source, file) = try make(version, flush: 1, endsFlushed: true)
    for (number, (offset, value)) in [(4, 0xFFFF_FFFF), (8, 0xFFFF_FFFF), (4, 0x0FFF_FFFF)].enumerated() {
      let place = try #require(file.lastRecord(of: "doc-\(number + 20)"))
      for index in 0..<4 { file.bytes[place + offset + index] = UInt8(value >> (24 - 8 * index) & 0xFF) }
      file.sealHead(place)
    }
    try file.write()
    let report = try upgrade(source)
    expect(report.issueCounts, equals: ["damagedRecord": 3], "\(report.issues)")
    expect(report.documents.carried, equals: 147)
  }

  @Test("of revision trees that make no sense lose their documents alone")
  func trees() throws {
    let tree: [(String, [UInt8])] = [
      ("no end", [0, 0, 0, 13, 0xFF, 0xFF, 0x82, 2, 1, 0xAA, 0, 0x7B, 0x7D]),
      ("size", [0, 0, 1, 13, 0xFF, 0xFF, 0x82, 2, 1, 0xAA, 0, 0x7B, 0x7D, 0, 0, 0, 0]),
      ("size 1", [0, 0, 0, 1, 0, 0, 0, 0]),
      ("ID", [0, 0, 0, 13, 0xFF, 0xFF, 0x82, 200, 1, 0xAA, 0, 0x7B, 0x7D, 0, 0, 0, 0]),
      ("parent", [0, 0, 0, 13, 0, 9, 0x82, 2, 1, 0xAA, 0, 0x7B, 0x7D, 0, 0, 0, 0]),
      ("rest", [0, 0, 0, 13, 0xFF, 0xFF, 0x82, 2, 1, 0xAA, 0, 0x7B, 0x7D, 0, 0, 0, 0, 0]),
      ("empty", [0, 0, 0, 0]), ("sequence", [0, 0, 0, 11, 0xFF, 0xFF, 0x02, 2, 1, 0xAA, 0xFF, 0, 0, 0, 0]),
      ("generation", [0, 0, 0, 12, 0xFF, 0xFF, 0x82, 1, 0, 0, 0x7B, 0x7D, 0, 0, 0, 0]),
      ("right", [0, 0, 0, 13, 0xFF, 0xFF, 0x82, 2, 1, 0xAA, 0, 0x7B, 0x7D, 0, 0, 0, 0]),
    ]
    let source = directory.path + "/trees.cblite2"
    try FileManager.default.createDirectory(atPath: source, withIntermediateDirectories: true)
    let records = tree.map { name, body in (id: Array(name.utf8), body: body) }
    // The same sequence several times, as a killed writer leaves it.
    try LegacyForestDBMaker.make(
      source + "/db.forest.0",
      records: records.map { (id: $0.id, sequence: 7, body: $0.body) }
        + [(id: Array("again".utf8), sequence: 7, body: tree[tree.count - 1].1)])
    let report = try upgrade(source)
    expect(
      report.issueCounts,
      equals: [
        "damagedRecord": 8, "invalidRevisionID": 1, "noRevision": 1, "sharedSequence": 1,
      ])
    expect(report.documents.carried == 2 && report.verifiedDocuments == 2)
    let database = try directory.openNew()
    defer { try? database.close() }
    try expect(database.lastSequence, equals: 8)
    try expect(
      Set([database.document("right")?.sequence, database.document("again")?.sequence]), equals: [7, 8])
  }

  // MARK: Mutations

  /// Upgrades what was mutated: what comes of it has to be whole and counted.
  private func look(_ source: String, _ key: UserKey?, _ comment: Comment) throws -> Bool {
    let target = directory.path + "/new.touchstone"
    try? FileManager.default.removeItem(atPath: target)
    let begun = Date()
    let report: UpgradeReport
    do {
      report = try Database.upgrade(
        source, to: target, options: UpgradeOptions(verifies: true, sourceKey: key))
    } catch let error as UpgradeError {
      expect(error.code != .differs, "\(comment): \(error)")
      expect(!FileManager.default.fileExists(atPath: target), comment)
      return false
    }
    expect(Date().timeIntervalSince(begun) < 20, comment)
    for count in [
      report.documents, report.revisions, report.bodies, report.localDocuments, report.tombstones,
    ] {
      expect(count.read, equals: count.carried + count.skipped + count.unwanted, comment)
      if count.skipped > 0 { expect(report.losses > 0, comment) }
    }
    let database = try Database.open(target, options: DatabaseOptions(isReadOnly: true))
    defer { try? database.close() }
    let faults = try database.check(deep: true).filter { !"\($0)".contains("blob") }
    expect(faults.isEmpty, "\(comment): \(faults.prefix(3))")
    return true
  }

  @Test("give a report or an error, whatever bytes were flipped")
  func mutations() throws {
    var random = SeededGenerator(seed: testSeed)
    var ends = (carried: 0, refused: 0)
    var sources: [(source: String, key: UserKey?)] = []
    for (version, flush) in [(1, 0), (1, 3), (2, 0), (2, 3)] {
      var shape = LegacyForestDB()
      (shape.version, shape.flush) = (version, flush)
      var settings = Self.settings()
      settings.documents = 12
      sources.append(
        (try LegacyForestDBMaker(settings, shape).make("v\(version)-\(flush)", in: directory.path), nil))
    }
    for (name, expected) in try RealForestDBTests.expected().sorted(by: { $0.key < $1.key }) {
      let copy = "\(directory.path)/\(name).cblite2"
      try FileManager.default.copyItem(atPath: RealForestDBTests.path(name, expected), toPath: copy)
      sources.append((copy, try expected.key.map { try .raw(hex($0)) }))
    }
    let rounds = times(80, sanitized: 160, long: 4_000) / sources.count
    for (source, key) in sources {
      let name = try #require(
        try FileManager.default.contentsOfDirectory(atPath: source).filter {
          $0.hasPrefix("db.forest.") && $0 != "db.forest.meta"
        }.max())
      let whole = try ForestBytes(source + "/" + name)
      for round in 0..<rounds {
        var file = whole
        for _ in 0..<Int.random(in: 1...8, using: &random) { file.mutate(&random, isEncrypted: key != nil) }
        try file.write()
        if try look(source, key, "\(source), round \(round) of seed \(testSeed)") {
          ends.carried += 1
        } else {
          ends.refused += 1
        }
      }
    }
    print("flipped bytes in ForestDB files: \(ends.carried) carried over, \(ends.refused) refused")
    expect(ends.carried > 0 && ends.refused > 0)
  }

  @Test("are told when the file ends within a block, because it was cut off", arguments: [1, 2])
  func cutOff(_ version: Int) throws {
    let (source, file) = try make(version, flush: 0)
    // A commit is there, and the next one was cut in its middle.
    try Data(file.bytes.dropLast(file.bytes.count / 2 / 4_096 * 4_096 + 2_000))
      .write(to: URL(fileURLWithPath: source + "/db.forest.0"))
    let report = try upgrade(source)
    expect(report.documents.carried < 150 && report.losses > 0)
    expect(report.issueCounts["damagedCommit"] ?? 0 >= 1)
    expect(report.issues.contains { $0.message.contains("it was cut off") })
  }
}
